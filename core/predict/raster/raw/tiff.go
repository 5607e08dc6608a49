package raw

import (
	"encoding/binary"
	"strings"
)

// Tags of TIFF, TIFF/EP and DNG.
const (
	tagPhotometric  = 262
	tagMake         = 271
	tagStripOffsets = 273
	tagOrientation  = 274
	tagTileOffsets  = 324
	tagSubIFDs      = 330
	tagDNGVersion   = 50706
)

// Values of tagPhotometric for sensor data.
const (
	photometricCFA       = 32803
	photometricLinearRaw = 34892
)

// The second numbers of the header.
const (
	magicTIFF = 42
	magicRW2  = 85
	magicORF  = 'O'<<8 | 'R'
	magicORS  = 'S'<<8 | 'R'
)

// Limits of the directories that are read. Files of cameras have fewer than 20, with fewer than 200 entries each.
const (
	maxDirectories = 64
	maxEntries     = 1 << 10
	entryBytes     = 12
)

// tiff is a TIFF structure.
type tiff struct {
	b     []byte
	order binary.ByteOrder
	magic uint16
	first uint32 // offset of the first directory
}

// openTIFF reads the header of the structure at an offset of b.
func openTIFF(b []byte, at int) (t tiff, ok bool) {
	if at < 0 || len(b) < at+8 {
		return tiff{}, false
	}
	t.b = b[at:]
	switch string(t.b[:2]) {
	case "II":
		t.order = binary.LittleEndian
	case "MM":
		t.order = binary.BigEndian
	default:
		return tiff{}, false
	}
	t.magic, t.first = t.order.Uint16(t.b[2:]), t.order.Uint32(t.b[4:])
	switch t.magic {
	case magicTIFF, magicRW2, magicORF, magicORS:
		return t, true
	}
	return tiff{}, false
}

// directory returns the entries of the directory at an offset that are in the file, and the offset of the next directory.
func (t *tiff) directory(at uint32) (entries []byte, next uint32) {
	if at < 8 || uint64(at)+2 > uint64(len(t.b)) {
		return nil, 0
	}
	n, rest := int(t.order.Uint16(t.b[at:])), t.b[at+2:]
	if size := entryBytes * n; len(rest) >= size+4 {
		next = t.order.Uint32(rest[size:])
	}
	return rest[:entryBytes*min(n, maxEntries, len(rest)/entryBytes)], next
}

// walk calls visit with each directory of the chain and of SubIFDs, until visit returns false.
func (t *tiff) walk(visit func(entries []byte) bool) {
	var queue [maxDirectories]uint32
	queue[0] = t.first
	n := 1
	push := func(at uint32) {
		for _, known := range queue[:n] {
			if known == at {
				return
			}
		}
		if at != 0 && n < len(queue) {
			queue[n] = at
			n++
		}
	}
	for i := 0; i < n; i++ {
		entries, next := t.directory(queue[i])
		if len(entries) > 0 && !visit(entries) {
			return
		}
		for j, subs := 0, t.values(entries, tagSubIFDs); j < min(subs.n, maxDirectories); j++ {
			push(subs.at(j))
		}
		push(next)
	}
}

// values are the numbers of an entry that are in the file.
type values struct {
	data  []byte
	n     int
	size  int // bytes of a number
	order binary.ByteOrder
}

// values returns the numbers of the first entry with a tag.
func (t *tiff) values(entries []byte, tag uint16) values {
	for e := entries; len(e) >= entryBytes; e = e[entryBytes:] {
		if t.order.Uint16(e) != tag {
			continue
		}
		size := 0
		switch t.order.Uint16(e[2:]) {
		case 1, 2, 7: // BYTE, ASCII, UNDEFINED
			size = 1
		case 3: // SHORT
			size = 2
		case 4, 13: // LONG, IFD
			size = 4
		default:
			return values{}
		}
		count, data := uint64(t.order.Uint32(e[4:])), e[8:entryBytes]
		if uint64(size)*count > 4 {
			data = t.b[min(uint64(t.order.Uint32(data)), uint64(len(t.b))):]
		}
		return values{data: data, n: int(min(count, uint64(len(data)/size))), size: size, order: t.order}
	}
	return values{}
}

// at returns number i.
func (v *values) at(i int) uint32 {
	switch b := v.data[i*v.size:]; v.size {
	case 1:
		return uint32(b[0])
	case 2:
		return uint32(v.order.Uint16(b))
	default:
		return v.order.Uint32(b)
	}
}

// value returns the first number of an entry, or 0.
func (t *tiff) value(entries []byte, tag uint16) uint32 {
	if v := t.values(entries, tag); v.n > 0 {
		return v.at(0)
	}
	return 0
}

// isSensor reports whether a directory describes sensor data.
func (t *tiff) isSensor(entries []byte) bool {
	v := t.value(entries, tagPhotometric)
	return v == photometricCFA || v == photometricLinearRaw
}

// makers maps the beginning of tagMake, in upper case, to a format.
var makers = [...]struct {
	prefix string
	Format
}{
	{"NIKON", nef},
	{"SONY", arw},
	{"PENTAX", pef},
	{"RICOH", pef},
	{"SAMSUNG", srw},
	{"CANON", cr2},
	{"OLYMPUS", orf},
	{"OM DIGITAL", orf},
	{"PANASONIC", rw2},
	{"LEICA", rw2},
	{"FUJI", raf},
}

// format returns the format of a TIFF. ok is false if it is an ordinary picture.
func (t *tiff) format() (f Format, ok bool) {
	if begins(t.b, 8, "CR\x02") {
		return cr2, true
	}
	f = generic
	maker := ""
	t.walk(func(entries []byte) bool {
		if v := t.values(entries, tagMake); maker == "" && v.size == 1 {
			maker = strings.ToUpper(string(v.data[:min(v.n, 16)]))
		}
		if t.values(entries, tagDNGVersion).n > 0 {
			f, ok = dng, true
		}
		ok = ok || t.isSensor(entries)
		return f != dng
	})
	if !ok {
		return Format{}, false
	}
	for i := range makers {
		if f == generic && strings.HasPrefix(maker, makers[i].prefix) {
			f = makers[i].Format
		}
	}
	return f, true
}

// tiffOrientation returns the orientation in the first directory of the structure at an offset of b, or 0.
func tiffOrientation(b []byte, at int) int {
	t, ok := openTIFF(b, at)
	if !ok {
		return 0
	}
	entries, _ := t.directory(t.first)
	if v := t.values(entries, tagOrientation); v.n == 1 && v.size >= 2 && v.at(0) <= 8 {
		return int(v.at(0))
	}
	return 0
}

// isSensorData reports whether a directory of sensor data has a strip or tile at an offset.
func (s *scan) isSensorData(at int) (found bool) {
	t := &s.tiff
	if t.b == nil {
		return false
	}
	t.walk(func(entries []byte) bool {
		s.work -= len(entries)
		if !t.isSensor(entries) {
			return s.work > 0
		}
		for _, tag := range [...]uint16{tagStripOffsets, tagTileOffsets} {
			v := t.values(entries, tag)
			for i := 0; i < v.n && s.work > 0 && !found; i++ {
				s.work--
				found = v.at(i) == uint32(at)
			}
		}
		return s.work > 0 && !found
	})
	return found
}
