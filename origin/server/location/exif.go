package location

import (
	"bytes"
	"encoding/binary"
)

// Tags of TIFF, which is also the format of Exif, that this package reads.
const (
	tagOrientation = 274
	entryBytes     = 12
)

type byteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

// openTIFF reads the header. at is the offset of the first directory. ok is false for other files.
func openTIFF(data []byte) (order byteOrder, at int64, ok bool) {
	if len(data) < 8 {
		return nil, 0, false
	}
	switch string(data[:4]) {
	case "II*\x00":
		order = binary.LittleEndian
	case "MM\x00*":
		order = binary.BigEndian
	default:
		return nil, 0, false
	}
	return order, int64(order.Uint32(data[4:])), true
}

// directory returns the bytes of the entries of the directory at an offset, as far as they are in the file.
func directory(data []byte, order byteOrder, at int64) []byte {
	if at < 8 || at+2 > int64(len(data)) {
		return nil
	}
	from := at + 2
	to := min(from+entryBytes*int64(order.Uint16(data[at:])), int64(len(data)))
	return data[from : to-(to-from)%entryBytes]
}

const exifStart = "Exif\x00\x00"

// keepOrientation returns the first bytes of Exif data that only contains the orientation of exif, as SHORT, which every reader supports. The
// other bytes, up to the length room, are zeros.
func keepOrientation(exif []byte, room int) []byte {
	const bare, full = 14, 10 + entryBytes // sizes of a directory without an entry, and with one but without the offset of the next directory
	orientation := orientationOf(exif)
	switch {
	case room < bare:
		return nil
	case room < full || orientation < 1 || orientation > 8:
		return []byte("II*\x00\x08\x00\x00\x00")
	}
	b := []byte("II*\x00\x08\x00\x00\x00\x01\x00")
	b = binary.LittleEndian.AppendUint16(b, tagOrientation)
	b = binary.LittleEndian.AppendUint16(b, 3)
	b = binary.LittleEndian.AppendUint32(b, 1)
	return binary.LittleEndian.AppendUint16(b, uint16(orientation))
}

// keepChunkOrientation does the same for the body of a chunk. Some programs begin it with exifStart, as in a JPEG, which the formats do not
// allow and some readers do not support. The result is without it.
func keepChunkOrientation(body []byte) []byte {
	return keepOrientation(bytes.TrimPrefix(body, []byte(exifStart)), len(body))
}

// orientationOf returns the orientation in the first directory of exif, which our decoder uses, or 0. Some programs write it as LONG.
func orientationOf(exif []byte) uint32 {
	order, at, ok := openTIFF(exif)
	if !ok {
		return 0
	}
	for e := directory(exif, order, at); len(e) > 0; e = e[entryBytes:] {
		switch {
		case order.Uint16(e) != tagOrientation:
			continue
		case order.Uint32(e[4:]) != 1:
		case order.Uint16(e[2:]) == 3:
			return uint32(order.Uint16(e[8:]))
		case order.Uint16(e[2:]) == 4:
			return order.Uint32(e[8:])
		}
		return 0
	}
	return 0
}
