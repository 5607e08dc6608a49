package raster

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sightline-dev/sightline/core/testkit"
)

// frameCopy is one frame of an animation, copied.
type frameCopy struct {
	at  time.Duration
	img flat
}

// allFrames returns every frame of an animation whose delays are multiples of 1 ms.
func allFrames(t testing.TB, b []byte, v View) []frameCopy {
	t.Helper()
	f, err := NewDecoder(Limits{}).Frames(b, time.Millisecond)
	check(t, err)
	var out []frameCopy
	for {
		_, err := f.Next()
		if err == io.EOF {
			return out
		}
		check(t, err)
		if len(out) > 0 && f.decoded == len(out) {
			continue
		}
		img, err := f.Image(v)
		check(t, err)
		out = append(out, frameCopy{f.at, flat{img.Width, img.Height, slices.Clone(img.Pix)}})
	}
}

// readFrames renders every picture of an animation, and returns their number and the error that ended them, if any.
func readFrames(d *Decoder, b []byte, sample time.Duration, v View) (n int, err error) {
	f, err := d.Frames(b, sample)
	for err == nil {
		if _, err = f.Next(); err == nil {
			_, err = f.Image(v)
			n++
		}
	}
	if err == io.EOF {
		err = nil
	}
	return n, err
}

// letters returns a picture of five colours as text, one letter per pixel.
func letters(f flat) string {
	names := map[[3]byte]byte{
		{255, 255, 255}: '.', {255, 0, 0}: 'r', {0, 255, 0}: 'g', {0, 0, 255}: 'b', {0, 0, 0}: 'k',
	}
	var out []byte
	for y := range f.h {
		if y > 0 {
			out = append(out, '/')
		}
		for x := range f.w {
			c, ok := names[f.at(x, y)]
			if !ok {
				c = '?'
			}
			out = append(out, c)
		}
	}
	return string(out)
}

// gifOf returns a GIF with these frames on a screen of 4 × 2 pixels. Palette index 0 is transparent.
func gifOf(t testing.TB, frames ...gifTestFrame) []byte {
	t.Helper()
	palette := color.Palette{
		color.RGBA{}, color.RGBA{R: 255, A: 255}, color.RGBA{G: 255, A: 255}, color.RGBA{B: 255, A: 255},
	}
	g := &gif.GIF{Config: image.Config{Width: 4, Height: 2, ColorModel: palette}}
	for _, f := range frames {
		m := image.NewPaletted(image.Rect(f.x, 0, f.x+len(f.pix)/2, 2), palette)
		for i, c := range f.pix {
			m.Pix[i] = uint8(bytes.IndexByte([]byte(".rgb"), byte(c)))
		}
		g.Image = append(g.Image, m)
		g.Delay = append(g.Delay, f.delay)
		g.Disposal = append(g.Disposal, f.disposal)
	}
	var b bytes.Buffer
	check(t, gif.EncodeAll(&b, g))
	return b.Bytes()
}

type gifTestFrame struct {
	x        int
	pix      string // rows of the frame, one after the other
	delay    int
	disposal byte
}

