package raster

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// Frames reads a GIF or WebP as a video: the pictures on screen at the times 0, sample, 2·sample and so on, up to the
// time of the last frame. The picture at a time is the last frame that begins at that time or earlier. A still picture is on screen
// at 0 only. [Decoder.Frames] creates a Frames.
//
// The time of a frame is the sum of the delays before it. A delay of 10 ms or less counts as 100 ms, as in browsers and
// ffmpeg. The canvas begins white, and an area that a frame clears becomes white.
type Frames struct {
	d       *Decoder
	picture []byte
	head    header
	sample  time.Duration
	decode  func() (shownFrame, error) // the next frame; nil: a still picture

	frame    shownFrame    // the frame on the canvas, without its pixels
	decoded  int           // number of decoded frames
	at, end  time.Duration // time at which frame appears, and at which the next one would
	returned int           // number of pictures that Next returned
	err      error         // of the last Next
}

var (
	errSample  = errors.New("the time between two pictures must be more than 0")
	errNoFrame = errors.New("no picture before the first Next")
)

// Frames reads the headers of a picture or animation. sample is the time between two pictures. The result decodes one
// frame at a time, so it needs memory for one frame and the canvas only. It uses d: any other call of d makes the
// result invalid. The result borrows picture.
//
// The error wraps ErrUnsupported, ErrTooLarge or ErrCorrupt, unless sample is not positive.
func (d *Decoder) Frames(picture []byte, sample time.Duration) (*Frames, error) {
	if sample <= 0 {
		return nil, errSample
	}
	h, err := inspect(picture, d.limits)
	if err != nil {
		return nil, err
	}
	f := &Frames{d: d, picture: picture, head: h, sample: sample}
	if h.frames == 1 && !h.cut {
		return f, nil
	}
	// Next to the canvas, memory holds a frame and perhaps the canvas before it.
	err = h.check(d.limits, d.limits.Pixels, 20)
	if err == nil && h.painted > d.limits.FramePixels {
		err = fmt.Errorf("%w: frames of %d pixels together, at most %d", ErrTooLarge, h.painted, d.limits.FramePixels)
	}
	if err == nil {
		f.decode, err = d.frameSource(picture, &h)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", h.format, err)
	}
	d.canvas.reset(h.width, h.height)
	return f, nil
}

// Len returns the number of pictures that Next returns, according to the headers of the frames. It stops counting at a damaged
// header.
func (f *Frames) Len() int {
	if f.decode == nil {
		return 1
	}
	return f.head.pictures(f.sample)
}

// Next moves to the next picture and returns its time. It returns io.EOF after the last one.
//
// For a damaged frame Next returns an error that wraps ErrCorrupt or ErrUnsupported, at the first sampled time at or after the frame's
// time. It has returned the pictures before. Next decodes every frame before it returns io.EOF, so it also reports damage that no
// picture shows. Next returns ErrExpired as Decode does. Image, not Next, decodes a still picture.
func (f *Frames) Next() (time.Duration, error) {
	t := time.Duration(f.returned) * f.sample
	if f.err == nil {
		f.err = f.seek(t)
		if f.err != nil {
			f.d.forget()
			f.d.trim()
		}
	}
	if f.err != nil {
		return 0, f.err
	}
	f.returned++
	return t, nil
}

// seek paints frames up to the one on screen at t. t must not decrease.
func (f *Frames) seek(t time.Duration) error {
	if f.decode == nil {
		if t > 0 {
			return io.EOF
		}
		return nil
	}
	for f.decoded == 0 || t >= f.end {
		if f.isLast() {
			return io.EOF
		}
		if err := f.advance(); err != nil {
			return fmt.Errorf("%s: frame %d, at %d ms: %w", f.head.format, f.decoded, f.end.Milliseconds(), err)
		}
	}
	if t > f.at && f.isLast() {
		return io.EOF
	}
	return nil
}

// isLast reports whether the frame on the canvas is the last one. The count does not include frames after damage.
func (f *Frames) isLast() bool { return f.decoded == f.head.frames && !f.head.cut }

// advance decodes the next frame and paints it.
func (f *Frames) advance() error {
	c := &f.d.canvas
	if f.decoded > 0 {
		c.dispose(f.frame)
	}
	next, err := f.decode()
	if err != nil {
		return err
	}
	c.show(next)
	next.rows = nil
	f.d.forget()
	f.frame, f.at, f.end = next, f.end, f.end+next.duration
	f.decoded++
	return nil
}

// Image renders a view of the picture at the time of the last Next. The result is valid until the decoder's next call.
func (f *Frames) Image(v View) (Image, error) {
	d := f.d
	switch {
	case f.err != nil:
		return Image{}, f.err
	case f.returned == 0:
		return Image{}, errNoFrame
	case f.decode == nil:
		return d.Decode(f.picture, v)
	}
	win, err := v.window(f.head.width, f.head.height, f.head.orientation)
	if err != nil {
		return Image{}, err
	}
	d.sources[0] = d.canvas.source()
	return d.render(loaded{1, rowRGB}, &win)
}

