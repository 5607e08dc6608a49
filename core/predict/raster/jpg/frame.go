package jpg

import (
	"fmt"
)

var (
	errSampling   = fmt.Errorf("%w: sampling factors", ErrUnsupported)
	errFactors    = fmt.Errorf("%w: sampling factors", ErrCorrupt)
	errComponents = fmt.Errorf("%w: number of components", ErrUnsupported)
	errPrecision  = fmt.Errorf("%w: only 8 bit samples", ErrUnsupported)
	errFrame      = fmt.Errorf("%w: frame header", ErrCorrupt)
)

// component is one component of the frame header (section B.2.2 of the JPEG standard).
type component struct {
	id   byte
	h, v int  // sampling factors: 1, 2 or 4
	tq   byte // quantisation table, 0 to 3
}

// frame is the content of a picture's headers.
type frame struct {
	width, height int
	n             int // number of components; 0 before the frame header
	comp          [4]component
	baseline      bool
	progressive   bool
	jfif          bool
	adobe         int     // transform of the last Adobe segment plus one; 0: no such segment
	declared      [4]byte // sampling factors in the header: h<<4 | v
}

// header reads a segment that ReadConfig and Decode treat alike. It ignores segments without
// data for the frame, and returns an error for an unknown marker.
func (f *frame) header(marker byte, body []byte) error {
	switch marker {
	case markerSOF0, markerSOF1, markerSOF2:
		f.baseline = marker == markerSOF0
		f.progressive = marker == markerSOF2
		return f.start(body)
	case markerAPP0:
		if len(body) >= 5 {
			f.jfif = string(body[:5]) == "JFIF\x00"
		}
	case markerAPP14:
		if len(body) >= 12 && string(body[:5]) == "Adobe" {
			f.adobe = int(body[11]) + 1
		}
	case markerDHT, markerDQT, markerDRI:
	default:
		if !skippable(marker) {
			return unknownMarker(marker)
		}
	}
	return nil
}

// start reads body, a frame header.
func (f *frame) start(body []byte) error {
	if f.n != 0 {
		return fmt.Errorf("%w: second frame header", ErrCorrupt)
	}
	n := 0
	switch len(body) {
	case 6 + 3*1:
		n = 1
	case 6 + 3*3:
		n = 3
	case 6 + 3*4:
		n = 4
	default:
		return errComponents
	}
	if body[0] != 8 {
		return errPrecision
	}
	f.height = int(body[1])<<8 + int(body[2])
	f.width = int(body[3])<<8 + int(body[4])
	if int(body[5]) != n {
		return errFrame
	}
	for i := range n {
		c := component{id: body[6+3*i], h: int(body[7+3*i] >> 4), v: int(body[7+3*i] & 15), tq: body[8+3*i]}
		for _, earlier := range f.comp[:i] {
			if c.id == earlier.id {
				return errFrame
			}
		}
		if c.tq > 3 {
			return errFrame
		}
		f.declared[i] = body[7+3*i]
		f.comp[i] = c
		if err := f.checkSampling(n, i); err != nil {
			return err
		}
	}
	f.n = n
	return nil
}

// checkSampling checks the sampling factors of component i of n. It accepts the same factors as image/jpeg:
//   - three components: v of the first is below 4, the others are equal and divide the first;
//   - four components: all are 1x1, or the first and the last are 2x2 and the others 1x1;
//   - one component: checkSampling sets it to 1x1 (section A.2.2: it is not interleaved by definition).
func (f *frame) checkSampling(n, i int) error {
	c, first := &f.comp[i], &f.comp[0]
	if c.h < 1 || 4 < c.h || c.v < 1 || 4 < c.v {
		return errFactors
	}
	if c.h == 3 || c.v == 3 {
		return errSampling
	}
	ok := true
	switch {
	case n == 1:
		c.h, c.v = 1, 1
	case n == 3 && i == 0:
		ok = c.v != 4
	case n == 3 && i == 1:
		ok = first.h%c.h == 0 && first.v%c.v == 0
	case n == 3:
		ok = c.h == f.comp[1].h && c.v == f.comp[1].v
	case i == 0:
		ok = c.h == c.v && c.h != 4
	case i == 3:
		ok = c.h == first.h && c.v == first.v
	default:
		ok = c.h == 1 && c.v == 1
	}
	if !ok {
		return errSampling
	}
	return nil
}

// model returns the colour model of the planes. For four components without an Adobe segment it returns errColorModel.
func (f *frame) model() (ColorModel, error) {
	switch f.n {
	case 1:
		return Gray, nil
	case 3:
		ids := [3]byte{f.comp[0].id, f.comp[1].id, f.comp[2].id}
		if !f.jfif && (f.adobe == 1 || string(ids[:]) == "RGB") {
			return RGB, nil
		}
		return YCbCr, nil
	default:
		if f.adobe == 0 {
			return CMYK, errColorModel
		}
		if f.adobe == 1 {
			return CMYK, nil
		}
		return YCCK, nil
	}
}

// config returns the exported form of f.
func (f *frame) config(scans int) Config {
	c := Config{
		Width: f.width, Height: f.height, Components: f.n, Progressive: f.progressive,
		Scans: scans,
	}
	for i := range f.n {
		c.HSamp[i], c.VSamp[i] = int(f.declared[i]>>4), int(f.declared[i]&15)
		if f.n == 1 {
			c.HSamp[i], c.VSamp[i] = 1, 1
		}
	}
	return c
}

// mcus returns the numbers of MCUs across and down.
func (f *frame) mcus() (x, y int) {
	h, v := 8*f.comp[0].h, 8*f.comp[0].v
	return (f.width + h - 1) / h, (f.height + v - 1) / v
}
