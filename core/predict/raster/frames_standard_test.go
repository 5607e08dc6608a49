package raster

import (
	"bytes"
	"fmt"
	"image"
	"image/gif"
	"slices"
	"testing"

	"golang.org/x/image/webp"
)

// TestGIFEqualsStandardLibrary compares our reading of the container with image/gif's, over parts that are easily damaged: both refuse the
// same files and give the same pixels.
func TestGIFEqualsStandardLibrary(t *testing.T) {
	m := toPaletted(noisy(9, 9))
	still := asGIF(t, m)
	animated := gifOf(t, gifTestFrame{pix: "rrgbgbrr", disposal: 1}, gifTestFrame{x: 1, pix: "b.", disposal: 2})
	for name, b := range map[string][]byte{"still": still, "animated": animated, "interlaced": asInterlacedGIF(t, m)} {
		t.Run(name, func(t *testing.T) {
			sameAsStandardGIF(t, b)
			for i := range b {
				for _, v := range []byte{0, 0xff, b[i] ^ 0x40, b[i] + 1} {
					damaged := slices.Clone(b)
					damaged[i] = v
					sameAsStandardGIF(t, damaged)
				}
				sameAsStandardGIF(t, b[:i])
			}
		})
	}
}

// asInterlacedGIF returns an interlaced GIF: it reorders the rows of the picture and sets the flag.
func asInterlacedGIF(t testing.TB, picture image.Image) []byte {
	m := picture.(*image.Paletted)
	out := image.NewPaletted(m.Rect, m.Palette)
	at := 0
	for _, pass := range [4][2]int{{0, 8}, {4, 8}, {2, 4}, {1, 2}} {
		for y := pass[0]; y < m.Rect.Dy(); y += pass[1] {
			copy(out.Pix[at:], m.Pix[y*m.Stride:][:m.Rect.Dx()])
			at += m.Rect.Dx()
		}
	}
	b := asGIF(t, out)
	descriptor := bytes.LastIndex(b[:13+3*64+40], []byte{0x2c, 0, 0, 0, 0})
	b[descriptor+9] |= 0x40
	return b
}

// sameAsStandardGIF compares the first frame of b with image/gif's.
func sameAsStandardGIF(t testing.TB, b []byte) {
	t.Helper()
	if len(b) < 13 || le16(b[6:]) > 512 || le16(b[8:]) > 512 {
		return
	}
	want, wantErr := gif.Decode(bytes.NewReader(b))
	config, err := gif.DecodeConfig(bytes.NewReader(b))
	if err != nil || config.Width == 0 || config.Height == 0 {
		return // without pixels it is refused, as pictures of every format are
	}
	d := NewDecoder(Limits{})
	got, err := d.Decode(b, View{Width: config.Width, Height: config.Height})
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("Decode(%x) = %v, image/gif says %v", b, err, wantErr)
	}
	if err != nil {
		return
	}
	place := want.Bounds()
	for y := range config.Height {
		for x := range config.Width {
			pixel := [3]byte{255, 255, 255}
			if (image.Point{X: x, Y: y}).In(place) {
				if r, g, b, a := want.At(x, y).RGBA(); a != 0 {
					pixel = [3]byte{byte(r >> 8), byte(g >> 8), byte(b >> 8)}
				}
			}
			if p := [3]byte(got.Pix[3*(y*config.Width+x):]); p != pixel {
				t.Fatalf("Decode(%x): pixel (%d, %d) = %v, image/gif has %v", b, x, y, p, pixel)
			}
		}
	}
}

// TestWebPColours compares lossy WebP with libwebp's colours, on flat fields that show neither compression nor chroma resampling.
func TestWebPColours(t *testing.T) {
	want := map[image.Point][3]byte{{X: 5, Y: 3}: {200, 30, 60}, {X: 5, Y: 16}: {20, 180, 90}}
	for _, name := range []string{"lossy.webp", "alpha.webp", "lossless.webp"} {
		got, err := NewDecoder(Limits{}).Decode(fixture(t, name), View{MaxSide: 33})
		check(t, err)
		for p, c := range want {
			g := flat{got.Width, got.Height, got.Pix}.at(p.X, p.Y)
			for i := range c {
				if d := int(g[i]) - int(c[i]); d < -4 || d > 4 {
					t.Errorf("%s at %v = %v, want about %v", name, p, g, c)
				}
			}
		}
	}
	t.Run("alpha", func(t *testing.T) {
		got, err := NewDecoder(Limits{}).Decode(fixture(t, "alpha.webp"), View{MaxSide: 33})
		check(t, err)
		f := flat{got.Width, got.Height, got.Pix}
		if p := f.at(30, 3); p != [3]byte{255, 255, 255} {
			t.Errorf("transparent = %v, want white", p)
		}
		m, err := webp.Decode(bytes.NewReader(fixture(t, "alpha.webp")))
		check(t, err)
		c := m.(*image.NYCbCrA)
		at := image.Point{X: 30, Y: 16}
		r, g, b := webpRGB(c.Y[c.YOffset(at.X, at.Y)], c.Cb[c.COffset(at.X, at.Y)], c.Cr[c.COffset(at.X, at.Y)])
		a := uint32(c.A[c.AOffset(at.X, at.Y)])
		if want := [3]byte{over(r, 255, a), over(g, 255, a), over(b, 255, a)}; f.at(at.X, at.Y) != want || a == 255 {
			t.Errorf("half transparent = %v, want %v of alpha %d", f.at(at.X, at.Y), want, a)
		}
	})
	t.Run("turned", func(t *testing.T) {
		info, err := Inspect(fixture(t, "turned.webp"))
		check(t, err)
		if s := fmt.Sprintf("%+v", info); s != "{Format:webp Width:21 Height:33 Orientation:6 Frames:1}" {
			t.Errorf("Inspect = %s", s)
		}
	})
}
