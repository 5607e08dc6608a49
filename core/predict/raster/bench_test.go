package raster

import (
	"image"
	"image/color"
	"os"
	"testing"

	"github.com/sightline-dev/sightline/core/predict/raster/jpg"
	"github.com/sightline-dev/sightline/core/testkit"
)

// phone returns a picture with the detail of a photo, about 1.5 bits per pixel as JPEG.
func phone(w, h int) *image.YCbCr {
	m := image.NewYCbCr(image.Rect(0, 0, w, h), image.YCbCrSubsampleRatio420)
	state := uint32(1)
	noise := func(bits uint) int {
		state = state*1664525 + 1013904223
		return int(state>>(32-bits)) - 1<<(bits-1)
	}
	wave := func(x int) int { // a triangle of period 512
		x &= 511
		return min(x, 511-x)
	}
	for y := range h {
		for x := range w {
			m.Y[y*m.YStride+x] = byte(max(0, min(255, 40+wave(x+y/3)/2+wave(y*3-x)/4+noise(4))))
		}
	}
	for y := range (h + 1) / 2 {
		for x := range (w + 1) / 2 {
			m.Cb[y*m.CStride+x] = byte(max(0, min(255, 90+wave(x*2)/4+noise(3))))
			m.Cr[y*m.CStride+x] = byte(max(0, min(255, 160-wave(y*2+x)/4+noise(3))))
		}
	}
	return m
}

// BenchmarkDecode measures a decode to the default network's 224 × 224. The file in SIGHTLINE_PHOTO, if set, is decoded instead of the 12
// MP picture.
func BenchmarkDecode(b *testing.B) {
	v := View{Width: 224, Height: 224, Centre: 15, Box: true}
	run := func(name string, picture func(b *testing.B) []byte) {
		b.Run(name, func(b *testing.B) {
			p := picture(b)
			d := NewDecoder(Limits{})
			_, err := d.Decode(p, v)
			check(b, err)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.Decode(p, v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("12mp", func(b *testing.B) []byte {
		if name := os.Getenv("SIGHTLINE_PHOTO"); name != "" {
			p, err := os.ReadFile(name)
			check(b, err)
			return p
		}
		return asJPEG(b, phone(4000, 3000))
	})
	run("1mp", func(b *testing.B) []byte { return asJPEG(b, phone(1152, 864)) })
	run("photo", func(b *testing.B) []byte {
		p, err := os.ReadFile(testkit.DataPath(b, "photos", "001_plant.jpg"))
		check(b, err)
		return p
	})
	run("png", func(b *testing.B) []byte { return asPNG(b, opaque(noisy(640, 480))) })
}

// BenchmarkRender measures the part after the JPEG decoder.
func BenchmarkRender(b *testing.B) {
	for _, size := range []struct {
		name string
		w, h int
	}{{"12mp", 4000, 3000}, {"1mp", 1152, 864}, {"720p", 1280, 720}, {"1080p", 1920, 1080}} {
		b.Run(size.name, func(b *testing.B) {
			win, err := View{Width: 224, Height: 224, Centre: 15, Box: true}.window(size.w, size.h, upright)
			check(b, err)
			d := NewDecoder(Limits{})
			scale := dctScale(&win)
			planes, err := d.jpeg.Decode(asJPEG(b, phone(size.w, size.h)), jpg.Options{Scale: scale})
			check(b, err)
			d.planes(planes)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.render(loaded{3, rowYCbCr}, &win); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPlanes renders a frame of a video for the network, for colours and for a thumbnail.
func BenchmarkPlanes(b *testing.B) {
	for _, size := range []struct {
		name     string
		w, h     int
		depth    int
		fullJFIF bool
	}{
		{"720p", 1280, 720, 8, false}, {"1080p", 1920, 1080, 8, false}, {"1080p as JPEG", 1920, 1080, 8, true}, {"1080p of 10 bits", 1920, 1080, 10, false},
	} {
		p := packPlanes(phone(size.w, size.h))
		p.Matrix, p.Full = BT709, false
		if size.fullJFIF {
			p.Matrix, p.Full = BT601, true
		}
		if p.Depth = size.depth; p.Depth > 8 {
			deep := make([]byte, 0, 2*len(p.Pix))
			for _, v := range p.Pix {
				deep = append(deep, v<<2, v>>6)
			}
			p.Pix = deep
		}
		for name, v := range map[string]View{"224": {Width: 224, Height: 224, Centre: 15, Box: true}, "128": {MaxSide: 128}, "320": {MaxSide: 320}} {
			b.Run(size.name+"/"+name, func(b *testing.B) {
				d := NewDecoder(Limits{})
				b.ReportAllocs()
				for b.Loop() {
					if _, err := d.Planes(p, v); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkPaint measures the path of pictures that a library decodes: 1 MP of RGBA.
func BenchmarkPaint(b *testing.B) {
	m := image.NewNRGBA(image.Rect(0, 0, 1152, 864))
	for y := range 864 {
		for x := range 1152 {
			m.SetNRGBA(x, y, color.NRGBA{R: byte(x), G: byte(y), B: byte(x + y), A: 255})
		}
	}
	win, err := View{Width: 224, Height: 224, Centre: 15, Box: true}.window(1152, 864, upright)
	check(b, err)
	d := NewDecoder(Limits{})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.render(d.loadPicture(m), &win); err != nil {
			b.Fatal(err)
		}
	}
}