func TestFramesOfGIF(t *testing.T) {
	tests := []struct {
		name   string
		frames []gifTestFrame
		want   []string
	}{
		{
			"kept",
			[]gifTestFrame{{0, "rrrrrrrr", 10, gif.DisposalNone}, {1, "gg.g", 20, 0}, {3, "bb", 0, 0}},
			[]string{"rrrr/rrrr", "rggr/rrgr", "rggb/rrgb"},
		},
		{
			"back to the background",
			[]gifTestFrame{{0, "rrrrrrrr", 10, gif.DisposalNone}, {1, "gggg", 20, gif.DisposalBackground}, {3, "bb", 0, 0}},
			[]string{"rrrr/rrrr", "rggr/rggr", "r..b/r..b"},
		},
		{
			"back to what was before",
			[]gifTestFrame{{0, "rrrrrrrr", 10, gif.DisposalNone}, {1, "gggg", 20, gif.DisposalPrevious}, {3, "bb", 0, 0}},
			[]string{"rrrr/rrrr", "rggr/rggr", "rrrb/rrrb"},
		},
		{
			"a first frame smaller than the screen, transparent in part",
			[]gifTestFrame{{1, "r..g", 5, 0}, {0, "b..b", 5, 0}},
			[]string{".r../..g.", "br../.bg."},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := gifOf(t, tt.frames...)
			var got []string
			var at, sum time.Duration
			for i, f := range allFrames(t, b, View{MaxSide: 4}) {
				got = append(got, letters(f.img))
				if at = sum; f.at != at {
					t.Errorf("frame %d at %v, want %v", i, f.at, at)
				}
				sum += time.Duration(tt.frames[i].delay) * 10 * time.Millisecond
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("frames = %q, want %q", got, tt.want)
			}
			first, err := NewDecoder(Limits{}).Decode(b, View{MaxSide: 4})
			check(t, err)
			if s := letters(flat{first.Width, first.Height, first.Pix}); s != tt.want[0] {
				t.Errorf("Decode = %q, want the first frame %q", s, tt.want[0])
			}
			if info, err := Inspect(b); err != nil || info.Frames != len(tt.frames) {
				t.Errorf("Inspect = %+v, %v, want %d frames", info, err, len(tt.frames))
			}
		})
	}
}

// webpOf returns an animated WebP with these frames on a canvas of 4 × 2 pixels. Each frame is a lossless picture of one colour.
func webpOf(frames ...webpTestFrame) []byte {
	b := []byte("RIFF\x00\x00\x00\x00WEBP")
	b = appendChunk(b, "VP8X", []byte{0x12, 0, 0, 0, 3, 0, 0, 1, 0, 0})
	b = appendChunk(b, "ANIM", []byte{0, 0, 0, 0, 0, 0})
	for _, f := range frames {
		p := []byte{byte(f.x / 2), 0, 0, 0, 0, 0, byte(f.w - 1), 0, 0, 1, 0, 0, byte(f.ms), 0, 0, f.flags}
		b = appendChunk(b, "ANMF", appendChunk(p, "VP8L", plainVP8L(f.w, 2, f.c)))
	}
	binary.LittleEndian.PutUint32(b[4:], uint32(len(b)-8))
	return b
}

type webpTestFrame struct {
	x, w, ms int
	flags    byte // 1: dispose to background, 2: do not blend
	c        color.NRGBA
}

// plainVP8L returns a lossless picture of one colour. Each of its five codes has one symbol, so its pixels take no bits.
func plainVP8L(w, h int, c color.NRGBA) []byte {
	var bits []bool
	put := func(v, n int) {
		for i := range n {
			bits = append(bits, v>>i&1 != 0)
		}
	}
	put(0x2f, 8)
	put(w-1, 14)
	put(h-1, 14)
	put(1, 1) // alpha is used
	put(0, 3) // version
	put(0, 1) // no transform
	put(0, 1) // no colour cache
	put(0, 1) // one group of codes
	for _, symbol := range []byte{c.G, c.R, c.B, c.A, 0} {
		put(1, 1) // simple
		put(0, 1) // one symbol
		put(1, 1) // of eight bits
		put(int(symbol), 8)
	}
	out := make([]byte, (len(bits)+7)/8)
	for i, bit := range bits {
		if bit {
			out[i/8] |= 1 << (i % 8)
		}
	}
	return out
}

