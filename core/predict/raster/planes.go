package raster

import (
	"fmt"

	"github.com/sightline-dev/sightline/core/predict/raster/exif"
)

// Planes is a frame of a video, or a picture, as video decoders return it: a plane of luma and two of chroma. With the matrix Identity they are
// green, blue and red.
//
// Pix has the rows of Y, then those of Cb, then those of Cr, without padding. A sample of 8 bits is one byte. A deeper
// sample is two bytes, the low byte first. A call borrows Pix until it returns.
type Planes struct {
	Width    int    `wire:"1"` // stored way round, that is before Rotation
	Height   int    `wire:"2"` // stored way round, that is before Rotation
	SubX     int    `wire:"3"` // 2^SubX × 2^SubY pixels have one sample of Cb and of Cr, 0 to 2: 4:2:0 is 1, 1; or both NoChroma
	SubY     int    `wire:"4"` // 2^SubX × 2^SubY pixels have one sample of Cb and of Cr, 0 to 2: 4:2:0 is 1, 1; or both NoChroma
	Depth    int    `wire:"5"` // bits of a sample: 8, 10 or 12
	Matrix   Matrix `wire:"6"`
	Full     bool   `wire:"7"` // full range; limited or unknown: false
	Rotation int    `wire:"8"` // orientation 1 to 8 as in EXIF; 0: 1
	Clip     Clip   // the visible part
	Pix      []byte
	Exif     exif.Data // of the picture's file; zero for a frame of a video
}

// Clip is the visible part of a frame, in pixels before the rotation. X1 and Y1 are outside it. The zero value selects the whole frame.
type Clip struct{ X0, Y0, X1, Y1 int }

// NoChroma is the value of SubX and SubY for a frame with Y only.
const NoChroma = 3

// Size returns the number of bytes that Pix must have. It returns ErrUnsupported for values that the fields do not allow,
// ErrCorrupt for a frame without pixels, and ErrTooLarge for a side of more than 65,535.
func (p *Planes) Size() (int, error) {
	gray := p.SubX == NoChroma && p.SubY == NoChroma
	switch {
	case p.Depth != 8 && p.Depth != 10 && p.Depth != 12:
		return 0, fmt.Errorf("%w: samples of %d bits", ErrUnsupported, p.Depth)
	case !gray && (min(p.SubX, p.SubY) < 0 || max(p.SubX, p.SubY) > 2):
		return 0, fmt.Errorf("%w: chroma subsampling of 2^%d × 2^%d", ErrUnsupported, p.SubX, p.SubY)
	case int(p.Matrix) >= len(conversions):
		return 0, fmt.Errorf("%w: matrix %d", ErrUnsupported, p.Matrix)
	case p.Rotation < 0 || p.Rotation > 8:
		return 0, fmt.Errorf("%w: orientation %d", ErrUnsupported, p.Rotation)
	}
	h := header{width: p.Width, height: p.Height}
	if err := h.checkSides(Limits{Side: maxSide}); err != nil {
		return 0, err
	}
	if c := p.clip(); c.X0 < 0 || c.X0 >= c.X1 || c.X1 > p.Width || c.Y0 < 0 || c.Y0 >= c.Y1 || c.Y1 > p.Height {
		return 0, fmt.Errorf("%w: its visible part", ErrCorrupt)
	}
	n := p.Width * p.Height
	if !gray {
		w, h := p.chroma()
		n += 2 * w * h
	}
	return n * p.sampleBytes(), nil
}

// clip returns the visible part.
func (p *Planes) clip() Clip {
	if p.Clip == (Clip{}) {
		return Clip{X1: p.Width, Y1: p.Height}
	}
	return p.Clip
}

// chroma returns the size of a chroma plane.
func (p *Planes) chroma() (w, h int) {
	return (p.Width + 1<<p.SubX - 1) >> p.SubX, (p.Height + 1<<p.SubY - 1) >> p.SubY
}

func (p *Planes) sampleBytes() int {
	if p.Depth > 8 {
		return 2
	}
	return 1
}

