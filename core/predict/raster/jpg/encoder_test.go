package jpg

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"image"
	"image/jpeg"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
)

// colours is a picture of (h, w, 3) bytes.
type colours struct {
	name string
	w, h int
	pix  []byte
}

func paint(name string, w, h int, at func(x, y int) [3]byte) colours {
	p := colours{name, w, h, make([]byte, 0, 3*w*h)}
	for y := range h {
		for x := range w {
			c := at(x, y)
			p.pix = append(p.pix, c[:]...)
		}
	}
	return p
}

// rgba returns the picture for image/jpeg.
func (p *colours) rgba() *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, p.w, p.h))
	for i := range p.w * p.h {
		copy(m.Pix[4*i:], p.pix[3*i:3*i+3])
		m.Pix[4*i+3] = 255
	}
	return m
}

// standard encodes the picture with image/jpeg.
func (p *colours) standard(t testing.TB, quality int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, p.rgba(), &jpeg.Options{Quality: quality}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// psnr decodes a file and returns the ratio of the peak signal to the noise in decibels, at most 100.
func (p *colours) psnr(t testing.TB, file []byte) float64 {
	t.Helper()
	m, err := jpeg.Decode(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	if b := m.Bounds(); b != image.Rect(0, 0, p.w, p.h) {
		t.Fatalf("%s: %v, want %d×%d", p.name, b, p.w, p.h)
	}
	sum := 0.0
	for i := range p.w * p.h {
		r, g, b, _ := m.At(i%p.w, i/p.w).RGBA()
		for k, v := range [3]uint32{r, g, b} {
			d := float64(v>>8) - float64(p.pix[3*i+k])
			sum += d * d
		}
	}
	if sum == 0 {
		return 100
	}
	return min(100, 10*math.Log10(255*255*float64(len(p.pix))/sum))
}

// synthetic returns pictures with extreme colours and frequencies.
func synthetic() []colours {
	r := rand.New(rand.NewPCG(3, 1))
	noise := func(int, int) [3]byte { return [3]byte{byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32())} }
	board := func(on bool) [3]byte {
		if on {
			return [3]byte{250, 250, 250}
		}
		return [3]byte{10, 10, 10}
	}
	return []colours{
		paint("gradient", 320, 200, func(x, y int) [3]byte { return [3]byte{byte(x * 255 / 320), 64, byte(y * 255 / 200)} }),
		paint("noise", 100, 90, noise),
		paint("checkers", 64, 64, func(x, y int) [3]byte { return board((x^y)&1 == 0) }),
		paint("checkers of 8", 70, 50, func(x, y int) [3]byte { return board((x>>3^y>>3)&1 == 0) }),
		paint("stripes", 64, 48, func(x, _ int) [3]byte { return board(x&1 == 0) }),
		paint("lowest wave", 48, 64, func(x, y int) [3]byte { return board((x&7 < 4) == (y&7 < 4)) }),
		paint("black and white", 64, 48, func(x, y int) [3]byte {
			v := byte(255 * ((x ^ y) >> 2 & 1))
			return [3]byte{v, v, v}
		}),
		paint("white", 33, 17, func(int, int) [3]byte { return [3]byte{255, 255, 255} }),
		paint("black", 17, 33, func(int, int) [3]byte { return [3]byte{} }),
		paint("grey", 64, 64, func(x, y int) [3]byte { return [3]byte{byte(4 * x), byte(4 * x), byte(4 * x)} }),
		paint("primaries", 96, 64, func(x, y int) [3]byte { // the extremes of Cb and Cr side by side
			c := [3]byte{}
			c[(x/16+y/16)%3] = 255
			if x/16%2 == 1 {
				c[0], c[1], c[2] = 255-c[0], 255-c[1], 255-c[2]
			}
			return c
		}),
		paint("circles", 240, 240, func(x, y int) [3]byte {
			v := byte(127 + 127*math.Sin(float64((x-120)*(x-120)+(y-120)*(y-120))/300))
			return [3]byte{v, v / 2, 255 - v}
		}),
	}
}

// photographs returns the samples of the demo.
func photographs(t testing.TB) []colours {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(testkit.Root(t), "web", "samples", "*.jpg"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	if testing.Short() {
		files = files[:5]
	}
	var all []colours
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := jpeg.Decode(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, paint(filepath.Base(file), m.Bounds().Dx(), m.Bounds().Dy(), func(x, y int) [3]byte {
			r, g, b, _ := m.At(x, y).RGBA()
			return [3]byte{byte(r >> 8), byte(g >> 8), byte(b >> 8)}
		}))
	}
	return all
}

// TestEncoderQuality compares the noise and the size of files with those of image/jpeg. The synthetic pictures repeat one block: if one of
// its coefficients is in the middle between two levels, another rounding counts in all blocks.
func TestEncoderQuality(t *testing.T) {
	var e Encoder
	for _, quality := range []int{1, 30, 80, 92, 100} {
		all, photos := synthetic(), 0
		if quality == 80 || quality == 92 {
			all = append(photographs(t), all...)
			photos = len(all) - len(synthetic())
		}
		ours, theirs, gain := 0, 0, 0.0
		for i, p := range all {
			least := -0.6
			if i < photos {
				least = -0.1
			}
			got, want := e.Append(nil, p.pix, p.w, p.h, quality), p.standard(t, quality)
			g, w := p.psnr(t, got), p.psnr(t, want)
			if g-w < least {
				t.Errorf("%s, quality %d: %.2f dB, want %.2f", p.name, quality, g, w)
			}
			if float64(len(got)) > 1.02*float64(len(want)) {
				t.Errorf("%s, quality %d: %d bytes, want at most 1.02 × %d", p.name, quality, len(got), len(want))
			}
			ours, theirs, gain = ours+len(got), theirs+len(want), gain+(g-w)/float64(len(all))
		}
		if gain < -0.05 {
			t.Errorf("quality %d: on average %.3f dB, want at least -0.05", quality, gain)
		}
		t.Logf("quality %d: %d files of %d bytes, image/jpeg %d; on average %+.3f dB", quality, len(all), ours, theirs, gain)
	}
}

// TestEncoderSizes encodes pictures of all small sizes and reads them with both decoders. The file does not depend on earlier pictures, and
// Append keeps what dst has.
func TestEncoderSizes(t *testing.T) {
	var e Encoder
	var d Decoder
	for w := 1; w <= 40; w++ {
		for h := 1; h <= 40; h++ {
			p := paint(fmt.Sprintf("%d×%d", w, h), w, h, func(x, y int) [3]byte { return [3]byte{byte(6 * x), byte(6 * y), 128} })
			got := e.Append([]byte("dst"), p.pix, w, h, 90)
			if !bytes.HasPrefix(got, []byte("dst")) {
				t.Fatal("dst was changed")
			}
			got = got[3:]
			if psnr := p.psnr(t, got); psnr < 32 {
				t.Errorf("%s: %.1f dB", p.name, psnr)
			}
			if m, err := d.Decode(got, Options{}); err != nil || m.Model != YCbCr || m.P[0].Width != w || m.P[0].Height != h || m.P[1].HSub != 2 || m.P[1].VSub != 2 {
				t.Errorf("%s: %+v, %v", p.name, m, err)
			}
			if again := new(Encoder).Append(nil, p.pix, w, h, 90); !bytes.Equal(again, got) {
				t.Errorf("%s: another file with a new encoder", p.name)
			}
		}
	}
	for _, size := range [][3]int{{0, 1, 0}, {1, 0, 0}, {1, 1, 2}, {MaxSide + 1, 1, 3 * (MaxSide + 1)}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("no panic for %v", size)
				}
			}()
			e.Append(nil, make([]byte, size[2]), size[0], size[1], 80)
		}()
	}
}

