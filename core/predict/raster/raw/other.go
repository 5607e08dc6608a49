package raw

import (
	"encoding/binary"
	"math"
)

// maxBoxes is the maximum number of boxes that are read of a CR3.
const maxBoxes = 1 << 10

// canonUUID is the kind of the box in a CR3's movie that contains its directories.
const canonUUID = "\x85\xc0\xb6\x87\x82\x0f\x11\xe0\x81\x11\xf4\xce\x46\x2b\x6a\x48"

// isCR3 reports whether b begins with a CR3's first box, which names the brand.
func isCR3(b []byte) bool {
	if !begins(b, 4, "ftyp") {
		return false
	}
	size := int(min(binary.BigEndian.Uint32(b), 256, uint32(len(b))))
	for at := 8; at+4 <= size; at += 4 {
		if at != 12 && begins(b, at, "crx ") {
			return true
		}
	}
	return false
}

// boxOf returns the body of the first box of a kind in b, or nil. start has the first bytes of the body.
func boxOf(b []byte, kind, start string) []byte {
	for n := 0; n < maxBoxes && len(b) >= 8; n++ {
		head, size := 8, uint64(binary.BigEndian.Uint32(b))
		switch {
		case size == 0:
			size = uint64(len(b))
		case size == 1 && len(b) >= 16:
			head, size = 16, binary.BigEndian.Uint64(b[8:])
		}
		if size < uint64(head) {
			return nil
		}
		size = min(size, uint64(len(b)))
		if body := b[head:size]; begins(b, 4, kind) && begins(body, 0, start) {
			return body
		}
		b = b[size:]
	}
	return nil
}

// cr3Orientation returns the orientation of a CR3, which is in the box CMT1 of its movie, or 0.
func cr3Orientation(b []byte) int { return tiffOrientation(cr3Box(b, "CMT1"), 0) }

// cr3Box returns a box with a directory of a CR3, or nil.
func cr3Box(b []byte, kind string) []byte {
	canon := boxOf(boxOf(b, "moov", ""), "uuid", canonUUID)
	return boxOf(canon[min(len(canon), len(canonUUID)):], kind, "")
}

// mrwOrientation returns the orientation of an MRW, or 0.
func mrwOrientation(b []byte) int { return tiffOrientation(mrwBlock(b), 0) }

// mrwBlock returns the part of an MRW that begins with the body of its block TTW, which has its directories, or nil. A block is its kind, its length and its body.
func mrwBlock(b []byte) []byte {
	at := uint64(8)
	for n := 0; n < maxBoxes && at+8 <= uint64(len(b)); n++ {
		body := at + 8
		if begins(b, int(at), "\x00TTW") {
			return b[body:]
		}
		at = body + uint64(binary.BigEndian.Uint32(b[at+4:]))
	}
	return nil
}

// Structure is a TIFF structure of a file.
type Structure struct {
	Bytes []byte // its header and all that follows, perhaps with further bytes
	IsGPS bool   // its first directory is that of GPS
}

// Structures returns the TIFF structures of a file that describe its picture. A TIFF is one itself.
func Structures(b []byte) []Structure {
	switch {
	case isCR3(b):
		return []Structure{{cr3Box(b, "CMT1"), false}, {cr3Box(b, "CMT2"), false}, {cr3Box(b, "CMT4"), true}}
	case begins(b, 0, mrwMagic):
		return []Structure{{mrwBlock(b), false}}
	}
	if _, ok := openTIFF(b, 0); ok {
		return []Structure{{b, false}}
	}
	return nil
}

// x3fOrientation returns the orientation of an X3F, or 0. From version 4 on its header has no rotation.
func x3fOrientation(b []byte) int {
	if len(b) < 40 || binary.LittleEndian.Uint32(b[4:]) >= 4<<16 {
		return 0
	}
	return rotation(binary.LittleEndian.Uint32(b[36:]))
}

// rotation returns the orientation for a rotation in degrees, clockwise, or 0.
func rotation(degrees uint32) int {
	switch int32(degrees) {
	case 90, -270:
		return 6
	case 180, -180:
		return 3
	case 270, -90:
		return 8
	}
	return 0
}

// Kinds of the records of a CRW.
const (
	sizeRecord = 0x1810 // width, height, aspect, rotation
	timeRecord = 0x180e // seconds since 1970 as the camera's clock showed them, and two numbers that cameras leave 0
)

// crwOrientation returns the orientation of a CRW, or 0. It is in the record of the picture's size.
func crwOrientation(b []byte) int {
	if v := crwRecord(b, sizeRecord); len(v) >= 16 {
		return rotation(binary.LittleEndian.Uint32(v[12:]))
	}
	return 0
}

// CRWTime returns the time of a CRW in seconds since 1970, as if the camera's clock showed UTC. It returns 0 for other files.
func CRWTime(b []byte) int64 {
	if !begins(b, 0, crwMagic) {
		return 0
	}
	if v := crwRecord(b, timeRecord); len(v) >= 4 {
		return int64(binary.LittleEndian.Uint32(v))
	}
	return 0
}

// crwRecord returns the value of the first record of a kind, or nil.
//
// A heap of records ends with a directory: a number of entries with kind, size and offset, and behind it its own offset. The
// value of some records is a heap.
func crwRecord(b []byte, kind uint16) []byte {
	if len(b) < 6 {
		return nil
	}
	budget := maxEntries
	return heapRecord(b[min(uint64(binary.LittleEndian.Uint32(b[2:])), uint64(len(b))):], kind, &budget, 0)
}

func heapRecord(heap []byte, wanted uint16, budget *int, depth int) []byte {
	const (
		kindMask = 0x3800
		maxDepth = 5
	)
	le := binary.LittleEndian
	if len(heap) < 6 || depth > maxDepth {
		return nil
	}
	at := le.Uint32(heap[len(heap)-4:])
	if uint64(at)+2 > uint64(len(heap)) || at > math.MaxInt32 {
		return nil
	}
	n, dir := int(le.Uint16(heap[at:])), heap[at+2:]
	for ; n > 0 && len(dir) >= 10 && *budget > 0; n, dir = n-1, dir[10:] {
		*budget--
		kind, size, offset := le.Uint16(dir), uint64(le.Uint32(dir[2:])), uint64(le.Uint32(dir[6:]))
		if kind&0xc000 != 0 || offset+size > uint64(len(heap)) {
			continue // the value is in the entry
		}
		value := heap[offset : offset+size]
		if kind == wanted {
			return value
		}
		if kind&kindMask == 0x2800 || kind&kindMask == 0x3000 {
			if v := heapRecord(value, wanted, budget, depth+1); v != nil {
				return v
			}
		}
	}
	return nil
}
