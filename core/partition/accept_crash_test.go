//go:build !wasip1

package partition_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/pebblekv/pebbletest"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/testkit"
)

// TestConvergeAccept cuts the power of an origin while edges push to it, each with several senders, and callers write to it. After a
// restart the log has every accepted operation. Each writer's operations are in order, once and without a gap. Pushing all again adds the
// missing ones.
func TestConvergeAccept(t *testing.T) {
	for seed := range testkit.Seeds(t, 160/clonesPerRun, 50_000/clonesPerRun) {
		acceptRun(t, seed)
	}
}

// outboxes has the operations that the edges of a run send, by writer, and the number of accepted ones.
type outboxes struct {
	ops map[log.Writer][]log.Op

	calls counter // answered calls

	mu       sync.Mutex
	accepted map[log.Writer]uint64
}

func newOutboxes(seed uint64) *outboxes {
	o := &outboxes{ops: map[log.Writer][]log.Op{}, accepted: map[log.Writer]uint64{}}
	for i := range log.Writer(2) {
		rng := rand.New(rand.NewPCG(seed, uint64(100+i)))
		by := edge + i
		var bodies []log.Body
		for len(bodies) < 400 {
			inputs := []log.Dot{{Writer: by, Seq: 1 + uint64(rng.IntN(len(bodies)+1))}}
			more, _ := draw(rng, fmt.Sprint(by, "-", len(bodies)), inputs)
			bodies = append(bodies, more...)
		}
		o.ops[by] = writerOps(by, 1, bodies...)
	}
	return o
}

// now returns the sequence of the last accepted operation of each writer.
func (o *outboxes) now() map[log.Writer]uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.accepted)
}

// records returns a function that adds the derived records of operations.
func records(ops []log.Op) func(*kv.Batch) {
	return func(b *kv.Batch) {
		for i := range ops {
			if c, ok := ops[i].Body.(*log.InputCreate); ok {
				catalog.PutDerived(b, app, space.Base, c.Blob, raster.Crop{}, derivedRecord(c.Blob))
			}
		}
	}
}

// send sends one writer's operations in parts, some of them repeatedly, until stop is closed.
func (o *outboxes) send(t *testing.T, p *partition.Origin, by log.Writer, rng *rand.Rand, stop chan struct{}) {
	defer o.calls.add(0)
	ops := o.ops[by]
	for {
		select {
		case <-stop:
			return
		default:
		}
		done, err := p.Names(by)
		if err != nil {
			t.Error(err)
			return
		}
		from := int(max(int64(done.Last())-int64(rng.IntN(6)), 0))
		part := ops[from:min(from+1+rng.IntN(8), len(ops))]
		if len(part) == 0 {
			part = ops[len(ops)-1:]
		}
		x := partition.Offer{Ops: part, Also: records(part)}
		if from > 0 {
			x.Before = ops[part[0].Dot.Seq-2].At
		}
		if _, _, err := p.AcceptOffer(t.Context(), &x); err != nil {
			t.Error(err)
			return
		}
		o.mu.Lock()
		o.accepted[by] = max(o.accepted[by], part[len(part)-1].Dot.Seq)
		o.mu.Unlock()
		o.calls.add(1)
	}
}

func acceptRun(t *testing.T, seed uint64) {
	disk := pebbletest.New()
	store, p := openOn(t, disk)
	out := newOutboxes(seed)
	var (
		done  acks
		group sync.WaitGroup
		stop  = make(chan struct{})
	)
	for by := range out.ops {
		for w := range 2 {
			group.Go(func() { out.send(t, p, by, rand.New(rand.NewPCG(seed, 10*uint64(by)+uint64(w))), stop) })
		}
	}
	group.Go(func() { writeUntil(t, p, rand.New(rand.NewPCG(seed, 1)), 0, &done, stop) })
	rng := rand.New(rand.NewPCG(seed, 99))
	type clone struct {
		fs       pebbletest.Disk
		acked    []ack
		accepted map[log.Writer]uint64
	}
	var clones []clone
	for len(clones) < clonesPerRun {
		out.calls.wait(t, rng.IntN(20))
		accepted := out.now()
		acked := done.now()
		clones = append(clones, clone{disk.Cut([]int{0, 50, 100}[rng.IntN(3)], rng), acked, accepted})
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
		out.check(t, p, c.accepted)
		checkCrashed(t, store, p, c.acked)
		if i == 0 {
			out.complete(t, p)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			t.Fatalf("seed %d, clone %d", seed, i)
		}
	}
}

// check compares the state after a crash with the operations that were accepted before it.
func (o *outboxes) check(t *testing.T, p *partition.Origin, accepted map[log.Writer]uint64) {
	t.Helper()
	next := map[log.Writer]uint64{}
	for _, e := range entries(t, p) {
		dot := e.Op.Dot
		if next[dot.Writer]++; dot.Seq != next[dot.Writer] {
			t.Fatalf("entry %d is %v, want operation %d of the writer", e.Seq, dot, next[dot.Writer])
		}
		if ops, ok := o.ops[dot.Writer]; ok && fmt.Sprintf("%T", e.Op.Body) != fmt.Sprintf("%T", ops[dot.Seq-1].Body) {
			t.Fatalf("entry %d is a %T, and a %T was sent", e.Seq, e.Op.Body, ops[dot.Seq-1].Body)
		}
	}
	for w := range o.ops {
		if next[w] < accepted[w] {
			t.Errorf("writer %v has %d operations in the log, %d were accepted", w, next[w], accepted[w])
		}
		if got := lastOf(t, p, w); got != next[w] {
			t.Errorf("writer %v is said to have %d operations, and has %d", w, got, next[w])
		}
	}
}

// complete sends all operations again.
func (o *outboxes) complete(t *testing.T, p *partition.Origin) {
	t.Helper()
	for w, ops := range o.ops {
		had := lastOf(t, p, w)
		v, _, err := p.Accept(t.Context(), ops, records(ops))
		if err != nil || len(v) != len(ops) {
			t.Fatalf("%d verdicts, %v", len(v), err)
		}
		for i := range v {
			if (v[i].Code == 0) != (uint64(i) < had) {
				t.Errorf("verdict %d of writer %v is %v, the log had %d", i, w, v[i].Code, had)
			}
		}
		if got := lastOf(t, p, w); got != uint64(len(ops)) {
			t.Errorf("writer %v has %d operations in the end, want %d", w, got, len(ops))
		}
	}
	again, _ := refold(t, p)
	view := p.View()
	defer view.Close()
	want, err := fold.Digest(again, app)
	if err != nil || digest(t, view.KV()) != want {
		t.Errorf("the state is not the fold of the log, %v", err)
	}
}
