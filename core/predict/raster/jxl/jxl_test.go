package jxl

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestRead reads files that cjxl wrote.
func TestRead(t *testing.T) {
	small := Info{Width: 37, Height: 23, Depth: 8}
	tests := map[string]Info{
		"rgba.jxl":         small,
		"lossy.jxl":        small,
		"grey.jxl":         small,
		"icc-lossless.jxl": small,
		"turned.jxl":       {Width: 23, Height: 37, Depth: 8},
		"deep.jxl":         {Width: 37, Height: 23, Depth: 16},
		"linear.jxl":       {Width: 37, Height: 23, Depth: 32, Linear: true},
		"a98.jxl":          {Width: 37, Height: 23, Depth: 8, Linear: true},
		"anim.jxl":         {Width: 20, Height: 16, Depth: 8, Animated: true, Ticks: 100, Per: 1},
	}
	for name, want := range tests {
		file := read(t, name)
		if got, err := Read(file); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, want)
		}
	}
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../testdata/jxl", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// writer writes the fields of a header, the low bit of each byte first.
type writer struct {
	all []byte
	at  uint
}

func (w *writer) put(v uint64, n uint) *writer {
	for i := range n {
		if w.at%8 == 0 {
			w.all = append(w.all, 0)
		}
		w.all[len(w.all)-1] |= byte(v>>i&1) << (w.at % 8)
		w.at++
	}
	return w
}

// header returns a codestream of 8 × 8 pixels with extra fields, up to the number of extra channels.
func header(channels uint64) *writer {
	w := &writer{all: []byte(codestream), at: 16}
	w.put(1, 1).put(0, 5).put(1, 3)                // 8 × 8
	w.put(0, 1)                                    // not all default
	w.put(1, 1).put(5, 3).put(0, 1)                // extra fields, orientation 6, no intended size
	w.put(1, 1).put(1, 1).put(0, 2).put(1, 3)      // a preview of 128 × 128
	w.put(1, 1).put(3, 2).put(119, 30).put(1, 2)   // an animation, 120 ticks
	w.put(0, 2).put(0, 1)                          // a denominator of 1001, no loops, no time codes
	w.put(1, 1).put(3, 2).put(23, 6).put(7, 4)     // a float of 24 bits
	return w.put(1, 1).put(3, 2).put(channels, 12) // 1 + channels
}

// TestReadFields reads a header with fields that cjxl does not write.
func TestReadFields(t *testing.T) {
	w := header(3)
	channel := func(kind uint64) {
		w.put(0, 1)
		if kind < 2 {
			w.put(kind, 2)
		} else {
			w.put(2, 2).put(kind-2, 4)
		}
		w.put(0, 1).put(0, 2)            // 8 bits
		w.put(1, 2)                      // a scale
		w.put(1, 2).put(2, 4).put(0, 16) // a name of 2 bytes
	}
	channel(typeSpot)
	w.put(0, 32).put(0, 32)
	channel(typeCFA)
	w.put(2, 2).put(9, 4)
	channel(typeBlack)
	channel(typeAlpha)
	w.put(1, 1)                                 // associated
	w.put(1, 1).put(0, 1).put(0, 1).put(0, 2)   // XYB, own colours, no profile, RGB
	w.put(2, 2).put(0, 4)                       // a custom white point
	w.put(0, 2).put(1, 19).put(3, 2).put(2, 21) //
	w.put(2, 2).put(7, 4)                       // primaries of BT.2100
	w.put(0, 1).put(2, 2).put(6, 4)             // linear
	want := Info{Width: 8, Height: 8, Depth: 24, Premultiplied: true, Linear: true, Ink: true, Animated: true, Ticks: 120, Per: 1001}
	if got, err := Read(w.all); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if _, err := Read(header(maxChannels).all); !errors.Is(err, ErrUnsupported) {
		t.Errorf("%d channels: %v, want %v", maxChannels+1, err, ErrUnsupported)
	}
}

// TestContainer reads a codestream that is cut into boxes.
func TestContainer(t *testing.T) {
	stream := read(t, "a98.jxl")
	want, err := Read(stream)
	if err != nil {
		t.Fatal(err)
	}
	box := func(kind string, body []byte) []byte {
		return append([]byte{0, 0, 0, byte(8 + len(body)), kind[0], kind[1], kind[2], kind[3]}, body...)
	}
	start := append([]byte(container), box("ftyp", []byte("jxl \x00\x00\x00\x00jxl "))...)
	whole := append(slices.Clip(start), "\x00\x00\x00\x01jxlc\x00\x00\x00\x00\x00\x00"...)
	size := 16 + len(stream)
	whole = append(append(whole, byte(size>>8), byte(size)), stream...)
	toEnd := append(append(slices.Clip(start), "\x00\x00\x00\x00jxlc"...), stream...)
	parts := slices.Clip(start)
	for i, b := range stream[:40] {
		parts = append(append(parts, box("jxlp", []byte{0, 0, 0, byte(i), b})...), box("free", nil)...)
	}
	for name, file := range map[string][]byte{"one box of 64 bits": whole, "a box to the end": toEnd, "parts of one byte": parts} {
		if got, err := Read(file); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, want)
		}
	}
}

// TestReadCut cuts files after each byte. A header that is not complete is damaged.
func TestReadCut(t *testing.T) {
	for _, name := range []string{"rgba.jxl", "anim.jxl", "turned.jxl"} {
		file := read(t, name)
		complete := false
		for n := range file {
			_, err := Read(file[:n])
			if err != nil && (complete || !errors.Is(err, ErrCorrupt)) {
				t.Errorf("%s, %d bytes: %v", name, n, err)
			}
			complete = err == nil
		}
		if !complete {
			t.Errorf("%s: a header is never complete", name)
		}
	}
}

// TestEncodings compares the tables of linear samples with the definition in floating point.
func TestEncodings(t *testing.T) {
	for _, table := range [][]uint16{linear8(), linear16()} {
		most := float64(len(table) - 1)
		for i, v := range table {
			l := float64(i) / most
			want := 12.92 * l
			if l > 0.0031308 {
				want = 1.055*math.Pow(l, 1/2.4) - 0.055
			}
			if diff := math.Abs(float64(v) - most*want); diff > 0.51 {
				t.Fatalf("%d of %v is %d, want %v", i, most, v, most*want)
			}
		}
	}
}

// FuzzRead checks that Read returns for each file, with sizes that are plausible.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"rgba.jxl", "anim.jxl", "turned.jxl", "a98.jxl", "linear.jxl"} {
		f.Add(read(f, name))
	}
	f.Add(header(255).all)
	f.Fuzz(func(t *testing.T, file []byte) {
		i, err := Read(file)
		switch {
		case err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnsupported):
			t.Error(err)
		case err == nil && (min(i.Width, i.Height) < 1 || i.Depth < 1 || i.Depth > 64 || i.Animated != (i.Ticks > 0 && i.Per > 0)):
			t.Errorf("%+v", i)
		}
	})
}
