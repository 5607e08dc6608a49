package memkv

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/sightline-dev/sightline/core/kv"
)

const (
	groupPairs = 128       // maximum number of pairs that are read together
	groupBytes = 256 << 10 // approximate maximum of their far values, in bytes
	gapBytes   = 4 << 10   // unneeded bytes that one read may include to avoid a second read
)

// group yields pairs in the order of a scan, and reads far values together. It reads more of them at once in a longer scan.
type group struct {
	files *fileStore
	yield func(key, value []byte) bool
	pairs []pair // not yet yielded; the first one is far
	keys  []byte // keys of pairs
	bytes int    // bytes of their far values
	limit int    // maximum number of pairs
	err   error
	ended bool // yield has returned false

	wanted []pendingRead
	values [][]byte
	buffer *[]byte
}

// pair is one pair of a scan.
type pair struct {
	key []byte
	value
}

// pendingRead is a far value of a group.
type pendingRead struct {
	far
	i  int // index in pairs
	at int64
}

// take adds a pair of a scan, and may yield pairs. It returns false if the scan must end.
func (g *group) take(key []byte, v value) bool {
	if !v.away && len(g.pairs) == 0 {
		g.ended = !g.yield(key, v.near)
		return !g.ended
	}
	from := len(g.keys)
	g.keys = append(g.keys, key...)
	g.pairs = append(g.pairs, pair{g.keys[from:len(g.keys):len(g.keys)], v})
	if v.away {
		g.wanted = append(g.wanted, pendingRead{far: v.far, i: len(g.pairs) - 1})
		g.bytes += int(v.far.n)
	}
	if len(g.pairs) <= g.limit && g.bytes < groupBytes {
		return true
	}
	g.limit = min(2*g.limit+1, groupPairs)
	return g.flush()
}

// flush reads the far values and yields all pairs.
func (g *group) flush() bool {
	if len(g.pairs) == 0 {
		return true
	}
	g.values = append(g.values[:0], make([][]byte, len(g.pairs))...)
	if g.err = g.read(); g.err != nil {
		return false
	}
	for i, p := range g.pairs {
		value := g.values[i]
		if value == nil {
			value = p.near
		}
		if g.ended = !g.yield(p.key, value); g.ended {
			return false
		}
	}
	g.pairs, g.keys, g.wanted, g.bytes = g.pairs[:0], g.keys[:0], g.wanted[:0], 0
	return true
}

// read reads the far values, with one read for neighbours.
func (g *group) read() error {
	f := g.files
	f.mu.RLock()
	defer f.mu.RUnlock()
	for i := range g.wanted {
		at, data := f.places.where(g.wanted[i].place)
		if data != nil {
			if crc(data) != g.wanted[i].crc {
				return errValue
			}
			g.values[g.wanted[i].i] = data
		}
		g.wanted[i].at = at
	}
	all := slices.DeleteFunc(g.wanted, func(w pendingRead) bool { return g.values[w.i] != nil })
	slices.SortFunc(all, func(a, b pendingRead) int { return cmp.Compare(a.at, b.at) })
	room := 0 // total bytes of all runs
	ends := make([]int, 0, len(all))
	for from := 0; from < len(all); {
		to := run(all[from:]) + from
		room += int(all[to-1].end() - all[from].at)
		ends = append(ends, to)
		from = to
	}
	if g.buffer == nil {
		g.buffer, _ = f.buffers.Get().(*[]byte)
		if g.buffer == nil {
			g.buffer = new([]byte)
		}
	}
	*g.buffer = slices.Grow((*g.buffer)[:0], room)
	rest, from := (*g.buffer)[:room], 0
	for _, to := range ends {
		start := all[from].at
		n := int(all[to-1].end() - start)
		if err := f.journal.Read(start, rest[:n]); err != nil {
			return fmt.Errorf("values: %w", err)
		}
		for _, w := range all[from:to] {
			value := rest[w.at-start:][:w.n:w.n]
			if crc(value) != w.crc {
				return errValue
			}
			g.values[w.i] = value
		}
		rest, from = rest[n:], to
	}
	return nil
}

func (w pendingRead) end() int64 { return w.at + int64(w.n) }

// run returns the number of neighbours at the beginning of all, which is sorted by offset.
func run(all []pendingRead) int {
	n := 1
	for n < len(all) && all[n].at <= all[n-1].end()+gapBytes {
		n++
	}
	return n
}

// view reads a tree that does not change. It implements [kv.Snapshot].
type view struct {
	tree  *tree
	files *fileStore // files of the far values; nil: none
	err   error      // kv.ErrClosed once the view is closed
}

// Close implements [kv.Snapshot].
func (v *view) Close() error {
	if v.err != nil {
		return v.err
	}
	v.leave()
	*v = view{err: kv.ErrClosed}
	return nil
}

// leave ends the use of the view.
func (v *view) leave() {
	if v.files != nil {
		v.files.leave()
	}
}

// Get implements [kv.Reader].
func (v *view) Get(key []byte) ([]byte, error) {
	if v.err != nil {
		return nil, v.err
	}
	value, ok := v.tree.get(key)
	if !ok {
		return nil, kv.ErrNotFound
	}
	if value.away {
		return v.files.read(value.far)
	}
	return append([]byte{}, value.near...), nil
}

// Scan implements [kv.Reader].
func (v *view) Scan(lo, hi []byte, yield func(key, value []byte) bool) error {
	return v.each(yield, func(g *group) {
		v.tree.ascend(lo, func(key []byte, value value) bool {
			return (hi == nil || bytes.Compare(key, hi) < 0) && g.take(key, value)
		})
	})
}

// ScanBack implements [kv.Reader].
func (v *view) ScanBack(lo, hi []byte, yield func(key, value []byte) bool) error {
	return v.each(yield, func(g *group) {
		v.tree.descend(hi, func(key []byte, value value) bool {
			return bytes.Compare(key, lo) >= 0 && g.take(key, value)
		})
	})
}

// each yields the pairs that walk passes to the group.
func (v *view) each(yield func(key, value []byte) bool, walk func(g *group)) error {
	if v.err != nil {
		return v.err
	}
	g := group{files: v.files, yield: yield}
	walk(&g)
	if g.err == nil && !g.ended {
		g.flush()
	}
	if g.buffer != nil {
		v.files.buffers.Put(g.buffer)
	}
	return g.err
}
