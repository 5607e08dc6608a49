package raster

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"slices"

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
	wins     []window // the selected parts of the current picture
	pix      []byte   // the result
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
	var out Image
	err := d.Views(picture, []View{v}, func(_ int, img Image) { out = img })
	return out, err
}

// Views does what Decode does for several views of a picture, which it decodes once. It passes the image of views[i] to use. The image is
// valid until the next call of use, which must not call d. The last view comes last, so its image is valid until d's next call.
//
// Views of a JPEG may need several DCT scales. Then Views decodes the picture once for each scale, in the rectangle around the parts that
// the views of this scale select. [Limits.Pixels] applies to this rectangle.
func (d *Decoder) Views(picture []byte, views []View, use func(i int, img Image)) error {
	if done, err := d.viewsAtHost(picture, views, use); done {
		return err
	}
	h, err := inspect(picture, d.limits)
	if err != nil {
		return err
	}
	d.wins = resize(d.wins, len(views))
	for i, v := range views {
		if d.wins[i], err = v.window(h.width, h.height, h.orientation); err != nil {
			return err
		}
	}
	defer d.trim()
	for i := range d.wins {
		scale := h.scale(&d.wins[i])
		if slices.ContainsFunc(d.wins[i+1:], func(w window) bool { return h.scale(&w) == scale }) {
			continue // the last of the views with this scale decodes
		}
		if err := d.viewsOfScale(picture, &h, scale, use); err != nil {
			return err
		}
	}
	return nil
}

// viewsOfScale decodes a picture once, and renders the windows in d.wins that need scale.
func (d *Decoder) viewsOfScale(picture []byte, h *header, scale int, use func(i int, img Image)) error {
	defer d.forget()
	m, err := d.load(picture, h, scale)
	if err != nil {
		return fmt.Errorf("%s: %w", h.format, err)
	}
	for i := range d.wins {
		win := &d.wins[i]
		if h.scale(win) != scale {
			continue
		}
		img, err := d.render(m, win)
		if err != nil {
			return fmt.Errorf("%s: %w", h.format, err)
		}
		use(i, img)
	}
	return nil
}

// load decodes a picture into d.sources. It decodes only the part of a JPEG that the windows of scale need.
func (d *Decoder) load(picture []byte, h *header, scale int) (loaded, error) {
	var m image.Image
	var err error
	switch h.format {
	case formatJPEG:
		return d.loadJPEG(picture, h, scale)
	case formatRaw:
		return d.loadJPEG(h.preview, h, scale)
	case formatGIF:
		return d.loadFirstFrame(picture, h)
	case formatWebP:
		return d.loadWebP(picture, h)
	case formatPNG:
		m, err = d.library(picture, png.Decode)
	case formatBMP:
		m, err = d.library(picture, bmp.Decode)
	case formatTIFF:
		if h.planes {
			return d.loadTIFFPlanes(picture, h)
		}
		m, err = d.library(picture, tiff.Decode)
	default:
		return loaded{}, errModule
	}
	if err != nil {
		return loaded{}, err
	}
	if b := m.Bounds(); b.Dx() != h.width || b.Dy() != h.height {
		return loaded{}, fmt.Errorf("%w: size", ErrCorrupt)
	}
	return d.loadPicture(m), nil
}

// loadFirstFrame loads the first frame of an animation on its canvas.
func (d *Decoder) loadFirstFrame(picture []byte, h *header) (loaded, error) {
	next, err := d.frameSource(picture, h)
	if err != nil {
		return loaded{}, err
	}
	f, err := next()
	if err != nil {
		return loaded{}, err
	}
	return d.loadRows(f.rows, h.width, h.height), nil
}

// loadWebP loads a still WebP, or the first frame of an animation.
func (d *Decoder) loadWebP(picture []byte, h *header) (loaded, error) {
	f, err := parseWebP(picture)
	if err != nil {
		return loaded{}, err
	}
	if f.animated {
		return d.loadFirstFrame(picture, h)
	}
	m, err := d.webpPicture(&f.still)
	if err != nil {
		return loaded{}, err
	}
	return d.loadPicture(m), nil
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
