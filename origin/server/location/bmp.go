package location

import (
	"bytes"
	"encoding/binary"
)

// bmp zeroes the bytes after the pixels of a BMP, and keeps a colour profile there. It leaves a picture in JPEG or PNG, and one with the
// header of OS/2, unchanged.
func (p *plan) bmp() {
	const start, profile = 14, 124 // sizes of the file's header, and of the picture's header with a profile
	if len(p.data) < start+40 {
		return
	}
	head := p.data[start:]
	number := func(at int) int64 { return int64(binary.LittleEndian.Uint32(head[at:])) }
	from, size := int64(binary.LittleEndian.Uint32(p.data[10:])), number(0)
	width, height := int64(int32(number(4))), int64(int32(number(8)))
	if size < 40 || width <= 0 {
		return
	}
	height = max(height, -height)
	var end int64
	switch number(16) {
	case 0, 3, 6: // without compression
		bits := int64(binary.LittleEndian.Uint16(head[14:]))
		row := (width*bits + 31) / 32 * 4
		if row > p.size() {
			return
		}
		end = from + row*height
	case 1, 2: // run lengths
		if end = from + number(20); number(20) == 0 {
			return
		}
	default:
		return
	}
	if from < start+size {
		return
	}
	if size >= profile && len(head) >= profile && bytes.Equal(head[56:60], []byte("DEBM")) { // MBED: the profile is in the file
		if at := start + number(112); at >= end {
			p.zero(end, at)
			end = at + number(116)
		}
	}
	p.zero(end, p.size())
}
