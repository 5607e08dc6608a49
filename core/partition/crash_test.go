//go:build !wasip1

package partition_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/kv/pebblekv"
	"github.com/sightline-dev/sightline/core/kv/pebblekv/pebbletest"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/testkit"
)

// clonesPerRun is the number of power failures in one run.
const clonesPerRun = 8

// TestKillPartition cuts the power of partitions that several callers write to. After a restart every acknowledged operation has
// its verdict, the state is the fold of the log, no batch is torn, and the index agrees with the records.
func TestKillPartition(t *testing.T) {
	for seed := range testkit.Seeds(t, 2000/clonesPerRun, 100_000/clonesPerRun) {
		crashRun(t, seed)
	}
}

// ack is an operation that was acknowledged.
type ack struct {
	dot  log.Dot
	code fold.Code
}

// counter counts what several do, for one who waits for it without taking their processor. Its zero value is ready.
type counter struct {
	mu   sync.Mutex
	n    int
	more sync.Cond
}

// add counts n more; 0 means a failure.
func (c *counter) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.more.L = &c.mu
	c.n += n
	c.more.Broadcast()
}

// wait waits for n more than there are, or for the failure of those who would do them.
func (c *counter) wait(t *testing.T, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.more.L = &c.mu
	for target := c.n + n; c.n < target && !t.Failed(); {
		c.more.Wait()
	}
}

// acks are the acknowledged operations by now.
type acks struct {
	grown counter

	mu   sync.Mutex
	list []ack
}

func (a *acks) add(first log.Dot, verdicts []fold.Verdict) {
	a.mu.Lock()
	for i, v := range verdicts {
		a.list = append(a.list, ack{log.Dot{Writer: first.Writer, Seq: first.Seq + uint64(i)}, v.Code})
	}
	a.mu.Unlock()
	a.grown.add(len(verdicts))
}

func (a *acks) now() []ack {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.list[:len(a.list):len(a.list)]
}

var space = index.Space{Base: [32]byte{7}, Concepts: []string{"ai_a", "ai_b", "ai_c"}}

func openOn(t testing.TB, fs vfs.FS) (*pebblekv.Store, *partition.Origin) {
	t.Helper()
	store, err := pebblekv.Open("data", pebblekv.Options{FS: fs, MemTableBytes: 64 << 10, CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	p, err := partition.OpenOrigin(partition.Options{
		Store: store, App: app, Clock: clock, Epoch: opening(), Index: &index.Options{Space: space},
	})
	if err != nil {
		t.Fatal(err)
	}
	return store, p
}

func crashRun(t *testing.T, seed uint64) {
	disk := pebbletest.New()
	store, p := openOn(t, disk)
	var (
		done  acks
		group sync.WaitGroup
		stop  = make(chan struct{})
	)
	const writers = 3
	for w := range writers {
		group.Go(func() { writeUntil(t, p, rand.New(rand.NewPCG(seed, uint64(w))), w, &done, stop) })
	}
	rng := rand.New(rand.NewPCG(seed, 99))
	type clone struct {
		fs    pebbletest.Disk
		acked []ack
	}
	var clones []clone
	for len(clones) < clonesPerRun {
		done.grown.wait(t, rng.IntN(12))
		acked := done.now()
		percent := []int{0, 50, 100}[rng.IntN(3)]
		clones = append(clones, clone{disk.Cut(percent, rng), acked})
	}
	close(stop)
	group.Wait()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	for i, c := range clones {
		store, p := openOn(t, c.fs)
		checkCrashed(t, store, p, c.acked)
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			t.Fatalf("seed %d, clone %d", seed, i)
		}
	}
}

// writeUntil writes random operations until it is stopped.
func writeUntil(t *testing.T, p *partition.Origin, rng *rand.Rand, w int, done *acks, stop chan struct{}) {
	defer done.grown.add(0)
	var inputs []log.Dot
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		bodies, also := draw(rng, fmt.Sprintf("%d-%d", w, i), inputs)
		v, err := p.Submit(context.Background(), "key", bodies, also)
		if err != nil {
			t.Error(err)
			return
		}
		dot := dotOf(t, p, v, bodies)
		done.add(dot, v)
		for i, x := range v {
			if _, ok := bodies[i].(*log.InputCreate); ok && x.Code == fold.OK {
				inputs = append(inputs, x.Dot)
			}
		}
		if rng.IntN(4) == 0 {
			if _, err := p.Step(context.Background(), clock()); err != nil {
				t.Error(err)
				return
			}
		}
	}
}

// dotOf finds the first operation of a Submit, whose last always makes a workflow.
func dotOf(t *testing.T, p *partition.Origin, v []fold.Verdict, bodies []log.Body) log.Dot {
	t.Helper()
	last := v[len(v)-1]
	if last.Code != fold.OK {
		t.Errorf("workflow: %+v", last)
	}
	return log.Dot{Writer: last.Dot.Writer, Seq: last.Dot.Seq - uint64(len(bodies)-1)}
}

