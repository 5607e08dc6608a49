package partition_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/logtest"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/testkit"
)

// tb is the part of testing.T that helpers need. rapid.T implements it too.
type tb interface {
	Helper()
	Error(...any)
	Errorf(string, ...any)
	Fatal(...any)
	Fatalf(string, ...any)
}

// chooser makes random choices: a *rand.Rand, or a rapidChooser whose choices rapid can shrink.
type chooser interface{ IntN(n int) int }

type rapidChooser struct{ t *rapid.T }

func (d rapidChooser) IntN(n int) int { return rapid.IntRange(0, n-1).Draw(d.t, "choice") }

// copies is an origin and its replicas, which write about few objects so that their writes conflict.
type copies struct {
	tb
	chooser
	origin   *partition.Origin
	replicas []*testReplica
	dots     []log.Dot // of submitted create operations
	trains   []training
	n        int            // counter for unique names
	opened   int            // counter for openings of replicas
	last     partition.Span // last operations of the origin
	vectors  bool
	side     byte // last byte of public names, to make them unique
}

type training struct {
	model   log.Dot
	version string
	train   log.Dot
}

// newCopies opens an origin and replicas whose clocks differ by seconds.
func newCopies(t tb, c chooser, replicas int, vectors bool) *copies {
	w := &copies{tb: t, chooser: c, vectors: vectors}
	var err error
	w.origin, err = partition.OpenOrigin(partition.Options{Store: kvtest.OrLate(t, memkv.New()), App: app, Clock: clock, Epoch: log.Epoch{1}})
	if err != nil {
		t.Fatal(err)
	}
	w.last = partition.Span{Writer: dotAt(t, w.origin, 1).Writer, First: 1, Last: 1} // its rules
	for i := range replicas {
		w.replicas = append(w.replicas, w.reopen(&testReplica{store: kvtest.OrLate(t, memkv.New()), by: fmt.Sprint("key-", i), ahead: time.Duration(c.IntN(7)-3) * time.Second, batch: c.IntN(2)}))
	}
	return w
}

// reopen opens a replica again on its store.
func (w *copies) reopen(c *testReplica) *testReplica {
	w.Helper()
	reopened := *c
	reopened.sent, reopened.last = 0, partition.Span{}
	w.opened++
	o := partition.Options{
		Store: c.store, App: app, Epoch: log.Epoch{9, byte(w.opened), byte(w.opened >> 8)},
		Clock: func() time.Time { return clock().Add(c.ahead) },
		Index: &index.Options{Space: index.Space{Base: network, Concepts: []string{"ai_a", "ai_b", "ai_c"}}},
	}
	var err error
	if reopened.Replica, err = partition.OpenReplica(o, partition.ReplicaOptions{MaxPending: c.limit, BatchBytes: c.batch}); err != nil {
		w.Fatal(err)
	}
	return &reopened
}

func (w *copies) pick(of ...string) string { return logtest.Pick(w, of...) }

func (w *copies) dot() log.Dot {
	if len(w.dots) == 0 || w.IntN(20) == 0 {
		return log.Dot{Writer: 99, Seq: 9}
	}
	return w.dots[len(w.dots)-1-w.IntN(min(len(w.dots), 8))]
}

func (w *copies) concept() string { return w.pick("x", "y", "z", "ai_1") }

func (w *copies) labels() (out []log.Label) {
	for range w.IntN(3) {
		out = append(out, log.Label{Concept: w.concept(), Value: log.Value(w.IntN(3))})
	}
	return out
}

func (w *copies) create() *log.InputCreate {
	w.n++
	b := &log.InputCreate{
		ID: w.pick("a", "b", "c", "d", "e", ""), AllowDuplicate: w.IntN(4) == 0, MergeIfEqual: w.IntN(6) == 0, Labels: w.labels(),
	}
	if w.IntN(2) == 0 {
		b.Geo = logtest.Point(w)
	}
	if w.IntN(2) == 0 {
		b.URL = "http://x/" + w.pick("1", "2", "3", "4")
	}
	if b.URL == "" || w.IntN(2) == 0 {
		b.Blob, b.ContentType = blob.Sum([]byte(w.pick("p", "q", "r"))), "image/png"
	}
	if w.IntN(2) == 0 {
		b.Meta = logtest.JSON(w)
	}
	if w.IntN(2) == 0 {
		b.Hosted = [16]byte{1, byte(w.n), byte(w.n >> 8), w.side}
	}
	return b
}

func (w *copies) meta() *log.InputMeta {
	return &log.InputMeta{Input: w.dot(), Writes: logtest.MetaWrites(w)}
}

