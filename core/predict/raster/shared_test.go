package raster

import (
	"bytes"
	"errors"
	"image"
	"image/jpeg"
	"os"
	"path/filepath"
	"testing"

	"github.com/sightline-dev/sightline/core/predict/raster/exif"

	"github.com/sightline-dev/sightline/core/testkit"
)

// TestPhotos decodes the real photographs next to the project and compares each with the standard library's full decode, averaged slowly.
func TestPhotos(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(testkit.DataPath(t, "photos"), "*.jpg"))
	check(t, err)
	if len(names) == 0 {
		t.Skip("no photos")
	}
	d := NewDecoder(Limits{})
	for i, name := range names {
		b, err := os.ReadFile(name)
		check(t, err)
		got, err := d.Decode(b, View{Width: 224, Height: 224, Centre: 15, Box: true})
		check(t, err)
		if i%30 != 0 {
			continue // the slow reference takes its time
		}
		m, err := jpeg.Decode(bytes.NewReader(b))
		check(t, err)
		c, ok := m.(*image.YCbCr)
		if !ok || min(c.Rect.Dx(), c.Rect.Dy())*15 < 224*16 || min(c.Rect.Dx(), c.Rect.Dy()) >= 2*224 {
			continue // enlarged, or shrunk by the DCT
		}
		want := replicateChroma(c).upright(exif.JPEGOrientation(b)).view(View{Width: 224, Height: 224, Centre: 15, Box: true}).fromYCbCr()
		if diff := difference(got, want); diff != "" {
			t.Errorf("%s: %s", filepath.Base(name), diff)
		}
	}
}

// TestRealFormats reads real files of several formats and sizes.
func TestRealFormats(t *testing.T) {
	dir := testkit.DataPath(t, "photos", "formats")
	tests := []struct {
		name string
		want Info
		err  error
	}{
		{"8bit-sRGB.avif", Info{"avif", 1617, 1080, 1, 1}, nil},
		{"IMG_2682.heic", Info{"heic", 4032, 3024, 1, 1}, nil},
		{"denali.webp", Info{"webp", 600, 315, 1, 1}, nil},
		{"density_plot.png", Info{"png", 800, 800, 1, 1}, nil},
		{"book-beside-flowers.jpg", Info{"jpeg", 3024, 4032, 1, 1}, nil},
		{"el_torcal_rocks.jpg", Info{"jpeg", 512, 341, 1, 1}, nil},
		{"portrait-orientation-6.jpg", Info{"jpeg", 840, 700, 6, 1}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join(dir, tt.name))
			if err != nil {
				t.Skip(err)
			}
			info, err := Inspect(b)
			if !errors.Is(err, tt.err) {
				t.Fatalf("Inspect = %v, want %v", err, tt.err)
			}
			if info != tt.want {
				t.Errorf("Inspect = %+v, want %+v", info, tt.want)
			}
		})
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.*g"))
	check(t, err)
	d := NewDecoder(Limits{})
	for _, name := range names {
		b, err := os.ReadFile(name)
		check(t, err)
		if _, err := d.Decode(b, View{Width: 224, Height: 224, Centre: 15, Box: true}); err != nil {
			t.Errorf("%s: %v", filepath.Base(name), err)
		}
	}
}