// draw makes the bodies of one Submit, and a function that adds the records that they need.
func draw(rng *rand.Rand, id string, inputs []log.Dot) ([]log.Body, func(*kv.Batch)) {
	var bodies []log.Body
	var pictures []blob.Hash
	for n := range 1 + rng.IntN(3) {
		var dot log.Dot
		if len(inputs) > 0 {
			dot = inputs[rng.IntN(len(inputs))]
		}
		switch k := rng.IntN(20); {
		case k < 10:
			picture := blob.Sum([]byte{byte(rng.IntN(30))})
			pictures = append(pictures, picture)
			bodies = append(bodies, &log.InputCreate{
				ID: fmt.Sprint(id, "-", n), Blob: picture, ContentType: "image/png", Hosted: hostedName(fmt.Sprint(id, "-", n)),
				Labels: []log.Label{{Concept: "x", Value: log.True}}, Meta: []byte(`{"k":[1,2]}`), Geo: &log.Point{Longitude: float64(rng.IntN(90))},
			})
		case k < 13:
			bodies = append(bodies, &log.InputLabels{Input: dot, Labels: []log.Label{{Concept: "y", Value: log.Value(rng.IntN(3))}}})
		case k < 15:
			bodies = append(bodies, &log.InputMeta{Input: dot, Writes: []log.MetaWrite{{Path: []string{"m"}, JSON: []byte("1")}}})
		case k < 19:
			bodies = append(bodies, &log.InputDelete{Input: dot})
		default:
			bodies = append(bodies, &log.InputDeleteAll{})
		}
	}
	bodies = append(bodies, &log.WorkflowCreate{ID: id, Nodes: []log.WorkflowNode{{ID: "1", Model: "general"}}})
	return bodies, func(b *kv.Batch) {
		for _, picture := range pictures {
			catalog.PutDerived(b, app, space.Base, picture, raster.Crop{}, derivedRecord(picture))
		}
	}
}

// hostedName returns a public name that only one input has.
func hostedName(id string) [16]byte {
	sum := blob.Sum([]byte(id))
	return [16]byte(sum[:16])
}

// derivedRecord returns a derived record that follows from the picture alone.
func derivedRecord(picture blob.Hash) catalog.DerivedData {
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
	x := catalog.DerivedData{Embedding: data, Values: make([]float32, len(space.Concepts))}
	for i := range x.Values {
		x.Values[i] = rng.Float32()
	}
	return x
}

// checkCrashed compares the state after a crash with the operations that were acknowledged before it.
func checkCrashed(t *testing.T, store kv.Store, p *partition.Origin, acked []ack) {
	t.Helper()
	again, codes := refold(t, p)
	for _, a := range acked {
		if got, ok := codes[a.dot]; !ok || got != a.code {
			t.Errorf("operation %v was acknowledged with %v and has %v, %v", a.dot, a.code, got, ok)
		}
	}
	if digest(t, store) != digest(t, again) {
		t.Error("the state is not the fold of the log")
	}
	view := p.View()
	consistent(t, view)
	err := view.Inputs(0, func(in catalog.Input) bool {
		if _, err := view.DerivedOfInput(space.Base, &in); err != nil {
			t.Errorf("input %q at 30000: %v", in.ID, err)
		}
		if _, ord, err := catalog.HostedInput(store, in.Hosted); err != nil || ord != in.Ord {
			t.Errorf("picture of input %d leads to %d, %v", in.Ord, ord, err)
		}
		return true
	})
	if err != nil {
		t.Error(err)
	}
	if err := p.Index().Check(context.Background(), view.Reader); err != nil {
		t.Errorf("index: %v", err)
	}
	if err := view.Close(); err != nil {
		t.Error(err)
	}
	submit(t, p, create("after"))
	steps(t, p)
	view = p.View()
	if err := p.Index().Check(context.Background(), view.Reader); err != nil {
		t.Errorf("index after steps: %v", err)
	}
	if err := view.Close(); err != nil {
		t.Error(err)
	}
}

// refold folds the log from its beginning into another store.
func refold(t *testing.T, p *partition.Origin) (kv.Store, map[log.Dot]fold.Code) {
	t.Helper()
	store := kvtest.OrLate(t, memkv.New())
	codes := map[log.Dot]fold.Code{}
	f := fold.New(app)
	tx := kv.NewOverlay(store)
	if err := f.Begin(tx); err != nil {
		t.Fatal(err)
	}
	err := p.Log().Read(1, func(e log.Entry) bool {
		v, err := f.Apply(&e)
		if err != nil {
			t.Fatal(err)
		}
		codes[e.Op.Dot] = v.Code
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(codes) == 0 {
		return store, codes
	}
	f.End()
	if err := store.Apply(tx.Batch()); err != nil {
		t.Fatal(err)
	}
	return store, codes
}
