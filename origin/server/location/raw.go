package location

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/sightline-dev/sightline/core/predict/raster/raw"
)

// Tags of Exif, TIFF/EP and DNG that name parts with a place, or directories.
const (
	tagExif      = 34665
	tagGPS       = 34853
	tagMakerNote = 37500
)

// placeTags lists the tags in camera raw whose values can contain a place as text: descriptions, XMP, IPTC, comments, and a copy of
// private data.
var placeTags = []uint16{
	270, 700, 33723, 34377, 37510, // description, XMP, IPTC, Photoshop, comment
	0x9c9b, 0x9c9c, 0x9c9e, 0x9c9f, // title, comment, keywords and subject of Windows
	50740, // private data that a converter of DNG keeps
}

// noteTags lists the tags of makers' notes whose values contain a place.
var noteTags = map[string][]uint16{
	"Nikon\x00":     {0x39},                                                 // where a receiver of GPS was
	"Panasonic\x00": {0x65, 0x66, 0x67, 0x69, 0x6b, 0x6d, 0x6f, 0x70, 0x80}, // title, name, location, country, state, city, landmark
}

// xmpUUID is the kind of the box with XMP in a file of boxes.
const xmpUUID = "\xbe\x7a\xcf\xcb\x97\xa9\x42\xe8\x9c\x71\x99\x94\x91\xe3\xaf\xac"

// rawFile is a camera raw file and its parts that change.
type rawFile struct {
	*plan
	changes []change
	dirs    map[int64]bool // offsets of directories that were read
	entries int
}

// raw zeroes the directories of GPS and the values of text in the directories of a camera raw file, and reduces its JPEGs. All else stays,
// because programs that develop the sensor data need the notes of the camera's maker.
func (p *plan) raw() {
	r := &rawFile{plan: p, dirs: map[int64]bool{}}
	switch {
	case bytes.HasPrefix(p.data[4:], []byte("ftyp")):
		r.cr3(p.data, 0, 0)
	case bytes.HasPrefix(p.data, []byte("\x00MRM")):
		r.mrw()
	default:
		r.structure(0, false)
	}
	for from, to := range raw.JPEGs(p.data) {
		if !p.step(int64(to - from)) {
			return
		}
		r.change(int64(from), int64(to), nil)
	}
	r.packets()
	slices.SortStableFunc(r.changes, func(a, b change) int { return cmp.Compare(a.from, b.from) })
	at := int64(0)
	for _, c := range r.changes {
		switch from := max(c.from, at); {
		case from >= c.to:
		case from == c.from && c.by == nil:
			p.jpeg(c.span)
		default:
			p.zero(from, c.to) // also the rest of a JPEG that begins in another part
		}
		at = max(at, c.to)
	}
}

// blank is the change of a part that becomes zeros.
var blank = []byte{}

func (r *rawFile) change(from, to int64, by []byte) {
	if from, to = max(from, 0), min(to, r.size()); from < to {
		r.changes = append(room(r.changes), change{span{from, to}, by})
		r.over = r.over || len(r.changes) > maxEntries
	}
}

// packets zeroes XMP outside of directories: programs append it.
func (r *rawFile) packets() {
	const start, end = "<x:xmpmeta", "</x:xmpmeta>"
	for at := 0; r.step(int64(len(start))); {
		i := bytes.Index(r.data[at:], []byte(start))
		if i < 0 {
			return
		}
		from := at + i
		n := bytes.Index(r.data[from:], []byte(end))
		if n < 0 {
			r.change(int64(from), r.size(), blank)
			return
		}
		at = from + n + len(end)
		r.change(int64(from), int64(at), blank)
	}
}

// cr3 reads the boxes in data, which begins at an offset of the file. depth is the number of boxes around them: the directories are in a box of
// the movie.
func (r *rawFile) cr3(data []byte, at int64, depth int) {
	for b := range r.boxes(data, at) {
		body := b.at + b.head
		switch kind := string(b.kind); {
		case kind == "moov" && depth == 0:
			r.cr3(b.body, body, 1)
		case kind == "uuid" && bytes.HasPrefix(b.body, []byte(xmpUUID)):
			r.change(body+int64(len(xmpUUID)), body+int64(len(b.body)), blank)
		case kind == "uuid" && depth == 1 && len(b.body) > len(xmpUUID):
			r.cr3(b.body[len(xmpUUID):], body+int64(len(xmpUUID)), 2)
		case kind == "CMT1" || kind == "CMT2" || kind == "CMT3":
			r.structure(body, false)
		case kind == "CMT4":
			r.structure(body, true)
		}
	}
}

