package models_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/cpu"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/nn/kernel"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/models"
)

const cellsFile = "testdata/cells.tsv"

// TestGoldenCells compares the network's outputs for the cells of two samples, and the places of their first three concepts, with the
// hashes in testdata/cells.tsv. All targets share these hashes.
func TestGoldenCells(t *testing.T) {
	set, err := predict.Load(models.FS)
	if err != nil {
		t.Fatal(err)
	}
	pictures, err := filepath.Glob(filepath.Join(testkit.Root(t), "web", "samples", "*.jpg"))
	if err != nil || len(pictures) < 2 {
		t.Fatalf("%d samples, %v", len(pictures), err)
	}
	want, err := os.ReadFile(cellsFile)
	if err != nil && !*update {
		t.Fatal(err)
	}
	lines := strings.Split(string(want), "\n")
	for level := range kernel.Levels.Each() {
		t.Run(level.String(), func(t *testing.T) {
			looked := pictures[:2]
			if level == cpu.Generic { // a second for each picture, and ten in a guest
				looked = looked[:1]
			}
			a := set.NewAnalyser(raster.Limits{})
			got := []string{"picture\tcells\tactivations"}
			for _, p := range looked {
				data, err := os.ReadFile(p)
				if err != nil {
					t.Fatal(err)
				}
				c, activations := cellsOf(t, set, a, data, 3)
				got = append(got, filepath.Base(p)+"\t"+short(fmt.Appendf(nil, "%v %b", c.Box, c.Rows))+"\t"+short(fmt.Appendf(nil, "%b", activations)))
			}
			switch {
			case *update && len(looked) > 1:
				if err := os.WriteFile(cellsFile, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			case !*update && !slices.Equal(got, lines[:min(len(got), len(lines))]):
				t.Errorf("cells are %q, want %q", got, lines)
			}
		})
	}
}

// cellsOf returns the cells of a picture, and for each of its first concepts how strongly each cell shows it.
func cellsOf(t *testing.T, set *predict.Set, a *predict.Analyser, picture []byte, concepts int) (predict.Cells, [][]float32) {
	t.Helper()
	out, err := a.Analyse(picture, raster.Crop{}, predict.WantConcepts|predict.WantCells)
	if err != nil {
		t.Fatal(err)
	}
	m := set.General()
	activations, err := set.Activations(m, &out.Cells, m.Top(nil, out.General, concepts, 0))
	if err != nil {
		t.Fatal(err)
	}
	return out.Cells, activations
}

// TestActivationsPointAtConcept puts photos into each quarter of a grey picture, and locates the photo's first concept. For all sixty
// photos of the test data, the brightest quarter is the right one in 231 of 240 pictures.
func TestActivationsPointAtConcept(t *testing.T) {
	if kernel.Levels.Current() == cpu.Generic {
		t.Skip("the kernels are plain Go: the golden cells hold what they give")
	}
	set, err := predict.Load(models.FS)
	if err != nil {
		t.Fatal(err)
	}
	a := set.NewAnalyser(raster.Limits{})
	names := []string{"055_dog.jpg"}
	dir := testkit.DataPath(t, "photos")
	found, err := filepath.Glob(filepath.Join(dir, "*.jpg"))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(found); i += 12 {
		names = append(names, filepath.Base(found[i]))
	}
	right, all := 0, 0
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		photo, err := jpeg.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		analysis, err := a.Analyse(data, raster.Crop{}, predict.WantConcepts)
		if err != nil {
			t.Fatal(err)
		}
		first := set.General().Top(nil, analysis.General, 1, 0)
		for quarter := range 4 {
			out, err := a.Analyse(inQuarter(t, photo, quarter), raster.Crop{}, predict.WantCells)
			if err != nil {
				t.Fatal(err)
			}
			got, err := set.Activations(set.General(), &out.Cells, first)
			if err != nil {
				t.Fatal(err)
			}
			if all++; brightest(got[0], out.Cells.Width) == quarter {
				right++
			}
		}
	}
	t.Logf("%d of %d point into the right quarter", right, all)
	if 10*right < 9*all {
		t.Errorf("%d of %d point into the right quarter, want nine tenths", right, all)
	}
}

// inQuarter returns a PNG of a grey picture that has the centred square of a photo in one quarter.
func inQuarter(t *testing.T, photo image.Image, quarter int) []byte {
	t.Helper()
	b := photo.Bounds()
	side := min(b.Dx(), b.Dy())
	m := image.NewRGBA(image.Rect(0, 0, 2*side, 2*side))
	draw.Draw(m, m.Rect, image.NewUniform(color.Gray{128}), image.Point{}, draw.Src)
	at := image.Pt(quarter%2*side, quarter/2*side)
	draw.Draw(m, image.Rectangle{Min: at, Max: at.Add(image.Pt(side, side))}, photo, b.Min.Add(image.Pt((b.Dx()-side)/2, (b.Dy()-side)/2)), draw.Src)
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.NoCompression}).Encode(&out, m); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// brightest returns the quarter of a map with the largest sum. It leaves out a middle row or column.
func brightest(values []float32, width int) int {
	var sums [4]float32
	height := len(values) / width
	for i, v := range values {
		x, y := i%width, i/width
		if 2*x+1 == width || 2*y+1 == height {
			continue
		}
		sums[2*(2*y/height)+2*x/width] += v
	}
	best := 0
	for q, s := range sums {
		if s > sums[best] {
			best = q
		}
	}
	return best
}
