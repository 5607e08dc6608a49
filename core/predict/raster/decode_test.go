package raster

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"slices"
	"testing"

	"golang.org/x/image/tiff"
	"golang.org/x/image/webp"
)

// difference describes the first byte in which two results differ, or returns "".
func difference(got Image, want flat) string {
	if got.Width != want.w || got.Height != want.h || len(got.Pix) != len(want.pix) {
		return fmt.Sprintf("size %d × %d (%d bytes), want %d × %d", got.Width, got.Height, len(got.Pix), want.w, want.h)
	}
	for i, v := range got.Pix {
		if v != want.pix[i] {
			return fmt.Sprintf("pixel (%d, %d) channel %d = %d, want %d", i/3%want.w, i/3/want.w, i%3, v, want.pix[i])
		}
	}
	return ""
}

// views are the views in which every format is decoded. The pictures have at least 30 pixels a side.
var views = []View{
	{Width: 9, Height: 9, Centre: 15},
	{Width: 17, Height: 17, Centre: 15, Box: true},
	{Width: 7, Height: 5},
	{Width: 8, Height: 8, Centre: 16, Crop: Crop{Top: 0.1, Left: 0.25, Bottom: 0.9, Right: 1}},
	{Width: 3, Height: 11, Crop: Crop{Top: 0.33, Left: 0.05, Bottom: 0.87, Right: 0.5}},
	{Width: 1, Height: 1},
}

// TestDecode compares every format, pixel type and orientation with one slow reference that turns, crops and averages a whole picture.
func TestDecode(t *testing.T) {
	colours := noisy(41, 33)
	turned := []int{1, 2, 3, 4, 5, 6, 7, 8}
	lossless := fixture(t, "lossless.webp")
	losslessPicture, err := webp.Decode(bytes.NewReader(lossless))
	check(t, err)
	tests := []struct {
		name    string
		picture image.Image
		encode  func(orientation int) []byte
		turned  []int
	}{
		{"png", colours, func(o int) []byte { return turnPNG(asPNG(t, colours), o) }, turned},
		{"tiff", colours, func(o int) []byte { return turnTIFF(asTIFF(t, colours, tiff.Uncompressed), o) }, turned},
		{"tiff deflate", colours, func(o int) []byte { return turnTIFF(asTIFF(t, colours, tiff.Deflate), o) }, []int{1, 6}},
		{"webp", losslessPicture, func(o int) []byte { return turnWebP(lossless, 33, 21, o) }, turned},
		{"bmp", colours, func(int) []byte { return asBMP(t, colours) }, []int{1}},
		{"png rgb", opaque(colours), func(int) []byte { return asPNG(t, opaque(colours)) }, []int{1}},
		{"png grey", grey(colours), func(int) []byte { return asPNG(t, grey(colours)) }, []int{1}},
		{"png grey 16", grey16(colours), func(int) []byte { return asPNG(t, grey16(colours)) }, []int{1}},
		{"png 16", deep(colours), func(int) []byte { return asPNG(t, deep(colours)) }, []int{1}},
		{"png 16 alpha", deepAlpha(colours), func(int) []byte { return asPNG(t, deepAlpha(colours)) }, []int{1}},
		{"png alpha", seeThrough(colours), func(o int) []byte { return turnPNG(asPNG(t, seeThrough(colours)), o) }, []int{1, 8}},
		{"png paletted", toPaletted(colours), func(int) []byte { return asPNG(t, toPaletted(colours)) }, []int{1}},
		{"tiff grey", grey(colours), func(int) []byte { return asTIFF(t, grey(colours), tiff.Deflate) }, []int{1}},
		{"tiff grey 16", grey16(colours), func(int) []byte { return asTIFF(t, grey16(colours), tiff.Uncompressed) }, []int{1}},
		{"tiff paletted", toPaletted(colours), func(int) []byte { return asTIFF(t, toPaletted(colours), tiff.Uncompressed) }, []int{1}},
		{"tiff alpha", seeThrough(colours), func(int) []byte { return asTIFF(t, seeThrough(colours), tiff.Uncompressed) }, []int{1}},
		{"bmp grey", grey(colours), func(int) []byte { return asBMP(t, grey(colours)) }, []int{1}},
		{"bmp paletted", toPaletted(colours), func(int) []byte { return asBMP(t, toPaletted(colours)) }, []int{1}},
		{"gif", toPaletted(colours), func(int) []byte { return asGIF(t, toPaletted(colours)) }, []int{1}},
	}
	d := NewDecoder(Limits{})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			stored := flatten(tt.picture)
			for _, o := range tt.turned {
				b := tt.encode(o)
				reference := stored.upright(o)
				info, err := Inspect(b)
				if err != nil || info.Width != reference.w || info.Height != reference.h || info.Orientation != o {
					t.Fatalf("Inspect = %+v, %v, want %d × %d, orientation %d", info, err, reference.w, reference.h, o)
				}
				for _, v := range views {
					got, err := d.Decode(b, v)
					check(t, err)
					if diff := difference(got, reference.view(v)); diff != "" {
						t.Errorf("orientation %d, %+v: %s", o, v, diff)
					}
				}
			}
		})
	}
}

