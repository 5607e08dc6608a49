package memkv

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/tidwall/btree"
)

// leafBytes is the maximum size of a leaf with more than one pair.
const leafBytes = 2 << 10

// tree is an ordered set of pairs. Leaves contain the packed pairs, so neither a pair nor its key is a separate object. A B-tree orders the
// leaves by their first key. A copy is free, since a tree changes in place only leaves that it has made since the copy.
//
// Results of its methods are borrowed: a key until yield returns, a value until the tree is changed.
type tree struct {
	leaves *btree.BTreeG[ref] // the first leaf, if any, has the empty low key
	owner  *owner
	n      int    // number of pairs
	spare  []byte // memory of a deleted leaf, for the next one
}

// owner marks the leaves that a tree may change.
type owner struct{ _ byte }

// ref is a leaf and its least possible key. The keys of the leaf are below the next ref's low.
type ref struct {
	low  []byte
	leaf *leaf
}

// leaf is a list of pairs in order, whose keys have a common prefix. The format of a pair:
//
//	1..5  uvarint: bytes of the key after the prefix
//	…     these bytes
//	1     0 near    …  the value
//	1     1 far     4  its place    4  its bytes    4  their CRC
type leaf struct {
	owner  *owner
	prefix []byte   // a common prefix of the keys, not always the longest
	data   []byte   // encoded pairs
	starts []uint16 // offset of each pair in data; data exceeds leafBytes only if it is a single pair
	last   int      // pair that was put last
}

const (
	tagNear = iota
	tagFar
)

// value is the value of a pair, or its place.
type value struct {
	near []byte
	far  far
	away bool // the value is in far, not in near
}

// size returns the number of bytes.
func (v *value) size() int64 {
	if v.away {
		return int64(v.far.n)
	}
	return int64(len(v.near))
}

func newTree() *tree {
	less := func(a, b ref) bool { return bytes.Compare(a.low, b.low) < 0 }
	return &tree{leaves: btree.NewBTreeGOptions(less, btree.Options{NoLocks: true}), owner: new(owner)}
}

// copy returns a tree of the same pairs. The caller may change both trees.
func (t *tree) copy() *tree {
	t.owner = new(owner)
	return &tree{leaves: t.leaves.Copy(), owner: new(owner), n: t.n}
}

// get returns the value of a key, and reports whether the key exists.
func (t *tree) get(key []byte) (value, bool) {
	l := t.find(key).leaf
	if l == nil {
		return value{}, false
	}
	i, found := l.search(key)
	if !found {
		return value{}, false
	}
	_, v := l.pair(i)
	return v, true
}

// find returns the leaf that may have a key. In an empty tree, leaf is nil.
func (t *tree) find(key []byte) (found ref) {
	t.leaves.Descend(ref{low: key}, func(r ref) bool {
		found = r
		return false
	})
	return found
}

// ascend yields the pairs in ascending order, starting at lo.
func (t *tree) ascend(lo []byte, yield func(key []byte, v value) bool) {
	var key []byte
	t.leaves.Ascend(t.find(lo), func(r ref) bool {
		i, _ := r.leaf.search(lo)
		for ; i < len(r.leaf.starts); i++ {
			var v value
			if key, v = r.leaf.whole(key, i); !yield(key[:len(key):len(key)], v) {
				return false
			}
		}
		return true
	})
}

// descend yields the pairs below hi in descending order. If hi is nil, it yields all pairs.
func (t *tree) descend(hi []byte, yield func(key []byte, v value) bool) {
	var key []byte
	down := func(r ref) bool {
		i := len(r.leaf.starts)
		if hi != nil {
			i, _ = r.leaf.search(hi)
		}
		for i--; i >= 0; i-- {
			var v value
			if key, v = r.leaf.whole(key, i); !yield(key[:len(key):len(key)], v) {
				return false
			}
		}
		return true
	}
	if hi == nil {
		t.leaves.Reverse(down)
		return
	}
	t.leaves.Descend(ref{low: hi}, down)
}

// put sets the value of a key. It returns the size and the place of the previous value, and whether the key existed.
func (t *tree) put(key []byte, v value) (old value, was bool) {
	r := t.find(key)
	if r.leaf == nil {
		r = t.add(nil, &leaf{})
	}
	i, was := r.leaf.search(key)
	if was {
		_, old = r.leaf.pair(i)
		t.own(&r).cut(i, i+1)
	} else {
		t.n++
	}
	for !r.leaf.fits(key, &v) {
		r, i = t.split(r, i, key)
	}
	l := t.own(&r)
	if common := commonPrefixLen(l.prefix, key); len(l.starts) > 0 && common < len(l.prefix) {
		t.widen(l, common)
	}
	l.insert(i, key, &v)
	return old, was
}

// delete removes a key. It returns the size and the place of its value, and whether the key existed.
func (t *tree) delete(key []byte) (old value, was bool) {
	r := t.find(key)
	if r.leaf == nil {
		return value{}, false
	}
	i, was := r.leaf.search(key)
	if !was {
		return value{}, false
	}
	_, old = r.leaf.pair(i)
	t.own(&r).cut(i, i+1)
	t.n--
	t.shrunk(r)
	return old, true
}

