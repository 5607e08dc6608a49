package location

import (
	"cmp"
	"slices"
)

// Limits of the directories of a TIFF file. A file beyond them is zeroed as a whole.
const (
	maxDirectories = 1 << 10
	maxEntries     = 1 << 16 // of all directories
	maxOffsets     = 1 << 16 // of directories, including repeated ones
	maxJPEGs       = 1 << 17
)

// tiffFile is a TIFF file and the parts that stay.
type tiffFile struct {
	*plan
	order   byteOrder
	next    []int64        // offsets of directories to read
	offsets int            // number of offsets that were in next
	seen    map[int64]bool // offsets that were read
	entries int
	dirs    []tiffDirectory
	strips  int64 // number of offsets of strips and tiles that may still be read
	spans   []span
	starts  []int64 // of the directories and values, in order
	jpegs   []span
}

// tiffDirectory is a directory: the number of its entries, the entries, and the offset of the next directory.
type tiffDirectory struct {
	span
	kept []byte // the entries that stay
	by   []byte // new bytes; nil: no entry is removed
}

// tiff zeroes all bytes that a decoder does not need.
//
//	header → directory → directory → 0
//	            │ ├─ entry: value, or offset of values
//	            │ └─ entry: offsets of strips → strips
//	            └─ entry: offsets of directories → directories
func (p *plan) tiff() {
	order, at, ok := openTIFF(p.data)
	if !ok {
		return
	}
	t := &tiffFile{plan: p, order: order, seen: map[int64]bool{}, strips: p.size()/4 + 1}
	t.dirs = []tiffDirectory{{span: span{0, 8}}} // the header
	t.follow(at)
	for len(t.next) > 0 && t.step(8) {
		at := t.next[len(t.next)-1]
		t.next = t.next[:len(t.next)-1]
		if !t.seen[at] {
			t.seen[at] = true
			t.directory(at)
		}
	}
	slices.SortFunc(t.dirs, func(a, b tiffDirectory) int { return cmp.Compare(a.from, b.from) })
	for i := range t.dirs {
		if i > 0 && t.dirs[i].from < t.dirs[i-1].to {
			t.over = true // directories overlap
		}
		t.spans = append(t.spans, t.dirs[i].span)
	}
	for _, s := range t.spans {
		t.starts = append(t.starts, s.from)
	}
	slices.Sort(t.starts)
	for i := range t.dirs {
		if t.step(1) {
			t.picture(&t.dirs[i])
		}
	}
	if t.step(1) {
		t.write()
	}
}

// follow adds the offset of a directory to the list of directories to read.
func (t *tiffFile) follow(at int64) {
	if t.offsets++; t.offsets > maxOffsets {
		t.over = true
		return
	}
	if at > 0 {
		t.next = append(t.next, at)
	}
}

// directory reads the directory at an offset. If several entries have the same tag, only the first may stay.
func (t *tiffFile) directory(at int64) {
	if at+2 > t.size() {
		return
	}
	if at < 8 || len(t.dirs) > maxDirectories {
		t.over = true
		return
	}
	entries := directory(t.data, t.order, at)
	if t.entries += len(entries) / entryBytes; t.entries > maxEntries || !t.step(int64(len(entries))) {
		t.over = true
		return
	}
	d := tiffDirectory{span: span{at, at + 2 + int64(len(entries))}}
	samples := int64(1)
	for e := entries; len(e) > 0; e = e[entryBytes:] {
		if t.order.Uint16(e) == tagSamples && t.order.Uint16(e[2:]) == 3 {
			samples = int64(t.order.Uint16(e[8:]))
		}
	}
	tags := map[uint16]bool{}
	for ; len(entries) > 0; entries = entries[entryBytes:] {
		e := entries[:entryBytes]
		tag := t.order.Uint16(e)
		size, ok := stays(tag, t.order.Uint16(e[2:]), int64(t.order.Uint32(e[4:])), samples)
		if !ok || tags[tag] {
			tags[tag] = true
			continue
		}
		tags[tag] = true
		d.kept = append(d.kept, e...)
		if size > 4 {
			t.keep(int64(t.order.Uint32(e[8:])), size)
		}
	}
	for n, i := t.values(&d, tagSubIFDs), int64(0); i < n.count && !t.over; i++ {
		t.follow(n.at(i))
	}
	var next []byte
	if d.to+4 <= t.size() {
		next = t.data[d.to : d.to+4]
		d.to += 4
		t.follow(int64(t.order.Uint32(next)))
	}
	if n := len(d.kept); int64(2+n+len(next)) < d.to-d.from {
		d.by = t.order.AppendUint16(nil, uint16(n/entryBytes))
		d.by = append(append(d.by, d.kept...), next...)
	}
	t.dirs = append(t.dirs, d)
}