// TestEncoderGolden checks that all hosts make the same files.
func TestEncoderGolden(t *testing.T) {
	var e Encoder
	h := sha256.New()
	for _, p := range synthetic()[:11] { // the last one computes with floats
		for _, quality := range []int{-1, 1, 49, 50, 80, 100, 101} {
			h.Write(e.Append(nil, p.pix, p.w, p.h, quality))
		}
	}
	const want = "02eb0cfed281ee337ba17eef8207fd043f813ab0a757f600e1cad7868436ce97"
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		t.Errorf("hash %s, want %s", got, want)
	}
}

// TestEncoderAllocates checks that an encoder allocates nothing if dst has room.
func TestEncoderAllocates(t *testing.T) {
	var e Encoder
	p := synthetic()[0]
	dst := make([]byte, 0, 1<<20)
	if n := testing.AllocsPerRun(10, func() { e.Append(dst, p.pix, p.w, p.h, 80) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// FuzzEncoder encodes any bytes. Both decoders read the file, and agree.
func FuzzEncoder(f *testing.F) {
	f.Add([]byte("pixels"), byte(3), byte(80))
	f.Add(bytes.Repeat([]byte{0, 0, 0, 255, 255, 255}, 300), byte(20), byte(100))
	var e Encoder
	var d Decoder
	f.Fuzz(func(t *testing.T, pix []byte, width, quality byte) {
		w := max(int(width), 1)
		h := len(pix) / 3 / w
		if h == 0 || h > MaxSide {
			return
		}
		p := colours{"fuzzed", w, h, pix[:3*w*h]}
		file := e.Append(nil, p.pix, w, h, int(quality))
		if !against(t, &d, file) {
			t.Fatal("the decoders refuse the file")
		}
		got, want := p.psnr(t, file), p.psnr(t, p.standard(t, int(quality)))
		if w*h >= 1024 && got < min(want, 40)-3 { // single roundings count in fewer pixels
			t.Errorf("%d×%d, quality %d: %.1f dB, image/jpeg %.1f", w, h, quality, got, want)
		}
	})
}

// BenchmarkEncoder encodes the samples, of 299 × 299 pixels, and the same with image/jpeg.
func BenchmarkEncoder(b *testing.B) {
	all := photographs(b)
	run := func(name string, encode func(p *colours) []byte) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			n, size := 0, 0
			for b.Loop() {
				size += len(encode(&all[n%len(all)]))
				n++
			}
			b.ReportMetric(float64(size)/float64(n), "file-bytes")
		})
	}
	var e Encoder
	var dst []byte
	run("own", func(p *colours) []byte {
		dst = e.Append(dst[:0], p.pix, p.w, p.h, 80)
		return dst
	})
	run("image-jpeg", func(p *colours) []byte { return p.standard(b, 80) })
}
