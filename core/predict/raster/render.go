package raster

import (
	"errors"
	"image"
)

// errPlanes reports a bug in this package. It is an error and not a panic, so that it fails one picture and not the program.
var errPlanes = errors.New("planes do not cover the requested part")

// loaded describes a decoded picture in d.sources.
type loaded struct {
	sources int
	write   rowWriter
}

// loadRows loads a picture of w × h pixels. rows loads the picture's rows as RGB.
func (d *Decoder) loadRows(rows rowLoader, w, h int) loaded {
	d.sources[0] = source{channels: 3, load: rows, pitchX: 1, pitchY: 1, width: w, height: h}
	return loaded{1, rowRGB}
}

// loadPicture loads a picture that a library decoded. It loads YCbCr and gray pictures as planes, and other pictures as rows of RGB.
func (d *Decoder) loadPicture(m image.Image) loaded {
	switch m := m.(type) {
	case *image.YCbCr:
		// Only WebP comes here. jpeg.go handles pictures of image/jpeg.
		d.planesOf(m)
		return loaded{3, rowWebP}
	case *image.Gray:
		b := m.Rect
		d.sources[0] = source{
			pix: m.Pix, stride: m.Stride, channels: 1,
			pitchX: 1, pitchY: 1, width: b.Dx(), height: b.Dy(),
		}
		return loaded{1, rowGray}
	}
	d.rows = pictureRows{m: m}
	b := m.Bounds()
	return d.loadRows(&d.rows, b.Dx(), b.Dy())
}

// planesOf makes the planes of m the first three sources. The bounds of m start at (0, 0).
func (d *Decoder) planesOf(m *image.YCbCr) {
	w, h := m.Rect.Dx(), m.Rect.Dy()
	d.sources[0] = source{
		pix: m.Y, stride: m.YStride, channels: 1,
		pitchX: 1, pitchY: 1, width: w, height: h,
	}
	px, py := subsampling(m.SubsampleRatio)
	for i, pix := range [2][]byte{m.Cb, m.Cr} {
		d.sources[1+i] = source{
			pix: pix, stride: m.CStride, channels: 1,
			pitchX: px, pitchY: py, width: (w + px - 1) / px, height: (h + py - 1) / py,
		}
	}
}

// subsampling returns the number of pixels that one chroma sample covers.
func subsampling(r image.YCbCrSubsampleRatio) (x, y int) {
	switch r {
	case image.YCbCrSubsampleRatio422:
		return 2, 1
	case image.YCbCrSubsampleRatio420:
		return 2, 2
	case image.YCbCrSubsampleRatio440:
		return 1, 2
	case image.YCbCrSubsampleRatio411:
		return 4, 1
	case image.YCbCrSubsampleRatio410:
		return 4, 2
	}
	return 1, 1
}

// rowWriter writes one row of the result: n pixels from n samples of each lane. The first
// pixel goes to dst[at], and each next pixel to step bytes after the previous one.
type rowWriter func(dst []byte, at, step int, rows *[4][]byte, n int)

// render resizes the sources of m and returns the result upright. The image uses d.pix.
func (d *Decoder) render(m loaded, win *window) (Image, error) {
	if cap(d.pix) > keepBytes {
		d.pix = nil
	}
	d.pix = resize(d.pix, 3*win.width*win.height)
	for i := range m.sources {
		if !d.lanes[i].start(&d.sources[i], win) {
			return Image{}, errPlanes
		}
	}
	for j := range win.th {
		if j&15 == 0 && d.limits.Expired() {
			return Image{}, ErrExpired
		}
		for i := range m.sources {
			d.lastRows[i] = d.lanes[i].row(j)
		}
		m.write(d.pix, win.base+j*win.stepY, win.stepX, &d.lastRows, win.tw)
	}
	return Image{Width: win.width, Height: win.height, Pix: d.pix}, nil
}
