package raster

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func jxlStill(t *testing.T, name string, l Limits) *Still {
	t.Helper()
	b, err := os.ReadFile("testdata/jxl/" + name)
	check(t, err)
	s, err := ReadStill(b, l)
	check(t, err)
	return s
}

// TestJXLPlanes turns outputs of the module into planes: straight and premultiplied alpha over white, samples of 16 bits, and linear ones.
func TestJXLPlanes(t *testing.T) {
	for _, tt := range []struct {
		name          string
		premultiplied bool
		linear        bool
		pixel         []byte
		want          [3]byte
	}{
		{"rgba.jxl", false, false, []byte{10, 100, 200, 255}, [3]byte{10, 100, 200}},
		{"rgba.jxl", false, false, []byte{10, 100, 200, 51}, [3]byte{206, 224, 244}},
		{"rgba.jxl", true, false, []byte{10, 20, 30, 51}, [3]byte{214, 224, 234}},
		{"rgba.jxl", false, true, []byte{0, 55, 255, 255}, [3]byte{0, 128, 255}},
		{"deep.jxl", false, false, []byte{10, 255, 100, 0, 200, 0, 255, 255}, [3]byte{10, 100, 200}},
		{"deep.jxl", false, true, []byte{0x37, 0xa0, 0, 0, 255, 255, 255, 255}, [3]byte{128, 0, 255}},
	} {
		s := jxlStill(t, tt.name, Limits{})
		s.jxl.Premultiplied, s.jxl.Linear = tt.premultiplied, tt.linear
		runs, err := s.Runs()
		check(t, err)
		n := s.jxl.Width * s.jxl.Height
		if len(runs) != 1 || runs[0].Module != JPEGXL || runs[0].Format != "first" || runs[0].Bytes != n*len(tt.pixel) {
			t.Fatalf("%s: %d runs, %d bytes", tt.name, len(runs), runs[0].Bytes)
		}
		out := bytes.Repeat(tt.pixel, n)
		p, err := s.Planes([][]byte{out})
		check(t, err)
		if got := pixelOf(t, p, 37, 23, 36, 22); got != tt.want {
			t.Errorf("%s, %v: %v, want %v", tt.name, tt.pixel, got, tt.want)
		}
		if _, err := s.Planes([][]byte{out[1:]}); !errors.Is(err, ErrCorrupt) {
			t.Errorf("an output without its first byte: %v", err)
		}
	}
}

// timesOf returns the output of the run for the times.
func timesOf(s *Still, ticks ...uint32) []byte {
	out := binary.LittleEndian.AppendUint32(nil, uint32(len(ticks)))
	for _, n := range ticks {
		out = binary.LittleEndian.AppendUint32(out, n)
	}
	return append(out, make([]byte, max(0, s.Times().Bytes-len(out)))...)[:s.Times().Bytes]
}

// TestJXLAnimation checks the times of an animation, its limits, and a decoder whose output ends early.
func TestJXLAnimation(t *testing.T) {
	s := jxlStill(t, "anim.jxl", Limits{Frames: 4}) // a tick is 10 ms
	if r := s.Times(); r.Bytes != 20 || r.Format != "times" || !s.IsAnimation() {
		t.Fatalf("%+v", r)
	}
	a, err := s.Animation(timesOf(s, 30, 1, 0, 1<<31))
	check(t, err)
	frame := 4 * a.Width * a.Height
	if r := a.Run(); a.Frames() != 4 || a.Len(100*time.Millisecond) != 6 || r.Bytes != 4*frame || r.Format != "frames" {
		t.Errorf("%d frames, %d pictures, %+v", a.Frames(), a.Len(100*time.Millisecond), r.Bytes)
	}
	var pixels []byte
	for i := range 4 {
		pixels = append(pixels, bytes.Repeat([]byte{byte(i), byte(i), byte(i), 255}, frame/4)...)
	}
	read := func(from []byte) (shown []byte, err error) {
		frames, err := NewDecoder(Limits{}).Animation(a, bytes.NewReader(from), 100*time.Millisecond)
		check(t, err)
		for {
			if _, err := frames.Next(); err != nil {
				return shown, err
			}
			img, err := frames.Image(View{Width: 1, Height: 1})
			check(t, err)
			shown = append(shown, img.Pix[0])
		}
	}
	if got, err := read(pixels); err != io.EOF || !slices.Equal(got, []byte{0, 0, 0, 1, 2, 3}) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := read(pixels[:2*frame+5]); !errors.Is(err, ErrCorrupt) || len(got) != 4 {
		t.Errorf("an output that ends early: %v, %v", got, err)
	}
	for name, times := range map[string][]byte{"no frames": timesOf(s), "an output without its last byte": timesOf(s, 1)[:19]} {
		if _, err := s.Animation(times); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.Animation(timesOf(s, 1, 1, 1, 1, 1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too many frames: %v", err)
	}
	s.jxl.Width, s.jxl.Height = 5000, 6000
	if _, err := s.Animation(timesOf(s, 1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too many pixels: %v", err)
	}
	s.jxl.Width, s.jxl.Height = 3600, 3600
	if _, err := s.Animation(timesOf(s, 1, 1, 1, 1)); err != nil {
		t.Errorf("four frames of 13 MP: %v", err)
	}
	s.jxl.Depth = 16
	if _, err := s.Animation(timesOf(s, 1, 1, 1, 1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("four frames of 13 MP and 16 bits: %v", err)
	}
	if _, err := NewDecoder(Limits{}).Animation(a, nil, 0); !errors.Is(err, errSample) {
		t.Errorf("no time between two pictures: %v", err)
	}
}

// checkModuleIsMissing checks that Decode refuses a picture for which the decoder's host lacks a module.
func checkModuleIsMissing(t *testing.T, picture []byte) {
	t.Helper()
	_, err := NewDecoder(Limits{}).Decode(picture, View{MaxSide: 64})
	if !errors.Is(err, ErrUnsupported) || !strings.HasSuffix(err.Error(), errModule.Error()) { // a guest's host returns only class and text
		t.Errorf("Decode = %v", err)
	}
}

// TestJXLLimits checks the limits of the headers.
func TestJXLLimits(t *testing.T) {
	for name, l := range map[string]Limits{"rgba.jxl": {StillPixels: 850}, "deep.jxl": {StillPixels: 1700}, "grey.jxl": {Side: 36}} {
		b, err := os.ReadFile("testdata/jxl/" + name)
		check(t, err)
		if _, err := ReadStill(b, l); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := ReadStill(b[:2], Limits{}); name != "deep.jxl" && !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s, two bytes: %v", name, err)
		}
		checkModuleIsMissing(t, b)
	}
}