// deleteRange removes the keys with lo ≤ key < hi, and yields each before it removes it.
func (t *tree) deleteRange(lo, hi []byte, yield func(key []byte, v value)) {
	var of []ref
	t.leaves.Ascend(t.find(lo), func(r ref) bool {
		of = append(of, r)
		return bytes.Compare(r.low, hi) < 0
	})
	var key []byte
	for _, r := range of {
		from, _ := r.leaf.search(lo)
		to, _ := r.leaf.search(hi)
		for i := from; i < to; i++ {
			var v value
			key, v = r.leaf.whole(key, i)
			yield(key, v)
		}
		t.n -= max(to-from, 0)
		switch {
		case from >= to:
		case to-from == len(r.leaf.starts) && len(r.low) > 0:
			t.leaves.Delete(r)
		default:
			t.own(&r).cut(from, to)
		}
	}
	if len(of) > 0 {
		t.shrunk(t.find(lo))
	}
}

// add inserts a leaf, or replaces the one with the same low.
func (t *tree) add(low []byte, l *leaf) ref {
	l.owner = t.owner
	r := ref{low, l}
	t.leaves.Set(r)
	return r
}

// own returns a leaf that the tree may change: the leaf of r, or a copy that replaces it.
func (t *tree) own(r *ref) *leaf {
	if r.leaf.owner != t.owner {
		l := *r.leaf
		l.data, l.starts = append(make([]byte, 0, cap(l.data)), l.data...), slices.Clone(l.starts)
		*r = t.add(r.low, &l)
	}
	return r.leaf
}

// split splits a leaf that lacks space for a key before pair i. It returns the leaf and the index for the key. If keys come in ascending
// order, split leaves full leaves behind.
func (t *tree) split(r ref, i int, key []byte) (ref, int) {
	l, n := r.leaf, len(r.leaf.starts)
	if i == n {
		return t.add(bytes.Clone(key), &leaf{data: t.room(), starts: make([]uint16, 0, n)}), 0
	}
	at := i
	if i != l.last+1 {
		at, _ = slices.BinarySearch(l.starts, uint16(len(l.data)/2))
		at = min(at, n-1)
	}
	low, _ := l.whole(nil, at)
	right := t.add(low, l.part(at, n, t.room()))
	left := t.add(r.low, l.part(0, at, t.room()))
	if l.owner == t.owner {
		t.reuse(l.data)
	}
	if i > at {
		return right, i - at
	}
	return left, i
}

// widen shortens the common prefix of a leaf's pairs to n bytes.
func (t *tree) widen(l *leaf, n int) {
	wider := leaf{prefix: l.prefix[:n], data: t.room(), starts: make([]uint16, 0, len(l.starts)+1)}
	wider.take(l, 0, len(l.starts))
	t.reuse(l.data)
	l.prefix, l.data, l.starts = wider.prefix, wider.data, wider.starts
}

// room returns empty memory for the pairs of a leaf.
func (t *tree) room() (data []byte) {
	if data, t.spare = t.spare, nil; data == nil {
		return make([]byte, 0, leafBytes)
	}
	return data[:0]
}

// reuse stores the memory of a leaf for the next one, unless it was for one long pair.
func (t *tree) reuse(data []byte) {
	if cap(data) == leafBytes {
		t.spare = data
	}
}

// shrunk removes a leaf that has become empty, and merges a nearly empty one with the next leaf.
func (t *tree) shrunk(r ref) {
	if len(r.leaf.starts) == 0 && len(r.low) > 0 {
		t.leaves.Delete(r)
		return
	}
	if len(r.leaf.data) > leafBytes/4 {
		return
	}
	var next ref
	t.leaves.Ascend(r, func(at ref) bool {
		next = at
		return at.leaf == r.leaf
	})
	if next.leaf == r.leaf {
		return
	}
	if both := mergeLeaves(r.leaf, next.leaf); both != nil {
		t.leaves.Delete(next)
		t.add(r.low, both)
	}
}

// search returns the index of a key, or the index at which it belongs.
func (l *leaf) search(key []byte) (i int, found bool) {
	rest, ok := bytes.CutPrefix(key, l.prefix)
	if !ok {
		if bytes.Compare(key, l.prefix) > 0 {
			return len(l.starts), false
		}
		return 0, false
	}
	return slices.BinarySearchFunc(l.starts, rest, func(start uint16, rest []byte) int {
		suffix, _ := cutKey(l.data[start:])
		return bytes.Compare(suffix, rest)
	})
}

// end returns the offset of the end of pair i in data.
func (l *leaf) end(i int) int {
	if i+1 < len(l.starts) {
		return int(l.starts[i+1])
	}
	return len(l.data)
}

