package index_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/index/indextest"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
)

var errBroken = errors.New("broken disk")

// failingStore is a store that fails all reads and batches after the next left ones.
type failingStore struct {
	kv.Store
	left int
}

func (b *failingStore) fails() bool {
	b.left--
	return b.left < 0
}

func (b *failingStore) Get(key []byte) ([]byte, error) {
	if b.fails() {
		return nil, errBroken
	}
	return b.Store.Get(key)
}

func (b *failingStore) Scan(lo, hi []byte, yield func(key, value []byte) bool) error {
	if b.fails() {
		return errBroken
	}
	return b.Store.Scan(lo, hi, yield)
}

func (b *failingStore) Snapshot() kv.Snapshot { return open{b} }

func (b *failingStore) Apply(batch *kv.Batch) error {
	if b.fails() {
		return errBroken
	}
	return b.Store.Apply(batch)
}

// open is a snapshot of a failing store.
type open struct{ *failingStore }

func (open) Close() error { return nil }

// reads makes every request of a view and returns the answers.
func reads(t *testing.T, x *index.Index, r catalog.Reader, ord uint32) ([]any, error) {
	v := x.At(r)
	var out []any
	pattern, err := index.NewPattern([]byte(`{"a":[1,{"b":2}]}`))
	if err != nil {
		t.Fatal(err)
	}
	analysed, err := v.AnalysedInputs()
	if err != nil {
		return nil, err
	}
	few := analysed.Clone()
	few.RemoveRange(uint64(few.Minimum())+3, uint64(few.Maximum()))
	e, known, err := v.Embedding(ord)
	if err != nil || !known {
		return nil, err
	}
	calls := []func() (any, error){
		func() (any, error) { return v.Page(3, 5) },
		func() (any, error) { return v.Live() },
		func() (any, error) { return v.PlacedInputs() },
		func() (any, error) { return v.LabelledInputs("cat", log.True) },
		func() (any, error) { return v.UnanalysedInputs(indextest.Base) },
		func() (any, error) { return v.InputsContaining(t.Context(), pattern, nil) },
		func() (any, error) { return v.Within(index.NewRadius(log.Point{Latitude: 40}, 1), nil) },
		func() (any, error) { return v.Within(index.NewRadius(log.Point{Latitude: 40}, 1), few) },
		func() (any, error) { return v.Predictions(t.Context(), "ai_bb", analysed.ToArray(), nil) },
		func() (any, error) { return v.Predictions(t.Context(), "ai_bb", few.ToArray(), nil) },
		func() (any, error) { return v.Predictions(t.Context(), "cat", analysed.ToArray(), nil) },
		func() (any, error) {
			among := analysed.Clone()
			return among, v.Narrow("ai_aa", index.Reaches, among)
		},
		func() (any, error) {
			among := analysed.Clone()
			return among, v.Narrow("ai_aa", index.Below, among)
		},
		func() (any, error) { return v.Nearest(t.Context(), e, analysed, 7) },
		func() (any, error) { return v.Cosines(t.Context(), e, few) },
	}
	for _, call := range calls {
		answer, err := call()
		if err != nil {
			return nil, err
		}
		if b, ok := answer.(interface{ ToArray() []uint32 }); ok {
			answer = b.ToArray()
		}
		out = append(out, answer)
	}
	return out, nil
}

// faulty returns a settled world over a store that can fail.
func faulty(t *testing.T) (*indextest.World, *failingStore) {
	t.Helper()
	b := &failingStore{Store: memkv.New(), left: 1 << 40}
	var w *indextest.World
	for seed := uint64(0); w == nil || w.Next() != 1010; seed++ {
		b.Store = memkv.New()
		w = indextest.New(t, seed, b)
	}
	w.Train(t, indextest.Base, "cat")
	bulk(t, w, 60)
	settle(t, w)
	bulk(t, w, 10)
	return w, b
}