// mrw reads the blocks of an MRW: kind, length and body.
func (r *rawFile) mrw() {
	for at := int64(8); at+8 <= r.size() && r.step(8); {
		if string(r.data[at:at+4]) == "\x00TTW" {
			r.structure(at+8, false)
		}
		at += 8 + int64(binary.BigEndian.Uint32(r.data[at+4:]))
	}
}

// base is a structure of directories in a file.
type base struct {
	order byteOrder
	at    int64 // of its header, from which its offsets count
}

// structure reads the directories of the structure at an offset. places reports whether they contain a place only.
func (r *rawFile) structure(at int64, places bool) {
	if at < 0 || at+8 > r.size() {
		return
	}
	s := base{binary.LittleEndian, at}
	if r.data[at] == 'M' {
		s.order = binary.BigEndian
	}
	if r.data[at] != r.data[at+1] || r.data[at] != 'M' && r.data[at] != 'I' {
		return
	}
	next := []int64{int64(s.order.Uint32(r.data[at+4:]))}
	for len(next) > 0 && r.step(8) {
		at := s.at + next[len(next)-1]
		next = next[:len(next)-1]
		if at <= s.at || at+2 > r.size() || r.dirs[at] {
			continue
		}
		r.dirs[at] = true
		more := r.directory(s, at, places)
		if next = append(next, more...); len(next) > maxOffsets || len(r.dirs) > maxDirectories {
			r.over = true
		}
	}
}

// directory reads a directory, and returns the offsets of others.
func (r *rawFile) directory(s base, at int64, places bool) (more []int64) {
	from := at + 2
	n := min(int64(s.order.Uint16(r.data[at:])), (r.size()-from)/entryBytes)
	to := from + n*entryBytes
	if r.entries += int(n); r.entries > maxEntries || !r.step(n*entryBytes) {
		r.over = true
		return nil
	}
	for e := from; e < to; e += entryBytes {
		tag, value := s.order.Uint16(r.data[e:]), r.value(s, e)
		switch {
		case places:
			r.change(value.from, value.to, blank)
		case tag == tagGPS:
			if at := s.at + int64(s.order.Uint32(r.data[e+8:])); at > s.at && at+2 <= r.size() && !r.dirs[at] {
				r.dirs[at] = true
				r.directory(s, at, true)
			}
		case tag == tagExif || tag == tagSubIFDs:
			for v := value.from; v+4 <= min(value.to, r.size()) && len(more) <= maxDirectories; v += 4 {
				more = append(more, int64(s.order.Uint32(r.data[v:])))
			}
		case tag == tagMakerNote:
			r.note(s, value)
		case slices.Contains(placeTags, tag):
			r.change(value.from, value.to, blank)
		}
	}
	if places {
		r.change(at, to, blank) // an empty directory
	} else if to+4 <= r.size() {
		more = append(more, int64(s.order.Uint32(r.data[to:])))
	}
	return more
}

// value returns the part of the file with the value of the entry at an offset.
func (r *rawFile) value(s base, e int64) span {
	size := int64(1)
	if kind := s.order.Uint16(r.data[e+2:]); int(kind) < len(typeSizes) {
		size = max(1, typeSizes[kind])
	}
	size *= int64(s.order.Uint32(r.data[e+4:]))
	if size <= 4 {
		return span{e + 8, e + 8 + size}
	}
	from := s.at + int64(s.order.Uint32(r.data[e+8:]))
	return span{from, from + size}
}

// note zeroes the places in a maker's note.
func (r *rawFile) note(s base, note span) {
	if note.to = min(note.to, r.size()); note.from+18 > note.to {
		return
	}
	body := r.data[note.from:note.to]
	at := note.from + 12 // of its directory
	tags := noteTags["Panasonic\x00"]
	switch {
	case bytes.HasPrefix(body, []byte("Nikon\x00")):
		tags = noteTags["Nikon\x00"]
		order, first, ok := openTIFF(body[10:])
		if !ok {
			return
		}
		s = base{order, note.from + 10}
		at = s.at + first
	case !bytes.HasPrefix(body, []byte("Panasonic\x00")):
		return
	}
	if at+2 > note.to {
		return
	}
	n := min(int64(s.order.Uint16(r.data[at:])), (note.to-at-2)/entryBytes)
	if r.entries += int(n); r.entries > maxEntries || !r.step(n*entryBytes) {
		r.over = true
		return
	}
	for e := at + 2; e < at+2+n*entryBytes; e += entryBytes {
		if slices.Contains(tags, s.order.Uint16(r.data[e:])) {
			v := r.value(s, e)
			r.change(v.from, v.to, blank)
		}
	}
}
