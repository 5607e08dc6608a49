package raster

import (
	"image"
	"image/color"
)

// pictureRows is a rowLoader for a picture that a library decoded. It paints the picture over a
// white canvas. The picture's top left pixel is at (x, y) of the canvas.
type pictureRows struct {
	m       image.Image
	x, y    int
	palette *[256][4]byte // RGBA colours of an *image.Paletted, not premultiplied; nil before the first use
}

// row implements rowLoader.
func (p *pictureRows) row(dst []byte, y, x0, x1 int) {
	whiten(dst)
	p.over(dst, y, x0, x1)
}

// whiten fills dst with 255. Each copy doubles the filled part.
func whiten(dst []byte) {
	if len(dst) == 0 {
		return
	}
	dst[0] = 255
	for n := 1; n < len(dst); n *= 2 {
		copy(dst[n:], dst[:n])
	}
}

// over paints the picture onto dst, which holds the pixels x0…x1-1 of row y of the canvas in RGB.
func (p *pictureRows) over(dst []byte, y, x0, x1 int) {
	b := p.m.Bounds()
	lo, hi := max(x0, p.x), min(x1, p.x+b.Dx())
	if y < p.y || y >= p.y+b.Dy() || lo >= hi {
		return
	}
	p.paint(dst[3*(lo-x0):3*(hi-x0)], b.Min.X+lo-p.x, b.Min.Y+y-p.y)
}

// paint composites len(dst)/3 pixels of a row of the picture, starting at (x, y), over the RGB in dst.
//
// It uses the high byte of a sample of 16 bits, as color.RGBAModel does. A sample s with alpha a over d gives
// round((a·s + (255-a)·d) / 255). A premultiplied s gives s + round((255-a)·d / 255).
func (p *pictureRows) paint(dst []byte, x, y int) {
	switch m := p.m.(type) {
	case *image.RGBA:
		paintPremultiplied(dst, m.Pix[m.PixOffset(x, y):], 4, 1)
	case *image.RGBA64:
		paintPremultiplied(dst, m.Pix[m.PixOffset(x, y):], 8, 2)
	case *image.NRGBA:
		paintStraight(dst, m.Pix[m.PixOffset(x, y):], 4, 1)
	case *image.NRGBA64:
		paintStraight(dst, m.Pix[m.PixOffset(x, y):], 8, 2)
	case *image.Gray:
		paintGray(dst, m.Pix[m.PixOffset(x, y):], 1)
	case *image.Gray16:
		paintGray(dst, m.Pix[m.PixOffset(x, y):], 2)
	case *image.Paletted:
		p.paintPaletted(dst, m, m.Pix[m.PixOffset(x, y):])
	case *image.YCbCr:
		paintYCbCr(dst, m, nil, x, y)
	case *image.NYCbCrA:
		paintYCbCr(dst, &m.YCbCr, m.A[m.AOffset(x, y):], x, y)
	case *image.CMYK:
		pix := m.Pix[m.PixOffset(x, y):]
		for i := 0; i < len(dst); i += 3 {
			dst[i], dst[i+1], dst[i+2] = color.CMYKToRGB(pix[0], pix[1], pix[2], pix[3])
			pix = pix[4:]
		}
	default:
		for i := 0; i < len(dst); i += 3 {
			r, g, b, a := m.At(x+i/3, y).RGBA()
			pixel := [4]byte{byte(r >> 8), byte(g >> 8), byte(b >> 8), byte(a >> 8)}
			paintPremultiplied(dst[i:i+3], pixel[:], 4, 1)
		}
	}
}

// paintStraight composites pixels of size bytes over dst. A pixel has four samples of sample bytes
// each, and paintStraight uses the first byte of each sample.
func paintStraight(dst, pix []byte, size, sample int) {
	for i, j := 0, 0; i < len(dst); i, j = i+3, j+size {
		p, o := pix[j:][:size], dst[i:][:3]
		switch a := uint32(p[3*sample]); a {
		case 255:
			o[0], o[1], o[2] = p[0], p[sample], p[2*sample]
		case 0:
		default:
			o[0] = over(p[0], o[0], a)
			o[1] = over(p[sample], o[1], a)
			o[2] = over(p[2*sample], o[2], a)
		}
	}
}

// over returns the rounded mean of s and d with the weights a and 255-a.
func over(s, d byte, a uint32) byte {
	return byte((uint32(s)*a + uint32(d)*(255-a) + 127) / 255)
}

// paintPremultiplied does the same as paintStraight for samples that are already multiplied by alpha.
func paintPremultiplied(dst, pix []byte, size, sample int) {
	for i, j := 0, 0; i < len(dst); i, j = i+3, j+size {
		p, o := pix[j:][:size], dst[i:][:3]
		if a := uint32(p[3*sample]); a == 255 {
			o[0], o[1], o[2] = p[0], p[sample], p[2*sample]
		} else {
			o[0] = add(p[0], o[0], a)
			o[1] = add(p[sample], o[1], a)
			o[2] = add(p[2*sample], o[2], a)
		}
	}
}

func add(s, d byte, a uint32) byte {
	return byte(min(255, uint32(s)+(uint32(d)*(255-a)+127)/255))
}

func paintGray(dst, pix []byte, size int) {
	for i, j := 0, 0; i < len(dst); i, j = i+3, j+size {
		v := pix[j]
		o := dst[i:][:3]
		o[0], o[1], o[2] = v, v, v
	}
}

func (p *pictureRows) paintPaletted(dst []byte, m *image.Paletted, pix []byte) {
	if p.palette == nil {
		p.palette = new([256][4]byte)
		for i, c := range m.Palette[:min(len(m.Palette), 256)] {
			n := color.NRGBAModel.Convert(c).(color.NRGBA)
			p.palette[i] = [4]byte{n.R, n.G, n.B, n.A}
		}
	}
	for i := 0; i < len(dst); i += 3 {
		paintStraight(dst[i:i+3], p.palette[pix[i/3]][:], 4, 1)
	}
}

// paintYCbCr composites WebP's YCbCr. alpha starts at the first pixel. If it is nil, the picture is opaque.
func paintYCbCr(dst []byte, m *image.YCbCr, alpha []byte, x, y int) {
	for i := 0; i < len(dst); i += 3 {
		ci := m.COffset(x+i/3, y)
		r, g, b := webpRGB(m.Y[m.YOffset(x+i/3, y)], m.Cb[ci], m.Cr[ci])
		a := uint32(255)
		if alpha != nil {
			a = uint32(alpha[i/3])
		}
		dst[i], dst[i+1], dst[i+2] = over(r, dst[i], a), over(g, dst[i+1], a), over(b, dst[i+2], a)
	}
}
