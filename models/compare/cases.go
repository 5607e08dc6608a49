package main

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/image/draw"

	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/models"
)

// bench holds the programs and files of the cases. Each starts or opens when the first case needs it.
type bench struct {
	dir, shared string
	stops       []func()
}

func (b *bench) stop() {
	for _, stop := range b.stops {
		stop()
	}
}

// program returns a program that answers commands until the bench stops.
func (b *bench) program(dir, install string, command ...string) *program {
	p := &program{command: command, dir: dir, install: install}
	b.stops = append(b.stops, p.stop)
	return p
}

func (b *bench) cases() []comparison {
	const dir, install = "models/compare", "npm ci in models/compare"
	node := b.program(dir, install, "node", "peer.mjs")
	browser := b.program(dir, install, "node", "browser.mjs")
	browser.browser = true
	var all []comparison
	for _, part := range [][]comparison{
		b.decoders(node), {b.prediction()}, b.networks(node), b.inBrowser(browser), {b.edge(), b.duringTraining(), b.head()}, b.graph(),
	} {
		all = append(all, part...)
	}
	return all
}

// decoders returns the cases that decode a JPEG to the network's size.
func (b *bench) decoders(node *program) []comparison {
	var cases []comparison
	for _, p := range []struct {
		name          string
		width, height int
		bar           bars
	}{{"JPEG of 12 MP to 224 px", 4032, 3024, bars{1.2, 0.42}}, {"JPEG of 1 MP to 224 px", 1152, 864, both(1)}} {
		picture := sync.OnceValues(func() ([]byte, error) { return photo(p.width, p.height) })
		decode := func(repeats int, once func(picture []byte) error) (float64, error) {
			bytes, err := picture()
			if err != nil {
				return 0, err
			}
			return repeat(repeats, func() error { return once(bytes) })
		}
		d := raster.NewDecoder(raster.Limits{})
		ours := func(n int) (float64, error) {
			return decode(n, func(picture []byte) error {
				_, err := d.Decode(picture, raster.View{Centre: 15, Box: true, Width: 224, Height: 224})
				return err
			})
		}
		path := filepath.Join(b.dir, fmt.Sprint(p.width, ".jpg"))
		sharp := node.time(map[string]any{"peer": "sharp", "picture": path})
		cases = append(cases, comparison{work: p.name, rival: "sharp", bar: p.bar, ours: ours, peer: func(n int) (float64, error) {
			bytes, err := picture()
			if err == nil {
				err = os.WriteFile(path, bytes, 0o600)
			}
			if err != nil {
				return 0, err
			}
			return sharp(n)
		}}, comparison{work: p.name, rival: "image/jpeg, x/image", ours: ours, peer: func(n int) (float64, error) {
			return decode(max(n/3, 3), func(picture []byte) error {
				_, err := shrinkStandard(picture)
				return err
			})
		}})
	}
	return cases
}

// prediction compares a whole prediction of a 12 MP photo with the same network behind the standard library's
// decoding and scaling.
func (b *bench) prediction() comparison {
	type open struct {
		*predict.Analyser
		picture, small []byte
	}
	opened := sync.OnceValues(func() (o open, err error) {
		set, err := predict.Load(models.FS)
		if err != nil {
			return o, err
		}
		if o.picture, err = photo(4032, 3024); err != nil {
			return o, err
		}
		small, err := shrinkStandard(o.picture)
		if err != nil {
			return o, err
		}
		// The small picture goes in as a PNG, whose decoding is a hundredth of the whole.
		var b bytes.Buffer
		err = png.Encode(&b, small)
		o.small, o.Analyser = b.Bytes(), set.NewAnalyser(raster.Limits{})
		return o, err
	})
	times := func(repeats int, once func(o open) ([]byte, error)) (float64, error) {
		o, err := opened()
		if err != nil {
			return 0, err
		}
		return repeat(repeats, func() error {
			picture, err := once(o)
			if err != nil {
				return err
			}
			_, err = o.Analyse(picture, raster.Crop{}, predict.WantConcepts)
			return err
		})
	}
	return comparison{
		work: "prediction of a 12 MP photo", rival: "image/jpeg, x/image and the same network", bar: both(0.125),
		ours: func(n int) (float64, error) { return times(n, func(o open) ([]byte, error) { return o.picture, nil }) },
		peer: func(n int) (float64, error) {
			return times(max(n/3, 3), func(o open) ([]byte, error) {
				_, err := shrinkStandard(o.picture)
				return o.small, err
			})
		},
	}
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
