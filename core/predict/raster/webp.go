package raster

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"image"
	"time"

	"github.com/sightline-dev/sightline/core/predict/raster/exif"
	"github.com/sightline-dev/sightline/core/predict/raster/vp8l"

	"golang.org/x/image/webp"
)

// This file reads the container of WebP, because golang.org/x/image/webp does not support animations:
//
//	RIFF WEBP ─┬─ VP8 | VP8L                                  simple
//	           └─ VP8X ─┬─ [ALPH] VP8 | VP8L                  extended
//	                    └─ ANIM, ANMF { [ALPH] VP8 | VP8L }…  animated
//
// The library gets each picture as a separate file, simple or extended. It cannot be stopped once it has its data, and pixels may need no
// data: it takes 2.5 s to turn 34 bytes into 40 MP of one colour. So WebP has the limit TightPixels, at which that takes 1.2 s.

// webpAnimated is the bit of VP8X's first byte that marks an animation.
const webpAnimated = 0x02

// webpFile is a parsed WebP container.
type webpFile struct {
	width, height int // of the canvas
	animated      bool
	exif          []byte
	still         webpFrame // unless animated
	chunks        []byte    // if animated: the chunks after VP8X
}

// webpFrame is one picture: its position on the canvas and its coded data.
type webpFrame struct {
	x, y, w, h int
	alpha      []byte        // payload of ALPH, nil: none
	kind       string        // "VP8 " or "VP8L"
	data       []byte        // payload of VP8 or VP8L
	duration   time.Duration // as shownFor returns it
	clears     bool          // the frame's area becomes transparent after it
	replaces   bool          // alpha is copied, not blended
}

var errWebPShort = fmt.Errorf("%w: it ends early", ErrCorrupt)

// riffChunk splits the first chunk off b. It accepts a missing padding byte at the end.
func riffChunk(b []byte) (id string, payload, rest []byte, err error) {
	if len(b) < 8 {
		return "", nil, nil, errWebPShort
	}
	n := int64(binary.LittleEndian.Uint32(b[4:]))
	if n > int64(len(b)-8) {
		return "", nil, nil, errWebPShort
	}
	return string(b[:4]), b[8 : 8+n], b[min(int64(len(b)), 8+n+n&1):], nil
}

// parseWebP reads the container up to the pixels. In an extended file it also looks for EXIF.
func parseWebP(b []byte) (webpFile, error) {
	_, b, _, err := riffChunk(b)
	if err != nil {
		return webpFile{}, err
	}
	if !has(b, 0, "WEBP") {
		return webpFile{}, errWebPShort
	}
	id, payload, rest, err := riffChunk(b[4:])
	if err != nil {
		return webpFile{}, err
	}
	var f webpFile
	if id != "VP8X" {
		f.still, err = parsePicture(b[4:])
		f.width, f.height = f.still.w, f.still.h
		return f, err
	}
	if len(payload) < 10 {
		return webpFile{}, errWebPShort
	}
	f.width, f.height = le24(payload[4:])+1, le24(payload[7:])+1
	f.animated = payload[0]&webpAnimated != 0
	f.exif = findChunk(rest, "EXIF")
	if f.animated {
		f.chunks = rest
		return f, nil
	}
	f.still, err = parsePicture(rest)
	if err == nil && (f.still.w != f.width || f.still.h != f.height) {
		err = fmt.Errorf("%w: canvas and picture differ in size", ErrCorrupt)
	}
	return f, err
}

// findChunk returns the payload of the first chunk with this id, or nil.
func findChunk(b []byte, want string) []byte {
	for len(b) > 0 {
		id, payload, rest, err := riffChunk(b)
		if err != nil {
			return nil
		}
		if id == want {
			return payload
		}
		b = rest
	}
	return nil
}

// parsePicture reads chunks up to the coded picture and its size.
func parsePicture(b []byte) (webpFrame, error) {
	var f webpFrame
	for {
		id, payload, rest, err := riffChunk(b)
		if err != nil {
			return webpFrame{}, err
		}
		switch id {
		case "ALPH":
			f.alpha = payload
		case "VP8 ":
			// A frame tag of 3 bytes, the start code, then two sizes of 14 bits.
			if len(payload) < 10 || payload[0]&1 != 0 || !has(payload, 3, "\x9d\x01\x2a") {
				return webpFrame{}, fmt.Errorf("%w: VP8 header", ErrCorrupt)
			}
			f.kind, f.data = id, payload
			f.w, f.h = int(le16(payload[6:]))&0x3fff, int(le16(payload[8:]))&0x3fff
			if f.w == 0 || f.h == 0 {
				return webpFrame{}, fmt.Errorf("%w: no pixels", ErrCorrupt)
			}
			return f, nil
		case "VP8L":
			if len(payload) < 5 || payload[0] != 0x2f {
				return webpFrame{}, fmt.Errorf("%w: VP8L header", ErrCorrupt)
			}
			size := binary.LittleEndian.Uint32(payload[1:])
			f.kind, f.data, f.alpha = id, payload, nil
			f.w, f.h = int(size&0x3fff)+1, int(size>>14&0x3fff)+1
			return f, nil
		}
		b = rest
	}
}

