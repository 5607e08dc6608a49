package location

import (
	"context"
	"slices"
)

// checkEvery is the number of bytes of work after which a plan checks its context.
const checkEvery = 1 << 20

// maxSpans is the maximum number of separate parts of a file that are collected. A film of two hours with 60 pictures in a second, each
// in its own chunk, has fewer.
const maxSpans = 1 << 20

// span is a range of a file: from is the offset of its first byte, and to the offset after its last byte.
type span struct{ from, to int64 }

// plan collects the edits of a file. Its methods add edits in the order of their offsets.
type plan struct {
	ctx   context.Context
	data  []byte
	edits []Edit
	bytes int64 // memory of the edits
	empty int64 // all bytes from the end of the last edit to this offset become zero, or are zero already; -1: unknown
	work  int64 // bytes read so far; structures count as their size
	check int64 // work at which ctx is checked next
	over  bool  // the file is zeroed as a whole
	err   error // from ctx
}

func newPlan(ctx context.Context, data []byte) *plan {
	return &plan{ctx: ctx, data: data, empty: -1, err: ctx.Err(), check: checkEvery}
}

func (p *plan) size() int64 { return int64(len(p.data)) }

// step counts n bytes of work and reports whether to continue.
func (p *plan) step(n int64) bool {
	p.work += n
	if p.work >= p.check && p.err == nil {
		p.check, p.err = p.work+checkEvery, p.ctx.Err()
	}
	return p.err == nil && !p.over
}

// result returns the edits in memory of their exact size.
func (p *plan) result() ([]Edit, error) {
	switch {
	case p.err != nil:
		return nil, p.err
	case p.over && len(p.data) > 0:
		return []Edit{{Len: p.size()}}, nil
	}
	n := 0
	for _, e := range p.edits {
		n += len(e.Replacement)
	}
	all := make([]byte, 0, n)
	for i, e := range p.edits {
		if len(e.Replacement) > 0 {
			all = append(all, e.Replacement...)
			p.edits[i].Replacement = all[len(all)-len(e.Replacement) : len(all) : len(all)]
		}
	}
	return append(make([]Edit, 0, len(p.edits)), p.edits...), nil
}

// zero zeroes the bytes from one offset to another. It omits bytes at both ends that are zero already.
func (p *plan) zero(from, to int64) {
	to = min(to, p.size())
	if from >= to {
		return
	}
	joins := p.empty == from && len(p.edits) > 0
	first, last := from, from // the bytes to change
	for at := from; at < to; {
		n := min(to-at, checkEvery)
		if !p.step(n) {
			return
		}
		b := p.data[at : at+n]
		if head := int64(zeroPrefix(b)); head < n {
			if first == last {
				first = at + head
			}
			last = at + n - int64(zeroSuffix(b))
		}
		at += n
	}
	switch {
	case first == last:
	case joins:
		e := &p.edits[len(p.edits)-1]
		e.Len = last - e.At
	default:
		p.add(Edit{At: first, Len: last - first})
	}
	if joins || first < last {
		p.empty = to
	}
}

// put replaces bytes at an offset, as far as they are in the file. It omits bytes at both ends that are equal already.
func (p *plan) put(at int64, by []byte) {
	by = by[:max(0, min(int64(len(by)), p.size()-at))]
	for len(by) > 0 && by[0] == p.data[at] {
		at, by = at+1, by[1:]
	}
	n := len(by)
	for n > 0 && by[n-1] == p.data[at+int64(n)-1] {
		n--
	}
	if !p.step(int64(len(by))) || n == 0 {
		return
	}
	trimmed := n < len(by)
	by = by[:n]
	joins := false
	if last := len(p.edits) - 1; last >= 0 && p.empty == at {
		// Zeros that take less memory than an edit become bytes of the edit before.
		e := &p.edits[last]
		gap := at - e.At - int64(len(e.Replacement))
		if joins = gap <= editBytes; joins {
			e.Replacement = append(append(e.Replacement, zeroes[:gap]...), by...)
			e.Len = int64(len(e.Replacement))
			p.charge(gap + int64(n))
		}
	}
	if !joins {
		p.add(Edit{At: at, Len: int64(n), Replacement: slices.Clone(by)})
	}
	p.empty = at + int64(n)
	if trimmed {
		p.empty = -1
	}
}

// replace writes bytes at from, and zeros from their end up to to.
func (p *plan) replace(from, to int64, by []byte) {
	by = by[:min(int64(len(by)), to-from)]
	p.put(from, by)
	p.zero(from+int64(len(by)), to)
}

func (p *plan) add(e Edit) {
	if len(p.edits) == maxEdits {
		p.over = true
		return
	}
	p.edits = append(p.edits, e)
	p.charge(editBytes + int64(len(e.Replacement)))
}

func (p *plan) charge(n int64) {
	p.bytes += n
	p.over = p.over || p.bytes > maxBytes
}

// room returns parts with room for one more. It doubles the memory, up to that of maxSpans parts.
func room[T any](parts []T) []T {
	if n := len(parts); n == cap(parts) {
		return slices.Grow(parts, max(1, min(max(n, 64), maxSpans+1-n)))
	}
	return parts
}

// appendSpan appends a span that does not begin before the last one. It merges the two if they overlap or touch.
func appendSpan(spans []span, s span) []span {
	if n := len(spans); n > 0 && s.from <= spans[n-1].to {
		spans[n-1].to = max(spans[n-1].to, s.to)
		return spans
	}
	return append(spans, s)
}

// union sorts spans and merges those that overlap or touch.
func union(spans []span) []span {
	spans = sorted(spans, func(s span) int64 { return s.from })
	out := spans[:0]
	for _, s := range spans {
		out = appendSpan(out, s)
	}
	return out
}

// sorted sorts by keys from 0, in separate memory or that of all. It is a radix sort, whose time does not depend on the order: a hostile
// list of a million parts takes about 0.05 s.
func sorted[T any](all []T, key func(T) int64) []T {
	const bits = 11
	most, inOrder := int64(0), true
	for _, v := range all {
		inOrder = inOrder && key(v) >= most
		most = max(most, key(v))
	}
	if inOrder {
		return all
	}
	to := make([]T, len(all))
	for shift := 0; most>>shift > 0; shift += bits {
		var at [1<<bits + 1]int
		for _, v := range all {
			at[key(v)>>shift&(1<<bits-1)+1]++
		}
		for i := range 1 << bits {
			at[i+1] += at[i]
		}
		for _, v := range all {
			digit := key(v) >> shift & (1<<bits - 1)
			to[at[digit]] = v
			at[digit]++
		}
		all, to = to, all
	}
	return all
}
