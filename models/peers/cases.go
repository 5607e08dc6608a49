package main

import (
	"bytes"
	"image"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"

	"golang.org/x/image/draw"

	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/models"
)

// comparisons lists what performance.md sets a limit for.
// It writes the pictures into dir.
func comparisons(peer *node, dir, shared string) ([]comparison, error) {
	var cases []comparison
	for _, p := range []struct {
		name          string
		width, height int
		limit         float64
	}{{"JPEG 12 MP to 224", 4032, 3024, 1.2}, {"JPEG 1 MP to 224", 1152, 864, 1.0}} {
		picture, err := photo(p.width, p.height)
		if err != nil {
			return nil, err
		}
		path := filepath.Join(dir, p.name+".jpg")
		if err := os.WriteFile(path, picture, 0o600); err != nil {
			return nil, err
		}
		ours := func(n int) (float64, error) { return shrinkOurs(picture, n) }
		cases = append(cases,
			comparison{p.name + ", sharp", p.limit, ours, func(n int) (float64, error) {
				return peer.ask(map[string]any{"peer": "sharp", "picture": path, "n": n})
			}},
			comparison{p.name + ", image/jpeg + x/image", 0, ours, func(n int) (float64, error) {
				return repeat(max(n/3, 3), func() error {
					_, err := shrinkStandard(picture)
					return err
				})
			}})
	}
	predict, err := predictCase()
	if err != nil {
		return nil, err
	}
	return append(append(cases, predict), networkCases(peer, shared)...), nil
}

// predictCase is a whole predict of a 12 MP photo, ours against the standard library's way to the same
// network.
func predictCase() (comparison, error) {
	set, err := predict.Load(models.FS)
	if err != nil {
		return comparison{}, err
	}
	picture, err := photo(4032, 3024)
	if err != nil {
		return comparison{}, err
	}
	small, err := shrinkStandard(picture)
	if err != nil {
		return comparison{}, err
	}
	var b bytes.Buffer
	if err := png.Encode(&b, small); err != nil {
		return comparison{}, err
	}
	a := set.NewAnalyser(raster.Limits{})
	analyse := func(picture []byte) error {
		_, err := a.Analyse(picture, raster.Crop{}, predict.WantConcepts)
		return err
	}
	return comparison{"predict of 12 MP, image/jpeg + x/image", 0.125, func(n int) (float64, error) {
		return repeat(n, func() error { return analyse(picture) })
	}, func(n int) (float64, error) {
		// The small picture goes in as a PNG, whose decoding is a hundredth of the whole.
		return repeat(max(n/3, 3), func() error {
			if _, err := shrinkStandard(picture); err != nil {
				return err
			}
			return analyse(b.Bytes())
		})
	}}, nil
}

func shrinkOurs(picture []byte, n int) (float64, error) {
	d := raster.NewDecoder(raster.Limits{})
	return repeat(n, func() error {
		_, err := d.Decode(picture, raster.View{Centre: 15, Box: true, Width: 224, Height: 224})
		return err
	})
}

func shrinkStandard(picture []byte) (image.Image, error) {
	src, err := jpeg.Decode(bytes.NewReader(picture))
	if err != nil {
		return nil, err
	}
	dst := image.NewRGBA(image.Rect(0, 0, 224, 224))
	draw.BiLinear.Scale(dst, dst.Bounds(), src, src.Bounds(), draw.Src, nil)
	return dst, nil
}
