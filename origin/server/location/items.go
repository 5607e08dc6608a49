package location

import (
	"encoding/binary"
	"slices"
)

// pictureItems lists the types of items that are pictures, or that describe how to combine them. Other items are Exif, XMP and further data.
var pictureItems = []string{
	"hvc1", "hev1", "lhv1", "lhe1", "hvt1", "av01", "avc1", "svc1", "vvc1", "evc1", "jpeg", "j2k1", "j2ki", "unci", "grid", "iovl", "iden", "tmap", "mski",
}

// metaBoxes lists the boxes that readers of pictures need in the box of items.
var metaBoxes = []string{"hdlr", "pitm", "iinf", "iloc", "iprp", "ipro", "iref", "idat", "grpl", "dinf"}

// maxItems is the maximum number of items of a file that are not pictures.
const maxItems = 1 << 16

// isPictures reports whether a box describes the items of a picture file. In films a box of this kind contains text.
func (f *film) isPictures(b *box) bool {
	if string(b.kind) != "meta" || len(b.body) < 4 {
		return false
	}
	handler := f.children(b.body[4:], "hdlr")[0]
	return len(handler) >= 12 && string(handler[8:12]) == "pict"
}

// items keeps the data of the items of a HEIC or AVIF file that are pictures. It may be in media data or in the box itself. The data of all
// others, among them Exif and XMP, is zeroed with the rest of the media data.
//
//	meta ─┬─ iinf: id → type
//	      ├─ iloc: id → parts of the file, or of idat
//	      └─ idat
func (f *film) items(meta box) {
	other := map[uint32]bool{}
	var locations, data box
	for b := range f.boxes(meta.body[4:], meta.at+meta.head+4) {
		switch string(b.kind) {
		case "iinf":
			f.itemTypes(b, other)
		case "iloc":
			locations = b
		case "idat":
			data = b
		}
	}
	l := reader{b: locations.body}
	version := l.number(1)
	l.number(3)
	sizes := l.number(2) // of the fields below, in bytes
	offset, length, start, index := int(sizes>>12), int(sizes>>8&15), int(sizes>>4&15), int(sizes&15)
	idBytes := 2
	if version == 2 {
		idBytes = 4
	}
	if version == 0 {
		index = 0
	}
	for n := l.number(idBytes); n > 0 && !l.short && f.step(16); n-- {
		id, method := uint32(l.number(idBytes)), uint64(0)
		if version > 0 {
			method = l.number(2) & 15
		}
		l.number(2) // the file with the data
		from := l.number(start)
		parts := l.number(2)
		if index+offset+length == 0 {
			parts = min(parts, 1) // all are the same
		}
		for ; parts > 0 && !l.short && f.step(8); parts-- {
			l.number(index)
			at, size := from+l.number(offset), l.number(length)
			if other[id] || l.short || method > 1 {
				continue
			}
			if method == 1 {
				if at > uint64(len(data.body)) {
					continue
				}
				at += uint64(data.at + data.head)
			}
			if size == 0 {
				size = uint64(f.size()) // up to the end
			}
			f.keep(int64(min(at, 1<<62)), int64(min(size, 1<<62)), 0)
		}
	}
}

// itemTypes adds the ids of items that are not pictures.
func (f *film) itemTypes(b box, other map[uint32]bool) {
	l := reader{b: b.body}
	countBytes := 2
	if l.number(1) > 0 {
		countBytes = 4
	}
	l.number(3)
	l.number(countBytes)
	for item := range f.boxes(l.b, 0) {
		l := reader{b: item.body}
		version := l.number(1)
		l.number(3)
		idBytes := 2
		if version == 3 {
			idBytes = 4
		}
		id := uint32(l.number(idBytes))
		l.number(2) // protection
		if string(item.kind) == "infe" && (version < 2 || len(l.b) < 4 || !slices.Contains(pictureItems, string(l.b[:4]))) {
			other[id] = true
			if len(other) > maxItems {
				f.over = true
				return
			}
		}
	}
}

// reduceItems removes the boxes that readers do not need from the box of items, and the data in it that belongs to no picture.
func (f *film) reduceItems(meta box) {
	for b := range f.boxes(meta.body[4:], meta.at+meta.head+4) {
		body := span{b.at + b.head, b.at + b.head + int64(len(b.body))}
		switch kind := string(b.kind); {
		case kind == "idat":
			f.media(body)
		case kind == "hdlr":
			f.zero(body.from+24, body.to) // the name
		case kind == "iprp":
			f.reduceProperties(b)
		case !isOneOf(b.kind, metaBoxes):
			f.skip(b)
		}
	}
}

// reduceProperties zeroes descriptions of pictures by a person. Their boxes stay, since other boxes count them.
func (f *film) reduceProperties(b box) {
	for list := range f.boxes(b.body, b.at+b.head) {
		if string(list.kind) != "ipco" {
			continue
		}
		for c := range f.boxes(list.body, list.at+list.head) {
			if string(c.kind) == "udes" {
				f.zero(c.at+c.head+4, c.at+c.head+int64(len(c.body)))
			}
		}
	}
}

// reader reads big-endian numbers.
type reader struct {
	b     []byte
	short bool // a number was not complete
}

// number returns the next number, of 0 to 8 bytes.
func (r *reader) number(size int) uint64 {
	if size > 8 || len(r.b) < size {
		r.short, r.b = true, nil
		return 0
	}
	var all [8]byte
	copy(all[8-size:], r.b)
	r.b = r.b[size:]
	return binary.BigEndian.Uint64(all[:])
}

// jxlBoxes lists the boxes that decoders of JPEG XL need. The others contain Exif, XMP, compressed metadata, and what is necessary to
// restore a JPEG file with its metadata.
var jxlBoxes = []string{"JXL ", "ftyp", "jxll", "jxli", "jxlc", "jxlp"}

// jxl turns the boxes of a JPEG XL file that decoders do not need into zeroed boxes that decoders skip.
func (p *plan) jxl() {
	for b := range p.boxes(p.data, 0) {
		if !isOneOf(b.kind, jxlBoxes) {
			p.skip(b)
		}
	}
}
