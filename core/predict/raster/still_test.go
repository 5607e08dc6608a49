package raster

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/sightline-dev/sightline/core/predict/raster/exif"
	"github.com/sightline-dev/sightline/core/predict/raster/exif/exiftest"
)

func readStill(t *testing.T, name string) (*Still, []Run) {
	t.Helper()
	b, err := os.ReadFile("heif/testdata/" + name)
	check(t, err)
	s, err := ReadStill(b, Limits{})
	check(t, err)
	runs, err := s.Runs()
	check(t, err)
	return s, runs
}

// render returns the pixel of the upright picture at (x, y) of width × height.
func pixelOf(t *testing.T, p Planes, width, height, x, y int) [3]byte {
	t.Helper()
	img, err := NewDecoder(Limits{}).Planes(p, View{Width: width, Height: height})
	check(t, err)
	return [3]byte(img.Pix[3*(y*width+x):])
}

// TestStillOfTiles fills each tile of a grid with another gray, and looks for each gray.
func TestStillOfTiles(t *testing.T) {
	s, runs := readStill(t, "grid.avif")
	if len(runs) != 1 || runs[0].Format != "obu" || runs[0].Bytes != 4*3*64*64 {
		t.Fatalf("%d runs, %+v", len(runs), runs[0].Bytes)
	}
	var out []byte
	for tile := range 4 {
		out = append(out, bytes.Repeat([]byte{byte(50 + 40*tile)}, 64*64)...)
		out = append(out, bytes.Repeat([]byte{128}, 2*64*64)...)
	}
	p, err := s.Planes([][]byte{out})
	check(t, err)
	for tile, at := range [][2]int{{0, 0}, {64, 63}, {63, 64}, {127, 127}} {
		v := byte(50 + 40*tile)
		if got := pixelOf(t, p, 128, 128, at[0], at[1]); got != [3]byte{v, v, v} {
			t.Errorf("pixel %v is %v, want %d", at, got, v)
		}
	}
	if _, err := s.Planes([][]byte{out[1:]}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("an output without its first byte: %v", err)
	}
}

// TestStillOverWhite checks a picture with an alpha channel, in colours that are multiplied by alpha and in colours that are not.
func TestStillOverWhite(t *testing.T) {
	for name, want := range map[string][3]byte{
		"alpha.heic": {177, 177, 177}, // 100 of 128/255, and white of 127/255
		"alpha.avif": {227, 227, 227}, // 100, and white of 127/255
	} {
		s, runs := readStill(t, name)
		if len(runs) != 2 {
			t.Fatalf("%s: %d runs", name, len(runs))
		}
		var outs [][]byte
		for i, v := range []byte{100, 128} {
			out := bytes.Repeat([]byte{128}, runs[i].Bytes)
			copy(out, bytes.Repeat([]byte{v}, 160*128))
			outs = append(outs, out)
		}
		p, err := s.Planes(outs)
		check(t, err)
		if got := pixelOf(t, p, 160, 128, 80, 64); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// TestStillClipped marks the corners of the visible part of a picture that is stored turned.
func TestStillClipped(t *testing.T) {
	s, runs := readStill(t, "turned.avif")
	out := bytes.Repeat([]byte{128}, runs[0].Bytes)
	mark := func(x, y int, v byte) { out[160*y+x] = v }
	mark(40, 26, 10) // stored corners of the visible part, 100 × 60
	mark(139, 26, 60)
	mark(40, 85, 190)
	mark(139, 85, 240)
	p, err := s.Planes([][]byte{out})
	check(t, err)
	for at, v := range map[[2]int]byte{{0, 0}: 10, {0, 99}: 60, {59, 0}: 190, {59, 99}: 240} {
		if got := pixelOf(t, p, 60, 100, at[0], at[1]); got != [3]byte{v, v, v} {
			t.Errorf("pixel %v is %v, want %d", at, got, v)
		}
	}
	part, err := NewDecoder(Limits{}).PartOf(p, View{Width: 60, Height: 100, Crop: Crop{Bottom: 0.5, Right: 1}})
	if want := (Crop{Bottom: 0.5, Right: 1}); err != nil || part != want {
		t.Errorf("PartOf = %+v, %v", part, err)
	}
}

// TestStillIdentity checks the order of planes that are not converted.
func TestStillIdentity(t *testing.T) {
	s, runs := readStill(t, "identity.avif")
	var out []byte
	for _, v := range []byte{20, 30, 10} {
		out = append(out, bytes.Repeat([]byte{v}, runs[0].Bytes/3)...)
	}
	p, err := s.Planes([][]byte{out})
	check(t, err)
	if got := pixelOf(t, p, 160, 128, 1, 1); got != [3]byte{10, 20, 30} {
		t.Errorf("%v", got)
	}
}

// TestStillNeedsNoModule checks that pictures which this package decodes need no module, and that Decode names what the others need.
func TestStillNeedsNoModule(t *testing.T) {
	for _, b := range []string{"", "\xff\xd8\xff\xe0", "GIF89a", "something"} {
		if s, err := ReadStill([]byte(b), Limits{}); s != nil || err != nil {
			t.Errorf("%q: %v, %v", b, s, err)
		}
	}
	b, err := os.ReadFile("heif/testdata/plain.heic")
	check(t, err)
	checkModuleIsMissing(t, b)
	if _, err := ReadStill(b, Limits{StillPixels: 100}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("ReadStill of a large picture = %v", err)
	}
}

// TestStillLimits reads pictures with nearly as many pixels as their kinds may have, and others with a few more.
func TestStillLimits(t *testing.T) {
	for pattern, want := range map[string]error{"testdata/large/*.*": nil, "testdata/larger/*.*": ErrTooLarge} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) < 8 {
			t.Fatal(names, err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if s, err := ReadStill(b, Limits{}); !errors.Is(err, want) || (s == nil) != (want != nil) {
				t.Errorf("%s: %v, want %v", name, err, want)
			}
		}
	}
}

// TestStillDate: the planes of a picture that a module decodes have the metadata of its file.
func TestStillDate(t *testing.T) {
	for _, name := range []string{"heif/testdata/plain.heic", "heif/testdata/alpha.avif", "testdata/jxl/lossy.jxl"} {
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file = append(file, exiftest.Box("free", exiftest.XMP("exif:DateTimeOriginal", "2019-07-21T23:06:38"))...)
		s, err := ReadStill(file, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.Decode(func(runs []Run) (outputs [][]byte, err error) {
			for _, run := range runs {
				outputs = append(outputs, make([]byte, run.Bytes))
			}
			return outputs, nil
		})
		if want := (exif.Time{Wall: 1563750398, Known: true}); err != nil || p.Exif.Taken != want {
			t.Errorf("%s: %+v, %v", name, p.Exif, err)
		}
	}
}
