package models_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/nn/kernel"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/models"
)

var update = flag.Bool("update", false, "rewrite testdata/golden.tsv from what this machine computes")

const goldenFile = "testdata/golden.tsv"

// TestGoldenOutputs compares the analysis of every sample, of every photo of the test data and of small HEIC, AVIF and JPEG XL files with the
// hashes in testdata/golden.tsv: embedding, values of general and food, colours. All targets share this file, so amd64 at each kernel level,
// arm64 and wasip1 must all give the same bytes.
func TestGoldenOutputs(t *testing.T) {
	set, err := predict.Load(models.FS)
	if err != nil {
		t.Fatal(err)
	}
	pictures := goldenPictures(t)
	want := readGolden(t)
	for level := range kernel.Levels.Each() {
		t.Run(level.String(), func(t *testing.T) {
			a := set.NewAnalyser(raster.Limits{})
			var rows bytes.Buffer
			for _, p := range pictures {
				name := filepath.Base(p)
				got, err := goldenRow(a, p)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				fmt.Fprintf(&rows, "%s\t%s\n", name, got)
				if !*update && got != want[name] {
					t.Errorf("%s: embedding, concepts, colours = %s, want %s", name, got, want[name])
				}
			}
			if *update {
				writeGolden(t, rows.String())
			}
		})
	}
}

// goldenPictures lists the samples, the photos of the test data and the files of package raster whose decoding module's output is stored. Only
// make nightly uses all of them; other runs use every third.
func goldenPictures(t *testing.T) []string {
	t.Helper()
	root := testkit.Root(t)
	var pictures []string
	folder := filepath.Join(root, "core", "predict", "raster")
	for _, pattern := range []string{
		filepath.Join(root, "web", "samples", "*.jpg"),
		filepath.Join(filepath.Dir(root), "shared", "photos", "*.jpg"),
		filepath.Join(folder, "heif", "testdata", "*.*"),
		filepath.Join(folder, "testdata", "jxl", "*.jxl"),
	} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			t.Logf("no pictures %s", pattern)
		}
		pictures = append(pictures, found...)
	}
	step := testkit.Size(t, 3, 3, 1, 1)
	if *update {
		step = 1
	}
	var subset []string
	for i := 0; i < len(pictures); i += step {
		subset = append(subset, pictures[i])
	}
	return subset
}

// goldenRow returns three hashes: of the embedding, the values and the colours.
func goldenRow(a *predict.Analyser, picture string) (string, error) {
	b, err := os.ReadFile(picture)
	if err != nil {
		return "", err
	}
	const want = predict.WantConcepts | predict.WantColors
	analyse := func() (predict.Analysis, error) { return a.Analyse(b, raster.Crop{}, want) }
	if raster.NeedsModule(b) {
		planes, err := storedPlanes(b, filepath.Base(picture))
		if err != nil {
			return "", err
		}
		analyse = func() (predict.Analysis, error) { return a.AnalysePlanes(planes, raster.Crop{}, want) }
	}
	out, err := analyse()
	if err != nil {
		return "", err
	}
	embedding, err := out.Embedding.MarshalBinary()
	if err != nil {
		return "", err
	}
	values := fmt.Appendf(nil, "%b %b", out.General, out.Food)
	return short(embedding) + "\t" + short(values) + "\t" + short(fmt.Appendf(nil, "%v", out.Colors)), nil
}

// storedPlanes assembles the planes of a picture from the outputs of its decoding module, which package video stores and compares.
func storedPlanes(picture []byte, name string) (raster.Planes, error) {
	s, err := raster.ReadStill(picture, raster.Limits{})
	if err != nil {
		return raster.Planes{}, err
	}
	stored, err := os.ReadFile(filepath.Join("..", "core", "predict", "raster", "testdata", "outputs", name))
	if err != nil {
		return raster.Planes{}, err
	}
	return s.Decode(func(runs []raster.Run) (outputs [][]byte, err error) {
		for _, r := range runs {
			outputs = append(outputs, slices.Clone(stored[:min(r.Bytes, len(stored))])) // assembling may change it
			stored = stored[len(outputs[len(outputs)-1]):]
		}
		return outputs, nil
	})
}

func short(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:8])
}

func readGolden(t *testing.T) map[string]string {
	t.Helper()
	b, err := os.ReadFile(goldenFile)
	if err != nil {
		if *update {
			return nil
		}
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(b)) {
		name, hashes, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		rows[name] = hashes
	}
	return rows
}

func writeGolden(t *testing.T, rows string) {
	t.Helper()
	const header = "picture\tembedding\tconcepts\tcolours\n"
	if err := os.MkdirAll(filepath.Dir(goldenFile), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(goldenFile, []byte(header+rows), 0o644); err != nil {
		t.Fatal(err)
	}
}
