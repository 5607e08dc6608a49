//go:build !wasip1

package models_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/index/indextest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/search"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/models"
)

// shots is the paths of n photographs that no training saw.
func shots(t testing.TB, n int) (paths []string) {
	t.Helper()
	for _, folder := range []string{testkit.DataPath(t, "photos"), testkit.DataPath(t, "eval", "pictures")} {
		all, err := filepath.Glob(filepath.Join(folder, "*.jpg"))
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, all...)
	}
	if len(paths) < n {
		t.Fatalf("%d photographs, want %d", len(paths), n)
	}
	return paths[:n]
}

// TestSimilarGroups makes applications of photographs of which one in twenty has a second shot, each time another one, and counts how many
// members of the groups of similar pictures show the scene of the group's first.
func TestSimilarGroups(t *testing.T) {
	set, err := predict.Load(models.FS)
	if err != nil {
		t.Fatal(err)
	}
	bound := set.Similarity().SameScene
	if bound == 0 {
		t.Fatal("nobody has measured the similarity of the bundle")
	}
	a := set.NewAnalyser(raster.Limits{})
	paths := shots(t, testkit.Size(t, 20, 60, 460, 460))
	var of [2][]*catalog.DerivedData // photographs, and second shots of them
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, crop := range []raster.Crop{{}, {Top: 0.1, Left: 0.2, Bottom: 0.9, Right: 1}} {
			out, err := a.Analyse(data, crop, predict.WantConcepts)
			if err != nil {
				t.Fatal(err)
			}
			d := &catalog.DerivedData{}
			d.Embedding, _ = out.Embedding.MarshalBinary()
			of[i] = append(of[i], d)
		}
	}
	right, wrong := 0, 0
	for first := range 20 {
		w, scenes := indextest.New(t, 1, memkv.New()), map[uint32]int{}
		w.Commit(t, func(tx *indextest.Tx) {
			for i := range paths {
				for shot := range 2 {
					if shot == 0 || i%20 == first {
						d := w.RandomDerived()
						d.Embedding = of[shot][i].Embedding
						scenes[tx.Insert(&catalog.Input{}, d).Ord] = i
					}
				}
			}
		})
		r, w1 := sameScene(t, w, bound, scenes)
		right, wrong = right+r, wrong+w1
	}
	t.Logf("from %.3f on: %d members of the same scene, %d of another, of %d second shots", bound, right, wrong, len(paths))
	if right < 9*wrong || 4*right < 3*len(paths) {
		t.Errorf("%d members show the scene of the first, %d another: want 9 of 10, and 3 of 4 of the %d second shots", right, wrong, len(paths))
	}
}

// sameScene counts the members of similar groups that show the scene of the group's first, and those that show another.
func sameScene(t *testing.T, w *indextest.World, bound float64, scenes map[uint32]int) (right, wrong int) {
	t.Helper()
	var g search.Groups
	var err error
	for g.Searchable == 0 || g.Examined < g.Searchable {
		if g, err = search.FindGroups(t.Context(), w.Reader(), w.Index, []search.Tier{search.Alike}, search.Page{N: 1000}, bound); err != nil {
			t.Fatal(err)
		}
	}
	for _, group := range g.Groups {
		for _, m := range group.Inputs[1:] {
			if scenes[m.Ord] == scenes[group.Inputs[0].Ord] {
				right++
			} else {
				wrong++
			}
		}
	}
	return right, wrong
}
