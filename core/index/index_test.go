package index_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/index/indextest"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/testkit"
)

// settle runs Step until no work is left.
func settle(t testing.TB, w *indextest.World) {
	t.Helper()
	for range 10_000 {
		more, err := w.Index.Step(t.Context(), 64)
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			return
		}
	}
	t.Fatal("Step never ends")
}

// beforeBlock returns a world whose first ordinals are just before the end of a block of columns.
func beforeBlock(t testing.TB) *indextest.World {
	t.Helper()
	for seed := uint64(0); ; seed++ {
		if w := indextest.New(t, seed, memkv.New()); w.Next() == 1010 {
			return w
		}
	}
}

// brief reports whether tests must be short, because they run with -short or as WebAssembly.
func brief() bool { return testing.Short() || runtime.GOARCH == "wasm" }

func check(t testing.TB, w *indextest.World) {
	t.Helper()
	if err := w.Index.Check(t.Context(), w.Reader()); err != nil {
		t.Fatal(err)
	}
}

// bulk inserts n random inputs.
func bulk(t testing.TB, w *indextest.World, n int) {
	t.Helper()
	w.Commit(t, func(tx *indextest.Tx) {
		for range n {
			tx.Insert(w.Input(), w.RandomDerived())
		}
	})
}

// TestIndexFollowsState changes an application at random. It compares the index with the records, and the order of creation with the live
// inputs.
func TestIndexFollowsState(t *testing.T) {
	for seed := range testkit.Seeds(t, 20, 2000) {
		w := indextest.New(t, seed, memkv.New())
		rounds := 8
		if brief() {
			rounds = 2
		}
		for range rounds {
			w.Churn(t, 1+w.Rand.IntN(80))
			if w.Rand.IntN(3) == 0 {
				if _, err := w.Index.Step(t.Context(), 16); err != nil {
					t.Fatal(err)
				}
			}
			check(t, w)
			ords := w.Ords()
			if n := countLive(t, w); n != uint64(len(ords)) {
				t.Fatalf("%d live inputs, want %d", n, len(ords))
			}
			offset, n := w.Rand.IntN(len(ords)+2), w.Rand.IntN(len(ords)+2)
			want := ords[min(offset, len(ords)):min(offset+n, len(ords))]
			got, err := w.Index.At(w.Reader()).Page(uint64(offset), uint64(n))
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("Page(%d, %d) = %v, %v, want %v", offset, n, got, err, want)
			}
		}
		settle(t, w)
		check(t, w)
		if err := w.Index.Close(); err != nil {
			t.Fatal(err)
		}
		w.Reopen(t, indextest.Options())
		if more, err := w.Index.Step(t.Context(), 64); more || err != nil {
			t.Fatalf("the index found work that was due before it was opened again: %v, %v", more, err)
		}
	}
}

// countLive returns the number of live inputs in the index.
func countLive(t testing.TB, w *indextest.World) uint64 {
	t.Helper()
	live, err := w.Index.At(w.Reader()).Live()
	if err != nil {
		t.Fatal(err)
	}
	return live.GetCardinality()
}

func TestDeleteAll(t *testing.T) {
	w, inputs := indextest.New(t, 1, memkv.New()), 1200
	if brief() {
		inputs = 300
	}
	bulk(t, w, inputs)
	settle(t, w)
	w.Commit(t, func(tx *indextest.Tx) {
		tx.DeleteAll()
		tx.Insert(w.Input(), w.RandomDerived())
	})
	check(t, w)
	settle(t, w)
	check(t, w)
	if n := countLive(t, w); n != 1 {
		t.Errorf("%d live inputs, want 1", n)
	}
	n := 0
	_ = w.Store.Scan(w.App.IndexPrefix(), append(w.App.IndexPrefix()[:17], 'Y'), func(_, _ []byte) bool {
		n++
		return true
	})
	if n > 200 {
		t.Errorf("%d keys are left of one input", n)
	}
}

