package raster

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"math"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/predict/raster/exif"
)

// TestPaint compares every pixel type that a library can return with the definition of over, on a background of all greys.
func TestPaint(t *testing.T) {
	r := image.Rect(3, 2, 3+61, 2+7) // pictures need not begin at (0, 0)
	palette := color.Palette{color.NRGBA{R: 200, G: 10, B: 90, A: 100}, color.Black, color.Transparent, color.NRGBA{R: 255, A: 255}}
	pictures := map[string]draw.Image{
		"RGBA": image.NewRGBA(r), "RGBA64": image.NewRGBA64(r), "NRGBA": image.NewNRGBA(r), "NRGBA64": image.NewNRGBA64(r),
		"Gray": image.NewGray(r), "Gray16": image.NewGray16(r), "Paletted": image.NewPaletted(r, palette),
		"CMYK": image.NewCMYK(r), "another": image.NewAlpha(r),
	}
	for name, m := range pictures {
		t.Run(name, func(t *testing.T) {
			for y := r.Min.Y; y < r.Max.Y; y++ {
				for x := r.Min.X; x < r.Max.X; x++ {
					m.Set(x, y, color.NRGBA{R: byte(x * 37), G: byte(y * 91), B: byte(x * y), A: byte(x * 67)})
				}
			}
			rows := pictureRows{m: m, x: 5, y: 1}
			for y := range 10 {
				const x0, x1 = 2, 70
				dst := make([]byte, 3*(x1-x0))
				for i := range dst {
					dst[i] = byte(i * 5)
				}
				want := slices.Clone(dst)
				rows.over(dst, y, x0, x1)
				for x := x0; x < x1; x++ {
					p := image.Point{X: x - 5 + r.Min.X, Y: y - 1 + r.Min.Y}
					if p.In(r) {
						obviousOver(want[3*(x-x0):][:3], m, p)
					}
				}
				if !slices.Equal(dst, want) {
					t.Fatalf("row %d = %v, want %v", y, dst, want)
				}
			}
		})
	}
}

// obviousOver composites one pixel of m over the RGB in dst.
func obviousOver(dst []byte, m image.Image, p image.Point) {
	mix := func(c [4]byte, straight bool) {
		for i := range 3 {
			a := float64(c[3])
			s := float64(c[i])
			rest := (255 - a) * float64(dst[i]) / 255
			if straight {
				dst[i] = byte(math.Floor((s*a+(255-a)*float64(dst[i]))/255 + 0.5))
			} else {
				dst[i] = byte(min(255, s+math.Floor(rest+0.5)))
			}
		}
	}
	switch m := m.(type) {
	case *image.NRGBA:
		c := m.NRGBAAt(p.X, p.Y)
		mix([4]byte{c.R, c.G, c.B, c.A}, true)
	case *image.NRGBA64:
		c := m.NRGBA64At(p.X, p.Y)
		mix([4]byte{byte(c.R >> 8), byte(c.G >> 8), byte(c.B >> 8), byte(c.A >> 8)}, true)
	case *image.Paletted:
		c := color.NRGBAModel.Convert(m.At(p.X, p.Y)).(color.NRGBA)
		mix([4]byte{c.R, c.G, c.B, c.A}, true)
	case *image.CMYK:
		c := m.CMYKAt(p.X, p.Y)
		r, g, b := color.CMYKToRGB(c.C, c.M, c.Y, c.K)
		mix([4]byte{r, g, b, 255}, true)
	default:
		r, g, b, a := m.At(p.X, p.Y).RGBA()
		mix([4]byte{byte(r >> 8), byte(g >> 8), byte(b >> 8), byte(a >> 8)}, false)
	}
}

