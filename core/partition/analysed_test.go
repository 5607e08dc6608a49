//go:build !wasip1

package partition_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// TestDerivedRecordsOfAnotherBase adds derived records of another base model to existing inputs, all or none, and deletes those of the
// first model.
func TestDerivedRecordsOfAnotherBase(t *testing.T) {
	store := &faulty{Store: kvtest.OrLate(t, memkv.New())}
	next := index.Space{Base: [32]byte{8}, Concepts: space.Concepts}
	p, err := partition.OpenOrigin(partition.Options{Store: store, App: app, Clock: clock, Index: &index.Options{Space: space, Next: &next}})
	if err != nil {
		t.Fatal(err)
	}
	a, b := create("a"), create("b")
	verdicts, err := p.Submit(context.Background(), "", []log.Body{a, b}, func(batch *kv.Batch) {
		for _, c := range []*log.InputCreate{a, b} {
			catalog.PutDerived(batch, app, space.Base, c.Blob, c.Crop, derivedRecord(c.Blob))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	lacking := func() []uint32 {
		t.Helper()
		v := p.View()
		defer v.Close()
		set, err := p.Index().At(v.Reader).UnanalysedInputs(next.Base)
		if err != nil {
			t.Fatal(err)
		}
		return set.ToArray()
	}
	analysed := func() error {
		dots := []log.Dot{verdicts[0].Dot, {Writer: 1, Seq: 99}} // the second input does not exist, as after a deletion
		return p.AddDerived(dots, func(w kv.Writer, inputs []catalog.Input) {
			if len(inputs) != 1 || inputs[0].ID != "a" {
				t.Errorf("inputs %v, want a alone", inputs)
			}
			catalog.PutDerived(w, app, next.Base, a.Blob, a.Crop, derivedRecord(a.Blob))
		})
	}
	broken := errors.New("broken")
	for _, fault := range []*error{&store.room, &store.apply} {
		store.set(fault, broken)
		if err := analysed(); !errors.Is(err, broken) {
			t.Errorf("Analysed = %v, want %v", err, broken)
		}
		store.set(fault, nil)
		if got := lacking(); !slices.Equal(got, []uint32{0, 1}) {
			t.Fatalf("inputs %v lack the base model, want both", got)
		}
	}
	if err := analysed(); err != nil {
		t.Fatal(err)
	}
	if got := lacking(); !slices.Equal(got, []uint32{1}) {
		t.Errorf("inputs %v lack the base model, want the second", got)
	}

	if err := p.ForgetBase(space.Base); err != nil {
		t.Fatal(err)
	}
	for more := true; more; {
		if more, err = p.Step(context.Background(), clock()); err != nil {
			t.Fatal(err)
		}
	}
	r := catalog.Read(store, app)
	if _, err := r.DerivedOf(space.Base, a.Blob, a.Crop); !errors.Is(err, catalog.ErrNotFound) {
		t.Errorf("derived record of the forgotten base model: %v", err)
	}
	if _, err := r.DerivedOf(next.Base, a.Blob, a.Crop); err != nil {
		t.Errorf("derived record of the other: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := analysed(); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("Analysed of a closed partition = %v, want %v", err, kv.ErrClosed)
	}
}

// TestDerivedRecordsOfEarlierInputs adds derived records with pictures whose earlier inputs have none: at an origin, and at a replica that
// pulled the earlier inputs from an origin without an index.
func TestDerivedRecordsOfEarlierInputs(t *testing.T) {
	source := open(t, kvtest.OrLate(t, memkv.New()))
	submit(t, source, create("a"), create("b"), create("c"))
	o := partition.Options{Store: kvtest.OrLate(t, memkv.New()), App: app, Clock: clock, Index: &index.Options{Space: space}}
	origin, err := partition.OpenOrigin(o)
	if err != nil {
		t.Fatal(err)
	}
	submit(t, origin, create("a"), create("b"), create("c"))
	o.Store, o.Epoch = kvtest.OrLate(t, memkv.New()), opening()
	replica, err := partition.OpenReplica(o, partition.ReplicaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := replica.Pull(context.Background(), run(t, source, replica.Cursor(), 9)); err != nil {
		t.Fatal(err)
	}
	duplicate := create("b")
	duplicate.ID, duplicate.AllowDuplicate = "again", true
	for name, p := range map[string]*partition.Partition{"origin": origin.Partition, "replica": replica.Partition} {
		// The first is refused; its record belongs to an existing input, which the third changes in the same batch.
		v := p.View()
		first, err := v.InputByID("a")
		if err = errors.Join(err, v.Close()); err != nil {
			t.Fatal(err)
		}
		bodies := []log.Body{create("a"), duplicate, isTrue(first.Dot, "x")}
		verdicts, err := p.Submit(context.Background(), "", bodies, func(batch *kv.Batch) {
			for _, b := range bodies[:2] {
				c := b.(*log.InputCreate)
				catalog.PutDerived(batch, app, space.Base, c.Blob, c.Crop, derivedRecord(c.Blob))
			}
		})
		if err != nil || verdicts[0].Code != fold.Duplicate || verdicts[1].Code != fold.OK || verdicts[2].Code != fold.OK {
			t.Fatalf("%s: %+v, %v", name, verdicts, err)
		}
		v = p.View()
		if err := p.Index().Check(context.Background(), v.Reader); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		lacking, err := p.Index().At(v.Reader).UnanalysedInputs(space.Base)
		if err != nil || !slices.Equal(lacking.ToArray(), []uint32{2}) {
			t.Errorf("%s: inputs %v, %v lack the base model, want the third", name, lacking, err)
		}
		v.Close()
	}
}