func TestFramesOfWebP(t *testing.T) {
	red, green := color.NRGBA{R: 255, A: 255}, color.NRGBA{G: 255, A: 255}
	black, clear := color.NRGBA{A: 255}, color.NRGBA{R: 255}
	tests := []struct {
		name   string
		frames []webpTestFrame
		want   []string
	}{
		{
			"kept",
			[]webpTestFrame{{0, 4, 100, 0, red}, {2, 1, 50, 0, green}, {0, 1, 0, 0, black}},
			[]string{"rrrr/rrrr", "rrgr/rrgr", "krgr/krgr"},
		},
		{
			"disposed of",
			[]webpTestFrame{{0, 4, 100, 0, red}, {2, 1, 50, 1, green}, {0, 1, 0, 0, black}},
			[]string{"rrrr/rrrr", "rrgr/rrgr", "kr.r/kr.r"},
		},
		{
			"transparent, blended and not",
			[]webpTestFrame{{0, 4, 100, 0, red}, {0, 2, 50, 0, clear}, {2, 2, 0, 2, clear}},
			[]string{"rrrr/rrrr", "rrrr/rrrr", "rr../rr.."},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := webpOf(tt.frames...)
			var got []string
			var sum time.Duration
			for i, f := range allFrames(t, b, View{MaxSide: 4}) {
				got = append(got, letters(f.img))
				if f.at != sum {
					t.Errorf("frame %d at %v, want %v", i, f.at, sum)
				}
				sum += time.Duration(tt.frames[i].ms) * time.Millisecond
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("frames = %q, want %q", got, tt.want)
			}
			first, err := NewDecoder(Limits{}).Decode(b, View{MaxSide: 4})
			check(t, err)
			if s := letters(flat{first.Width, first.Height, first.Pix}); s != tt.want[0] {
				t.Errorf("Decode = %q, want the first frame %q", s, tt.want[0])
			}
		})
	}
	t.Run("half transparent", func(t *testing.T) {
		b := webpOf(webpTestFrame{0, 4, 0, 0, color.NRGBA{R: 200, A: 255}}, webpTestFrame{0, 4, 0, 0, color.NRGBA{B: 100, A: 51}})
		frames := allFrames(t, b, View{MaxSide: 4})
		if got, want := frames[1].img.at(0, 0), [3]byte{160, 0, 20}; got != want {
			t.Errorf("blended = %v, want %v", got, want)
		}
	})
}

// TestFramesOfEncoder reads an animation that libwebp wrote.
func TestFramesOfEncoder(t *testing.T) {
	b := fixture(t, "animated.webp")
	info, err := Inspect(b)
	check(t, err)
	if want := (Info{Format: "webp", Width: 16, Height: 12, Orientation: 1, Frames: 3}); info != want {
		t.Errorf("Inspect = %+v, want %+v", info, want)
	}
	frames := allFrames(t, b, View{MaxSide: 16})
	for i, want := range []struct {
		at      time.Duration
		in, out [3]byte // colours at columns 4·i and 15
	}{
		{0, [3]byte{255, 0, 50}, [3]byte{0, 0, 50}},
		{100 * time.Millisecond, [3]byte{255, 100, 50}, [3]byte{0, 100, 50}},
		{300 * time.Millisecond, [3]byte{255, 200, 50}, [3]byte{255, 255, 255}},
	} {
		f := frames[i]
		if f.at != want.at || f.img.at(4*i, 5) != want.in || f.img.at(15, 5) != want.out {
			t.Errorf("frame %d at %v: %v and %v, want %+v", i, f.at, f.img.at(4*i, 5), f.img.at(15, 5), want)
		}
	}
}

