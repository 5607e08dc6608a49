// Package indextest makes applications of random inputs for the tests of index and search:
// pictures in clusters, values with ties, metadata of few names and many shapes, places at the poles and on the
// antimeridian. Only tests import it.
//
//	w := indextest.New(t, seed, memkv.New())
//	w.Commit(t, func(tx *indextest.Tx) { tx.Insert(w.Input(), w.RandomDerived()) })
package indextest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/train"
)

// Concepts are the ids of the general model in tests.
var Concepts = []string{"ai_aa", "ai_bb", "ai_cc", "ai_dd", "ai_ee"}

// CustomConcepts are ids of custom concepts.
var CustomConcepts = []string{"cat", "dog", "emu"}

// Base is the base model of tests.
var Base = [32]byte{1, 2, 3}

// World is one application: its store, its index, and its live inputs as a map.
type World struct {
	Rand  *rand.Rand
	Store kv.Store
	App   catalog.AppID
	Index *index.Index
	Live  map[uint32]*catalog.Input
	Heads []*train.Head // of the trained versions, oldest first

	header catalog.Header
	pool   []predict.Embedding
}

// Options are the settings of the world's index.
func Options() index.Options {
	return index.Options{Space: index.Space{Base: Base, Concepts: Concepts}}
}

// New returns an empty world over a store.
func New(t testing.TB, seed uint64, store kv.Store) *World {
	t.Helper()
	w := &World{
		Rand: rand.New(rand.NewPCG(seed, 4)), Store: store, App: catalog.AppID{0xa9, 1},
		Live: map[uint32]*catalog.Input{},
	}
	// Ordinals begin just before the ends of blocks and chunks, so that even a few inputs cross them.
	w.header.Next = []uint32{0, 1010, 4085, 65_525}[w.Rand.IntN(4)]
	w.Reopen(t, Options())
	for range 8 {
		w.pool = append(w.pool, w.fresh(nil))
	}
	return w
}

// Reopen opens the world's index again.
func (w *World) Reopen(t testing.TB, o index.Options) {
	t.Helper()
	x, err := index.Open(w.Store, w.App, o)
	if err != nil {
		t.Fatal(err)
	}
	w.Index = x
}

// Reader returns a reader of the application's present state.
func (w *World) Reader() catalog.Reader { return catalog.Read(w.Store, w.App) }

// Ords returns the ordinals of the live inputs in the order of creation.
func (w *World) Ords() []uint32 { return slices.Sorted(maps.Keys(w.Live)) }

// Next returns the ordinal of the next input.
func (w *World) Next() uint32 { return w.header.Next }

// Tx is a run of changes.
type Tx struct {
	*catalog.Writer
	Overlay *kv.Overlay

	w   *World
	out fold.Outcome
}

// Commit makes the changes of do visible: state and index in one batch. If that fails, the test ends.
func (w *World) Commit(t testing.TB, do func(tx *Tx)) {
	t.Helper()
	overlay := kv.NewOverlay(w.Store)
	tx := &Tx{Writer: catalog.Write(overlay, w.App), Overlay: overlay, w: w}
	do(tx)
	w.header.Seq++
	tx.PutHeader(&w.header)
	if err := w.Index.Stage(overlay, &tx.out); err != nil {
		w.Index.Discard()
		t.Fatal(err)
	}
	if err := w.Store.Apply(overlay.Batch()); err != nil {
		t.Fatal(err)
	}
	w.Index.ConfirmStage()
}

// Insert adds an input and sets its ordinal. d is the derived record of its picture, nil if there is none.
func (tx *Tx) Insert(in *catalog.Input, d *catalog.DerivedData) *catalog.Input {
	tx.w.header.Next++
	return tx.InsertAt(tx.w.header.Next-1, in, d)
}

// InsertAt is Insert with a given ordinal, such as that of a pending input.
func (tx *Tx) InsertAt(ord uint32, in *catalog.Input, d *catalog.DerivedData) *catalog.Input {
	in.Ord = ord
	in.Dot = log.Dot{Writer: 1, Seq: uint64(in.Ord) + 1}
	if in.ID == "" {
		in.ID = fmt.Sprintf("in%d", in.Ord)
	}
	if in.Code == 0 {
		in.Code = catalog.InputReady
	}
	if in.Created == 0 { // over some weeks, and not in the order of the ordinals
		in.Created = log.HLC(1_780_000_000_000+uint64(ord%7919)*7919%50*40_000_000) << 16
	}
	if in.Code == catalog.InputReady {
		tx.derive(in, d)
	}
	tx.InsertInput(in)
	tx.w.Live[in.Ord] = in
	tx.out.Changes = append(tx.out.Changes, fold.Change{After: in})
	return in
}

func (tx *Tx) derive(in *catalog.Input, d *catalog.DerivedData) {
	if in.Blob.IsZero() {
		in.Blob = blob.Sum(fmt.Append(nil, "picture", in.Ord))
	}
	if d != nil {
		catalog.PutDerived(tx.Overlay, tx.w.App, Base, in.Blob, in.Crop, *d)
	}
}

// Update changes an input. If the input becomes ready, d is its derived record.
func (tx *Tx) Update(before *catalog.Input, d *catalog.DerivedData, change func(in *catalog.Input)) {
	after := *before
	after.Labels = slices.Clone(before.Labels)
	after.Edits = slices.Clone(before.Edits)
	after.Meta = slices.Clone(before.Meta)
	change(&after)
	if after.Code == catalog.InputReady && before.Code != catalog.InputReady {
		tx.derive(&after, d)
	}
	tx.UpdateInput(before, &after)
	tx.w.Live[after.Ord] = &after
	tx.out.Changes = append(tx.out.Changes, fold.Change{Before: before, After: &after})
}

// Delete removes an input.
func (tx *Tx) Delete(in *catalog.Input) {
	tx.DeleteInput(in)
	delete(tx.w.Live, in.Ord)
	tx.out.Changes = append(tx.out.Changes, fold.Change{Before: in})
}

// DeleteAll removes every input.
func (tx *Tx) DeleteAll() {
	tx.DeleteInputs()
	clear(tx.w.Live)
	tx.out = fold.Outcome{DeletedAll: true}
}

// Train adds a new model with a version at 21100, which has a random head.
func (w *World) Train(t testing.TB, base [32]byte, concepts ...string) {
	t.Helper()
	head := &train.Head{Concepts: concepts, Exclusive: len(concepts) > 1 && w.Rand.IntN(2) == 0}
	for range concepts {
		for range predict.Dim {
			head.Weights = append(head.Weights, 8*float32(w.Rand.NormFloat64()))
		}
		head.Bias = append(head.Bias, float32(w.Rand.NormFloat64()))
	}
	data, err := head.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	n := uint64(len(w.Heads) + 1)
	dot := log.Dot{Writer: 2, Seq: n}
	w.Commit(t, func(tx *Tx) {
		id := fmt.Sprintf("version%d", n)
		m := catalog.Manifest{Version: id, Base: base, Head: data}
		tx.PutModel(&catalog.Model{Dot: dot, Seq: n, ID: fmt.Sprintf("model%d", n), Newest: id})
		tx.PutVersion(&catalog.Version{
			Model: dot, Seq: n, ID: id, Code: catalog.VersionTrained, Concepts: concepts,
			Manifest: catalog.PutObject(tx.Overlay, w.App, m.Marshal()),
		})
	})
	w.Heads = append(w.Heads, head)
}
