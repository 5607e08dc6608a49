package heif

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Limits of the boxes that the reader of HEIC and AVIF files visits. Real files have some dozens of boxes, and a grid of 48 MP has about
// 200 items.
const (
	maxBoxes = 4096
	maxItems = 4096
)

// box is a box of ISO/IEC 14496-12: four letters and a body.
type box struct {
	kind string
	body []byte
}

// boxes calls visit for each box in b until visit returns false. A box that b cuts short, and what follows it, is left out.
func boxes(b []byte, visit func(box) bool) {
	for at, n := 0, 0; at+8 <= len(b) && n < maxBoxes; n++ {
		size, head := uint64(binary.BigEndian.Uint32(b[at:])), 8
		switch size {
		case 0: // up to the end
			size = uint64(len(b) - at)
		case 1:
			if at+16 > len(b) {
				return
			}
			size, head = binary.BigEndian.Uint64(b[at+8:]), 16
		}
		if size < uint64(head) || size > uint64(len(b)-at) {
			return
		}
		if !visit(box{string(b[at+4 : at+8]), b[at+head : at+int(size)]}) {
			return
		}
		at += int(size)
	}
}

// child returns the first box of a kind in b.
func child(b []byte, kind string) (found box, ok bool) {
	boxes(b, func(x box) bool {
		if x.kind == kind {
			found, ok = x, true
		}
		return !ok
	})
	return found, ok
}

// fields reads big-endian numbers. After the end it returns 0 and sets short.
type fields struct {
	b     []byte
	short bool
}

// uint reads a number of size bytes, 0 to 8.
func (f *fields) uint(size int) uint64 {
	if len(f.b) < size {
		f.short, f.b = true, nil
		return 0
	}
	var v uint64
	for _, c := range f.b[:size] {
		v = v<<8 | uint64(c)
	}
	f.b = f.b[size:]
	return v
}

// version reads the version and the flags of a full box.
func (f *fields) version() (version int, flags uint32) {
	v := f.uint(4)
	return int(v >> 24), uint32(v & 0xffffff)
}

// text reads a text that ends with a zero byte.
func (f *fields) text() string {
	for i, c := range f.b {
		if c == 0 {
			s := string(f.b[:i])
			f.b = f.b[i+1:]
			return s
		}
	}
	f.short, f.b = true, nil
	return ""
}

// extent is a part of a file.
type extent struct{ at, size uint64 }

// item is an item of a HEIF file: a picture, or data such as EXIF.
type item struct {
	kind       string // for example "hvc1", "av01", "grid"
	extents    []extent
	inData     bool  // the extents are in the box idat
	properties []int // indices of file.properties, from 0
	refs       []itemRef
}

// itemRef is a reference from an item.
type itemRef struct {
	kind string
	to   []uint32
}

// file has the items of a HEIC or AVIF file.
type file struct {
	bytes      []byte
	primary    uint32 // number of the main picture's item
	items      map[uint32]*item
	properties []box
	data       []byte // content of idat
}

var errBoxes = fmt.Errorf("%w: its boxes are damaged", ErrCorrupt)

// readFile reads the box meta of a file. It visits each box once, and holds memory in proportion to the box only.
func readFile(b []byte) (*file, error) {
	meta, ok := child(b, "meta")
	if !ok || len(meta.body) < 4 {
		return nil, fmt.Errorf("%w: it has no pictures as items", ErrCorrupt)
	}
	h := &file{bytes: b, items: map[uint32]*item{}}
	var err error
	boxes(meta.body[4:], func(b box) bool {
		f := &fields{b: b.body}
		switch b.kind {
		case "pitm":
			version, _ := f.version()
			h.primary = uint32(f.uint(2 + 2*min(version, 1)))
		case "iinf":
			h.readItems(f)
		case "iref":
			h.readReferences(f)
		case "iloc":
			h.readLocations(f)
		case "iprp":
			h.readProperties(b.body)
		case "idat":
			h.data = b.body
		}
		if f.short {
			err = errBoxes
		}
		return err == nil
	})
	switch {
	case err != nil:
		return nil, err
	case h.items[h.primary] == nil:
		return nil, fmt.Errorf("%w: its main picture is missing", ErrCorrupt)
	}
	return h, nil
}

// of returns the item with a number, which it creates up to the limit.
func (h *file) of(id uint32) *item {
	it := h.items[id]
	if it == nil {
		it = &item{}
		if len(h.items) < maxItems {
			h.items[id] = it
		}
	}
	return it
}

func (h *file) readItems(f *fields) {
	version, _ := f.version()
	f.uint(2 + 2*min(version, 1)) // the number of items, which the boxes show themselves
	boxes(f.b, func(b box) bool {
		e := &fields{b: b.body}
		version, _ := e.version()
		if b.kind != "infe" || version < 2 {
			return true
		}
		size := 2
		if version > 2 {
			size = 4
		}
		id := uint32(e.uint(size))
		e.uint(2) // protection
		if len(e.b) < 4 {
			return true
		}
		h.of(id).kind = string(e.b[:4])
		return true
	})
}

func (h *file) readReferences(f *fields) {
	version, _ := f.version()
	size := 2 + 2*min(version, 1)
	boxes(f.b, func(b box) bool {
		e := &fields{b: b.body}
		it := h.of(uint32(e.uint(size)))
		ref := itemRef{kind: b.kind}
		for range e.uint(2) {
			if len(e.b) < size {
				break
			}
			ref.to = append(ref.to, uint32(e.uint(size)))
		}
		it.refs = append(it.refs, ref)
		return true
	})
}