// TestReopen opens an index whose graph has complete, damaged and missing pages.
func TestReopen(t *testing.T) {
	w, inputs := indextest.New(t, 2, memkv.New()), 500
	if brief() {
		inputs = 200
	}
	bulk(t, w, inputs)
	settle(t, w)
	if err := w.Index.Close(); err != nil {
		t.Fatal(err)
	}
	// Delete inputs with nodes in the stored pages, and add some.
	w.Commit(t, func(tx *indextest.Tx) {
		for _, ord := range w.Ords()[:100] {
			tx.Delete(w.Live[ord])
		}
		for range 20 {
			tx.Insert(w.Input(), w.RandomDerived())
		}
	})
	for _, damage := range []string{"", "graph", "no pages"} {
		t.Run("damage "+damage, func(t *testing.T) {
			lo := append(w.App.IndexPrefix(), 's')
			var pages [][]byte
			_ = w.Store.Scan(lo, append(lo, 0xff), func(k, _ []byte) bool {
				if k[len(lo)+32] == 'g' {
					pages = append(pages, slices.Clone(k))
				}
				return true
			})
			if len(pages) == 0 {
				t.Fatal("the graph has no pages")
			}
			var b kv.Batch
			for i, k := range pages {
				switch {
				case damage == "no pages":
					b.Delete(k)
				case damage == "graph" && i == len(pages)/2:
					b.Put(k, []byte("damaged"))
				}
			}
			if err := w.Store.Apply(&b); err != nil {
				t.Fatal(err)
			}
			w.Reopen(t, indextest.Options())
			settle(t, w)
			check(t, w)
			if err := w.Index.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestCheckSeesDamage damages one key of each kind. Check reports the damage and Rebuild repairs it.
func TestCheckSeesDamage(t *testing.T) {
	w := beforeBlock(t)
	bulk(t, w, 120)
	w.Commit(t, func(tx *indextest.Tx) {
		for _, in := range w.Live {
			if in.Code == catalog.InputPending {
				tx.Delete(in)
			}
		}
	})
	settle(t, w)
	prefix := w.App.IndexPrefix()
	kinds := map[string][]byte{} // one key of each kind
	_ = w.Store.Scan(prefix, append(w.App.IndexPrefix()[:17], 'Y'), func(k, _ []byte) bool {
		kind := string(k[len(prefix)])
		switch kind {
		case "s":
			kind += string(k[len(prefix)+33])
		case "p":
			kind += string(k[len(prefix)+1])
		}
		kinds[kind] = slices.Clone(k)
		return true
	})
	for kind, k := range kinds {
		if slices.Contains([]string{"f", "sn", "si", "sg", "sw", "sd", "sk"}, kind) {
			continue
		}
		for _, damage := range []string{"gone", "changed", "extra"} {
			t.Run(kind+" "+damage, func(t *testing.T) {
				value, err := w.Store.Get(k)
				if err != nil {
					t.Fatal(err)
				}
				key := slices.Clone(k)
				var b kv.Batch
				switch damage {
				case "gone":
					b.Delete(key)
				case "changed":
					if len(value) == 0 {
						t.Skip("no value")
					}
					changed := slices.Clone(value)
					for i := range changed {
						changed[i] ^= 2
					}
					b.Put(key, changed)
				default:
					if kind == "sc" {
						t.Skip("a column that no coverage names is not read")
					}
					key[len(key)-1] ^= 0x80
					if _, err := w.Store.Get(key); err == nil {
						t.Skip("there is one")
					}
					b.Put(key, value)
				}
				if err := w.Store.Apply(&b); err != nil {
					t.Fatal(err)
				}
				if err := w.Index.Check(t.Context(), w.Reader()); !errors.Is(err, index.ErrCorrupt) {
					t.Errorf("Check() = %v, want ErrCorrupt", err)
				}
				b.Reset()
				b.Delete(key)
				b.Put(k, value)
				if err := w.Store.Apply(&b); err != nil {
					t.Fatal(err)
				}
				check(t, w)
			})
		}
	}
	if len(kinds) < 15 {
		t.Errorf("keys of %d kinds: %v", len(kinds), kinds)
	}
	var b kv.Batch
	b.DeleteRange(prefix, append(slices.Clone(prefix), 'q'))
	if err := w.Store.Apply(&b); err != nil {
		t.Fatal(err)
	}
	if err := w.Index.Check(t.Context(), w.Reader()); !errors.Is(err, index.ErrCorrupt) {
		t.Errorf("Check() = %v, want ErrCorrupt", err)
	}
	w.Reopen(t, indextest.Options()) // its format is unknown, so it is rebuilt
	check(t, w)
	settle(t, w)
	check(t, w)
}

func TestOpenRefusesNewer(t *testing.T) {
	w := indextest.New(t, 4, memkv.New())
	var b kv.Batch
	b.Put(append(w.App.IndexPrefix(), 'f'), []byte{99})
	if err := w.Store.Apply(&b); err != nil {
		t.Fatal(err)
	}
	if _, err := index.Open(w.Store, w.App, indextest.Options()); !errors.Is(err, kv.ErrNewer) {
		t.Errorf("Open() = %v, want ErrNewer", err)
	}
}

// TestValuesFromColumnsAndRows compares values read from columns, rows and edits with the records. It also checks what is left of columns
// that are no longer needed.
func TestValuesFromColumnsAndRows(t *testing.T) {
	if brief() {
		t.Skip("three blocks of columns")
	}
	w := indextest.New(t, 5, memkv.New())
	bulk(t, w, 3000)
	want := map[uint32][]float32{}
	for ord, in := range w.Live {
		if d, err := w.Reader().DerivedOfInput(indextest.Base, in); err == nil && in.Code == catalog.InputReady {
			for _, e := range in.Edits {
				if i := slices.Index(indextest.Concepts, e.Concept); i >= 0 {
					d.Values[i] = e.Value
					if e.Removed {
						d.Values[i] = 0
					}
				}
			}
			want[ord] = d.Values
		}
	}
	ords := w.Ords()
	for _, state := range []string{"rows", "columns", "no columns"} {
		if state == "no columns" {
			o := indextest.Options()
			o.NoColumns = true
			w.Reopen(t, o)
		}
		if state != "rows" {
			settle(t, w)
			if n := columns(t, w); (n > 0) != (state == "columns") {
				t.Fatalf("%s: there are %d blocks of columns", state, n)
			}
		}
		for _, some := range [][]uint32{ords, ords[:1], ords[1030:1035], ords[2000:], {ords[0], ords[1500], ords[2999]}, nil} {
			among := slices.DeleteFunc(slices.Clone(some), func(ord uint32) bool { return want[ord] == nil })
			for c, concept := range indextest.Concepts {
				got, err := w.Index.At(w.Reader()).Predictions(t.Context(), concept, among, make([]float32, 1500))
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got.Ords, among) || len(got.Values) != len(among) {
					t.Fatalf("%s: Predicted gives %d inputs, want %d", state, len(got.Ords), len(among))
				}
				for i, ord := range among {
					if got.Values[i] != want[ord][c] {
						t.Fatalf("%s: %v of input %d, want %v", state, got.Values[i], ord, want[ord][c])
					}
				}
				for _, to := range []index.Side{index.Reaches, index.Below} {
					if err := narrows(w, concept, to, among, got.Values); err != nil {
						t.Fatalf("%s: %v", state, err)
					}
				}
			}
		}
	}
}

// narrows returns an error if Narrow removes an edited input or a matching one, or keeps an unedited input that does not match.
func narrows(w *indextest.World, concept string, to index.Side, among []uint32, values []float32) error {
	left := roaring.BitmapOf(among...)
	if err := w.Index.At(w.Reader()).Narrow(concept, to, left); err != nil {
		return err
	}
	for i, ord := range among {
		edited := slices.ContainsFunc(w.Live[ord].Edits, func(e catalog.Edit) bool { return e.Concept == concept })
		if want := index.Side(values[i] >= index.PresentThreshold) == to || edited; left.Contains(ord) != want {
			return fmt.Errorf("Narrow(%q, %v) leaves input %d with %v: %v, want %v", concept, to, ord, values[i], !want, want)
		}
		left.Remove(ord)
	}
	if !left.IsEmpty() {
		return fmt.Errorf("Narrow(%q, %v) adds %d inputs", concept, to, left.GetCardinality())
	}
	return nil
}

// TestReusedOrdinals reuses ordinals for other inputs, as a log that was restored from a backup does: in one batch, or in a later batch
// than the deletion.
func TestReusedOrdinals(t *testing.T) {
	for _, name := range []string{"at once", "later", "later and settled"} {
		t.Run(name, func(t *testing.T) {
			w := beforeBlock(t)
			w.Commit(t, func(tx *indextest.Tx) {
				for range 40 {
					in := w.Input()
					in.Code = catalog.InputReady
					tx.Insert(in, w.RandomDerived())
				}
			})
			settle(t, w)
			if err := w.Index.Close(); err != nil { // the graph's pages are written
				t.Fatal(err)
			}
			ords := w.Ords()
			deleteInputs := func(tx *indextest.Tx) {
				for _, ord := range ords {
					tx.Delete(w.Live[ord])
				}
			}
			createInputs := func(tx *indextest.Tx) {
				for _, ord := range ords {
					in := w.Input()
					in.Code, in.Blob = catalog.InputReady, blob.Sum(fmt.Append(nil, "another picture", ord))
					tx.InsertAt(ord, in, w.RandomDerived()).Dot.Writer = 2
				}
			}
			if name == "at once" {
				w.Commit(t, func(tx *indextest.Tx) { deleteInputs(tx); createInputs(tx) })
			} else {
				w.Commit(t, deleteInputs)
				if name == "later and settled" {
					settle(t, w)
				}
				w.Commit(t, createInputs)
			}
			w.Index.DropCaches()
			check(t, w)
			for range 2 {
				settle(t, w)
				check(t, w)
				nearestToItself(t, w)
				if err := w.Index.Close(); err != nil {
					t.Fatal(err)
				}
				w.Reopen(t, indextest.Options())
			}
		})
	}
}

// nearestToItself checks that each input is the nearest to its own embedding.
func nearestToItself(t *testing.T, w *indextest.World) {
	t.Helper()
	v := w.Index.At(w.Reader())
	among, err := v.AnalysedInputs()
	if err != nil || among.GetCardinality() != uint64(len(w.Live)) {
		t.Fatalf("%d inputs are analysed, want %d, %v", among.GetCardinality(), len(w.Live), err)
	}
	for _, ord := range w.Ords() {
		e, ok, err := v.Embedding(ord)
		if err != nil || !ok {
			t.Fatalf("embedding of %d: %v, %v", ord, ok, err)
		}
		near, err := v.Nearest(t.Context(), e, among, 3)
		if err != nil || len(near) == 0 || near[0].Cosine < 0.999 {
			t.Errorf("nearest to %d: %v, %v", ord, near, err)
		}
	}
}

// TestColumnsAreDeletedWithInputs checks that columns of a block are deleted with all its inputs.
func TestColumnsAreDeletedWithInputs(t *testing.T) {
	w := beforeBlock(t)
	w.Commit(t, func(tx *indextest.Tx) {
		for range 40 {
			in := w.Input()
			in.Code = catalog.InputReady // the columns of a block wait for its pending inputs
			tx.Insert(in, w.RandomDerived())
		}
	})
	settle(t, w)
	if n := columns(t, w); n != len(indextest.Concepts) {
		t.Fatalf("%d blocks of columns, want one a concept", n)
	}
	w.Commit(t, func(tx *indextest.Tx) {
		for _, ord := range w.Ords() {
			if ord < 1024 {
				tx.Delete(w.Live[ord])
			}
		}
	})
	settle(t, w)
	check(t, w)
	if n := columns(t, w); n != 0 {
		t.Errorf("%d blocks of columns are left", n)
	}
}

func columns(t *testing.T, w *indextest.World) int {
	n := 0
	lo := slices.Concat(w.App.IndexPrefix(), []byte("s"), indextest.Base[:])
	if err := w.Store.Scan(slices.Concat(lo, []byte("c")), slices.Concat(lo, []byte("d")), func(_, _ []byte) bool {
		n++
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestLabelled reads the labels that training needs.
func TestLabelled(t *testing.T) {
	w := indextest.New(t, 7, memkv.New())
	bulk(t, w, 300)
	for _, value := range []log.Value{log.True, log.False, log.Removed} {
		var want []uint32
		for _, ord := range w.Ords() {
			for _, l := range w.Live[ord].Labels {
				if l.Concept == "cat" && l.Value == value && value != log.Removed {
					want = append(want, ord)
				}
			}
		}
		got, err := w.Index.At(w.Reader()).LabelledInputs("cat", value)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(roaring.BitmapOf(want...).ToArray(), got.ToArray()); diff != "" {
			t.Errorf("Labelled(cat, %d), want -, got +:\n%s", value, diff)
		}
	}
}

// TestSearchesDuringChanges runs views, steps and one writer concurrently, for the race detector.
func TestSearchesDuringChanges(t *testing.T) {
	w := indextest.New(t, 8, memkv.New())
	w.Train(t, indextest.Base, "cat", "dog")
	bulk(t, w, 400)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	failed := make(chan error, 8)
	e := w.Embedding()
	store, x, app := w.Store, w.Index, w.App
	for range 3 {
		all.Go(func() {
			for ctx.Err() == nil {
				if err := read(store, x, app, func(v *index.View) error {
					live, err := v.AnalysedInputs()
					if err != nil {
						return err
					}
					if _, err = v.Nearest(t.Context(), &e, live, 10); err != nil {
						return err
					}
					near, err := v.Cosines(t.Context(), &e, live)
					if err != nil {
						return err
					}
					if uint64(len(near)) != live.GetCardinality() {
						return errors.New("an analysed input has no similarity")
					}
					_, err = v.Predictions(t.Context(), "cat", live.ToArray(), nil)
					return err
				}); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	all.Go(func() {
		for ctx.Err() == nil {
			if _, err := x.Step(context.Background(), 32); err != nil {
				failed <- err
				return
			}
		}
	})
	for i := range 60 {
		w.Churn(t, 20)
		if i == 40 {
			w.Commit(t, func(tx *indextest.Tx) { tx.DeleteAll() })
		}
	}
	cancel()
	all.Wait()
	close(failed)
	for err := range failed {
		t.Error(err)
	}
	settle(t, w)
	check(t, w)
}

func read(store kv.Store, x *index.Index, app catalog.AppID, do func(v *index.View) error) error {
	snapshot := store.Snapshot()
	return errors.Join(do(x.At(catalog.Read(snapshot, app))), snapshot.Close())
}
