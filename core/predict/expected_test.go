package predict

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/cpu"
	"github.com/sightline-dev/sightline/core/predict/nn/kernel"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/testkit"
)

// table reads a tab-separated file with a header.
func readTable(t testing.TB, file string) []map[string]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comma, r.LazyQuotes = '\t', true
	all, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]string
	for _, row := range all[1:] {
		m := map[string]string{}
		for i, v := range row {
			m[all[0][i]] = v
		}
		out = append(out, m)
	}
	return out
}

// photos is the folder of labelled photos. Without fast kernels sixty photos through a network
// take minutes; there the golden outputs of package models hold the same bytes.
func photos(t testing.TB) string {
	t.Helper()
	if kernel.Levels.Current() == cpu.Generic {
		t.Skip("the kernels are plain Go: the golden outputs hold what they give")
	}
	return testkit.DataPath(t, "photos")
}

// firstFive counts the photos with a true label among the first five concepts.
func firstFive(t testing.TB, s *Set) (hits, all int) {
	t.Helper()
	dir := photos(t)
	a := s.NewAnalyser(raster.Limits{})
	for _, row := range readTable(t, filepath.Join(dir, "labels.tsv")) {
		out := analyse(t, a, filepath.Join(dir, row["file"]))
		all++
		labels := strings.FieldsFunc(row["labels"], func(r rune) bool { return r == '|' || r == ',' })
	found:
		for _, i := range s.General().Top(nil, out.General, 5, 0) {
			for _, label := range labels {
				if strings.TrimSpace(label) == s.General().Concepts[i].Name {
					hits++
					break found
				}
			}
		}
	}
	return hits, all
}

func analyse(t testing.TB, a *Analyser, file string) Analysis {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out, err := a.Analyse(data, raster.Crop{}, WantConcepts)
	if err != nil {
		t.Fatalf("%s: %v", filepath.Base(file), err)
	}
	return out
}

// loadModels returns the set of the bundles in this repository.
func loadModels(t testing.TB) *Set {
	t.Helper()
	s, err := Load(os.DirFS(filepath.Join(testkit.Root(t), "models")))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestShippedModels(t *testing.T) {
	s := loadModels(t)
	want := []struct {
		id, version, name string
		typ               Type
		concepts          int
	}{
		{"aaa03c23b3724a16a56b629203edc62c", "aa9ca48295b37401f8af92ad1af0d91d", "general-v1.3", TypeConcept, 660},
		{"bd367be194cf45149e75f01d59f77ba7", "dfebc169854e429086aceb8368662641", "food-items-v1.0", TypeConcept, 59},
		{"eeed0b6733a644cea07cf4c60f87ebb7", "", "color", TypeColor, 140},
		{"bbb5f41425b8468d9b7a554ff10f8581", "", "general-v1.3", TypeEmbed, 0},
	}
	for i, w := range want {
		m := s.Models()[i]
		if m.ID != w.id || m.Name != w.name || m.Type != w.typ || len(m.Concepts) != w.concepts || w.version != "" && m.VersionID != w.version {
			t.Errorf("model %d is %s %s %s of version %s with %d concepts, want %+v", i, m.ID, m.Name, m.Type, m.VersionID, len(m.Concepts), w)
		}
	}
	if bg, err := s.Background(); err != nil || len(s.Models()) != len(want) || len(bg) != 2048 {
		t.Errorf("%d models, %d background embeddings, %v", len(s.Models()), len(bg), err)
	}
	for _, c := range s.General().Concepts {
		if name, ok := s.Names().Name(c.ID, "en"); name != c.Name || !ok {
			t.Errorf("concept %s has the name %q, %v, want %q", c.ID, name, ok, c.Name)
		}
	}
}

func TestShippedFirstFive(t *testing.T) {
	hits, all := firstFive(t, loadModels(t))
	t.Logf("a true label among the first five on %d of %d photos", hits, all)
	if hits < 51 || all != 60 {
		t.Errorf("%d of %d photos, want 51 of 60", hits, all)
	}
}

// Food concepts stand out on food and stay low elsewhere.
func TestShippedFoodModelSeparatesFood(t *testing.T) {
	dir := photos(t)
	s := loadModels(t)
	a := s.NewAnalyser(raster.Limits{})
	var food, other []float64
	for _, row := range readTable(t, filepath.Join(dir, "labels.tsv")) {
		out := analyse(t, a, filepath.Join(dir, row["file"]))
		highest := float64(slices.Max(out.Food))
		isFood := false
		for _, m := range []string{"pizza", "strawberry", "pineapple", "lemon", "fruit", "citrus fruit", "mushroom", "zucchini", "hot dog"} {
			isFood = isFood || strings.Contains(row["file"], "_"+strings.ReplaceAll(m, " ", "_")+".")
		}
		if isFood {
			food = append(food, highest)
		} else {
			other = append(other, highest)
		}
	}
	mean := func(v []float64) (m float64) {
		for _, x := range v {
			m += x / float64(len(v))
		}
		return m
	}
	t.Logf("highest food value: mean %.3f on %d photos of food, %.3f on %d others", mean(food), len(food), mean(other), len(other))
	if mean(food) < 0.8 || mean(other) > 0.35 || len(food) < 8 {
		t.Errorf("highest food value: mean %.3f on food, %.3f elsewhere, want at least 0.8 and at most 0.35", mean(food), mean(other))
	}
}