// keep keeps n bytes from an offset.
func (t *tiffFile) keep(at, n int64) {
	s := span{at, min(at+n, t.size())}
	if s.from >= s.to {
		return
	}
	if len(t.spans) > 0 {
		last := &t.spans[len(t.spans)-1]
		if s.from >= last.from && s.from <= last.to {
			last.to = max(last.to, s.to)
			return
		}
	}
	t.spans = append(room(t.spans), s)
	t.over = t.over || len(t.spans) > maxSpans
}

// numbers are the values of an entry.
type numbers struct {
	data  []byte
	count int64 // number of values in the file
	size  int64 // bytes of a value
	order byteOrder
}

// values returns the numbers of an entry of d. There are none if d has no such entry, or if they are fractions.
func (t *tiffFile) values(d *tiffDirectory, tag uint16) numbers {
	for e := d.kept; len(e) > 0; e = e[entryBytes:] {
		if t.order.Uint16(e) != tag {
			continue
		}
		kind, count := t.order.Uint16(e[2:]), int64(t.order.Uint32(e[4:]))
		size := typeSizes[kind]
		if kind == typeUndefined {
			size = 1
		}
		if size > 4 || kind == 11 {
			return numbers{}
		}
		data := e[8:entryBytes]
		if size*count > 4 {
			data = t.data[min(int64(t.order.Uint32(data)), t.size()):]
		}
		return numbers{data: data, count: min(count, int64(len(data))/size), size: size, order: t.order}
	}
	return numbers{}
}

// at returns value i.
func (n *numbers) at(i int64) int64 {
	switch b := n.data[i*n.size:]; n.size {
	case 1:
		return int64(b[0])
	case 2:
		return int64(n.order.Uint16(b))
	default:
		return int64(n.order.Uint32(b))
	}
}

// value returns the first number of an entry of d, or absent.
func (t *tiffFile) value(d *tiffDirectory, tag uint16, absent int64) int64 {
	if n := t.values(d, tag); n.count > 0 {
		return n.at(0)
	}
	return absent
}

// change is a kept part that changes: a directory, or a JPEG.
type change struct {
	span
	by []byte // of a directory; nil: a JPEG
}

// write zeroes the bytes that do not stay, rewrites the directories that lost entries, and reduces the JPEGs.
func (t *tiffFile) write() {
	var changes []change
	for _, d := range t.dirs {
		if d.by != nil {
			changes = append(changes, change{d.span, d.by})
		}
	}
	for _, s := range t.jpegs {
		changes = append(changes, change{s, nil})
	}
	t.step(int64(32 * (len(changes) + len(t.spans))))
	slices.SortFunc(changes, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(len(b.by), len(a.by)), cmp.Compare(b.to, a.to))
	})
	at := int64(0)
	for _, s := range union(t.spans) {
		t.zero(at, s.from)
		at = s.to
		for len(changes) > 0 && changes[0].from < s.to && t.step(8) {
			c := changes[0]
			changes = changes[1:]
			for len(changes) > 0 && changes[0].from == c.from {
				changes = changes[1:] // a JPEG that several entries name
			}
			if len(changes) > 0 && changes[0].from < c.to {
				if c.by != nil {
					t.over = true
					return
				}
				c.to = changes[0].from // a JPEG ends where the next one begins
			}
			if c.by != nil {
				t.replace(c.from, c.to, c.by)
			} else {
				t.jpeg(c.span)
			}
		}
		if !t.step(16) {
			return
		}
	}
	t.zero(at, t.size())
}
