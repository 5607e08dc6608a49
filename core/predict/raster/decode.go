package raster

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"

	"github.com/sightline-dev/sightline/core/predict/raster/jpg"
)

// Decoder turns pictures into images, one after the other, within its limits. It keeps
// its scratch memory between calls. It is not safe for concurrent use.
type Decoder struct {
	limits   Limits
	jpeg     jpg.Decoder
	gif      gifDecoder
	webpBuf  []byte // one frame as a separate file
	tiff     tiffPlanes
	lanes    [4]lane
	sources  [4]source
	deep     [3]deepRows // the loaders of sources with more than 8 bits
	lastRows [4][]byte   // the last row of each lane
	rows     pictureRows
	canvas   canvas
	win      window // the selected part of the current picture
	pix      []byte // the result
}

// NewDecoder returns a decoder with these limits.
func NewDecoder(l Limits) *Decoder {
	return &Decoder{limits: l.WithDefaults()}
}

// Decode returns the part of a picture that v selects. For an animation it uses the first frame.
// An animation with more frames than the limit is an error.
//
// The error wraps ErrUnsupported, ErrTooLarge, ErrCorrupt or ErrExpired, unless v itself
// is invalid.
func (d *Decoder) Decode(picture []byte, v View) (Image, error) {
	if img, done, err := d.decodeAtHost(picture, v); done {
		return img, err
	}
	h, err := inspect(picture, d.limits)
	if err != nil {
		return Image{}, err
	}
	if d.win, err = v.window(h.width, h.height, h.orientation); err != nil {
		return Image{}, err
	}
	defer d.trim()
	img, err := d.decode(picture, &h, &d.win)
	if err != nil {
		return Image{}, fmt.Errorf("%s: %w", h.format, err)
	}
	return img, nil
}

func (d *Decoder) decode(picture []byte, h *header, win *window) (Image, error) {
	var m image.Image
	var err error
	switch h.format {
	case formatJPEG:
		return d.decodeJPEG(picture, h, win)
	case formatRaw:
		return d.decodeJPEG(h.preview, h, win)
	case formatGIF:
		return d.firstFrame(picture, h, win)
	case formatWebP:
		return d.decodeWebP(picture, h, win)
	case formatPNG:
		m, err = d.library(picture, png.Decode)
	case formatBMP:
		m, err = d.library(picture, bmp.Decode)
	case formatTIFF:
		if h.planes {
			return d.decodeTIFFPlanes(picture, h, win)
		}
		m, err = d.library(picture, tiff.Decode)
	default:
		return Image{}, errModule
	}
	if err != nil {
		return Image{}, err
	}
	if b := m.Bounds(); b.Dx() != h.width || b.Dy() != h.height {
		return Image{}, fmt.Errorf("%w: size", ErrCorrupt)
	}
	return d.renderPicture(m, win)
}

// firstFrame renders the first frame of an animation on its canvas.
func (d *Decoder) firstFrame(picture []byte, h *header, win *window) (Image, error) {
	next, err := d.frameSource(picture, h)
	if err != nil {
		return Image{}, err
	}
	f, err := next()
	if err != nil {
		return Image{}, err
	}
	defer d.forget()
	return d.renderRows(f.rows, h.width, h.height, win)
}

// decodeWebP renders a still WebP, or the first frame of an animation.
func (d *Decoder) decodeWebP(picture []byte, h *header, win *window) (Image, error) {
	f, err := parseWebP(picture)
	if err != nil {
		return Image{}, err
	}
	if f.animated {
		return d.firstFrame(picture, h, win)
	}
	m, err := d.webpPicture(&f.still)
	if err != nil {
		return Image{}, err
	}
	return d.renderPicture(m, win)
}

// guardedReader is the input of a library decoder. It returns few bytes at a time, so that a decoder which reads ahead still calls it
// often. Once time is up, it fails.
type guardedReader struct {
	r       bytes.Reader
	expired func() bool
	stopped bool
	until   int // bytes until the next call of expired
}

// guardedBytes is the number of bytes between two calls of expired. A deflate stream expands them to at most 4 MB.
const guardedBytes = 4096

func (r *guardedReader) check(n int) error {
	if r.stopped {
		return ErrExpired
	}
	if r.until -= n; r.until < 0 {
		r.until = guardedBytes
		if r.expired() {
			r.stopped = true
			return ErrExpired
		}
	}
	return nil
}

// Read implements io.Reader.
func (r *guardedReader) Read(p []byte) (int, error) {
	p = p[:min(len(p), guardedBytes)]
	if err := r.check(len(p)); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// ReadAt implements io.ReaderAt, for TIFF.
func (r *guardedReader) ReadAt(p []byte, at int64) (int, error) {
	if err := r.check(len(p)); err != nil {
		return 0, err
	}
	return r.r.ReadAt(p, at)
}

// library runs a library's decoder on b. If the decoder panics, library returns ErrCorrupt: such panics were reported for
// golang.org/x/image in 2026.
func (d *Decoder) library(b []byte, decode func(io.Reader) (image.Image, error)) (m image.Image, err error) {
	if d.limits.Expired() {
		return nil, ErrExpired
	}
	r := &guardedReader{expired: d.limits.Expired}
	r.r.Reset(b)
	defer func() {
		if p := recover(); p != nil {
			m, err = nil, fmt.Errorf("%w: %v", ErrCorrupt, p)
		}
	}()
	m, err = decode(r)
	if err != nil {
		return nil, libraryError(err, r.stopped)
	}
	if d.limits.Expired() {
		return nil, ErrExpired
	}
	return m, nil
}

// libraryError converts an error of a library's decoder to an error of this package.
func libraryError(err error, expired bool) error {
	var (
		ofPNG  png.UnsupportedError
		ofJPEG jpeg.UnsupportedError
		ofTIFF tiff.UnsupportedError
	)
	switch {
	case expired:
		return ErrExpired
	case errors.As(err, &ofPNG), errors.As(err, &ofJPEG), errors.As(err, &ofTIFF), errors.Is(err, bmp.ErrUnsupported):
		return fmt.Errorf("%w: %v", ErrUnsupported, err)
	}
	return fmt.Errorf("%w: %v", ErrCorrupt, err)
}

// forget drops references to memory of a library or a caller, which may be large.
func (d *Decoder) forget() {
	d.rows = pictureRows{}
	d.sources = [4]source{}
	d.deep = [3]deepRows{}
}

// keepBytes is the maximum size of a scratch buffer that is kept for the next picture. Common pictures need less. Larger buffers are
// released, so that one large picture does not occupy them for ever.
const keepBytes = 4 << 20

// trim releases large scratch memory, except the result.
func (d *Decoder) trim() {
	for _, b := range []*[]byte{&d.gif.pix, &d.gif.passes, &d.canvas.pix, &d.canvas.saved, &d.webpBuf, &d.tiff.segment, &d.tiff.pix} {
		if cap(*b) > keepBytes {
			*b = nil
		}
	}
}