func opaque(m image.Image) image.Image {
	out := image.NewRGBA(m.Bounds())
	for y := range m.Bounds().Dy() {
		for x := range m.Bounds().Dx() {
			out.Set(x, y, m.At(x, y))
		}
	}
	return out
}

func seeThrough(m *image.NRGBA) image.Image {
	out := image.NewNRGBA(m.Rect)
	copy(out.Pix, m.Pix)
	for i := 3; i < len(out.Pix); i += 4 {
		out.Pix[i] = byte(i * 7 % 256)
	}
	return out
}

func grey(m image.Image) image.Image {
	out := image.NewGray(m.Bounds())
	for y := range m.Bounds().Dy() {
		for x := range m.Bounds().Dx() {
			out.Set(x, y, m.At(x, y))
		}
	}
	return out
}

func grey16(m image.Image) image.Image {
	out := image.NewGray16(m.Bounds())
	for y := range m.Bounds().Dy() {
		for x := range m.Bounds().Dx() {
			out.SetGray16(x, y, color.Gray16{Y: uint16(x*1500 + y*77)})
		}
	}
	return out
}

func deep(m image.Image) image.Image {
	out := image.NewRGBA64(m.Bounds())
	for y := range m.Bounds().Dy() {
		for x := range m.Bounds().Dx() {
			out.SetRGBA64(x, y, color.RGBA64{R: uint16(x * 1499), G: uint16(y * 1999), B: uint16(x * y * 48), A: 0xffff})
		}
	}
	return out
}

func deepAlpha(m image.Image) image.Image {
	out := image.NewNRGBA64(m.Bounds())
	for y := range m.Bounds().Dy() {
		for x := range m.Bounds().Dx() {
			out.SetNRGBA64(x, y, color.NRGBA64{R: uint16(x * 1499), G: uint16(y * 1999), B: uint16(x * y * 48), A: uint16(x*1300 + y*11)})
		}
	}
	return out
}

func toPaletted(m image.Image) image.Image {
	var p color.Palette
	for i := range 60 {
		p = append(p, color.RGBA{R: byte(i * 4), G: byte(255 - i*3), B: byte(i * 37), A: 255})
	}
	out := image.NewPaletted(m.Bounds(), p)
	for y := range m.Bounds().Dy() {
		for x := range m.Bounds().Dx() {
			out.SetColorIndex(x, y, uint8((x*7+y*13)%60))
		}
	}
	return out
}

// replicateChroma returns image/jpeg's planes as a picture of three channels, with each chroma sample repeated, so that the slow reference
// can average them.
func replicateChroma(m *image.YCbCr) flat {
	return newFlat(m.Rect.Dx(), m.Rect.Dy(), func(x, y int) [3]byte {
		c := m.COffset(x, y)
		return [3]byte{m.Y[m.YOffset(x, y)], m.Cb[c], m.Cr[c]}
	})
}

func (f flat) fromYCbCr() flat {
	return newFlat(f.w, f.h, func(x, y int) [3]byte {
		p := f.at(x, y)
		r, g, b := color.YCbCrToRGB(p[0], p[1], p[2])
		return [3]byte{r, g, b}
	})
}

// TestDecodeJPEG compares with image/jpeg's planes, averaged before the conversion, in views for which the decoder cannot scale by DCT.
func TestDecodeJPEG(t *testing.T) {
	b := asJPEG(t, noisy(41, 33))
	m, err := jpeg.Decode(bytes.NewReader(b))
	check(t, err)
	stored := replicateChroma(m.(*image.YCbCr))
	d := NewDecoder(Limits{})
	for o := 1; o <= 8; o++ {
		reference := stored.upright(o)
		turned := turnJPEG(b, o)
		for _, v := range []View{
			{Width: 25, Height: 25, Centre: 15},
			{Width: 24, Height: 25, Centre: 15, Box: true},
			{Width: 23, Height: 24},
			{Width: 15, Height: 15, Centre: 16, Crop: Crop{Top: 0.1, Left: 0.25, Bottom: 0.9, Right: 1}},
			{Width: 13, Height: 17, Crop: Crop{Top: 0.33, Left: 0.05, Bottom: 0.87, Right: 0.5}},
		} {
			got, err := d.Decode(turned, v)
			check(t, err)
			if diff := difference(got, reference.view(v).fromYCbCr()); diff != "" {
				t.Errorf("orientation %d, %+v: %s", o, v, diff)
			}
		}
	}
}