// body returns a random operation.
func (w *copies) body() log.Body {
	switch n := w.IntN(100); {
	case n < 30:
		return w.create()
	case n < 45:
		return &log.InputLabels{Input: w.dot(), Labels: w.labels()}
	case n < 49:
		return &log.InputFetched{Input: w.dot(), Code: 30002, Detail: "gone"}
	case n < 53:
		return &log.InputFetched{Input: w.dot(), Code: catalog.InputReady, Blob: blob.Sum([]byte(w.pick("p", "q"))), ContentType: "image/gif"}
	case n < 62:
		return w.meta()
	case n < 65:
		return &log.InputGeo{Input: w.dot(), Geo: &log.Point{Longitude: float64(w.IntN(9))}}
	case n < 70:
		return &log.OutputsPatch{Input: w.dot(), Edits: []log.OutputEdit{{Concept: w.concept(), Value: float32(w.IntN(3)) / 2, Removed: w.IntN(2) == 0}}}
	case n < 77:
		return &log.InputDelete{Input: w.dot()}
	case n < 80:
		return &log.InputDeleteAll{Barrier: w.IntN(2) == 0}
	}
	return w.modelBody()
}

func (w *copies) modelBody() log.Body {
	w.n++
	version := fmt.Sprintf("v%d", w.n)
	switch w.IntN(13) {
	case 0, 1:
		return &log.ModelCreate{ID: w.pick("m", "n", ""), Version: version, Concepts: []string{w.concept(), w.concept()}}
	case 2, 3:
		name := w.pick("N", "O")
		return &log.ModelPatch{
			Model: w.dot(), Name: &name, Add: []string{w.concept()}, Remove: []string{w.concept()},
			Config: []log.Setting{{Name: w.pick("sample_ms", "max_concepts"), JSON: []byte(w.pick("1", "2"))}}, Version: version,
		}
	case 4, 5:
		return &log.VersionTrain{Model: w.dot(), Version: w.pick("v", version)}
	case 6, 7:
		if len(w.trains) == 0 {
			return &log.ConceptCreate{ID: w.pick("x", "w"), Name: "W"}
		}
		x := w.trains[len(w.trains)-1-w.IntN(min(4, len(w.trains)))]
		return &log.VersionResult{Model: x.model, Version: x.version, Train: x.train, Code: catalog.VersionTrained, Manifest: blob.Sum([]byte(version))}
	case 8:
		if w.IntN(2) == 0 {
			return &log.ConceptDelete{ID: w.concept()}
		}
		return &log.ConceptName{ID: w.concept(), Name: w.pick("X", "Y")}
	case 9:
		return &log.WorkflowCreate{ID: w.pick("w", ""), Nodes: []log.WorkflowNode{{ID: "1", Model: "general"}}}
	case 10:
		return &log.WorkflowDelete{Workflow: w.dot()}
	case 11:
		return &log.Feedback{Model: "m", JSON: fmt.Appendf(nil, `{"id":%s}`, logtest.JSON(w))}
	}
	switch w.IntN(8) {
	case 0, 1:
		return &log.ModelDelete{Model: w.dot()}
	case 2:
		return &log.ModelDeleteAll{}
	case 3:
		return &log.VersionDelete{Model: w.dot(), Version: "v"}
	}
	return &log.Unknown{Kind: 90, Data: []byte{1}}
}

// records returns a function that adds the derived records that bodies need.
func (w *copies) records(bodies []log.Body) func(*kv.Batch) {
	return func(b *kv.Batch) {
		for _, body := range bodies {
			switch x := body.(type) {
			case *log.InputCreate:
				w.derive(b, x.Blob)
			case *log.InputFetched:
				w.derive(b, x.Blob)
			}
		}
	}
}

func (w *copies) derive(b *kv.Batch, picture blob.Hash) {
	if !picture.IsZero() && w.vectors {
		catalog.PutDerived(b, app, network, picture, raster.Crop{}, derivedOf(picture))
	}
}

// derivedOf returns a derived record that depends on the picture only.
func derivedOf(picture blob.Hash) catalog.DerivedData {
	rng := rand.New(rand.NewChaCha8(picture))
	vector := make([]float32, predict.Dim)
	for i := range vector {
		vector[i] = float32(rng.NormFloat64())
	}
	e, err := predict.NewEmbedding(vector)
	if err != nil {
		panic(err)
	}
	data, err := e.MarshalBinary()
	if err != nil {
		panic(err)
	}
	x := catalog.DerivedData{Embedding: data, Values: make([]float32, 3)}
	for i := range x.Values {
		x.Values[i] = rng.Float32()
	}
	return x
}

