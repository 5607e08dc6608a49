package raster

import (
	"fmt"
	"io"
	"time"
)

// Frames gives the frames of an animation one after the other, each as the whole picture
// that a viewer would see at that moment, in the part and size of v. A still picture
// gives one frame.
//
// i counts from 0; at is when the frame appears, the sum of the delays before it as the
// file declares them. img is valid until yield returns; when yield returns false, Frames
// stops without an error. Frames are decoded lazily, so the memory is that of one frame
// and the canvas, and an error may come after some frames.
//
// The canvas begins white, and what a file disposes of becomes white: that is the
// animation over white.
func (d *Decoder) Frames(picture []byte, v View, yield func(i int, at time.Duration, img Image) bool) error {
	h, err := inspect(picture, d.limits)
	if err != nil {
		return err
	}
	if d.win, err = v.window(h.width, h.height, h.orientation); err != nil {
		return err
	}
	defer d.trim()
	if err := d.frames(picture, &h, &d.win, yield); err != nil {
		return fmt.Errorf("%s: %w", h.format, err)
	}
	return nil
}

func (d *Decoder) frames(picture []byte, h *header, win *window, yield func(int, time.Duration, Image) bool) error {
	if h.frames == 1 && !h.cut {
		img, err := d.decode(picture, h, win)
		if err == nil {
			yield(0, 0, img)
		}
		return err
	}
	// Besides the canvas, a frame and perhaps the canvas before it are held.
	if err := h.check(d.limits, d.limits.Pixels, 20); err != nil {
		return err
	}
	next, err := d.frameSource(picture, h)
	if err != nil {
		return err
	}
	d.canvas.reset(h.width, h.height)
	defer d.forget()
	var at time.Duration
	for i := 0; ; i++ { // the limit holds: frames that were not counted cannot be read
		f, err := next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		d.canvas.show(f)
		d.sources[0] = d.canvas.source()
		img, err := d.render(1, rowRGB, win)
		if err != nil {
			return err
		}
		if !yield(i, at, img) {
			return nil
		}
		at += f.duration
		d.canvas.dispose(f)
	}
}

// shownFrame is a decoded frame and what becomes of it.
type shownFrame struct {
	x, y, w, h int
	rows       interface {
		over(dst []byte, y, x0, x1 int)
	}
	replaces bool // its place is cleared before it is painted
	disposal byte
	duration time.Duration
}

// frameSource returns a function that decodes the next frame; io.EOF after the last.
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
	shown := shownFrame{
		x: f.x, y: f.y, w: f.w, h: f.h, rows: &d.rows,
		replaces: f.replaces, duration: f.duration,
	}
	if f.clears {
		shown.disposal = disposeBackground
	}
	return shown, nil
}

// canvas is what an animation has painted so far, over white.
type canvas struct {
	w, h  int
	pix   []byte // (h, w, 3)
	saved []byte // the place of the last frame before it, (f.h, f.w, 3)
}

func (c *canvas) reset(w, h int) {
	c.w, c.h = w, h
	c.pix = resized(c.pix, 3*w*h)
	whiten(c.pix)
}

func (c *canvas) source() source {
	return source{pix: c.pix, stride: 3 * c.w, channels: 3, pitchX: 1, pitchY: 1, width: c.w, height: c.h}
}

// row returns row y of f's place.
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

// dispose undoes f as it asked.
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