// nextFrame returns the next ANMF chunk's frame.
func (f *webpFile) nextFrame() (webpFrame, error) {
	for len(f.chunks) > 0 {
		id, p, rest, err := riffChunk(f.chunks)
		if err != nil {
			return webpFrame{}, err
		}
		f.chunks = rest
		if id != "ANMF" {
			continue
		}
		if len(p) < 16 {
			return webpFrame{}, errWebPShort
		}
		frame, err := parsePicture(p[16:])
		if err != nil {
			return webpFrame{}, err
		}
		frame.x, frame.y = 2*le24(p), 2*le24(p[3:])
		frame.duration = webpDelay(p)
		frame.clears, frame.replaces = p[15]&1 != 0, p[15]&2 != 0
		if w, h := le24(p[6:])+1, le24(p[9:])+1; w != frame.w || h != frame.h ||
			frame.x+w > f.width || frame.y+h > f.height {
			return webpFrame{}, fmt.Errorf("%w: frame outside the canvas, or its size differs from its picture", ErrCorrupt)
		}
		return frame, nil
	}
	return webpFrame{}, errFrames
}

// webpDelay returns the time that a frame is shown. p is its ANMF chunk, of at least 16 bytes.
func webpDelay(p []byte) time.Duration {
	return shownFor(time.Duration(le24(p[12:])) * time.Millisecond)
}

func (h *header) readWebP(b []byte, l Limits) error {
	f, err := parseWebP(b)
	if f.width > 0 { // report a canvas that is too large before other errors
		h.width, h.height = f.width, f.height
		err = cmp.Or(h.check(l, l.TightPixels, 8), err)
	}
	if err != nil {
		return err
	}
	if f.exif != nil {
		h.orientation = exif.Orientation(f.exif)
	}
	if f.animated {
		h.timeline = timeline{}
		for rest := f.chunks; len(rest) > 0 && h.frames <= l.Frames; {
			id, p, next, err := riffChunk(rest)
			if err != nil || id == "ANMF" && len(p) < 16 {
				h.cut = true
				break
			}
			if id == "ANMF" {
				h.add(le24(p[6:])+1, le24(p[9:])+1, webpDelay(p))
			}
			rest = next
		}
		if h.frames > l.Frames {
			return tooManyFrames(l)
		}
		h.frames = max(1, h.frames)
	}
	return nil
}

// file returns the frame as a separate WebP file, in buf's memory.
func (f *webpFrame) file(buf []byte) []byte {
	buf = append(buf[:0], "RIFF\x00\x00\x00\x00WEBP"...)
	if f.alpha != nil {
		const hasAlpha = 1 << 4
		w, h := f.w-1, f.h-1
		buf = append(buf, "VP8X\x0a\x00\x00\x00"...)
		buf = append(buf, hasAlpha, 0, 0, 0, byte(w), byte(w>>8), 0, byte(h), byte(h>>8), 0)
		buf = appendChunk(buf, "ALPH", f.alpha)
	}
	buf = appendChunk(buf, f.kind, f.data)
	binary.LittleEndian.PutUint32(buf[4:], uint32(len(buf)-8))
	return buf
}

func appendChunk(buf []byte, id string, payload []byte) []byte {
	buf = append(buf, id...)
	buf = binary.LittleEndian.AppendUint32(buf, uint32(len(payload)))
	buf = append(buf, payload...)
	if len(payload)&1 != 0 {
		buf = append(buf, 0)
	}
	return buf
}

// maxGroups is the maximum number of groups of prefix codes of one picture: 14 MB, 59 MB with the longest codes. libwebp writes at most
// 2,600 groups.
const maxGroups = 2600

// checkGroups returns ErrTooLarge if the lossless part of f would take more memory than its pixels, and ErrCorrupt if that part ends early
// or contradicts itself before its pixels.
func (f *webpFrame) checkGroups() error {
	const lossless = 1 // the lowest two bits of ALPH's first byte
	n, ok := 0, true
	if f.kind == "VP8L" {
		n, ok = vp8l.Groups(f.data)
	} else if len(f.alpha) > 0 && f.alpha[0]&3 == lossless {
		n, ok = vp8l.AlphaGroups(f.alpha[1:], f.w, f.h)
	}
	switch {
	case n > maxGroups:
		return fmt.Errorf("%w: %d groups of prefix codes, at most %d", ErrTooLarge, n, maxGroups)
	case !ok:
		return fmt.Errorf("%w: VP8L header", ErrCorrupt)
	}
	return nil
}

// webpPicture decodes f. The result is an *image.YCbCr, *image.NYCbCrA or *image.NRGBA.
func (d *Decoder) webpPicture(f *webpFrame) (image.Image, error) {
	if err := f.checkGroups(); err != nil {
		return nil, err
	}
	d.webpBuf = f.file(d.webpBuf)
	m, err := d.library(d.webpBuf, webp.Decode)
	if err != nil {
		return nil, err
	}
	if b := m.Bounds(); b.Dx() != f.w || b.Dy() != f.h {
		return nil, fmt.Errorf("%w: size", ErrCorrupt)
	}
	return m, nil
}
