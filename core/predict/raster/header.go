package raster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/sightline-dev/sightline/core/predict/raster/exif"

	"github.com/sightline-dev/sightline/core/predict/raster/heif"
	"github.com/sightline-dev/sightline/core/predict/raster/jpg"
	"github.com/sightline-dev/sightline/core/predict/raster/jxl"
	"github.com/sightline-dev/sightline/core/predict/raster/raw"
)

// upright is the orientation of a picture that needs no rotation or mirroring.
const upright = exif.Upright

// header holds the declarations of a picture's headers, checked against the limits.
type header struct {
	format        format
	width, height int  // stored way round, ≥ 1
	orientation   int  // 1 to 8
	timeline           // of the animation's frames; frames ≥ 1
	cut           bool // not all frames of the animation could be counted
	jpeg          jpg.Config
	planes        bool // a TIFF of YCbCr or JPEG
	heif          *heif.Picture
	jxl           jxl.Info
	preview       []byte // the picture of camera raw, a JPEG
}

// Inspect reads a picture's headers. It decodes nothing and allocates nothing in proportion to
// the declared size. It returns ErrTooLarge if the headers exceed the
// default limits.
func Inspect(picture []byte) (Info, error) {
	if info, done := inspectAtHost(picture); done {
		return info, nil
	}
	h, err := inspect(picture, Limits{}.WithDefaults())
	if err != nil {
		return Info{}, err
	}
	info := Info{
		Format: h.format.String(), Width: h.width, Height: h.height,
		Orientation: h.orientation, Frames: h.frames,
	}
	if h.orientation >= 5 {
		info.Width, info.Height = h.height, h.width
	}
	return info, nil
}

// inspect reads and checks the headers.
func inspect(picture []byte, l Limits) (header, error) {
	f, err := sniff(picture)
	if err != nil {
		return header{}, err
	}
	most := l.Bytes
	if f == formatRaw {
		most = l.RawBytes
	}
	if n := int64(len(picture)); n > most {
		return header{}, fmt.Errorf("%s of %d bytes: %w: at most %d", f, n, ErrTooLarge, most)
	}
	h := header{format: f, orientation: upright, timeline: timeline{frames: 1}}
	switch f {
	case formatJPEG:
		err = h.readJPEG(picture, l)
	case formatPNG:
		err = h.readPNG(picture, l)
	case formatGIF:
		err = h.readGIF(picture, l)
	case formatWebP:
		err = h.readWebP(picture, l)
	case formatBMP:
		err = h.readBMP(picture, l)
	case formatTIFF:
		err = h.readTIFF(picture, l)
	case formatHEIC, formatAVIF:
		err = h.readHEIF(picture, l)
	case formatJXL:
		err = h.readJXL(picture, l)
	case formatRaw:
		err = h.readRaw(picture, l)
	}
	if err != nil {
		return header{}, fmt.Errorf("%s: %w", f, err)
	}
	return h, nil
}

// checkSides returns an error for pictures without pixels and for sides above the limit.
func (h *header) checkSides(l Limits) error {
	if h.width <= 0 || h.height <= 0 {
		return fmt.Errorf("%w: %d × %d pixels", ErrCorrupt, h.width, h.height)
	}
	if max(h.width, h.height) > l.Side {
		return fmt.Errorf("%w: %d × %d pixels, at most %d a side", ErrTooLarge, h.width, h.height, l.Side)
	}
	return nil
}

// pixels returns the declared area. Sides are below 2^31, so it cannot overflow.
func (h *header) pixels() int64 { return int64(h.width) * int64(h.height) }

// check returns an error if the sides, the pixels, or the bytes that decoding holds exceed the limits.
// halves is the memory in half bytes per pixel. The limit is 4 bytes for each allowed pixel.
func (h *header) check(l Limits, pixels int64, halves int64) error {
	if err := h.checkSides(l); err != nil {
		return err
	}
	if n := h.pixels(); n > pixels || n > 8*l.Pixels/halves {
		return fmt.Errorf("%w: %d × %d pixels, at most %d of this kind",
			ErrTooLarge, h.width, h.height, min(pixels, 8*l.Pixels/halves))
	}
	return nil
}

func (h *header) readJPEG(b []byte, l Limits) error {
	c, err := jpg.ReadConfig(b)
	if err != nil {
		return jpegError(err)
	}
	h.jpeg, h.width, h.height = c, c.Width, c.Height
	h.orientation = exif.JPEGOrientation(b)
	if err := h.checkSides(l); err != nil {
		return err
	}
	kind, pixels := "baseline", l.BaselinePixels
	if c.Progressive {
		kind, pixels = "progressive", l.ProgressivePixels
	}
	if h.pixels() > pixels {
		return fmt.Errorf("%w: %d × %d pixels, at most %d in a %s JPEG", ErrTooLarge, h.width, h.height, pixels, kind)
	}
	if c.Scans > l.Scans {
		return fmt.Errorf("%w: %d scans, at most %d", ErrTooLarge, c.Scans, l.Scans)
	}
	if n := int64(c.Scans) * jpegBlocks(c); n > l.ScanBlocks {
		return fmt.Errorf("%w: %d scans of %d × %d pixels take too long to decode", ErrTooLarge, c.Scans, h.width, h.height)
	}
	return nil
}

// minPreviewSide is the minimum longer side of the picture of camera raw. Smaller ones are thumbnails.
const minPreviewSide = 640