// TestFramesDamagedWebP checks that damage in the container of an animation gives ErrCorrupt, for the first frame too.
func TestFramesDamagedWebP(t *testing.T) {
	red := color.NRGBA{R: 255, A: 255}
	good := webpOf(webpTestFrame{0, 4, 10, 0, red}, webpTestFrame{2, 2, 10, 0, red})
	first := bytes.Index(good, []byte("ANMF"))
	with := func(at int, v byte) []byte {
		b := slices.Clone(good)
		b[at] = v
		return b
	}
	none := slices.Clone(good[:first])
	binary.LittleEndian.PutUint32(none[4:], uint32(len(none)-8))
	tests := map[string][]byte{
		"no frames":                  none,
		"chunk longer than the file": with(first+4, 0xff),
		"frame right of the canvas":  with(first+8, 1),
		"frame below the canvas":     with(first+11, 1),
		"wider than its picture":     with(first+14, 7),
		"no picture":                 with(first+24, 'X'),
		"another version":            with(first+32, 0),
		"cut off":                    good[:first+20],
	}
	for name, b := range tests {
		t.Run(name, func(t *testing.T) {
			d := NewDecoder(Limits{})
			if _, err := d.Decode(b, View{MaxSide: 4}); !errors.Is(err, ErrCorrupt) {
				t.Errorf("Decode = %v, want %v", err, ErrCorrupt)
			}
			_, err := readFrames(d, b, time.Second, View{MaxSide: 4})
			if !errors.Is(err, ErrCorrupt) {
				t.Errorf("Frames = %v, want %v", err, ErrCorrupt)
			}
		})
	}
	if n := len(allFrames(t, good, View{MaxSide: 4})); n != 2 {
		t.Errorf("%d frames of what is whole, want 2", n)
	}
}

func TestFramesOfStill(t *testing.T) {
	b := asPNG(t, noisy(9, 7))
	frames := allFrames(t, b, View{MaxSide: 9})
	want, err := NewDecoder(Limits{}).Decode(b, View{MaxSide: 9})
	check(t, err)
	if len(frames) != 1 || frames[0].at != 0 || !slices.Equal(frames[0].img.pix, want.Pix) {
		t.Errorf("%d frames, want the picture once", len(frames))
	}
}

// TestImageNeedsNext checks that Image fails before the first Next and after the last picture.
func TestImageNeedsNext(t *testing.T) {
	d := NewDecoder(Limits{})
	for name, b := range map[string][]byte{"gif": manyFrames(2), "png": asPNG(t, noisy(9, 7))} {
		t.Run(name, func(t *testing.T) {
			f, err := d.Frames(b, time.Second)
			check(t, err)
			if _, err := f.Image(View{MaxSide: 1}); !errors.Is(err, errNoFrame) {
				t.Errorf("Image before Next = %v, want %v", err, errNoFrame)
			}
			if _, err := f.Next(); err != nil {
				t.Errorf("Next = %v", err)
			}
			if _, err := f.Image(View{}); !errors.Is(err, errView) {
				t.Errorf("Image without a size = %v, want %v", err, errView)
			}
			for range 2 {
				if _, err := f.Next(); err != io.EOF {
					t.Errorf("Next after the last picture = %v, want %v", err, io.EOF)
				}
				if _, err := f.Image(View{MaxSide: 1}); err != io.EOF {
					t.Errorf("Image after the last picture = %v, want %v", err, io.EOF)
				}
			}
		})
	}
	for _, sample := range []time.Duration{0, -1} {
		if _, err := d.Frames(manyFrames(2), sample); !errors.Is(err, errSample) {
			t.Errorf("Frames each %v = %v, want %v", sample, err, errSample)
		}
	}
}

