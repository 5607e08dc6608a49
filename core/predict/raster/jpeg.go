package raster

import (
	"errors"
	"fmt"
	"image"
	"image/jpeg"

	"github.com/sightline-dev/sightline/core/predict/raster/jpg"
)

// maxPlaneBytes is the maximum number of bytes that package jpg holds: planes, and the
// coefficients of a progressive picture (192 MB for 64 MP in 4:2:0).
const maxPlaneBytes = 256 << 20

// decodeJPEG decodes only the part of a JPEG that win selects. It uses the largest DCT scale
// at which that part is not smaller than the result.
func (d *Decoder) decodeJPEG(picture []byte, h *header, win *window) (Image, error) {
	scale := dctScale(win)
	x0, y0, x1, y1 := win.pixels()
	part := int64(x1-x0+scale-1) / int64(scale) * (int64(y1-y0+scale-1) / int64(scale))
	if part > d.limits.Pixels {
		return Image{}, fmt.Errorf("%w: %d pixels to decode, at most %d", ErrTooLarge, part, d.limits.Pixels)
	}
	planes, err := d.jpeg.Decode(picture, jpg.Options{
		Scale:    scale,
		Region:   jpg.Rect{X0: x0, Y0: y0, X1: x1, Y1: y1},
		Expired:  d.limits.Expired,
		MaxScans: d.limits.Scans,
		MaxBytes: maxPlaneBytes,
	})
	if errors.Is(err, jpg.ErrUnsupported) {
		return d.standardJPEG(picture, h, win)
	}
	if err != nil {
		return Image{}, jpegError(err)
	}
	d.planes(planes)
	img, err := d.render(planes.N, jpegWriters[planes.Model], win)
	// Package jpg keeps planes and, of progressive pictures, coefficients.
	scratch := 3 * part
	if h.jpeg.Progressive && scale < 8 {
		scratch += 128 * jpegBlocks(h.jpeg)
	}
	if scratch > 4*keepBytes {
		d.jpeg = jpg.Decoder{}
		d.forget()
	}
	return img, err
}

// planes sets d.sources to package jpg's planes.
func (d *Decoder) planes(planes *jpg.Planes) {
	scale := planes.Scale
	for i := range planes.N {
		p := &planes.P[i]
		d.sources[i] = source{
			pix: p.Pix, stride: p.Stride, channels: 1,
			originX: planes.X0 * scale, originY: planes.Y0 * scale,
			pitchX: p.HSub * scale, pitchY: p.VSub * scale,
			width: p.Width, height: p.Height,
		}
	}
}

var jpegWriters = [...]rowWriter{
	jpg.Gray: rowGray, jpg.YCbCr: rowYCbCr, jpg.RGB: rowPlanes, jpg.CMYK: rowCMYK, jpg.YCCK: rowYCCK,
}

// dctScale returns the largest DCT scale (1, 2, 4 or 8) at which win's part is not smaller than the result.
func dctScale(win *window) int {
	for _, scale := range [3]int{8, 4, 2} {
		if win.x1-win.x0 >= unit*scale*win.tw && win.y1-win.y0 >= unit*scale*win.th {
			return scale
		}
	}
	return 1
}

// standardJPEG decodes the complete picture with the standard library and renders win. It is for
// pictures that package jpg does not support.
func (d *Decoder) standardJPEG(picture []byte, h *header, win *window) (Image, error) {
	if n := h.pixels(); n > d.limits.Pixels {
		return Image{}, fmt.Errorf("%w: %d × %d pixels, at most %d of this kind",
			ErrTooLarge, h.width, h.height, d.limits.Pixels)
	}
	m, err := d.library(picture, jpeg.Decode)
	if err != nil {
		return Image{}, err
	}
	if m, ok := m.(*image.YCbCr); ok {
		defer d.forget()
		d.planesOf(m)
		return d.render(3, rowYCbCr, win)
	}
	return d.renderPicture(m, win)
}
