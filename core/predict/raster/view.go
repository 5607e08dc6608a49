package raster

import (
	"errors"
	"math"
)

// errView and errCrop report mistakes of the caller. Input of users is checked before it
// reaches this package.
var (
	errView = errors.New("view has no pixels or too many")
	errCrop = errors.New("crop must be four fractions with top < bottom and left < right")
)

// window is a [View] of one picture in stored coordinates, that is before Orientation.
type window struct {
	x0, y0, x1, y1 int // selected part, in units of 1/unit of a stored pixel
	tw, th         int // size of the result, stored way round
	width, height  int // size of the result, upright

	box    bool // View.Box
	detail int  // View.Detail

	// The result's stored pixel (i, j) goes to Pix[base+i*stepX+j*stepY].
	base, stepX, stepY int
}

// unit is the number of parts of a pixel in which a window's edges are counted: sixteenths of a square's side, halved by the centring. A
// picture's own edges are multiples of it.
const unit = 32

// pixels returns the stored pixels that the window touches.
func (w *window) pixels() (x0, y0, x1, y1 int) {
	return w.x0 / unit, w.y0 / unit, (w.x1 + unit - 1) / unit, (w.y1 + unit - 1) / unit
}

// window maps v onto a picture of w × h stored pixels.
func (v View) window(w, h, orientation int) (window, error) {
	turned := orientation >= 5
	if turned {
		w, h = h, w
	}
	left, top, right, bottom, err := v.Crop.pixels(w, h)
	if err != nil {
		return window{}, err
	}
	if v.Centre < 0 || v.Centre > 16 || v.Detail < 0 || v.Detail > MaxResultSide {
		return window{}, errView
	}
	width, height, err := v.size(right-left, bottom-top)
	if err != nil {
		return window{}, err
	}
	w, h = unit*w, unit*h
	left, top, right, bottom = unit*left, unit*top, unit*right, unit*bottom
	if v.Centre > 0 {
		left, top, right, bottom = centre(left, top, right, bottom, v.Centre)
	}

	win := window{width: width, height: height, tw: width, th: height, box: v.Box, detail: v.Detail}
	if turned {
		win.tw, win.th = height, width
	}
	p := placements[orientation]
	// The code mirrors each axis of the upright rectangle if needed, then exchanges the axes if needed.
	if p.mirrorX {
		left, right = w-right, w-left
	}
	if p.mirrorY {
		top, bottom = h-bottom, h-top
	}
	stepX, stepY := 3, 3*width
	if p.mirrorX {
		win.base, stepX = win.base+3*(width-1), -stepX
	}
	if p.mirrorY {
		win.base, stepY = win.base+3*width*(height-1), -stepY
	}
	win.x0, win.y0, win.x1, win.y1 = left, top, right, bottom
	win.stepX, win.stepY = stepX, stepY
	if turned {
		win.x0, win.y0, win.x1, win.y1 = top, left, bottom, right
		win.stepX, win.stepY = stepY, stepX
	}
	return win, nil
}

// Part returns the part of an upright picture that v shows, in fractions of its height and width. It rounds
// the crop's edges, then takes the centred square. It reads headers only; its errors are Decode's.
func (d *Decoder) Part(picture []byte, v View) (Crop, error) {
	info, err := inspect(picture, d.limits)
	if err != nil {
		return Crop{}, err
	}
	return v.part(info.width, info.height, info.orientation)
}

// part returns the part of the upright picture of width × height stored pixels that v shows.
func (v View) part(width, height, orientation int) (Crop, error) {
	if orientation >= 5 {
		width, height = height, width
	}
	win, err := v.window(width, height, upright)
	if err != nil {
		return Crop{}, err
	}
	w, h := float64(unit*width), float64(unit*height)
	return Crop{Top: float64(win.y0) / h, Left: float64(win.x0) / w, Bottom: float64(win.y1) / h, Right: float64(win.x1) / w}, nil
}

// placements gives, for each EXIF orientation, the directions of the upright picture's axes in the stored one: x mirrored, y mirrored.
// For 5 to 8 the stored rows are upright columns too.
var placements = [9]struct{ mirrorX, mirrorY bool }{
	1: {false, false},
	2: {true, false},
	3: {true, true},
	4: {false, true},
	5: {false, false},
	6: {true, false},
	7: {true, true},
	8: {false, true},
}

// pixels rounds c to pixels of a w × h picture.
func (c Crop) pixels(w, h int) (left, top, right, bottom int, err error) {
	if c == (Crop{}) {
		return 0, 0, w, h, nil
	}
	// The conditions are written so that NaN fails.
	if !(c.Top >= 0 && c.Top < c.Bottom && c.Bottom <= 1 && c.Left >= 0 && c.Left < c.Right && c.Right <= 1) {
		return 0, 0, 0, 0, errCrop
	}
	left, right = edges(c.Left, c.Right, w)
	top, bottom = edges(c.Top, c.Bottom, h)
	return left, top, right, bottom, nil
}

// edges rounds two fractions of side half up to pixels. The result has at least one pixel.
func edges(from, to float64, side int) (lo, hi int) {
	lo = int(math.Floor(float64(from*float64(side)) + 0.5))
	hi = int(math.Floor(float64(to*float64(side)) + 0.5))
	lo = min(lo, side-1)
	return lo, max(hi, lo+1)
}

// centre returns the centred square, whose side is sixteenths/16 of the short side. All numbers are in units of 1/unit of a pixel. The
// given edges are multiples of unit, so nothing is rounded.
func centre(left, top, right, bottom, sixteenths int) (int, int, int, int) {
	w, h := right-left, bottom-top
	side := min(w, h) / 16 * sixteenths
	left += (w - side) / 2
	top += (h - side) / 2
	return left, top, left + side, top + side
}

// size returns the result's size for a part of w × h upright pixels. The part is given before View.Centre
// takes the square.
func (v View) size(w, h int) (width, height int, err error) {
	if v.Width != 0 || v.Height != 0 {
		if min(v.Width, v.Height) < 1 || max(v.Width, v.Height) > MaxResultSide {
			return 0, 0, errView
		}
		return v.Width, v.Height, nil
	}
	if v.MaxSide < 1 || v.MaxSide > MaxResultSide {
		return 0, 0, errView
	}
	if v.Centre > 0 {
		w = max(1, min(w, h)*v.Centre/16)
		h = w
	}
	long := max(w, h)
	if long <= v.MaxSide {
		return w, h, nil
	}
	scale := func(side int) int { return max(1, (2*side*v.MaxSide+long)/(2*long)) }
	return scale(w), scale(h), nil
}
