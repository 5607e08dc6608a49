package search_test

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/jpeg"
	"math/rand/v2"
	"slices"
	"testing"

	diff "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/index/indextest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/search"
	"github.com/sightline-dev/sightline/core/testkit"
)

func embeddingOf(d *catalog.DerivedData) predict.Embedding {
	var e predict.Embedding
	if err := e.UnmarshalBinary(d.Embedding); err != nil {
		panic(err)
	}
	return e
}

func alikeness(a, b *predict.Embedding) float64 { return (1 + a.Cosine(b)) / 2 }

func sameAs(a, b *catalog.DerivedData) float64 {
	x, y := embeddingOf(a), embeddingOf(b)
	return alikeness(&x, &y)
}

// near returns a derived record whose similarity to d is about 0.97. Two records near one d have a similarity of about 0.94.
func near(w *indextest.World, d *catalog.DerivedData) *catalog.DerivedData {
	e := embeddingOf(d)
	v := e.Unit(nil)
	for i := range v {
		v[i] += float32(w.Rand.NormFloat64()) / 45
	}
	other, err := predict.NewEmbedding(v)
	if err != nil {
		panic(err)
	}
	out := &catalog.DerivedData{Values: d.Values}
	out.Embedding, _ = other.MarshalBinary()
	return out
}

// thumbnail returns a picture of random patches that depend only on seed.
func thumbnail(t testing.TB, seed uint64, width, quality int) []byte {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, width, width/2))
	r := rand.New(rand.NewPCG(seed, 1))
	var patches [8][4]color.RGBA
	for i := range patches {
		for j := range patches[i] {
			patches[i][j] = color.RGBA{byte(r.UintN(256)), byte(r.UintN(256)), byte(r.UintN(256)), 255}
		}
	}
	for y := range width / 2 {
		for x := range width {
			m.Set(x, y, patches[8*x/width][8*y/width])
		}
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: quality}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// plantedInput is an input with its source.
type plantedInput struct {
	in        *catalog.Input
	embedding predict.Embedding
	picture   uint64 // inputs with the same number show the same picture, saved again
	file      int    // inputs with the same number have the same file
}

// plant fills a world with inputs of n files. Some files show the same picture.
func plant(t *testing.T, w *indextest.World, n int) []plantedInput {
	t.Helper()
	var all []plantedInput
	decoder := raster.NewDecoder(raster.Limits{})
	pictures := make([]*catalog.DerivedData, 6)
	for i := range pictures {
		pictures[i] = w.RandomDerived()
	}
	w.Commit(t, func(tx *indextest.Tx) {
		for file := range n {
			picture := w.Rand.Uint64N(6)
			if w.Rand.IntN(4) == 0 {
				picture = 100 + uint64(file) // another picture that looks similar
			}
			d := near(w, pictures[picture%6])
			var crop raster.Crop
			if w.Rand.IntN(6) == 0 {
				crop = raster.Crop{Bottom: 1, Right: 0.5}
			}
			hash := blob.Sum([]byte{byte(file), byte(file >> 8)})
			thumb := thumbnail(t, picture, 128+64*w.Rand.IntN(3), 60+w.Rand.IntN(40))
			var err error
			if d.Fingerprint, err = search.Fingerprint(decoder, thumb); err != nil {
				t.Fatal(err)
			}
			for range 1 + w.Rand.IntN(4)/3 {
				in := tx.Insert(&catalog.Input{Blob: hash, Crop: crop}, d)
				all = append(all, plantedInput{in, embeddingOf(d), picture, file})
			}
		}
	})
	return all
}

// TestDuplicatesAgreeWithScan compares the duplicates and groups that the package finds with the files and
// pictures that the test gave to the inputs.
func TestDuplicatesAgreeWithScan(t *testing.T) {
	const cutOff = 0.9
	for seed := range testkit.Seeds(t, 6, 2000) {
		w := indextest.New(t, seed, memkv.New())
		all := plant(t, w, 22)
		if w.Rand.IntN(2) == 0 {
			if _, err := w.Index.Step(t.Context(), 1000); err != nil {
				t.Fatal(err)
			}
		}
		for _, p := range all {
			var want []search.Duplicate
			for _, o := range all {
				d := search.Duplicate{Ord: o.in.Ord, Score: float32(alikeness(&p.embedding, &o.embedding)), Tier: search.Alike}
				switch {
				case o.in == p.in:
					continue
				case o.file == p.file:
					d.Tier, d.Score = search.SameFile, 1
				case o.picture == p.picture && isExamined(all, p, o):
					d.Tier = search.ReEncoded
				case float64(d.Score) < cutOff:
					continue
				}
				want = append(want, d)
			}
			slices.SortFunc(want, func(a, b search.Duplicate) int {
				return cmp.Or(cmp.Compare(a.Tier, b.Tier), cmp.Compare(b.Score, a.Score), cmp.Compare(a.Ord, b.Ord))
			})
			got, err := search.Duplicates(t.Context(), w.Reader(), w.Index, p.in, 100, cutOff)
			if err != nil {
				t.Fatal(err)
			}
			if d := diff.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
				t.Fatalf("Duplicates(%d), want -, got +:\n%s", p.in.Ord, d)
			}
			few, err := search.Duplicates(t.Context(), w.Reader(), w.Index, p.in, 2, cutOff)
			if err != nil || !slices.Equal(few, want[:min(2, len(want))]) {
				t.Fatalf("Duplicates(%d) of two = %v %v", p.in.Ord, few, err)
			}
		}
		checkGroups(t, w, all, cutOff)
	}
}