// conversion returns the colour conversion for p. p.Matrix must be valid.
func (p *Planes) conversion() *ycbcr {
	m := p.Matrix
	switch {
	case m != MatrixUnknown:
	case p.Height >= 720:
		m = BT709
	default:
		m = BT601
	}
	if p.Full {
		return &conversions[m][1]
	}
	return &conversions[m][0]
}

// Planes renders a view of a frame. It checks p before it allocates. For further frames of the same size it allocates nothing.
//
// It resizes the planes at their own resolution and converts colours when few pixels are left, as for a JPEG. A
// sample v of d bits counts as min(255, (v + 2^(d-9)) >> (d-8)). A chroma sample is in the middle of its pixels.
//
// The error wraps ErrUnsupported, ErrTooLarge or ErrExpired, or ErrCorrupt if Pix has more or fewer bytes than the
// frame needs, unless v itself is invalid.
func (d *Decoder) Planes(p Planes, v View) (Image, error) {
	size, err := p.Size()
	if err != nil {
		return Image{}, err
	}
	h := header{width: p.Width, height: p.Height}
	if err := h.checkSides(d.limits); err != nil {
		return Image{}, err
	}
	if limit := d.limits.StillPixels; h.pixels() > limit {
		return Image{}, fmt.Errorf("%w: %d × %d pixels, at most %d", ErrTooLarge, p.Width, p.Height, limit)
	}
	clip := p.clip()
	if len(p.Pix) != size {
		return Image{}, fmt.Errorf("%w: frame of %d bytes, not %d", ErrCorrupt, len(p.Pix), size)
	}
	win, err := v.window(clip.X1-clip.X0, clip.Y1-clip.Y0, max(p.Rotation, upright))
	if err != nil {
		return Image{}, err
	}
	defer d.forget()
	d.plane(0, &p, p.Width, p.Height, 0, 0)
	c := p.conversion()
	if p.SubX == NoChroma {
		return d.render(loaded{1, c.gray}, &win)
	}
	w, ht := p.chroma()
	for i := range 2 {
		d.plane(1+i, &p, w, ht, p.SubX, p.SubY)
	}
	switch {
	case p.Matrix == Identity:
		return d.render(loaded{3, c.identity}, &win)
	case c == jfif:
		return d.render(loaded{3, rowYCbCr}, &win)
	}
	return d.render(loaded{3, c.row}, &win)
}

// PartOf returns the part of an upright frame that v shows, as [Decoder.Part] does.
func (d *Decoder) PartOf(p Planes, v View) (Crop, error) {
	c := p.clip()
	return v.part(c.X1-c.X0, c.Y1-c.Y0, max(p.Rotation, upright))
}

// plane makes a source of the plane of w × h samples at the start of p.Pix, and removes the plane from p.Pix.
func (d *Decoder) plane(i int, p *Planes, w, h, subX, subY int) {
	c := p.clip()
	s := source{channels: 1, pitchX: 1 << subX, pitchY: 1 << subY, originX: -c.X0, originY: -c.Y0, width: w, height: h}
	n := w * h * p.sampleBytes()
	if p.Depth > 8 {
		d.deep[i] = deepRows{pix: p.Pix[:n], width: w, shift: uint(p.Depth - 8)}
		s.load = &d.deep[i]
	} else {
		s.pix, s.stride = p.Pix[:n], w
	}
	d.sources[i], p.Pix = s, p.Pix[n:]
}

// deepRows loads a plane of more than 8 bits per sample as rows of bytes.
type deepRows struct {
	pix   []byte
	width int
	shift uint // bits of a sample beyond 8
}

// row implements rowLoader.
func (r *deepRows) row(dst []byte, y, x0, x1 int) {
	from := r.pix[2*(y*r.width+x0):][:2*(x1-x0)]
	half, shift := uint32(1)<<r.shift>>1, r.shift&31
	for i := range dst {
		v := uint32(from[2*i]) | uint32(from[2*i+1])<<8
		dst[i] = byte(min(255, (v+half)>>shift))
	}
}
