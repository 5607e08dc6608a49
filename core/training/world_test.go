package training

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict"
)

// network replaces a network: a base and a background from any seed.
type network struct {
	base       [32]byte
	background []predict.Embedding
	missing    error // of Background
}

func (n *network) Base() [sha256.Size]byte                  { return n.base }
func (n *network) Background() ([]predict.Embedding, error) { return n.background, n.missing }

func newNetwork(t testing.TB, seed byte, background int) *network {
	n := &network{base: [32]byte{seed}}
	for i := range background {
		n.background = append(n.background, vector(t, -1, uint64(seed)<<32|uint64(i)))
	}
	return n
}

// vector is the embedding of a picture of a kind: near to the others of its kind, far from
// those of other kinds.
func vector(t testing.TB, kind int, seed uint64) predict.Embedding {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 7))
	v := make([]float32, predict.Dim)
	for i := range v {
		v[i] = float32(random.NormFloat64()) / 16
	}
	if kind >= 0 {
		v[kind] += 1.5
	}
	e, err := predict.NewEmbedding(v)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// world is one application and its queue.
type world struct {
	starts byte // of the origin
	t      testing.TB
	store  kv.Store
	now    time.Time
	net    *network
	index  *index.Options // nil: none
	p      *partition.Origin
	q      *Queue
	model  log.Dot
	n      int // things made
}

var appID = catalog.AppID{15: 1}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, store: memkv.New(), now: time.Unix(1_700_000_000, 0), net: newNetwork(t, 1, 64)}
	w.open()
	return w
}

// newIndexedWorld returns a world whose application has an index, over a store.
func newIndexedWorld(t testing.TB, store kv.Store) *world {
	t.Helper()
	w := &world{t: t, store: store, now: time.Unix(1_700_000_000, 0), net: newNetwork(t, 1, 64)}
	w.index = &index.Options{Space: index.Space{Base: w.net.base}}
	w.open()
	return w
}

// open opens the application as after a start of the program.
func (w *world) open() {
	w.t.Helper()
	w.starts++
	p, err := partition.OpenOrigin(partition.Options{
		Store: w.store, App: appID, Clock: func() time.Time { return w.now }, Index: w.index, Epoch: log.Epoch{w.starts}, Secret: [32]byte{1},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.p, w.q = p, NewQueue(p, w.net)
}

// do submits operations; each must be followed.
func (w *world) do(bodies ...log.Body) []fold.Verdict {
	w.t.Helper()
	return w.with(nil, bodies...)
}

func (w *world) with(also func(*kv.Batch), bodies ...log.Body) []fold.Verdict {
	w.t.Helper()
	w.now = w.now.Add(time.Millisecond)
	verdicts, err := w.p.Submit(context.Background(), "test", bodies, also)
	if err != nil {
		w.t.Fatal(err)
	}
	for i, v := range verdicts {
		if v.Code != fold.OK {
			w.t.Fatalf("%T: %v %s", bodies[i], v.Code, v.Detail)
		}
	}
	return verdicts
}

// label is "cat" for true and "-cat" for false.
func label(s string) log.Label {
	if s[0] == '-' {
		return log.Label{Concept: s[1:], Value: log.False}
	}
	return log.Label{Concept: s, Value: log.True}
}

func labelsOf(names []string) []log.Label {
	labels := make([]log.Label, 0, len(names))
	for _, name := range names {
		labels = append(labels, label(name))
	}
	return labels
}

// picture is the blob of the n-th picture and what the network makes of it.
func (w *world) picture(kind int) (blob.Hash, catalog.DerivedData) {
	w.t.Helper()
	w.n++
	e := vector(w.t, kind, uint64(w.net.base[0])<<32|uint64(w.n))
	data, err := e.MarshalBinary()
	if err != nil {
		w.t.Fatal(err)
	}
	return blob.Sum(binary.LittleEndian.AppendUint64(nil, uint64(w.n))), catalog.DerivedData{Embedding: data}
}

// add adds an input that is analysed.
func (w *world) add(kind int, labels ...string) log.Dot {
	w.t.Helper()
	hash, d := w.picture(kind)
	create := &log.InputCreate{
		ID: fmt.Sprintf("in%d", w.n), URL: fmt.Sprintf("http://pictures.test/%d", w.n), Blob: hash, ContentType: "image/png", Labels: labelsOf(labels),
	}
	return w.with(func(b *kv.Batch) { catalog.PutDerived(b, appID, w.net.base, hash, create.Crop, d) }, create)[0].Dot
}

// pend adds an input whose picture must be fetched.
func (w *world) pend(labels ...string) log.Dot {
	w.t.Helper()
	w.n++
	return w.do(&log.InputCreate{ID: fmt.Sprintf("in%d", w.n), URL: fmt.Sprintf("http://pictures.test/%d", w.n), Labels: labelsOf(labels)})[0].Dot
}

// finishDownload ends a download.
func (w *world) finishDownload(dot log.Dot, kind int) {
	w.t.Helper()
	hash, d := w.picture(kind)
	w.with(func(b *kv.Batch) { catalog.PutDerived(b, appID, w.net.base, hash, catalog.Input{}.Crop, d) },
		&log.InputFetched{Input: dot, Code: catalog.InputReady, Blob: hash, ContentType: "image/png"})
}

// setting is a field of a model's configuration that is on.
func setting(name string) log.Setting { return log.Setting{Name: name, JSON: []byte("true")} }

// make makes the model of the test.
func (w *world) make(concepts []string, config ...log.Setting) {
	w.t.Helper()
	w.model = w.do(&log.ModelCreate{ID: "model", Version: "first", Concepts: concepts, Config: config})[0].Dot
}

// ask asks for a training.
func (w *world) ask(version string) {
	w.t.Helper()
	w.do(&log.VersionTrain{Model: w.model, Version: version})
}

// take takes what is due.
func (w *world) take() []*Run {
	w.t.Helper()
	runs, err := w.q.Take(w.now, 10)
	if err != nil {
		w.t.Fatal(err)
	}
	return runs
}

// finish runs to the end and hands back.
func (w *world) finish(r *Run) {
	w.t.Helper()
	last := 0.0
	for !r.Step() {
		if p := r.Progress(); p < last || p > 1 {
			w.t.Fatalf("progress fell from %v to %v", last, p)
		} else {
			last = p
		}
		if share, out := w.q.Progress(&r.version); share != last || !out {
			w.t.Fatalf("the queue's progress = %v, %v, want %v, true", share, out, last)
		}
	}
	if err := w.q.Done(context.Background(), w.now, r, nil); err != nil {
		w.t.Fatal(err)
	}
	if share, out := w.q.Progress(&r.version); share != 0 || out {
		w.t.Fatalf("the queue's progress of what is done = %v, %v, want 0, false", share, out)
	}
}

// train asks for a version and brings it to its end.
func (w *world) train(version string) catalog.Version {
	w.t.Helper()
	w.ask(version)
	for _, r := range w.take() {
		w.finish(r)
	}
	return w.version(version)
}

func (w *world) version(id string) catalog.Version {
	w.t.Helper()
	view := w.p.View()
	defer view.Close()
	v, err := view.Version(w.model, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

func (w *world) manifest(id string) catalog.Manifest {
	w.t.Helper()
	v := w.version(id)
	view := w.p.View()
	defer view.Close()
	m, err := view.Manifest(&v)
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

// near reports whether two floats are the same but for rounding.
func near(a, b, by float64) bool { return math.Abs(a-b) <= by }
