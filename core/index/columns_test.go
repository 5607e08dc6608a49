package index_test

import (
	"testing"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/index/indextest"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
)

// countingStore counts the keys that are read.
type countingStore struct {
	kv.Store
	n *int
}

func (s countingStore) Get(key []byte) ([]byte, error) {
	*s.n++
	return s.Store.Get(key)
}

func (s countingStore) Scan(lo, hi []byte, yield func(key, value []byte) bool) error {
	return s.Store.Scan(lo, hi, func(key, value []byte) bool {
		*s.n++
		return yield(key, value)
	})
}

func (s countingStore) Snapshot() kv.Snapshot { return countedSnapshot{s, s.Store.Snapshot()} }

// countedSnapshot is a snapshot of a countingStore.
type countedSnapshot struct {
	countingStore
	shot kv.Snapshot
}

func (s countedSnapshot) Get(key []byte) ([]byte, error) {
	*s.n++
	return s.shot.Get(key)
}

func (s countedSnapshot) Scan(lo, hi []byte, yield func(key, value []byte) bool) error {
	return s.shot.Scan(lo, hi, func(key, value []byte) bool {
		*s.n++
		return yield(key, value)
	})
}

func (s countedSnapshot) Close() error { return s.shot.Close() }

// ready inserts n analysed inputs.
func ready(t testing.TB, w *indextest.World, n int) {
	t.Helper()
	w.Commit(t, func(tx *indextest.Tx) {
		for range n {
			in := w.Input()
			in.Code = catalog.InputReady
			tx.Insert(in, w.RandomDerived())
		}
	})
}

// TestColumnsKeepUpWithoutSteps adds inputs faster than steps run. A search reads the records of few inputs; it reads the values of the others
// from the columns.
func TestColumnsKeepUpWithoutSteps(t *testing.T) {
	const blocks = 12
	reads := 0
	w := indextest.New(t, 1, countingStore{memkv.New(), &reads})
	for range 2 * blocks {
		ready(t, w, 512)
		w.Index.KeepUp()
	}
	reads = 0
	values, err := w.Index.At(w.Reader()).Predictions(t.Context(), indextest.Concepts[0], w.Ords(), nil)
	if err != nil || len(values.Ords) != blocks*1024 {
		t.Fatalf("values of %d inputs, want %d: %v", len(values.Ords), blocks*1024, err)
	}
	if limit := 9*1024*2 + 512; reads > limit { // two keys for each input of the blocks that may lag, and the coverage
		t.Errorf("a search among %d inputs read %d keys, want at most %d", len(values.Ords), reads, limit)
	}
	check(t, w)
}

// TestStepReadsLittle: after a label change, a step reads few keys, whatever the number of inputs and of waiting downloads.
func TestStepReadsLittle(t *testing.T) {
	reads := 0
	w := indextest.New(t, 1, countingStore{memkv.New(), &reads})
	step := func(budget int) (more bool) {
		t.Helper()
		more, err := w.Index.Step(t.Context(), budget)
		if err != nil {
			t.Fatal(err)
		}
		return more
	}
	var needed []int
	for range 2 {
		ready(t, w, 1200)
		w.Commit(t, func(tx *indextest.Tx) {
			for range 3000 {
				in := w.Input()
				in.Code = catalog.InputPending
				tx.Insert(in, nil)
			}
		})
		settle(t, w)
		in := w.Live[w.Ords()[0]]
		w.Commit(t, func(tx *indextest.Tx) {
			tx.Update(in, nil, func(in *catalog.Input) {
				in.Labels = []catalog.Label{{Label: log.Label{Concept: "cat", Value: log.True}}}
			})
		})
		reads = 0
		if step(64) {
			t.Error("a label change has left work")
		}
		needed = append(needed, reads)
	}
	if needed[1] > 30 || needed[1] > needed[0]+3 {
		t.Errorf("a step read %d keys, and %d with twice the inputs", needed[0], needed[1])
	}
}

// TestStepReportsMoreOnlyIfIntentsRemain inserts a few inputs. A step whose budget is larger reports that nothing is left, so its caller may
// wait for more inputs and do the work of several at once.
func TestStepReportsMoreOnlyIfIntentsRemain(t *testing.T) {
	w := indextest.New(t, 0, memkv.New())
	settle(t, w)
	for _, x := range []struct {
		inputs, budget int
		more           bool
	}{{10, 5, true}, {0, 6, false}, {10, 64, false}} {
		ready(t, w, x.inputs)
		more, err := w.Index.Step(t.Context(), x.budget)
		if err != nil || more != x.more {
			t.Errorf("%d more inputs: a step with a budget of %d reports %v and %v, want %v", x.inputs, x.budget, more, err, x.more)
		}
	}
	check(t, w)
}