// TestFailedReads makes the store fail at every read. An answer is an error or the correct one.
func TestFailedReads(t *testing.T) {
	w, b := faulty(t)
	analysed, err := w.Index.At(w.Reader()).AnalysedInputs()
	if err != nil {
		t.Fatal(err)
	}
	want, err := reads(t, w.Index, w.Reader(), analysed.Minimum())
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; ; n++ {
		b.left = 1 << 40
		w.Reopen(t, indextest.Options()) // with an empty cache
		b.left = n
		got, err := reads(t, w.Index, w.Reader(), analysed.Minimum())
		if err == nil {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("with %d reads, want -, got +:\n%s", n, diff)
			}
			if n < 50 {
				t.Errorf("everything was read with %d reads", n)
			}
			return
		}
		if !errors.Is(err, errBroken) {
			t.Fatalf("read %d fails: %v", n, err)
		}
	}
}

// TestFailedSteps makes the store fail at every read and write of a step, a check, a rebuild and a close. A repetition then succeeds, and
// the index is correct.
func TestFailedSteps(t *testing.T) {
	w, b := faulty(t)
	for name, do := range map[string]func() error{
		"check":   func() error { return w.Index.Check(t.Context(), w.Reader()) },
		"rebuild": func() error { return w.Index.Rebuild(t.Context()) },
		"steps": func() error {
			for more := true; more; {
				var err error
				if more, err = w.Index.Step(t.Context(), 16); err != nil {
					return err
				}
			}
			return w.Index.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			step := 1
			if brief() {
				step = 7
			}
			for n := 0; ; n += step {
				b.left = n
				err := do()
				b.left = 1 << 40
				if err == nil {
					break
				}
				if !errors.Is(err, errBroken) {
					t.Fatalf("read %d fails: %v", n, err)
				}
				if n > 5000 {
					t.Fatal("it never ends")
				}
			}
			if err := w.Index.Rebuild(t.Context()); err != nil {
				t.Fatal(err)
			}
			settle(t, w)
			check(t, w)
		})
	}
}

// TestFailedStages makes the store fail while changes are staged. Discard removes all of them.
func TestFailedStages(t *testing.T) {
	w, b := faulty(t)
	for n := 0; ; n++ {
		in := w.Some()
		overlay := kv.NewOverlay(b)
		overlay.Put([]byte("x"), nil)
		b.left = n
		err := w.Index.StageDerived(overlay, []catalog.Input{*in})
		b.left = 1 << 40
		w.Index.Discard()
		if err == nil && n > 3 {
			break
		}
		if err != nil && !errors.Is(err, errBroken) {
			t.Fatal(err)
		}
	}
	check(t, w)
}

// TestDamageCausesNoPanic replaces stored bytes and makes every request.
func TestDamageCausesNoPanic(t *testing.T) {
	w, b := faulty(t)
	analysed, err := w.Index.At(w.Reader()).AnalysedInputs()
	if err != nil {
		t.Fatal(err)
	}
	var keys [][]byte
	prefix := w.App.IndexPrefix()
	_ = b.Scan(prefix, append(w.App.IndexPrefix()[:17], 'Y'), func(k, _ []byte) bool {
		keys = append(keys, slices.Clone(k))
		return true
	})
	detections, rounds := 0, 400
	if brief() {
		rounds = 40
	}
	for i := range rounds {
		k := keys[w.Rand.IntN(len(keys))]
		value, err := b.Get(k)
		if err != nil {
			t.Fatal(err)
		}
		bad := make([]byte, []int{0, 1, 3, len(value), len(value) + 1, 510, 512, 513}[i%8])
		for j := range bad {
			bad[j] = byte(w.Rand.UintN(256))
		}
		var batch kv.Batch
		batch.Put(k, bad)
		if err := b.Store.Apply(&batch); err != nil {
			t.Fatal(err)
		}
		if x, err := index.Open(b, w.App, indextest.Options()); err == nil {
			if _, err := reads(t, x, w.Reader(), analysed.Minimum()); err != nil {
				detections++
			}
			if err := x.Check(t.Context(), w.Reader()); err != nil {
				detections++
			}
			for range 3 {
				if _, err := x.Step(t.Context(), 100); err != nil {
					detections++
				}
			}
		}
		batch.Reset()
		batch.DeleteRange(prefix, append(w.App.IndexPrefix()[:17], 'Y'))
		if err := b.Store.Apply(&batch); err != nil {
			t.Fatal(err)
		}
		w.Reopen(t, indextest.Options())
		if i%8 == 0 {
			settle(t, w)
		}
	}
	if detections < rounds/4 {
		t.Errorf("damage was noticed %d times", detections)
	}
}