// TestDecodeJPEGScaled compares DCT scaling with the full decode of a smooth picture, which has only low frequencies.
func TestDecodeJPEGScaled(t *testing.T) {
	m := image.NewNRGBA(image.Rect(0, 0, 259, 195))
	for y := range 195 {
		for x := range 259 {
			m.SetNRGBA(x, y, color.NRGBA{R: byte(x * 2 / 3), G: byte(y), B: byte((x + y) / 2), A: 255})
		}
	}
	b := asJPEG(t, m)
	full := flatten(m)
	d := NewDecoder(Limits{})
	for i, size := range []int{100, 80, 40, 20, 3, 100, 80, 40, 20, 3} {
		v := View{Width: size, Height: size, Centre: 15, Box: i >= 5, Crop: Crop{Top: 0.03, Left: 0.1, Bottom: 0.98, Right: 0.97}}
		got, err := d.Decode(b, v)
		check(t, err)
		want := full.view(v)
		worst := 0
		for i, p := range got.Pix {
			worst = max(worst, int(p)-int(want.pix[i]), int(want.pix[i])-int(p))
		}
		if worst > 6 {
			t.Errorf("size %d, box %v: off by %d, want at most 6", size, v.Box, worst)
		}
	}
}

// TestDecodeEnlarges checks the corners and the middle of an enlarged picture of two by two pixels.
func TestDecodeEnlarges(t *testing.T) {
	m := image.NewGray(image.Rect(0, 0, 2, 2))
	copy(m.Pix, []byte{0, 100, 200, 40})
	got, err := NewDecoder(Limits{}).Decode(asPNG(t, m), View{Width: 4, Height: 4})
	check(t, err)
	var greys []byte
	for i := 0; i < len(got.Pix); i += 3 {
		greys = append(greys, got.Pix[i])
	}
	// Centres lie at -1/4, 1/4, 3/4 and 5/4; the outer two are beyond the last samples.
	// (1/4, 1/4): 0·9/16 + 100·3/16 + 200·3/16 + 40/16 = 58.75
	want := []byte{
		0, 25, 75, 100,
		50, 59, 76, 85,
		150, 126, 79, 55,
		200, 160, 80, 40,
	}
	if !slices.Equal(greys, want) {
		t.Errorf("enlarged = %v, want %v", greys, want)
	}
}

// TestDecodeBox checks five pixels shrunk to four. The centres are at 1/2, 3/2 and so on in intervals of 5/4, and the two intervals in
// the middle share the third pixel.
func TestDecodeBox(t *testing.T) {
	m := image.NewGray(image.Rect(0, 0, 5, 1))
	copy(m.Pix, []byte{10, 20, 30, 40, 50})
	tests := []struct {
		name string
		v    View
		want []byte
	}{
		{"area", View{Width: 4, Height: 1}, []byte{12, 24, 36, 48}},
		{"box", View{Width: 4, Height: 1, Box: true}, []byte{10, 25, 35, 50}},
		{"box of odd number", View{Width: 3, Height: 1, Box: true}, []byte{15, 30, 45}},
		{"no shrinking", View{Width: 5, Height: 1, Box: true}, m.Pix},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			img, err := NewDecoder(Limits{}).Decode(asPNG(t, m), tt.v)
			check(t, err)
			for i, want := range tt.want {
				if img.Pix[3*i] != want {
					t.Errorf("pixel %d = %d, want %d", i, img.Pix[3*i], want)
				}
			}
		})
	}
}

func TestMaxSide(t *testing.T) {
	b := asPNG(t, noisy(41, 33))
	d := NewDecoder(Limits{})
	tests := []struct {
		name string
		v    View
		w, h int
	}{
		{"never enlarged", View{MaxSide: 100}, 41, 33},
		{"the same", View{MaxSide: 41}, 41, 33},
		{"in proportion", View{MaxSide: 20}, 20, 16}, // 16.1
		{"at least one", View{MaxSide: 3, Crop: Crop{Bottom: 0.04, Right: 1}}, 3, 1},
		{"half up", View{MaxSide: 20, Crop: Crop{Bottom: 1, Right: 0.975}}, 20, 17}, // 40 × 33: 16.5
		{"square", View{MaxSide: 20, Centre: 8}, 16, 16},                            // 16.5: not enlarged
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := d.Decode(b, tt.v)
			check(t, err)
			if got.Width != tt.w || got.Height != tt.h || len(got.Pix) != 3*tt.w*tt.h {
				t.Errorf("size = %d × %d, want %d × %d", got.Width, got.Height, tt.w, tt.h)
			}
		})
	}
}
