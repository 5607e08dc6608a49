package predict

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"io"
	"reflect"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/predict/raster"
)

// jpegAndPlanes returns a JPEG of 15 × 13 pixels, so small that every view decodes it at full scale, and its planes.
func jpegAndPlanes(t *testing.T) ([]byte, raster.Planes) {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, 15, 13))
	for y := range 13 {
		for x := range 15 {
			m.Set(x, y, rgb(byte(17*x), byte(19*y), byte(x*y)))
		}
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, nil); err != nil {
		t.Fatal(err)
	}
	decoded, err := jpeg.Decode(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	c := decoded.(*image.YCbCr)
	p := raster.Planes{Width: 15, Height: 13, SubX: 1, SubY: 1, Depth: 8, Matrix: raster.BT601, Full: true}
	for y := range 13 {
		p.Pix = append(p.Pix, c.Y[y*c.YStride:][:15]...)
	}
	for _, plane := range [][]byte{c.Cb, c.Cr} {
		for y := range 7 {
			p.Pix = append(p.Pix, plane[y*c.CStride:][:8]...)
		}
	}
	return b.Bytes(), p
}

// TestAnalysePlanes compares the analysis of a JPEG's planes to that of the JPEG.
func TestAnalysePlanes(t *testing.T) {
	a := tinySet(t).NewAnalyser(raster.Limits{})
	file, p := jpegAndPlanes(t)
	const all = WantConcepts | WantColors | WantThumb | WantPicture
	for _, c := range []raster.Crop{{}, {Top: 0.2, Left: 0.1, Bottom: 0.9, Right: 0.8}} {
		for _, w := range []Want{WantConcepts, WantColors, WantThumb, WantPicture, WantRendition, WantCells, all | WantCells} {
			want, err := a.Analyse(file, c, w)
			if err != nil {
				t.Fatal(err)
			}
			got, err := a.AnalysePlanes(p, c, w)
			if err != nil || got.Has != w || !reflect.DeepEqual(got, want) {
				t.Errorf("%+v, parts %b: %+v, %v, want %+v", c, w, got, err, want)
			}
		}
	}
	p.Pix = p.Pix[1:]
	for _, w := range []Want{WantConcepts, WantColors, WantThumb, WantPicture} {
		if _, err := a.AnalysePlanes(p, raster.Crop{}, w); !errors.Is(err, raster.ErrCorrupt) {
			t.Errorf("parts %b of a frame without its first byte: %v, want %v", w, err, raster.ErrCorrupt)
		}
	}
}

// TestPictureOfPlanes checks that a frame of a video is turned upright, in full size.
func TestPictureOfPlanes(t *testing.T) {
	a := tinySet(t).NewAnalyser(raster.Limits{})
	p := raster.Planes{Width: 640, Height: 360, SubX: raster.NoChroma, SubY: raster.NoChroma, Depth: 8, Full: true, Rotation: 6}
	p.Pix = make([]byte, p.Width*p.Height)
	for y := range 90 { // stored rows become columns from the right
		for x := range p.Width {
			p.Pix[y*p.Width+x] = 255
		}
	}
	out, err := a.AnalysePlanes(p, raster.Crop{}, WantPicture)
	if err != nil || out.Has != WantPicture {
		t.Fatalf("has %b, %v", out.Has, err)
	}
	img, err := jpeg.Decode(bytes.NewReader(out.Picture))
	if err != nil {
		t.Fatal(err)
	}
	if b := img.Bounds(); b.Dx() != 360 || b.Dy() != 640 {
		t.Fatalf("%v, want 360×640", b)
	}
	for x, want := range map[int]uint32{0: 0, 200: 0, 359: 255, 300: 255} {
		if got, _, _, _ := img.At(x, 600).RGBA(); max(got>>8, want)-min(got>>8, want) > 3 {
			t.Errorf("column %d is %d, want %d", x, got>>8, want)
		}
	}
}

// TestAnalyseFrame compares the analysis of an animation's pictures to that of the pictures alone. Two analysers take turns.
func TestAnalyseFrame(t *testing.T) {
	s := tinySet(t)
	colors := []color.Color{rgb(255, 0, 0), rgb(0, 0, 255)}
	g := &gif.GIF{Delay: []int{100, 100}}
	for i := range colors {
		m := image.NewPaletted(image.Rect(0, 0, 20, 16), colors)
		for j := range m.Pix {
			m.Pix[j] = byte(i)
		}
		g.Image = append(g.Image, m)
	}
	var b bytes.Buffer
	if err := gif.EncodeAll(&b, g); err != nil {
		t.Fatal(err)
	}
	f, err := raster.NewDecoder(raster.Limits{}).Frames(b.Bytes(), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	analysers := []*Analyser{s.NewAnalyser(raster.Limits{}), s.NewAnalyser(raster.Limits{})}
	const w = WantConcepts | WantColors | WantThumb | WantPicture
	for i, a := range analysers {
		want, err := a.Analyse(picture(t, 20, 16, func(int, int) color.Color { return colors[i] }), raster.Crop{}, w)
		if err != nil {
			t.Fatal(err)
		}
		at, err := f.Next()
		if err != nil || at != time.Duration(i)*time.Second {
			t.Fatalf("Next = %v, %v", at, err)
		}
		got, err := a.AnalyseFrame(f, w)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("picture %d: %+v, %v, want %+v", i, got, err, want)
		}
	}
	if _, err := f.Next(); err != io.EOF {
		t.Errorf("Next = %v, want %v", err, io.EOF)
	}
	if _, err := analysers[0].AnalyseFrame(f, WantColors); err != io.EOF {
		t.Errorf("AnalyseFrame after the last picture = %v, want %v", err, io.EOF)
	}
}