// write submits one to three random operations. last has the operations before them that the process made; the zero Span: none. So the
// names of the next ones are known before, unless the process draws its writer for them.
func (w *copies) write(p kind, by string, last *partition.Span) {
	bodies := make([]log.Body, 1+w.IntN(3))
	next := *last
	for i := range bodies {
		if bodies[i] = w.body(); p == w.origin && w.IntN(25) == 0 {
			bodies[i] = &log.Horizon{At: log.HLC(clock().UnixMilli())<<16 + log.HLC(w.IntN(80))}
		}
		if next.Last++; next.Writer != 0 {
			w.made(bodies[i], log.Dot{Writer: next.Writer, Seq: next.Last})
		}
	}
	_, span, err := p.SubmitSpan(context.Background(), partition.Caller{By: by}, bodies, w.records(bodies))
	if err != nil {
		w.Fatal(err)
	}
	if span.First != last.Last+1 || span.Last != next.Last || next.Writer != 0 && span.Writer != next.Writer || span.Writer < 1<<62 {
		w.Errorf("operations %+v follow %+v", span, *last)
	}
	for i, body := range bodies {
		if next.Writer == 0 {
			w.made(body, log.Dot{Writer: span.Writer, Seq: span.First + uint64(i)})
		}
	}
	*last = span
}

// made records the name of an operation that others can name.
func (w *copies) made(body log.Body, dot log.Dot) {
	switch b := body.(type) {
	case *log.InputCreate, *log.ModelCreate, *log.WorkflowCreate:
		w.dots = append(w.dots, dot)
	case *log.VersionTrain:
		w.trains = append(w.trains, training{b.Model, b.Version, dot})
	}
}

func (w *copies) pull(c *testReplica, n int) {
	w.Helper()
	r := run(w, w.origin, c.Cursor(), n)
	if w.IntN(2) == 0 {
		r.Stable = 0
	}
	bodies := make([]log.Body, len(r.Entries))
	for i := range r.Entries {
		bodies[i] = r.Entries[i].Op.Body
	}
	r.Attach = w.records(bodies)
	before := c.Cursor().Seq
	came := map[log.Dot]bool{}
	for i := range r.Entries {
		op := &r.Entries[i].Op
		if came[op.Dot] = true; c.Position(op.Dot) != 0 && op.By != c.by {
			w.Errorf("operation %v of %s is in the outbox of %s", op.Dot, op.By, c.by)
		}
	}
	var own []log.Dot // pending operations among the entries
	for _, x := range c.waiting(w, 0, 1<<30) {
		if came[x.Op.Dot] {
			own = append(own, x.Op.Dot)
		}
	}
	verdicts, err := c.Pull(context.Background(), r)
	if err != nil {
		w.Fatal(err)
	}
	var got []log.Dot
	for _, v := range verdicts {
		got = append(got, v.Op.Dot)
	}
	if !slices.Equal(got, own) || c.Cursor().Seq != before+uint64(len(r.Entries)) {
		w.Errorf("told of %v, want %v; cursor %+v", got, own, c.Cursor())
	}
}

// rebase replaces the state of a replica by a snapshot of the origin.
func (w *copies) rebase(c *testReplica) {
	w.Helper()
	base := network
	if !w.vectors {
		base = [32]byte{}
	}
	x, err := w.origin.Export(base)
	if err != nil {
		w.Fatal(err)
	}
	if err := c.Rebase(context.Background(), x.Snapshot); err != nil {
		w.Fatal(err)
	}
	c.sent = 0 // a horizon may have dropped the names of sent operations
	if err := x.Close(); err != nil {
		w.Fatal(err)
	}
	if c.Cursor().Seq != x.Seq {
		w.Errorf("cursor %+v after a snapshot of %d", c.Cursor(), x.Seq)
	}
}

// act does one random step at one replica or at the origin.
func (w *copies) act() {
	i := w.IntN(len(w.replicas))
	c := w.replicas[i]
	switch n := w.IntN(100); {
	case n < 20:
		w.write(w.origin, "key", &w.last)
		return
	case n < 50:
		w.write(c.Replica, c.by, &c.last)
	case n < 65:
		c.push(w, w.origin, 1+w.IntN(6))
	case n < 85:
		w.pull(c, w.IntN(7))
	case n < 90:
		w.rebase(c)
	case n < 95:
		w.replicas[i] = w.reopen(c)
	default:
		if _, err := c.Step(context.Background(), clock()); err != nil {
			w.Fatal(err)
		}
	}
	w.replicas[i].check(w, w.origin)
}

// settle confirms all operations at every replica, and compares the replicas with the origin.
func (w *copies) settle() {
	for _, c := range w.replicas {
		c.push(w, w.origin, 1<<30)
	}
	want := digest(w, w.origin.View().KV())
	for _, c := range w.replicas {
		for c.Cursor().Seq < w.origin.Log().Head() {
			w.pull(c, 1+w.IntN(9))
		}
		c.check(w, w.origin)
		steps(w, c.Replica)
		c.check(w, w.origin)
		if last, settled := c.Outbox(); last != settled {
			w.Errorf("%s has made %d operations, of which %d are confirmed", c.by, last, settled)
		}
		w.names(c)
		if got := digest(w, c.store); got != want {
			w.Errorf("%s has digest %x, want %x", c.by, got, want)
		}
	}
}