// pair returns the key of pair i, without the prefix, and its value.
func (l *leaf) pair(i int) (rest []byte, v value) {
	rest, data := cutKey(l.data[l.starts[i]:l.end(i)])
	if data[0] == tagNear {
		return rest, value{near: data[1:len(data):len(data)]}
	}
	return rest, value{away: true, far: far{
		place: place(binary.LittleEndian.Uint32(data[1:])),
		n:     binary.LittleEndian.Uint32(data[5:]),
		crc:   binary.LittleEndian.Uint32(data[9:]),
	}}
}

// cutKey splits a pair into the key, without the prefix, and the rest.
func cutKey(pair []byte) (rest, after []byte) {
	if n := int(pair[0]); n < 0x80 {
		return pair[1 : 1+n], pair[1+n:]
	}
	n, size := binary.Uvarint(pair)
	return pair[size:][:n], pair[size+int(n):]
}

// whole returns the complete key of pair i and its value. The key reuses the memory of room.
func (l *leaf) whole(room []byte, i int) (key []byte, v value) {
	rest, v := l.pair(i)
	return append(append(room[:0], l.prefix...), rest...), v
}

// appendPair appends a pair to to. rest is its key without the prefix.
func appendPair(to, rest []byte, v *value) []byte {
	to = append(binary.AppendUvarint(to, uint64(len(rest))), rest...)
	if !v.away {
		return append(append(to, tagNear), v.near...)
	}
	to = binary.LittleEndian.AppendUint32(append(to, tagFar), uint32(v.far.place))
	to = binary.LittleEndian.AppendUint32(to, v.far.n)
	return binary.LittleEndian.AppendUint32(to, v.far.crc)
}

// pairBytes returns the size of a pair whose key has n bytes after the prefix.
func pairBytes(n int, v *value) int {
	size := 1 + n + 1 + len(v.near)
	for ; n >= 0x80; n >>= 7 {
		size++
	}
	if v.away {
		size += 12
	}
	return size
}

// fits reports whether there is space for a pair. Its key may shorten the common prefix of the others.
func (l *leaf) fits(key []byte, v *value) bool {
	n, common := len(l.starts), commonPrefixLen(l.prefix, key)
	return n == 0 || len(l.data)+n*(len(l.prefix)-common)+pairBytes(len(key)-common, v) <= leafBytes
}

// insert inserts a pair before pair i. Its key has the leaf's prefix.
func (l *leaf) insert(i int, key []byte, v *value) {
	if len(l.starts) == 0 {
		l.prefix = bytes.Clone(key)
	}
	rest := key[len(l.prefix):]
	at, end, n := len(l.data), len(l.data), pairBytes(len(rest), v)
	if i < len(l.starts) {
		at = int(l.starts[i])
	}
	l.data = slices.Grow(l.data, n)[:end+n]
	copy(l.data[at+n:], l.data[at:end])
	appendPair(l.data[:at], rest, v)
	l.starts = slices.Insert(l.starts, i, uint16(at))
	for j := i + 1; j < len(l.starts); j++ {
		l.starts[j] += uint16(n)
	}
	l.last = i
}

// cut removes the pairs i to j-1.
func (l *leaf) cut(i, j int) {
	from, to := int(l.starts[i]), l.end(j-1)
	l.data = slices.Delete(l.data, from, to)
	l.starts = slices.Delete(l.starts, i, j)
	for ; i < len(l.starts); i++ {
		l.starts[i] -= uint16(to - from)
	}
}

// part returns a leaf with the pairs i to j-1. It uses the memory of room.
func (l *leaf) part(i, j int, room []byte) *leaf {
	part := &leaf{data: room, starts: make([]uint16, 0, len(l.starts)), last: l.last - i}
	if i < j {
		first, _ := l.whole(nil, i)
		last, _ := l.whole(nil, j-1)
		part.prefix = first[:commonPrefixLen(first, last)]
		part.take(l, i, j)
	}
	return part
}

// mergeLeaves returns a leaf with the pairs of two neighbours, or nil if the result would be more than half full.
func mergeLeaves(a, b *leaf) *leaf {
	if len(a.starts) == 0 || len(b.starts) == 0 {
		return nil
	}
	first, _ := a.whole(nil, 0)
	last, _ := b.whole(nil, len(b.starts)-1)
	common := commonPrefixLen(first, last)
	size := len(a.data) + len(b.data)
	for _, l := range []*leaf{a, b} {
		size += len(l.starts) * (len(l.prefix) - min(common, len(l.prefix)))
	}
	if size > leafBytes/2 {
		return nil
	}
	both := &leaf{prefix: first[:common]}
	both.take(a, 0, len(a.starts))
	both.take(b, 0, len(b.starts))
	return both
}

// take appends the pairs i to j-1 of another leaf, whose keys have this leaf's prefix.
func (l *leaf) take(from *leaf, i, j int) {
	var key []byte
	for ; i < j; i++ {
		var v value
		key, v = from.whole(key, i)
		l.starts = append(l.starts, uint16(len(l.data)))
		l.data = appendPair(l.data, key[len(l.prefix):], &v)
	}
}

// commonPrefixLen returns the length of the common prefix of two keys.
func commonPrefixLen(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
