package main

import (
	"bytes"
	"image"
	"image/jpeg"
	"os"
	"path/filepath"

	"golang.org/x/image/draw"

	"github.com/sightline-dev/sightline/core/predict/raster"
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
		ours := func(n int) ([]float64, error) { return shrinkOurs(picture, n) }
		cases = append(cases,
			comparison{p.name + ", sharp", p.limit, ours, func(n int) ([]float64, error) {
				return peer.ask(map[string]any{"peer": "sharp", "picture": path, "n": n})
			}},
			comparison{p.name + ", image/jpeg + x/image", 0, ours, func(n int) ([]float64, error) {
				return repeat(max(n/3, 3), func() error { return shrinkStandard(picture) })
			}})
	}
	return append(cases, networkCases(peer, shared)...), nil
}

func shrinkOurs(picture []byte, n int) ([]float64, error) {
	d := raster.NewDecoder(raster.Limits{})
	return repeat(n, func() error {
		_, err := d.Decode(picture, raster.View{Centre: 15, Width: 224, Height: 224})
		return err
	})
}

func shrinkStandard(picture []byte) error {
	src, err := jpeg.Decode(bytes.NewReader(picture))
	if err != nil {
		return err
	}
	dst := image.NewRGBA(image.Rect(0, 0, 224, 224))
	draw.BiLinear.Scale(dst, dst.Bounds(), src, src.Bounds(), draw.Src, nil)
	return nil
}