// names compares the public names of pictures with the inputs that have them.
func (w *copies) names(c *testReplica) {
	want := map[string]uint32{}
	err := catalog.Read(c.store, app).Inputs(0, func(in catalog.Input) bool {
		if in.Hosted != [16]byte{} {
			want[string(in.Hosted[:])] = in.Ord
		}
		return true
	})
	lo, hi := catalog.HostedRange()
	err = errors.Join(err, c.store.Scan(lo, hi, func(key, value []byte) bool {
		name := string(key[1:17])
		if ord, ok := want[name]; !ok || ord != binary.BigEndian.Uint32(value) {
			w.Errorf("public name %x leads to %x, want %d, %v", name, value, ord, ok)
		}
		delete(want, name)
		return true
	}))
	if err != nil || len(want) > 0 {
		w.Errorf("public names of %v are missing, %v", want, err)
	}
}

// TestSameURLWithTwoPictures: a replica downloads a picture, and then pulls another picture that the origin downloaded from the same URL.
func TestSameURLWithTwoPictures(t *testing.T) {
	w := newCopies(t, rand.New(rand.NewPCG(1, 2)), 1, true)
	c := w.replicas[0]
	submit := func(p kind, by string, body log.Body) log.Dot {
		t.Helper()
		bodies := []log.Body{body}
		v, err := p.Submit(t.Context(), by, bodies, w.records(bodies))
		if err != nil || v[0].Code != fold.OK {
			t.Fatal(v, err)
		}
		return v[0].Dot
	}
	input := submit(w.origin, "key", &log.InputCreate{ID: "a", URL: "http://x/1", Hosted: [16]byte{1}})
	fetched := func(picture string) *log.InputFetched {
		return &log.InputFetched{Input: input, Code: catalog.InputReady, Blob: blob.Sum([]byte(picture)), ContentType: "image/png"}
	}
	w.pull(c, 9)
	submit(c.Replica, c.by, fetched("p"))
	submit(w.origin, "key", fetched("q"))
	w.pull(c, 1)
	c.check(w, w.origin)
	w.settle()
}

// TestReplicaEqualsFold compares replicas with plain folds of the log, for random steps in random order.
func TestReplicaEqualsFold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newCopies(t, rapidChooser{t}, 2, rapid.Bool().Draw(t, "vectors"))
		for range rapid.IntRange(1, 40).Draw(t, "acts") {
			w.act()
		}
		w.settle()
	})
}

// TestReplicaEqualsFoldLong is TestReplicaEqualsFold with more steps.
func TestReplicaEqualsFoldLong(t *testing.T) {
	testkit.SkipRace(t)
	for seed := range testkit.Seeds(t, 12, 500) {
		w := newCopies(t, rand.New(rand.NewPCG(seed, 1)), 3, seed%2 == 0)
		for i := 0; i < 250 && !t.Failed(); i++ {
			w.act()
		}
		w.settle()
	}
}

// visibleContents lists data that users see and that ContentDigest omits.
func visibleContents(t tb, r catalog.Reader) (out []string) {
	t.Helper()
	err := r.Models(func(m catalog.Model) bool {
		err := r.Versions(m.Dot, func(v catalog.Version) bool {
			out = append(out, fmt.Sprint("version ", m.Dot, v.ID, v.Code, v.Manifest, v.Concepts))
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprint("model ", m.ID, m.Newest))
		return true
	})
	counts, failed := r.Counts()
	err = errors.Join(err, failed, r.Feedback(func(f catalog.Feedback) bool {
		out = append(out, fmt.Sprint("feedback ", f.Dot, string(f.JSON)))
		return true
	}), r.PendingVersions(func(v catalog.Version) bool {
		out = append(out, fmt.Sprint("pending ", v.ID, v.RequestedAt))
		return true
	}), r.Inputs(0, func(in catalog.Input) bool {
		got, err := r.InputByDot(in.Dot)
		id, failed := r.Ord(in.ID)
		if err = errors.Join(err, failed); err != nil || got.Ord != in.Ord || id != in.Ord {
			t.Errorf("input %q of ordinal %d: %d, %d, %v", in.ID, in.Ord, got.Ord, id, err)
		}
		if in.Hosted != [16]byte{} {
			if _, ord, err := catalog.HostedInput(r.KV(), in.Hosted); err != nil || ord != in.Ord {
				t.Errorf("picture of input %d leads to %d, %v", in.Ord, ord, err)
			}
		}
		out = append(out, fmt.Sprint("input ", in.Dot, in.Created, in.Modified, in.Code, in.Detail, in.GeoAt))
		return true
	}))
	if err != nil {
		t.Fatal(err)
	}
	return append(slices.Clip(out), fmt.Sprint(counts))
}
