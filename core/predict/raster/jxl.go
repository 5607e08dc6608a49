package raster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"io"
	"time"

	"github.com/sightline-dev/sightline/core/predict/raster/jxl"
)

// The module of JPEG XL gives an upright RGBA picture for each frame: 4 bytes a pixel, or 8 with the high byte first if the file has
// samples of 16 bits. A [Run] asks for one of these outputs:
//
//	first    the first frame
//	times    the number of frames, and the duration of each in ticks; numbers of 4 bytes, low byte first; zeros fill the rest
//	frames   all frames

// jxlPicture is a JPEG XL file and its headers.
type jxlPicture struct {
	jxl.Info
	file   []byte
	limits Limits
}

// readJXL reads the headers of a JPEG XL file.
func (h *header) readJXL(b []byte, l Limits) error {
	i, err := jxl.Read(b)
	switch {
	case errors.Is(err, jxl.ErrUnsupported):
		return fmt.Errorf("%w: %v", ErrUnsupported, err)
	case err != nil:
		return fmt.Errorf("%w: %v", ErrCorrupt, err)
	case i.Ink:
		return fmt.Errorf("%w: amounts of ink", ErrUnsupported)
	}
	h.jxl, h.width, h.height = i, i.Width, i.Height
	if err := h.checkSides(l); err != nil {
		return err
	}
	limit := l.StillPixels
	if i.Depth == 16 { // the output takes twice the memory
		limit /= 2
	}
	if h.pixels() > limit {
		return fmt.Errorf("%w: %d × %d pixels, at most %d of this kind", ErrTooLarge, h.width, h.height, limit)
	}
	return nil
}

// sampleBytes returns the number of bytes of a sample in the module's output.
func (p *jxlPicture) sampleBytes() int {
	if p.Depth == 16 {
		return 2
	}
	return 1
}

// bytes returns the number of bytes of a frame in the module's output.
func (p *jxlPicture) bytes() int { return 4 * p.sampleBytes() * p.Width * p.Height }

func (p *jxlPicture) run(output string, bytes int) Run { return Run{JPEGXL, output, p.file, bytes} }

// planes turns the output of the run for the first frame into planes.
func (p *jxlPicture) planes(outputs [][]byte) (Planes, error) {
	if len(outputs) != 1 || len(outputs[0]) != p.bytes() {
		return Planes{}, fmt.Errorf("%w: its decoder returned too little", ErrCorrupt)
	}
	n := p.Width * p.Height
	out := Planes{Width: p.Width, Height: p.Height, Depth: 8, Matrix: Identity, Full: true, Pix: make([]byte, 3*n)}
	rows := pictureRows{m: p.picture(outputs[0])}
	green, blue, red := out.Pix[:n], out.Pix[n:2*n], out.Pix[2*n:]
	line := make([]byte, 3*p.Width)
	for y := range p.Height {
		rows.row(line, y, 0, p.Width)
		for x := range p.Width {
			at := y*p.Width + x
			red[at], green[at], blue[at] = line[3*x], line[3*x+1], line[3*x+2]
		}
	}
	return out, nil
}

// picture returns a frame with the samples of pix, which it changes.
func (p *jxlPicture) picture(pix []byte) image.Image {
	if p.Linear {
		jxl.EncodeSRGB(pix, p.sampleBytes())
	}
	r := image.Rect(0, 0, p.Width, p.Height)
	stride := len(pix) / p.Height
	switch deep := p.sampleBytes() == 2; {
	case deep && p.Premultiplied:
		return &image.RGBA64{Pix: pix, Stride: stride, Rect: r}
	case deep:
		return &image.NRGBA64{Pix: pix, Stride: stride, Rect: r}
	case p.Premultiplied:
		return &image.RGBA{Pix: pix, Stride: stride, Rect: r}
	}
	return &image.NRGBA{Pix: pix, Stride: stride, Rect: r}
}

// Animation is an animation whose frames a decoding module must decode.
type Animation struct {
	jxlPicture
	head      header
	durations []time.Duration
}

// IsAnimation reports whether the picture may have several frames.
func (s *Still) IsAnimation() bool { return s.heif == nil && s.jxl.Animated }

// Times returns the run that lists the frames of an animation.
func (s *Still) Times() Run { return s.jxl.run("times", 4*(1+s.jxl.limits.Frames)) }

// Animation reads the output of the run for the times. It returns ErrTooLarge if there are too many frames, or too many pixels.
func (s *Still) Animation(times []byte) (*Animation, error) {
	p := &s.jxl
	if len(times) != 4*(1+p.limits.Frames) {
		return nil, fmt.Errorf("%w: its decoder returned too little", ErrCorrupt)
	}
	n := int64(binary.LittleEndian.Uint32(times))
	a := &Animation{jxlPicture: *p, head: header{format: formatJXL, width: p.Width, height: p.Height, orientation: upright, jxl: p.Info}}
	// Next to the canvas, memory holds a frame.
	err := a.head.check(p.limits, p.limits.Pixels, 22)
	switch all := n * int64(p.bytes()); {
	case err != nil:
	case n == 0:
		err = errFrames
	case n > int64(p.limits.Frames):
		err = fmt.Errorf("%w: %d frames, at most %d", ErrTooLarge, n, p.limits.Frames)
	case all > maxAnimation:
		err = fmt.Errorf("%w: %d frames of %d × %d pixels, at most %d MB", ErrTooLarge, n, p.Width, p.Height, maxAnimation/1_000_000)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", formatJXL, err)
	}
	for i := range n {
		d := shownFor(p.duration(binary.LittleEndian.Uint32(times[4+4*i:])))
		a.durations = append(a.durations, d)
		a.head.add(p.Width, p.Height, d)
	}
	return a, nil
}

// maxAnimation is the maximum number of bytes of an animation's frames. The module has 512 MiB, and needs some for itself.
const maxAnimation = 400_000_000

// duration returns the time of a number of ticks, at most an hour.
func (p *jxlPicture) duration(ticks uint32) time.Duration {
	seconds := float64(ticks) * float64(p.Per) / float64(p.Ticks)
	return time.Duration(float64(min(seconds, time.Hour.Seconds())*1000)+0.5) * time.Millisecond
}

// Frames returns the number of frames.
func (a *Animation) Frames() int { return len(a.durations) }

// Len does what [Frames.Len] does for the time sample between two pictures.
func (a *Animation) Len(sample time.Duration) int { return a.head.pictures(sample) }

// Run returns the run that decodes all frames.
func (a *Animation) Run() Run { return a.run("frames", a.bytes()*len(a.durations)) }

// Animation does what Frames does for an animation whose frames frames reads, the output of the animation's run. Next reads them one at a
// time.
func (d *Decoder) Animation(a *Animation, frames io.Reader, sample time.Duration) (*Frames, error) {
	if sample <= 0 {
		return nil, errSample
	}
	pix, i := make([]byte, a.bytes()), 0
	next := func() (shownFrame, error) {
		if d.limits.Expired() {
			return shownFrame{}, ErrExpired
		}
		if _, err := io.ReadFull(frames, pix); err != nil {
			return shownFrame{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		d.rows = pictureRows{m: a.picture(pix)}
		i++
		return shownFrame{w: a.Width, h: a.Height, rows: &d.rows, replaces: true, duration: a.durations[i-1]}, nil
	}
	d.canvas.reset(a.Width, a.Height)
	return &Frames{d: d, head: a.head, sample: sample, decode: next}, nil
}
