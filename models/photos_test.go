package models_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/models"
)

// TestPhotosGetCorrectLabels checks the results that a caller sees. For at least 51 of the 60 photos a correct label is among the first
// five concepts, and the food model has high values only for food.
func TestPhotosGetCorrectLabels(t *testing.T) {
	if testing.Short() {
		t.Skip("analyses 60 photos")
	}
	table, err := os.ReadFile(testkit.DataPath(t, "photos", "labels.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	set, err := predict.Load(models.FS)
	if err != nil {
		t.Fatal(err)
	}
	a := set.NewAnalyser(raster.Limits{})
	general, photos, hits := set.General(), 0, 0
	food, others := mean{}, mean{}
	for _, line := range strings.Split(strings.TrimSpace(string(table)), "\n")[1:] {
		col := strings.Split(line, "\t")
		labels := strings.Split(col[1], "|")
		data, err := os.ReadFile(testkit.DataPath(t, "photos", filepath.Base(col[0])))
		if err != nil {
			t.Fatal(err)
		}
		got, err := a.Analyse(data, raster.Crop{}, predict.WantConcepts)
		if err != nil {
			t.Fatalf("%s: %v", col[0], err)
		}
		photos++
		if slices.ContainsFunc(general.Top(nil, got.General, 5, 0), func(i int) bool {
			return slices.Contains(labels, general.Concepts[i].Name)
		}) {
			hits++
		}
		if slices.Contains(labels, "food") {
			food.add(slices.Max(got.Food))
		} else {
			others.add(slices.Max(got.Food))
		}
	}
	t.Logf("%d of %d photos; highest food value %.2f on %d photos of food, %.2f on %d others",
		hits, photos, food.value(), food.n, others.value(), others.n)
	if hits < 51 || photos != 60 {
		t.Errorf("a true label among the first five on %d of %d photos, want 51 of 60", hits, photos)
	}
	if food.value() < 0.75 || others.value() > 0.4 {
		t.Errorf("highest food value %.2f on food and %.2f on others, want over 0.75 and under 0.40", food.value(), others.value())
	}
}

type mean struct {
	sum float64
	n   int
}

func (m *mean) add(x float32) { m.sum, m.n = m.sum+float64(x), m.n+1 }

func (m *mean) value() float64 { return m.sum / float64(max(m.n, 1)) }
