package exif

import (
	"bytes"
	"encoding/binary"
	"math"
)

// structure is a TIFF structure.
type structure struct {
	b     []byte
	order binary.ByteOrder
}

// maxEntries is the maximum number of entries of a directory that count. Files of cameras have fewer than 200.
const maxEntries = 1 << 10

// header returns the byte order of TIFF structure b and the offset of its first directory. The order is nil for other bytes. The second
// number of the header is 42, or that of the cameras of Olympus or Panasonic.
func header(b []byte) (binary.ByteOrder, uint32) {
	if len(b) < 8 {
		return nil, 0
	}
	var order binary.ByteOrder
	switch string(b[:2]) {
	case "II":
		order = binary.LittleEndian
	case "MM":
		order = binary.BigEndian
	default:
		return nil, 0
	}
	switch order.Uint16(b[2:]) {
	case 42, 85, 'O'<<8 | 'R', 'S'<<8 | 'R':
		return order, order.Uint32(b[4:])
	}
	return nil, 0
}

// entryBytes is the size of an entry of a directory.
const entryBytes = 12

// entries returns the entries of the directory at an offset, as far as they are in the structure.
func (t *structure) entries(at uint32) []byte {
	if at < 8 || uint64(at)+2 > uint64(len(t.b)) {
		return nil
	}
	n, dir := min(int(t.order.Uint16(t.b[at:])), maxEntries), t.b[at+2:]
	return dir[:min(entryBytes*n, len(dir))]
}

// value returns the bytes of an entry's value, for values of size bytes, as far as they are in the structure, at most limit values.
func (t *structure) value(e []byte, size, limit uint64) []byte {
	n := size * min(uint64(t.order.Uint32(e[4:])), limit)
	if size*uint64(t.order.Uint32(e[4:])) <= 4 {
		return e[8 : 8+n]
	}
	from := min(uint64(t.order.Uint32(e[8:])), uint64(len(t.b)))
	return t.b[from:min(from+n, uint64(len(t.b)))]
}

// text returns the value of an entry as text, up to its first zero byte.
func (t *structure) text(e []byte) string {
	switch t.order.Uint16(e[2:]) {
	case 1, 2, 7, 129: // BYTE, ASCII, UNDEFINED, UTF-8
		b := t.value(e, 1, maxText)
		if i := bytes.IndexByte(b, 0); i >= 0 {
			b = b[:i]
		}
		return string(b)
	}
	return ""
}

// degrees returns an angle of three fractions: degrees, minutes and seconds. It returns NaN for other values. The conversions keep each
// step apart, since processors round a fused step in another way.
func (t *structure) degrees(e []byte) float64 {
	kind := t.order.Uint16(e[2:])
	b := t.value(e, 8, 3)
	if kind != 5 && kind != 10 || len(b) < 8 { // RATIONAL, SRATIONAL
		return math.NaN()
	}
	sum, unit := 0.0, 1.0
	for ; len(b) >= 8; b = b[8:] {
		above, below := float64(t.order.Uint32(b)), float64(t.order.Uint32(b[4:]))
		if kind == 10 {
			above, below = float64(int32(t.order.Uint32(b))), float64(int32(t.order.Uint32(b[4:])))
		}
		switch {
		case below != 0:
			sum += float64(float64(above/below) / unit)
		case above != 0 || unit == 1:
			return math.NaN()
		}
		unit *= 60
	}
	return sum
}