// TestStandardJPEG compares pictures decoded through image/jpeg with those of our decoder.
func TestStandardJPEG(t *testing.T) {
	planes := []*image.Gray{grey(noisy(40, 30)).(*image.Gray), grey(noisy(40, 30)).(*image.Gray), grey(noisy(40, 30)).(*image.Gray)}
	v := View{Width: 25, Height: 25, Centre: 15}
	for name, b := range map[string][]byte{
		"YCbCr": turnJPEG(asJPEG(t, noisy(40, 30)), 6),
		"grey":  asJPEG(t, grey(noisy(40, 30))),
		"RGB":   composeJPEG(t, planes, "RGB", -1),
	} {
		t.Run(name, func(t *testing.T) {
			h, err := inspect(b, Limits{}.WithDefaults())
			check(t, err)
			win, err := v.window(h.width, h.height, h.orientation)
			check(t, err)
			d := NewDecoder(Limits{})
			m, err := d.loadStandardJPEG(b, &h)
			check(t, err)
			got, err := d.render(m, &win)
			check(t, err)
			want, err := NewDecoder(Limits{}).Decode(b, v)
			check(t, err)
			if diff := difference(got, flat{want.Width, want.Height, want.Pix}); diff != "" {
				t.Error(diff)
			}
			if _, err := NewDecoder(Limits{Pixels: 1199}).loadStandardJPEG(b, &h); err == nil {
				t.Error("whole pictures beyond the limit are taken")
			}
		})
	}
}

func TestJPEGOrientation(t *testing.T) {
	plain := asJPEG(t, noisy(9, 9))
	turned := turnJPEG(plain, 6)
	segment := turned[2 : len(turned)-len(plain)+2]
	xmp := []byte("\xff\xe1\x00\x0ahttp://x")
	insert := func(at int, parts ...[]byte) []byte {
		return slices.Concat(plain[:at], slices.Concat(parts...), plain[at:])
	}
	long := bytes.Replace(segment, []byte{0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, 6}, []byte{0x01, 0x12, 0, 4, 0, 0, 0, 1, 0, 0, 0, 6}, 1)
	long = long[:len(segment)]
	replaced := func(from, to string) []byte {
		out := bytes.Replace(segment, []byte(from), []byte(to), 1)
		if bytes.Equal(out, segment) {
			t.Fatalf("%q is not in the segment", from)
		}
		return insert(2, out)
	}
	tests := []struct {
		name    string
		picture []byte
		want    int
	}{
		{"none", plain, 1},
		{"first", turned, 6},
		{"behind XMP", insert(2, xmp, segment), 6},
		{"behind fill bytes", insert(2, []byte{0xff, 0xff}, segment), 6},
		{"behind stray bytes", insert(2, []byte{7, 7, 7}, segment), 6},
		{"behind a restart marker", insert(2, []byte{0xff, 0xd3}, segment), 6},
		{"first of two", insert(2, segment, turnJPEG(plain, 3)[2:]), 6},
		{"after the scan", insert(len(plain)-2, segment), 1},
		{"a long number", insert(2, long), 6},
		{"cut off", turned[:20], 1},
		{"of 9", replaced("\x00\x06\x00\x00", "\x00\x09\x00\x00"), 1},
		{"of 0", replaced("\x00\x06\x00\x00", "\x00\x00\x00\x00"), 1},
		{"two of them", replaced("\x00\x00\x00\x01\x00\x06", "\x00\x00\x00\x02\x00\x06"), 1},
		{"a text", replaced("\x01\x12\x00\x03", "\x01\x12\x00\x02"), 1},
		{"directory outside", replaced("MM\x00*\x00\x00\x00\x08", "MM\x00*\x7f\xff\xff\xff"), 1},
		{"another byte order's mark", replaced("MM\x00*", "MI\x00*"), 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := exif.JPEGOrientation(tt.picture); got != tt.want {
				t.Errorf("OfJPEG = %d, want %d", got, tt.want)
			}
		})
	}
	// image/jpeg tolerates these bytes before the scan as well.
	for _, tt := range tests[:6] {
		if _, err := jpeg.Decode(bytes.NewReader(tt.picture)); err != nil {
			t.Errorf("%s: image/jpeg says %v", tt.name, err)
		}
	}
}
