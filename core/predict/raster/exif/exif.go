// Package exif reads the metadata of a picture's file that this program uses: the orientation, the date and the place.
//
//	file ──▶ EXIF of JPEG, PNG, WebP, TIFF, HEIC, AVIF, JPEG XL, camera raw ─┬─▶ DateTimeOriginal, else DateTimeDigitized, else DateTime
//	  └────▶ texts of PNG, XMP ──────────────────────────────────────────────┴─▶ Data: date, place
//
// The date is the local time that the camera showed, with an offset from UTC if the file has one. Nothing depends on the host: neither its
// zone, nor the file's name or times.
//
// Files may be hostile. The work is in proportion to the size of the file, and texts have limits. Damaged metadata count as missing.
//
// Sources: EXIF 3.0 (CIPA DC-008), TIFF 6.0, XMP parts 1 to 3 (ISO 16684), PNG 1.2.
package exif

import (
	"bytes"
	"encoding/binary"
)

// The orientation is the only metadata that changes pixels. Its functions visit each entry of the first directory once and allocate nothing.

// TagOrientation is the number of the orientation in a TIFF directory.
const TagOrientation = 0x0112

// Upright is the orientation of a picture that needs no rotation or mirroring.
const Upright = 1

// Orientation returns the orientation, 1 to 8, in EXIF data b, which is a TIFF structure.
// For damaged data or a value out of range it returns 1, because metadata must not make a
// picture invalid.
func Orientation(b []byte) int {
	dir, order := FirstDirectory(trimStart(b))
	for ; len(dir) >= 12; dir = dir[12:] {
		if order.Uint16(dir) != TagOrientation {
			continue
		}
		var v uint32
		switch order.Uint16(dir[2:]) {
		case 3: // SHORT
			v = uint32(order.Uint16(dir[8:]))
		case 4: // LONG: not valid, but some programs write it
			v = order.Uint32(dir[8:])
		}
		if order.Uint32(dir[4:]) == 1 && v >= 1 && v <= 8 {
			return int(v)
		}
		return Upright
	}
	return Upright
}

// FirstDirectory returns the entries of the first image file directory of TIFF structure b,
// and the byte order. An entry has 12 bytes. The result ends at the end of b.
func FirstDirectory(b []byte) ([]byte, binary.ByteOrder) {
	order, at := header(b)
	if order == nil || order.Uint16(b[2:]) != 42 || at < 8 || uint64(at)+2 > uint64(len(b)) {
		return nil, binary.LittleEndian
	}
	n := 12 * uint64(order.Uint16(b[at:]))
	dir := b[at+2:]
	return dir[:min(n, uint64(len(dir)))], order
}

// JPEGOrientation returns the orientation in the first EXIF segment before the first scan of JPEG b, or 1 without such a segment.
func JPEGOrientation(b []byte) int {
	o := Upright
	segments(b, func(marker byte, body []byte) bool {
		if marker == 0xe1 && begins(body, start) {
			o = Orientation(body)
			return false
		}
		return true
	})
	return o
}

// start is the beginning of EXIF data in a JPEG. Some programs also write it in other formats.
const start = "Exif\x00\x00"

func trimStart(b []byte) []byte { return bytes.TrimPrefix(b, []byte(start)) }

// segments calls visit with the segments before the first scan of JPEG b, until visit returns false.
func segments(b []byte, visit func(marker byte, body []byte) bool) {
	for i := 2; i+4 <= len(b); {
		if b[i] != 0xff {
			i++ // image/jpeg also tolerates other bytes between segments
			continue
		}
		switch m := b[i+1]; {
		case m == 0xff: // fill byte
			i++
			continue
		case m == 0 || m == 0x01 || m >= 0xd0 && m <= 0xd8: // marker without a segment
			i += 2
			continue
		case m == 0xda || m == 0xd9:
			return
		}
		size := int(binary.BigEndian.Uint16(b[i+2:]))
		end := i + 2 + size
		if size < 2 || end > len(b) || !visit(b[i+1], b[i+4:end]) {
			return
		}
		i = end
	}
}
