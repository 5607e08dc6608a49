package partition_test

import (
	"errors"
	"testing"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

const newer = fold.Version + 1

// knows returns the options of a program that knows the rules up to a version.
func knows(store kv.Store, of catalog.AppID, rules uint32) partition.Options {
	return partition.Options{Store: store, App: of, Clock: clock, Epoch: opening(), Rules: rules}
}

// rulesIn returns the sequence numbers of the log entries that put rules in force.
func rulesIn(t *testing.T, p *partition.Origin) (seqs []uint64) {
	t.Helper()
	err := p.Log().Read(1, func(e log.Entry) bool {
		if _, ok := e.Op.Body.(*log.Rules); ok {
			seqs = append(seqs, e.Seq)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return seqs
}

// TestRules: a newer version of the program opens an origin's folder. It writes its rules to the log once, and no older version opens the
// folder again. It writes none to the control log, which nobody pulls.
func TestRules(t *testing.T) {
	store := kvtest.OrLate(t, memkv.New())
	must := func(p *partition.Origin, err error) *partition.Origin {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := must(partition.OpenOrigin(knows(store, app, fold.FirstVersion)))
	submit(t, p, create("a"))
	if got := rulesIn(t, p); p.Rules() != fold.FirstVersion || len(got) != 0 {
		t.Errorf("rules %d, said at %v", p.Rules(), got)
	}
	for range 2 {
		p = must(partition.OpenOrigin(knows(store, app, newer)))
		if got := rulesIn(t, p); len(got) != 1 || got[0] != 2 {
			t.Errorf("the rules are said at %v, want once at 2", got)
		}
	}
	submit(t, p, create("b"))
	if h, err := p.Header(); err != nil || h.Fold != newer || h.Seq != 3 {
		t.Errorf("%+v, %v", h, err)
	}
	if _, err := partition.OpenOrigin(knows(store, app, fold.Version)); !errors.Is(err, fold.ErrNewer) {
		t.Errorf("a program of before: %v, want ErrNewer", err)
	}
	if p = must(partition.OpenOrigin(knows(kvtest.OrLate(t, memkv.New()), catalog.Control, newer))); p.Log().Head() != 0 {
		t.Errorf("the control log has %d entries", p.Log().Head())
	}
	if p = must(partition.OpenOrigin(knows(kvtest.OrLate(t, memkv.New()), app, newer))); p.Log().Head() != 1 {
		t.Errorf("a new log has %d entries, want one that says its rules", p.Log().Head())
	}
}

// TestRulesStop: a replica does not pull past unknown rules. It does not change, accepts operations as before, and a newer program
// continues from there.
func TestRulesStop(t *testing.T) {
	at := kvtest.OrLate(t, memkv.New())
	origin, err := partition.OpenOrigin(knows(at, app, fold.FirstVersion))
	if err != nil {
		t.Fatal(err)
	}
	submit(t, origin, create("a"))
	store := kvtest.OrLate(t, memkv.New())
	p, err := partition.OpenReplica(knows(store, app, 0), partition.ReplicaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Pull(t.Context(), run(t, origin, p.Cursor(), 99)); err != nil {
		t.Fatal(err)
	}
	submit(t, p, create("mine"))
	if origin, err = partition.OpenOrigin(knows(at, app, newer)); err != nil {
		t.Fatal(err)
	}
	submit(t, origin, create("b"))
	before := p.Cursor()
	for range 2 {
		if _, err := p.Pull(t.Context(), run(t, origin, p.Cursor(), 99)); !errors.Is(err, fold.ErrNewer) {
			t.Fatalf("Pull = %v, want ErrNewer", err)
		}
		submit(t, p, create(""))
	}
	if last, settled := p.Outbox(); p.Cursor() != before || last != 3 || settled != 0 {
		t.Errorf("cursor %+v, was %+v; %d operations, %d confirmed", p.Cursor(), before, last, settled)
	}
	if p, err = partition.OpenReplica(knows(store, app, newer), partition.ReplicaOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Pull(t.Context(), run(t, origin, p.Cursor(), 99)); err != nil || p.Cursor().Seq != 3 {
		t.Errorf("a newer program: %v, at %d", err, p.Cursor().Seq)
	}
	if last, settled := p.Outbox(); last != 3 || settled != 0 {
		t.Errorf("%d operations, %d confirmed", last, settled)
	}
}