// isExamined reports whether o is among the nearest inputs of p that a search for duplicates examines.
func isExamined(all []plantedInput, p, o plantedInput) bool {
	closer := 0
	for _, x := range all {
		if x.file != p.file && alikeness(&p.embedding, &x.embedding) > alikeness(&p.embedding, &o.embedding) {
			closer++
		}
	}
	return closer < 24 && alikeness(&p.embedding, &o.embedding) > 0.6
}

func checkGroups(t *testing.T, w *indextest.World, all []plantedInput, cutOff float64) {
	t.Helper()
	find := func(tiers ...search.Tier) search.Groups {
		t.Helper()
		g, err := search.FindGroups(t.Context(), w.Reader(), w.Index, tiers, search.Page{N: 1000}, cutOff)
		if err != nil {
			t.Fatal(err)
		}
		if len(g.Groups) != g.Total || g.Examined != g.Searchable {
			t.Fatalf("%d groups of %d, %d of %d examined", len(g.Groups), g.Total, g.Examined, g.Searchable)
		}
		return g
	}
	files := map[int][]uint32{}
	picture := map[uint32]plantedInput{}
	for _, p := range all {
		files[p.file] = append(files[p.file], p.in.Ord)
		picture[p.in.Ord] = p
	}
	var want, got [][]uint32
	for _, ords := range files {
		if len(ords) > 1 {
			want = append(want, ords)
		}
	}
	ords := func(g search.Group) (out []uint32) {
		for _, m := range g.Inputs {
			out = append(out, m.Ord)
		}
		return out
	}
	for _, g := range find(search.SameFile).Groups {
		got = append(got, ords(g))
	}
	slices.SortFunc(want, slices.Compare)
	if d := diff.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("same files, want -, got +:\n%s", d)
	}
	seen := map[uint32]bool{}
	for _, g := range find(search.ReEncoded).Groups {
		for _, ord := range ords(g) {
			if seen[ord] || picture[ord].picture != picture[g.Inputs[0].Ord].picture {
				t.Fatalf("group %v", g)
			}
			seen[ord] = true
		}
		for _, m := range g.Inputs[1:] {
			a, b := picture[m.Ord].embedding, picture[g.Inputs[0].Ord].embedding
			if m.Score != float32(alikeness(&a, &b)) {
				t.Fatalf("score %v of %d in group %v", m.Score, m.Ord, g)
			}
		}
	}
	// The first input of a file is in a group if its nearest input of another file shows the same picture.
	for _, p := range all {
		if nearest := closest(files, picture, p); files[p.file][0] == p.in.Ord && nearest.picture == p.picture && !seen[p.in.Ord] {
			t.Fatalf("input %d is in no group, and %d is its picture", p.in.Ord, nearest.in.Ord)
		}
	}
	for _, g := range find(search.Alike).Groups {
		for _, m := range g.Inputs[1:] {
			if m.Score < 0.9 || picture[m.Ord].picture == picture[g.Inputs[0].Ord].picture {
				t.Fatalf("group %v", g)
			}
		}
	}
	every := find(search.SameFile, search.ReEncoded, search.Alike)
	page, err := search.FindGroups(t.Context(), w.Reader(), w.Index, []search.Tier{search.SameFile, search.ReEncoded, search.Alike}, search.Page{Offset: 1, N: 2}, cutOff)
	if err != nil || page.Total != every.Total || !diff.Equal(page.Groups, every.Groups[1:min(3, every.Total)], cmpopts.EquateEmpty()) {
		t.Fatalf("a page of the groups: %v %v", page, err)
	}
}

// closest returns the nearest input of another file, among the first inputs of files.
func closest(files map[int][]uint32, of map[uint32]plantedInput, p plantedInput) plantedInput {
	var best plantedInput
	bestScore := -1.0
	for _, ords := range files {
		o := of[ords[0]]
		if s := alikeness(&p.embedding, &o.embedding); o.file != p.file && s > bestScore {
			best, bestScore = o, s
		}
	}
	return best
}

// TestGroupsContinueInNextCall groups more inputs than one call examines, and then deletes the inputs of a group.
func TestGroupsContinueInNextCall(t *testing.T) {
	w := indextest.New(t, 9, memkv.New())
	plant(t, w, 130)
	tiers := []search.Tier{search.ReEncoded}
	find := func() search.Groups {
		t.Helper()
		g, err := search.FindGroups(t.Context(), w.Reader(), w.Index, tiers, search.Page{N: 1000}, 0)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	first := find()
	if first.Searchable != 130 || first.Examined != 100 {
		t.Fatalf("%d of %d examined", first.Examined, first.Searchable)
	}
	groups := find()
	if groups.Examined != 130 || groups.Total == 0 {
		t.Fatalf("%d of %d examined, %d groups", groups.Examined, groups.Searchable, groups.Total)
	}
	w.Commit(t, func(tx *indextest.Tx) {
		for _, m := range groups.Groups[0].Inputs {
			tx.Delete(w.Live[m.Ord])
		}
	})
	for _, g := range find().Groups {
		for _, m := range g.Inputs {
			if w.Live[m.Ord] == nil {
				t.Fatalf("input %d, which is gone, is in %v", m.Ord, g)
			}
		}
	}
}