// timeline summarises the headers of an animation's frames.
type timeline struct {
	frames  int
	last    time.Duration // time at which the last frame appears
	end     time.Duration // time at which the last frame's delay ends
	painted int64         // pixels of all frames
}

// pictures returns the number of multiples of sample from 0 up to the time at which the last frame appears.
func (t *timeline) pictures(sample time.Duration) int { return int(t.last/sample) + 1 }

func (t *timeline) add(w, h int, delay time.Duration) {
	t.frames++
	t.last, t.end = t.end, t.end+delay
	t.painted += int64(w) * int64(h)
}

// shownFor returns the time for which a frame with this delay is shown. Old writers left the delay out or wrote 1/100 s, so
// browsers and ffmpeg show such frames for 100 ms.
func shownFor(delay time.Duration) time.Duration {
	if delay <= 10*time.Millisecond {
		return 100 * time.Millisecond
	}
	return delay
}

// shownFrame is a decoded frame, with its rows to paint and its disposal method.
type shownFrame struct {
	x, y, w, h int
	rows       interface {
		rowLoader
		over(dst []byte, y, x0, x1 int)
	}
	replaces bool // its area is cleared before it is painted
	disposal byte
	duration time.Duration
}

// errFrames reports an animation that ends before the frames that its headers declared.
var errFrames = fmt.Errorf("%w: no picture", ErrCorrupt)

// frameSource returns a function that decodes the next frame.
func (d *Decoder) frameSource(picture []byte, h *header) (func() (shownFrame, error), error) {
	if h.format == formatWebP {
		f, err := parseWebP(picture)
		return func() (shownFrame, error) { return d.nextWebP(&f) }, err
	}
	g, err := newGIF(picture)
	return func() (shownFrame, error) { return d.nextGIF(g) }, err
}

func (d *Decoder) nextGIF(g *gifReader) (shownFrame, error) {
	f, err := g.next()
	if err == io.EOF {
		err = errFrames
	}
	if err != nil {
		return shownFrame{}, err
	}
	if err := d.gif.decode(g, &f, d.limits.Expired); err != nil {
		return shownFrame{}, err
	}
	return shownFrame{
		x: f.x, y: f.y, w: f.w, h: f.h, rows: gifPicture{frame: &f, pix: d.gif.pix},
		disposal: f.disposal, duration: f.delay,
	}, nil
}

func (d *Decoder) nextWebP(file *webpFile) (shownFrame, error) {
	f, err := file.nextFrame()
	if err != nil {
		return shownFrame{}, err
	}
	m, err := d.webpPicture(&f)
	if err != nil {
		return shownFrame{}, err
	}
	d.rows = pictureRows{m: m, x: f.x, y: f.y}
	frame := shownFrame{
		x: f.x, y: f.y, w: f.w, h: f.h, rows: &d.rows,
		replaces: f.replaces, duration: f.duration,
	}
	if f.clears {
		frame.disposal = disposeBackground
	}
	return frame, nil
}

// canvas is the picture that an animation has painted so far, over white.
type canvas struct {
	w, h  int
	pix   []byte // (h, w, 3)
	saved []byte // the area of the last frame before it was painted, (f.h, f.w, 3)
}

func (c *canvas) reset(w, h int) {
	c.w, c.h = w, h
	c.pix = resize(c.pix, 3*w*h)
	whiten(c.pix)
}

func (c *canvas) source() source {
	return source{pix: c.pix, stride: 3 * c.w, channels: 3, pitchX: 1, pitchY: 1, width: c.w, height: c.h}
}

// row returns row y of f's area.
func (c *canvas) row(f shownFrame, y int) []byte {
	at := 3 * ((f.y+y)*c.w + f.x)
	return c.pix[at : at+3*f.w]
}

// show paints f.
func (c *canvas) show(f shownFrame) {
	if f.disposal == disposePrevious {
		c.saved = c.saved[:0]
		for y := range f.h {
			c.saved = append(c.saved, c.row(f, y)...)
		}
	}
	for y := range f.h {
		row := c.row(f, y)
		if f.replaces {
			whiten(row)
		}
		f.rows.over(row, f.y+y, f.x, f.x+f.w)
	}
}

// dispose undoes f according to its disposal method.
func (c *canvas) dispose(f shownFrame) {
	for y := range f.h {
		switch f.disposal {
		case disposeBackground:
			whiten(c.row(f, y))
		case disposePrevious:
			copy(c.row(f, y), c.saved[3*f.w*y:])
		}
	}
}
