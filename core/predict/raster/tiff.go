package raster

import (
	"encoding/binary"
	"fmt"
)

// Tags of TIFF 6.0 that say what decoding costs.
const (
	tagWidth        = 256
	tagHeight       = 257
	tagBits         = 258
	tagCompression  = 259
	tagPhotometric  = 262
	tagSamples      = 277
	tagRowsPerStrip = 278
	tagTileWidth    = 322
	tagTileHeight   = 323
)

// readTIFF reads the first directory.
//
// golang.org/x/image/tiff holds the picture, and the data of one strip or tile, which a
// hostile one can swell to 8 bytes a pixel in a buffer that grows by doubling: 24 bytes
// a pixel of the strip, for a moment. Both count.
func (h *header) readTIFF(b []byte, l Limits) error {
	dir, order := firstDirectory(b)
	if len(dir) == 0 {
		return fmt.Errorf("%w: no directory", ErrCorrupt)
	}
	h.width, h.height = tiffValue(b, dir, order, tagWidth, 0), tiffValue(b, dir, order, tagHeight, 0)
	if err := h.check(l, l.TightPixels, 2); err != nil {
		return err
	}
	depth := tiffValue(b, dir, order, tagBits, 1)
	pixel := int64(1)
	if tiffValue(b, dir, order, tagPhotometric, 0) == 2 {
		pixel = 4
	}
	if depth > 8 {
		pixel *= 2
	}
	rows := tiffValue(b, dir, order, tagRowsPerStrip, h.height)
	if rows == 0 {
		rows = h.height
	}
	strip := int64(h.width) * int64(min(h.height, rows))
	if w := tiffValue(b, dir, order, tagTileWidth, 0); w != 0 {
		strip = int64(min(w, l.Side)) * int64(min(tiffValue(b, dir, order, tagTileHeight, 0), l.Side))
	}
	bytes := pixel * h.pixels()
	if tiffValue(b, dir, order, tagCompression, 1) == 1 {
		if least := tiffLeast(b, dir, order, h.pixels(), depth); least > int64(len(b)) {
			return fmt.Errorf("%w: %d bytes of pixels declared, %d in all", ErrCorrupt, least, len(b))
		}
	} else {
		bytes += 24 * strip
	}
	if limit := 6 * l.Pixels; bytes > limit {
		return fmt.Errorf("%w: needs %d bytes, at most %d; store it in smaller strips", ErrTooLarge, bytes, limit)
	}
	h.orientation = exifOrientation(b)
	return nil
}

// tiffLeast is how many bytes uncompressed pixels take at least.
func tiffLeast(b, dir []byte, order binary.ByteOrder, pixels int64, depth int) int64 {
	samples := tiffValue(b, dir, order, tagSamples, 1)
	return pixels * int64(max(1, min(depth, 16))) * int64(max(1, min(samples, 4))) / 8
}

// tiffValue is the first value of a directory entry, or absent. Values beyond 2^31 are
// returned as 2^31-1, which no limit allows.
func tiffValue(b, dir []byte, order binary.ByteOrder, tag uint16, absent int) int {
	for ; len(dir) >= 12; dir = dir[12:] {
		if order.Uint16(dir) != tag {
			continue
		}
		size, count := uint64(0), uint64(order.Uint32(dir[4:]))
		switch order.Uint16(dir[2:]) {
		case 1: // BYTE
			size = 1
		case 3: // SHORT
			size = 2
		case 4: // LONG
			size = 4
		}
		if size == 0 || count == 0 {
			return absent
		}
		value := dir[8:12]
		if size*count > 4 {
			at := uint64(order.Uint32(value))
			if at+size > uint64(len(b)) {
				return absent
			}
			value = b[at:]
		}
		switch size {
		case 1:
			return int(value[0])
		case 2:
			return int(order.Uint16(value))
		}
		return int(min(order.Uint32(value), 1<<31-1))
	}
	return absent
}