// readRaw looks for the largest JPEG in camera raw.
func (h *header) readRaw(b []byte, l Limits) error {
	f, _ := raw.Read(b)
	if max(f.Width, f.Height) < minPreviewSide {
		return fmt.Errorf("%s: %w: it contains no JPEG of at least %d pixels; convert it to JPEG", f.Name, ErrUnsupported, minPreviewSide)
	}
	if err := h.readJPEG(f.Preview, l); err != nil {
		return fmt.Errorf("%s: its JPEG: %w", f.Name, err)
	}
	h.preview = f.Preview
	if f.Orientation > 0 {
		h.orientation = f.Orientation
	}
	return nil
}

// jpegBlocks returns the number of 8×8 blocks of all components.
func jpegBlocks(c jpg.Config) int64 {
	hMax, vMax, perMCU := 1, 1, 0
	for i := range c.Components {
		hMax, vMax = max(hMax, c.HSamp[i]), max(vMax, c.VSamp[i])
		perMCU += c.HSamp[i] * c.VSamp[i]
	}
	across := (c.Width + 8*hMax - 1) / (8 * hMax)
	down := (c.Height + 8*vMax - 1) / (8 * vMax)
	return int64(across) * int64(down) * int64(perMCU)
}

// jpegError converts an error of package jpg to an error of this package.
func jpegError(err error) error {
	switch {
	case errors.Is(err, jpg.ErrExpired):
		return ErrExpired
	case errors.Is(err, jpg.ErrUnsupported):
		return fmt.Errorf("%w: %v", ErrUnsupported, err)
	case errors.Is(err, jpg.ErrTooLarge), errors.Is(err, jpg.ErrTooManyScans):
		return fmt.Errorf("%w: %v", ErrTooLarge, err)
	}
	return fmt.Errorf("%w: %v", ErrCorrupt, err)
}

// maxInflation is an upper bound for the bytes that one byte of deflate expands to: two bits give at most 258 bytes, so a byte gives 1032.
const maxInflation = 1040

// readPNG reads the IHDR chunk, which must be first, and looks for eXIf.
func (h *header) readPNG(b []byte, l Limits) error {
	if !has(b, 12, "IHDR") || len(b) < 33 {
		return fmt.Errorf("%w: no header", ErrCorrupt)
	}
	w, ht := binary.BigEndian.Uint32(b[16:]), binary.BigEndian.Uint32(b[20:])
	if w > math.MaxInt32 || ht > math.MaxInt32 {
		return fmt.Errorf("%w: size", ErrCorrupt)
	}
	h.width, h.height = int(w), int(ht)
	depth, colour, interlaced := int64(b[24]), b[25], b[28] != 0
	samples, known := map[byte]int64{0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
	if !known || depth == 0 || depth > 16 {
		return fmt.Errorf("%w: colour type %d of %d bits", ErrUnsupported, colour, depth)
	}
	// image/png holds a byte of each index, or up to four samples a pixel, because a
	// tRNS chunk may add alpha. It also holds the largest pass of an interlaced picture.
	halves := int64(8)
	switch {
	case depth == 16:
		halves = 16
	case colour == 3:
		halves = 2
	}
	if interlaced {
		halves = halves * 3 / 2
	}
	if err := h.check(l, l.Pixels, halves); err != nil {
		return err
	}
	if raw := h.pixels() * samples * depth / 8; raw > maxInflation*int64(len(b)) {
		return fmt.Errorf("%w: %d bytes cannot hold %d × %d pixels", ErrCorrupt, len(b), h.width, h.height)
	}
	h.orientation = pngOrientation(b)
	return nil
}

// pngOrientation looks for the eXIf chunk, which may come before or after the pixels.
func pngOrientation(b []byte) int {
	for i := 8; i+12 <= len(b); {
		size := int64(binary.BigEndian.Uint32(b[i:]))
		end := int64(i) + 12 + size
		if end > int64(len(b)) {
			break
		}
		switch string(b[i+4 : i+8]) {
		case "eXIf":
			return exif.Orientation(b[i+8 : end-4])
		case "IEND":
			return upright
		}
		i = int(end)
	}
	return upright
}

// readBMP reads the two headers that golang.org/x/image/bmp supports.
func (h *header) readBMP(b []byte, l Limits) error {
	if len(b) < 14+40 {
		return fmt.Errorf("%w: no header", ErrCorrupt)
	}
	le := binary.LittleEndian
	w, ht := int64(int32(le.Uint32(b[18:]))), int64(int32(le.Uint32(b[22:])))
	if ht < 0 { // top row first
		ht = -ht
	}
	if size := le.Uint32(b[14:]); size < 40 || w < 0 || ht > math.MaxInt32 {
		return fmt.Errorf("%w: header of %d bytes or its size", ErrUnsupported, size)
	}
	h.width, h.height = int(w), int(ht)
	halves, depth := int64(8), int64(le.Uint16(b[28:]))
	if depth <= 8 {
		halves = 2
	}
	if err := h.check(l, l.TightPixels, halves); err != nil {
		return err
	}
	// The library reads only uncompressed rows, so their length is known.
	row := (w*depth + 31) / 32 * 4
	if le.Uint32(b[30:]) == 0 && row*ht > int64(len(b)) {
		return fmt.Errorf("%w: %d bytes of pixels declared, %d in all", ErrCorrupt, row*ht, len(b))
	}
	return nil
}