// TestFramesAtTimes reads animations with random delays. Each picture must be the last frame that begins at or before its time, and the
// last picture must not be later than the beginning of the last frame.
func TestFramesAtTimes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		delays := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(0, 12), rapid.IntRange(13, 255)), 2, 12).Draw(rt, "delays")
		sample := rapid.IntRange(1, 400).Draw(rt, "sample")
		colours := [...]color.NRGBA{{R: 255, A: 255}, {G: 255, A: 255}, {B: 255, A: 255}}
		var b []byte
		unit := 1
		if rapid.Bool().Draw(rt, "gif") {
			unit = 10
			var frames []gifTestFrame
			for i, delay := range delays {
				frames = append(frames, gifTestFrame{pix: strings.Repeat("rgb"[i%3:][:1], 8), delay: delay})
			}
			b = gifOf(t, frames...)
		} else {
			var frames []webpTestFrame
			for i, delay := range delays {
				frames = append(frames, webpTestFrame{w: 4, ms: delay, c: colours[i%3]})
			}
			b = webpOf(frames...)
		}
		var times []int // beginnings of the frames, in ms
		at := 0
		for _, delay := range delays {
			times = append(times, at)
			if delay *= unit; delay <= 10 {
				delay = 100
			}
			at += delay
		}
		f, err := NewDecoder(Limits{}).Frames(b, time.Duration(sample)*time.Millisecond)
		check(t, err)
		n := 0
		for ms := 0; ms <= times[len(times)-1]; ms += sample {
			n++
			got, err := f.Next()
			if err != nil || got != time.Duration(ms)*time.Millisecond {
				rt.Fatalf("Next = %v, %v, want %d ms", got, err, ms)
			}
			want := 0
			for i, at := range times {
				if at <= ms {
					want = i
				}
			}
			img, err := f.Image(View{MaxSide: 4})
			check(t, err)
			if got := letters(flat{1, 1, img.Pix[:3]}); got != "rgb"[want%3:][:1] || f.decoded != want+1 {
				rt.Fatalf("at %d ms: %s, frame %d, want frame %d", ms, got, f.decoded-1, want)
			}
		}
		if _, err := f.Next(); err != io.EOF || f.Len() != n || f.decoded != len(delays) {
			rt.Errorf("Next after %d of %d pictures and %d of %d frames = %v", n, f.Len(), f.decoded, len(delays), err)
		}
	})
}

// TestFramesDamagedLater checks that the pictures before damage are returned and then an error, even if no picture shows the damaged frame.
func TestFramesDamagedLater(t *testing.T) {
	frame := func(pix string) gifTestFrame { return gifTestFrame{pix: pix, delay: 30} }
	good := gifOf(t, frame("rrrrrrrr"), frame("gggggggg"), frame("bbbbbbbb"))
	code := slices.Clone(good)
	code[len(code)-4] ^= 0xff // in the codes of the last frame
	block := slices.Clone(good)
	block[bytes.LastIndexByte(block, 0x2c)] = 0x2d
	tests := []struct {
		name     string
		b        []byte
		sample   time.Duration
		pictures int
		message  string
	}{
		{"whole", good, 100 * time.Millisecond, 7, ""},
		{"code", code, 100 * time.Millisecond, 6, "frame 2, at 600 ms"},
		{"code that no picture shows", code, time.Second, 1, "frame 2, at 600 ms"},
		{"block", block, 100 * time.Millisecond, 6, "frame 2, at 600 ms"},
		{"cut in a frame", good[:len(good)-3], 100 * time.Millisecond, 6, "frame 2, at 600 ms"},
		{"cut before the end mark", good[:len(good)-1], 100 * time.Millisecond, 9, "frame 3, at 900 ms"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n, err := readFrames(NewDecoder(Limits{}), tt.b, tt.sample, View{MaxSide: 4})
			switch {
			case n != tt.pictures:
				t.Errorf("%d pictures, want %d", n, tt.pictures)
			case tt.message == "" && err != nil, tt.message != "" && (!errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), tt.message)):
				t.Errorf("ended with %v, want %q", err, tt.message)
			}
		})
	}
}