func (h *file) readLocations(f *fields) {
	version, _ := f.version()
	sizes := f.uint(2)
	offset, length, base, index := int(sizes>>12), int(sizes>>8&15), int(sizes>>4&15), int(sizes&15)
	if max(offset, length, base, index) > 8 {
		f.short = true
		return
	}
	idSize := 2
	if version == 2 {
		idSize = 4
	}
	for range min(f.uint(idSize), maxItems) {
		it := h.of(uint32(f.uint(idSize)))
		if version > 0 {
			it.inData = f.uint(2)&15 == 1
		}
		f.uint(2) // data reference
		from := f.uint(base)
		for range f.uint(2) {
			if version > 0 {
				f.uint(index)
			}
			e := extent{from + f.uint(offset), f.uint(length)}
			if f.short {
				return
			}
			it.extents = append(it.extents, e)
		}
	}
}

func (h *file) readProperties(b []byte) {
	if list, ok := child(b, "ipco"); ok {
		boxes(list.body, func(p box) bool {
			h.properties = append(h.properties, p)
			return true
		})
	}
	boxes(b, func(b box) bool {
		if b.kind != "ipma" {
			return true
		}
		f := &fields{b: b.body}
		version, flags := f.version()
		for range min(f.uint(4), maxItems) {
			it := h.of(uint32(f.uint(2 + 2*min(version, 1))))
			for range f.uint(1) {
				var i int
				if flags&1 != 0 {
					i = int(f.uint(2) & 0x7fff)
				} else {
					i = int(f.uint(1) & 0x7f)
				}
				if i > 0 {
					it.properties = append(it.properties, i-1)
				}
			}
			if f.short {
				break
			}
		}
		return true
	})
}

// property returns the first property of a kind of an item.
func (h *file) property(it *item, kind string) (body []byte, ok bool) {
	h.each(it, func(b box) bool {
		if b.kind == kind {
			body, ok = b.body, true
		}
		return !ok
	})
	return body, ok
}

// each calls visit for each property of an item, in their order, until visit returns false.
func (h *file) each(it *item, visit func(box) bool) {
	for _, i := range it.properties {
		if i < len(h.properties) && !visit(h.properties[i]) {
			return
		}
	}
}

// content returns the bytes of an item. If the item is in one part, the result shares the file's memory.
func (h *file) content(it *item) ([]byte, error) {
	from := h.bytes
	if it.inData {
		from = h.data
	}
	var all []byte
	for i, e := range it.extents {
		if e.at > uint64(len(from)) || e.size > uint64(len(from))-e.at {
			return nil, fmt.Errorf("%w: it ends early", ErrCorrupt)
		}
		part := from[e.at:][:e.size]
		if e.size == 0 {
			part = from[e.at:] // up to the end
		}
		if len(it.extents) == 1 {
			return part, nil
		}
		if i > 0 && len(all)+len(part) > len(from) {
			return nil, errBoxes // parts that overlap
		}
		all = append(all, part...)
	}
	return all, nil
}

// reference returns the items that an item names by its first reference of a kind.
func (it *item) reference(kind string) []uint32 {
	for _, r := range it.refs {
		if r.kind == kind {
			return r.to
		}
	}
	return nil
}

// alpha returns the number of the item that is the alpha channel of an item, or 0. If there are several, it is the smallest.
func (h *file) alpha(of uint32) (found uint32) {
	for id, it := range h.items {
		if slices.Contains(it.reference("auxl"), of) && h.isAlpha(it) && (found == 0 || id < found) {
			found = id
		}
	}
	return found
}

// isAlpha reports whether an auxiliary item is an alpha channel.
func (h *file) isAlpha(it *item) bool {
	b, _ := h.property(it, "auxC")
	f := &fields{b: b}
	f.version()
	switch f.text() {
	case "urn:mpeg:mpegB:cicp:systems:auxiliary:alpha", "urn:mpeg:hevc:2015:auxid:1", "urn:mpeg:avc:2015:auxid:1":
		return true
	}
	return false
}

// Exif returns the EXIF data of a file's pictures, each a TIFF structure: those of the main picture first, then by their items' numbers. It
// returns none for other files. The result shares the file's memory.
func Exif(b []byte) (list [][]byte) {
	h, err := readFile(b)
	if err != nil {
		return nil
	}
	for done := uint32(0); ; {
		next := uint32(0) // the lowest number that is not done
		for id, it := range h.items {
			if it.kind == "Exif" && id > done && (next == 0 || id < next) {
				next = id
			}
		}
		if next == 0 || len(list) == maxExif {
			return list
		}
		done = next
		data, err := h.content(h.items[next])
		f := &fields{b: data}
		at := f.uint(4) // bytes before the header of the structure
		if err != nil || f.short || at >= uint64(len(f.b)) {
			continue
		}
		if list = append(list, f.b[at:]); slices.Contains(h.items[next].reference("cdsc"), h.primary) {
			last := len(list) - 1
			list[0], list[last] = list[last], list[0]
		}
	}
}

// maxExif is the maximum number of items with EXIF data that are read. Files have one or two.
const maxExif = 8
