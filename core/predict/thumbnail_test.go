package predict

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"testing"

	"github.com/sightline-dev/sightline/core/predict/raster"
)

// gradient returns a PNG that is red to the right and blue to the bottom.
func gradient(t *testing.T, w, h int) []byte {
	t.Helper()
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			img.SetNRGBA(x, y, color.NRGBA{uint8(x * 255 / w), 64, uint8(y * 255 / h), 255})
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestThumbnail checks the sizes of thumbnails and renditions.
func TestThumbnail(t *testing.T) {
	set, err := Load(bundles(t, tinyParts(t), publicManifests(tinySize, 6, 2)))
	if err != nil {
		t.Fatal(err)
	}
	a := set.NewAnalyser(raster.Limits{})
	tests := []struct {
		name          string
		w, h          int
		crop          raster.Crop
		width, height int
		sum           string // of the bytes, which are the same on every host
	}{
		{"landscape", 800, 500, raster.Crop{}, 320, 200, "8e9ec6554200829a4fdc591c981806a7983ce8e78990bd4f715067dda109839e"},
		{"portrait", 100, 640, raster.Crop{}, 50, 320, ""},
		{"small", 33, 20, raster.Crop{}, 33, 20, ""},
		{"crop", 800, 500, raster.Crop{Top: 0, Left: 0.5, Bottom: 1, Right: 1}, 256, 320, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, err := a.Analyse(gradient(t, tt.w, tt.h), tt.crop, WantThumb)
			if err != nil || out.Has != WantThumb {
				t.Fatalf("has %b, %v", out.Has, err)
			}
			img, err := jpeg.Decode(bytes.NewReader(out.Thumb))
			if err != nil {
				t.Fatal(err)
			}
			if b := img.Bounds(); b.Dx() != tt.width || b.Dy() != tt.height {
				t.Errorf("%v, want %d×%d", b, tt.width, tt.height)
			}
			r, _, _, _ := img.At(tt.width-1, 0).RGBA()
			_, _, b, _ := img.At(0, tt.height-1).RGBA()
			if r>>8 < 220 || b>>8 < 220 {
				t.Errorf("right edge has red %d, bottom blue %d: the picture is not upright", r>>8, b>>8)
			}
			if sum := sha256.Sum256(out.Thumb); tt.sum != "" && hex.EncodeToString(sum[:]) != tt.sum {
				t.Errorf("bytes have hash %x, want %s", sum, tt.sum)
			}
		})
	}
	for w, width := range map[Want]int{WantPicture: 2100, WantRendition: RenditionSide, WantPicture | WantRendition: 2100} {
		out, err := a.Analyse(gradient(t, 2100, 10), raster.Crop{}, w)
		if err != nil || out.Has != w {
			t.Fatalf("parts %b: has %b, %v", w, out.Has, err)
		}
		if c, err := jpeg.DecodeConfig(bytes.NewReader(out.Picture)); err != nil || c.Width != width {
			t.Errorf("parts %b: %d pixels wide, %v, want %d", w, c.Width, err, width)
		}
	}
	if _, err := a.Analyse([]byte("no picture"), raster.Crop{}, WantThumb); !errors.Is(err, raster.ErrUnsupported) {
		t.Errorf("no picture: %v", err)
	}
}