// TestFramesOfSlides reads a GIF of photos that ffmpeg wrote. Each frame covers a part of the screen.
func TestFramesOfSlides(t *testing.T) {
	b, err := os.ReadFile(testkit.DataPath(t, "video", "slides.gif"))
	check(t, err)
	f, err := NewDecoder(Limits{}).Frames(b, time.Second)
	check(t, err)
	all, err := gif.DecodeAll(bytes.NewReader(b))
	check(t, err)
	screen := image.NewNRGBA(image.Rect(0, 0, all.Config.Width, all.Config.Height))
	draw.Draw(screen, screen.Rect, image.White, image.Point{}, draw.Src)
	painted, end := 0, time.Duration(0) // number of painted frames, and the end of the last one
	for i := range 6 {
		at, err := f.Next()
		check(t, err)
		for painted < len(all.Image) && end <= at {
			m := all.Image[painted]
			draw.Draw(screen, m.Rect, m, m.Rect.Min, draw.Over)
			end += time.Duration(all.Delay[painted]) * 10 * time.Millisecond
			painted++
		}
		img, err := f.Image(View{Width: screen.Rect.Dx(), Height: screen.Rect.Dy()})
		check(t, err)
		if diff := difference(img, flatten(screen)); at != time.Duration(i)*time.Second || diff != "" {
			t.Errorf("picture %d at %v: %s", i, at, diff)
		}
	}
	if _, err := f.Next(); err != io.EOF || f.Len() != 6 {
		t.Errorf("Next after six pictures of %d = %v, want %v", f.Len(), err, io.EOF)
	}
}

func TestFramesLimits(t *testing.T) {
	damaged, two := manyFrames(3), gifOf(t, gifTestFrame{pix: "rrrrrrrr"}, gifTestFrame{pix: "rrrrrrrr"})
	damaged[len(damaged)-4] = 0xff // a code of the last frame
	cutWebP := fixture(t, "animated.webp")
	cutWebP[bytes.LastIndex(cutWebP, []byte("ANMF"))+4]++
	tests := []struct {
		name    string
		l       Limits
		picture []byte
		want    error
	}{
		{"10,000 frames", Limits{}, manyFrames(10_000), ErrTooLarge},
		{"webp", Limits{Frames: 1}, fixture(t, "animated.webp"), ErrTooLarge},
		{"canvas", Limits{Pixels: 8 * 10 / 4}, two, nil},
		{"canvas exceeded", Limits{Pixels: 19}, two, ErrTooLarge},
		{"pixels of frames", Limits{FramePixels: 16}, two, nil},
		{"pixels of frames exceeded", Limits{FramePixels: 15}, two, ErrTooLarge},
		{"pixels of frames of a webp exceeded", Limits{FramePixels: 3*16*12 - 1}, fixture(t, "animated.webp"), ErrTooLarge},
		{"damage later on", Limits{}, damaged, ErrCorrupt},
		{"cut off in the second frame", Limits{}, manyFrames(3)[:40], ErrCorrupt},
		{"cut off before the end mark", Limits{}, manyFrames(1)[:34], ErrCorrupt},
		{"webp cut off", Limits{}, cutWebP, ErrCorrupt},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			took, grown, err := cost(func() error {
				_, err := readFrames(NewDecoder(tt.l), tt.picture, time.Second, View{MaxSide: 4})
				return err
			})
			if !errors.Is(err, tt.want) {
				t.Errorf("Frames = %v, want %v", err, tt.want)
			}
			if testkit.Timing() && took > 2*time.Second || grown > 16<<20 {
				t.Errorf("took %v and %d bytes", took, grown)
			}
		})
	}
}

// TestFramesKeepOneInMemory checks that reading a long animation takes the memory of one frame.
func TestFramesKeepOneInMemory(t *testing.T) {
	var frames []gifTestFrame
	for i := range 400 {
		frames = append(frames, gifTestFrame{x: i % 3, pix: "rg", delay: 1, disposal: byte(1 + i%3)})
	}
	b := gifOf(t, frames...)
	d := NewDecoder(Limits{})
	n := 0
	run := func() error {
		pictures, err := readFrames(d, b, 100*time.Millisecond, View{MaxSide: 4}) // a delay of 10 ms counts as 100 ms
		n += pictures
		return err
	}
	check(t, run())
	_, grown, err := cost(run)
	check(t, err)
	if n != 800 || grown > 400*600 {
		t.Errorf("%d frames took %d bytes, want 800 with less than 600 bytes each", n, grown)
	}
}
