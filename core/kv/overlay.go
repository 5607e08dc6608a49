package kv

import (
	"bytes"
	"slices"
	"sort"
)

// Overlay is a [Reader] that shows a base as if the overlay's batch had been applied to it. It is not safe for concurrent use. The base
// must not change under the keys that are written here. A fold overlays a snapshot, or the part of a store that only the fold writes.
type Overlay struct {
	base          Reader
	batch         Batch
	pending       writeIndex // results of single keys, over deleted ranges
	deletedRanges []span     // deleted ranges of the base: ascending and disjoint; replaced, never changed in place
}

// span is the keys lo ≤ key < hi.
type span struct{ lo, hi []byte }

var (
	_ Reader = (*Overlay)(nil)
	_ Writer = (*Overlay)(nil)
)

// NewOverlay returns an overlay with an empty batch.
func NewOverlay(base Reader) *Overlay {
	o := &Overlay{}
	o.pending.batch = &o.batch
	o.Reset(base)
	return o
}

// Reset empties the batch, keeping its memory, and uses another base. Earlier results of Batch become invalid.
func (o *Overlay) Reset(base Reader) {
	o.base, o.deletedRanges = base, nil
	o.batch.Reset()
	o.pending.reset()
}

// Batch returns the writes since the last Reset, for applying them to the base. The overlay owns the batch: the caller must not change it,
// and it grows with the next write.
func (o *Overlay) Batch() *Batch { return &o.batch }

// Put implements [Writer].
func (o *Overlay) Put(key, value []byte) { o.pending.set(o.batch.put(key, value)) }

// Delete implements [Writer].
func (o *Overlay) Delete(key []byte) { o.pending.set(o.batch.del(key)) }

// DeleteRange implements [Writer].
func (o *Overlay) DeleteRange(lo, hi []byte) {
	lo, hi, ok := o.batch.deleteRange(lo, hi)
	if !ok {
		return
	}
	o.pending.drop(lo, hi)
	o.deletedRanges = union(o.deletedRanges, span{lo, hi})
}

// union returns spans and s, and merges spans that touch.
func union(spans []span, s span) []span {
	from := sort.Search(len(spans), func(i int) bool { return bytes.Compare(spans[i].hi, s.lo) >= 0 })
	to := from
	for to < len(spans) && bytes.Compare(spans[to].lo, s.hi) <= 0 {
		to++
	}
	if to > from {
		if bytes.Compare(spans[from].lo, s.lo) < 0 {
			s.lo = spans[from].lo
		}
		if bytes.Compare(spans[to-1].hi, s.hi) > 0 {
			s.hi = spans[to-1].hi
		}
	}
	return slices.Concat(spans[:from], []span{s}, spans[to:])
}

// Get implements [Reader].
func (o *Overlay) Get(key []byte) ([]byte, error) {
	if e, ok := o.pending.get(key); ok {
		if e.deleted {
			return nil, ErrNotFound
		}
		return append([]byte{}, e.value...), nil
	}
	i := sort.Search(len(o.deletedRanges), func(i int) bool { return bytes.Compare(o.deletedRanges[i].hi, key) > 0 })
	if i < len(o.deletedRanges) && bytes.Compare(o.deletedRanges[i].lo, key) <= 0 {
		return nil, ErrNotFound
	}
	return o.base.Get(key)
}

// Scan implements [Reader].
func (o *Overlay) Scan(lo, hi []byte, yield func(key, value []byte) bool) error {
	m := merge{yield: yield, before: func(a, b []byte) bool { return bytes.Compare(a, b) < 0 }}
	m.pending = o.pending.within(lo, hi)
	for _, s := range gaps(o.deletedRanges, lo, hi) {
		if err := o.base.Scan(s.lo, s.hi, m.base); err != nil || m.stopped {
			return err
		}
	}
	m.rest()
	return nil
}

// ScanBack implements [Reader].
func (o *Overlay) ScanBack(lo, hi []byte, yield func(key, value []byte) bool) error {
	m := merge{yield: yield, before: func(a, b []byte) bool { return bytes.Compare(a, b) > 0 }}
	m.pending = o.pending.within(lo, hi)
	slices.Reverse(m.pending)
	for _, s := range slices.Backward(gaps(o.deletedRanges, lo, hi)) {
		if err := o.base.ScanBack(s.lo, s.hi, m.base); err != nil || m.stopped {
			return err
		}
	}
	m.rest()
	return nil
}

// gaps returns the parts of lo ≤ key < hi outside the spans.
func gaps(spans []span, lo, hi []byte) []span {
	var out []span
	for _, s := range spans {
		if bytes.Compare(s.hi, lo) <= 0 {
			continue
		}
		if hi != nil && bytes.Compare(s.lo, hi) >= 0 {
			break
		}
		if bytes.Compare(lo, s.lo) < 0 {
			out = append(out, span{lo, s.lo})
		}
		lo = s.hi
	}
	if hi == nil || bytes.Compare(lo, hi) < 0 {
		out = append(out, span{lo, hi})
	}
	return out
}

// merge yields the base's keys and the pending ones in one ordered sequence. A pending key hides the same key of the base.
type merge struct {
	pending []entry // not yet yielded, in the order of the scan
	before  func(a, b []byte) bool
	yield   func(key, value []byte) bool
	stopped bool
}

// base handles the base's next key.
func (m *merge) base(key, value []byte) bool {
	for len(m.pending) > 0 && m.before(m.pending[0].key, key) {
		if !m.next() {
			return false
		}
	}
	if len(m.pending) > 0 && bytes.Equal(m.pending[0].key, key) {
		return m.next()
	}
	m.stopped = !m.yield(key, value)
	return !m.stopped
}

// next yields the next pending key, unless that key is deleted.
func (m *merge) next() bool {
	e := m.pending[0]
	m.pending = m.pending[1:]
	m.stopped = !e.deleted && !m.yield(e.key, e.value)
	return !m.stopped
}

func (m *merge) rest() {
	for len(m.pending) > 0 && m.next() {
		continue
	}
}
