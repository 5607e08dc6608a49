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

// loadJPEG decodes only the rectangle around the parts of a JPEG that the windows of scale select.
func (d *Decoder) loadJPEG(picture []byte, h *header, scale int) (loaded, error) {
	var region jpg.Rect
	for i := range d.wins {
		if h.scale(&d.wins[i]) != scale {
			continue
		}
		x0, y0, x1, y1 := d.wins[i].pixels()
		if region == (jpg.Rect{}) {
			region = jpg.Rect{X0: x0, Y0: y0, X1: x1, Y1: y1}
		}
		region.X0, region.Y0 = min(region.X0, x0), min(region.Y0, y0)
		region.X1, region.Y1 = max(region.X1, x1), max(region.Y1, y1)
	}
	part := int64(region.X1-region.X0+scale-1) / int64(scale) * (int64(region.Y1-region.Y0+scale-1) / int64(scale))
	if part > d.limits.Pixels {
		return loaded{}, fmt.Errorf("%w: %d pixels to decode, at most %d", ErrTooLarge, part, d.limits.Pixels)
	}
	planes, err := d.jpeg.Decode(picture, jpg.Options{
		Scale:    scale,
		Region:   region,
		Expired:  d.limits.Expired,
		MaxScans: d.limits.Scans,
		MaxBytes: maxPlaneBytes,
	})
	if errors.Is(err, jpg.ErrUnsupported) {
		return d.loadStandardJPEG(picture, h)
	}
	if err != nil {
		return loaded{}, jpegError(err)
	}
	d.planes(planes)
	m := loaded{planes.N, jpegWriters[planes.Model]}
	// Package jpg keeps planes and, of progressive pictures, coefficients.
	scratch := 3 * part
	if h.jpeg.Progressive && scale < 8 {
		scratch += 128 * jpegBlocks(h.jpeg)
	}
	if scratch > 4*keepBytes {
		d.jpeg = jpg.Decoder{} // d.sources has the planes
	}
	return m, nil
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

// scale returns the DCT scale at which a window is decoded. It is 1 for other formats.
func (h *header) scale(win *window) int {
	if h.format != formatJPEG && h.format != formatRaw {
		return 1
	}
	return dctScale(win)
}

// dctScale returns the largest DCT scale (1, 2, 4 or 8) at which win's part is not smaller than the result and has the detail of its view.
func dctScale(win *window) int {
	w, h := win.x1-win.x0, win.y1-win.y0
	for _, scale := range [3]int{8, 4, 2} {
		if w >= unit*scale*win.tw && h >= unit*scale*win.th && min(w, h) >= unit*scale*win.detail {
			return scale
		}
	}
	return 1
}

// loadStandardJPEG decodes the complete picture with the standard library. It is for pictures that package jpg does not support.
func (d *Decoder) loadStandardJPEG(picture []byte, h *header) (loaded, error) {
	if n := h.pixels(); n > d.limits.Pixels {
		return loaded{}, fmt.Errorf("%w: %d × %d pixels, at most %d of this kind",
			ErrTooLarge, h.width, h.height, d.limits.Pixels)
	}
	m, err := d.library(picture, jpeg.Decode)
	if err != nil {
		return loaded{}, err
	}
	if m, ok := m.(*image.YCbCr); ok {
		d.planesOf(m)
		return loaded{3, rowYCbCr}, nil
	}
	return d.loadPicture(m), nil
}
