package raster

import (
	"encoding/binary"
	"fmt"

	"github.com/sightline-dev/sightline/core/predict/raster/exif"
)

// Tags of TIFF 6.0, and of its technical note 2 for JPEG.
const (
	tagWidth          = 256
	tagHeight         = 257
	tagBits           = 258
	tagCompression    = 259
	tagPhotometric    = 262
	tagFillOrder      = 266
	tagStripOffsets   = 273
	tagSamples        = 277
	tagRowsPerStrip   = 278
	tagStripCounts    = 279
	tagPlanar         = 284
	tagPredictor      = 317
	tagTileWidth      = 322
	tagTileHeight     = 323
	tagTileOffsets    = 324
	tagTileCounts     = 325
	tagSampleFormat   = 339
	tagJPEGTables     = 347
	tagYCbCrWeights   = 529
	tagYCbCrSampling  = 530
	tagReferenceRange = 532
)

// Values of tagPhotometric and tagCompression.
const (
	photometricGray  = 1
	photometricRGB   = 2
	photometricYCbCr = 6

	compressionNone       = 1
	compressionLZW        = 5
	compressionJPEG       = 7
	compressionDeflate    = 8
	compressionPackBits   = 32773
	compressionOldDeflate = 32946
)

// readTIFF reads the first directory.
//
// golang.org/x/image/tiff holds the picture and the data of one strip or tile. A hostile file
// can expand a strip to 8 bytes a pixel in a buffer that grows by doubling: 24 bytes
// a pixel of the strip, for a moment. The limit counts both. Our own reader of planes holds 3 bytes a
// pixel of the picture and of a strip.
func (h *header) readTIFF(b []byte, l Limits) error {
	f := openTIFF(b)
	if len(f.dir) == 0 {
		return fmt.Errorf("%w: no directory", ErrCorrupt)
	}
	h.width, h.height = f.value(tagWidth, 0), f.value(tagHeight, 0)
	if err := h.check(l, l.TightPixels, 2); err != nil {
		return err
	}
	depth, samples := f.value(tagBits, 1), f.value(tagSamples, 1)
	compression, photometric := f.value(tagCompression, compressionNone), f.value(tagPhotometric, 0)
	h.planes = compression == compressionJPEG || photometric == photometricYCbCr
	pixel, swollen := int64(1), int64(24)
	switch {
	case h.planes:
		pixel, swollen = 3, 3
		samples = 1 // of the others there may be fewer than pixels
	case photometric == photometricRGB:
		pixel = 4
	}
	if depth > 8 {
		pixel *= 2
	}
	rows := f.value(tagRowsPerStrip, h.height)
	if rows == 0 {
		rows = h.height
	}
	strip := int64(h.width) * int64(min(h.height, rows))
	if w := f.value(tagTileWidth, 0); w != 0 {
		strip = int64(min(w, maxSide)) * int64(min(f.value(tagTileHeight, 0), maxSide))
	}
	bytes := pixel * h.pixels()
	if compression == compressionNone {
		if least := minTIFFBytes(h.pixels(), depth, samples); least > int64(len(b)) {
			return fmt.Errorf("%w: %d bytes of pixels declared, %d in all", ErrCorrupt, least, len(b))
		}
	} else {
		bytes += swollen * strip
	}
	if limit := tiffBytes(l); bytes > limit {
		return fmt.Errorf("%w: needs %d bytes, at most %d; store it in smaller strips", ErrTooLarge, bytes, limit)
	}
	h.orientation = exif.Orientation(b)
	return nil
}

// tiffBytes returns the maximum number of bytes that decoding a TIFF may hold.
func tiffBytes(l Limits) int64 { return 6 * l.Pixels }

// minTIFFBytes returns the minimum number of bytes of uncompressed pixels.
func minTIFFBytes(pixels int64, depth, samples int) int64 {
	return pixels * int64(max(1, min(depth, 16))) * int64(max(1, min(samples, 4))) / 8
}

// tiffFile is a TIFF with its first directory.
type tiffFile struct {
	b, dir []byte
	order  binary.ByteOrder
}

func openTIFF(b []byte) tiffFile {
	dir, order := exif.FirstDirectory(b)
	return tiffFile{b: b, dir: dir, order: order}
}

// value returns the first value of a directory entry, or absent if there is none. It returns values beyond 2^31
// as 2^31-1, which no limit allows.
func (f *tiffFile) value(tag uint16, absent int) int {
	v := f.values(tag)
	if v.n == 0 || v.size == 8 {
		return absent
	}
	return v.at(0)
}

// tiffValues are the numbers of a directory entry.
type tiffValues struct {
	data  []byte // holds at least n values
	n     int    // values that lie inside the file
	size  int    // bytes of one value
	order binary.ByteOrder
}

// values returns the numbers of a directory entry. It returns none if the entry is absent or its type is not one of these.
func (f *tiffFile) values(tag uint16) tiffValues {
	for dir := f.dir; len(dir) >= 12; dir = dir[12:] {
		if f.order.Uint16(dir) != tag {
			continue
		}
		size, count := uint64(0), uint64(f.order.Uint32(dir[4:]))
		switch f.order.Uint16(dir[2:]) {
		case 1, 7: // BYTE, UNDEFINED
			size = 1
		case 3: // SHORT
			size = 2
		case 4: // LONG
			size = 4
		case 5: // RATIONAL
			size = 8
		}
		if size == 0 {
			break
		}
		data := dir[8:12]
		if size*count > 4 {
			data = f.b[min(uint64(f.order.Uint32(data)), uint64(len(f.b))):]
		}
		return tiffValues{data: data, n: int(min(count, uint64(len(data))/size)), size: int(size), order: f.order}
	}
	return tiffValues{}
}

// at returns value i, at most 2^31-1. The values must not be RATIONAL.
func (v *tiffValues) at(i int) int {
	value := v.data[i*v.size:]
	switch v.size {
	case 1:
		return int(value[0])
	case 2:
		return int(v.order.Uint16(value))
	}
	return int(min(v.order.Uint32(value), 1<<31-1))
}

// fixedPoint returns value i of RATIONAL in 16.16, rounded down; 0 for a denominator of 0 and for another type.
func (v *tiffValues) fixedPoint(i int) int64 {
	value := v.data[i*v.size:]
	if v.size != 8 || v.order.Uint32(value[4:]) == 0 {
		return 0
	}
	return int64(v.order.Uint32(value)) << 16 / int64(v.order.Uint32(value[4:]))
}
