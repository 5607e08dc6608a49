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
	"github.com/sightline-dev/sightline/core/proof"
	"github.com/sightline-dev/sightline/core/search"
	"github.com/sightline-dev/sightline/models"
)

// shots is the paths of n photographs that no training saw.
func shots(t testing.TB, n int) (paths []string) {
	t.Helper()
	for _, folder := range []string{proof.Shared(t, "photos"), proof.Shared(t, "eval", "pictures")} {
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

// TestSimilarGroups makes an application of photographs of which one in twenty has a second shot, and counts how many
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
	a, w := set.NewAnalyser(raster.Limits{}), indextest.New(t, 1, memkv.New())
	scenes, seconds := map[uint32]int{}, 0
	w.Commit(t, func(tx *indextest.Tx) {
		for i, path := range shots(t, proof.Size(t, 20, 60, 460, 460)) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			crops := []raster.Crop{{}}
			if i%20 == 0 {
				crops, seconds = append(crops, raster.Crop{Top: 0.1, Left: 0.2, Bottom: 0.9, Right: 1}), seconds+1
			}
			for _, crop := range crops {
				out, err := a.Analyse(data, crop, predict.WantConcepts)
				if err != nil {
					t.Fatal(err)
				}
				d := w.Derived()
				d.Embedding, _ = out.Embedding.MarshalBinary()
				scenes[tx.Insert(&catalog.Input{Crop: crop}, d).Ord] = i
			}
		}
	})
	var g search.Groups
	for g.Of == 0 || g.Examined < g.Of {
		if g, err = search.FindGroups(t.Context(), w.Reader(), w.Index, []search.Tier{search.Alike}, search.Page{N: 1000}, bound); err != nil {
			t.Fatal(err)
		}
	}
	right, wrong := 0, 0
	for _, group := range g.Groups {
		for _, m := range group.Inputs[1:] {
			if scenes[m.Ord] == scenes[group.Inputs[0].Ord] {
				right++
			} else {
				wrong++
			}
		}
	}
	t.Logf("from %.3f on: %d groups of %d inputs, %d members of the same scene, %d of another, of %d second shots", bound, g.Total, g.Of, right, wrong, seconds)
	if right < 9*wrong || 4*right < 3*seconds {
		t.Errorf("%d members show the scene of the first, %d another: want 9 of 10, and 3 of 4 of the %d second shots", right, wrong, seconds)
	}
}
