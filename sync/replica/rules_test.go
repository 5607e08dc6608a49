package replica_test

import (
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
)

// TestNewerRules: fold rules that a replica does not know take effect during a session. The replica pauses before their entry and reports
// this. It still serves and pushes, and asks for a session at most every ten minutes. A newer version of it continues.
func TestNewerRules(t *testing.T) {
	for _, live := range []replica.Live{replica.Stream, replica.Poll} {
		r := newRig(t, replica.Options{Live: live})
		r.origin.submit(create("a"))
		r.settle()
		var err error
		r.origin.part, err = partition.OpenOrigin(partition.Options{Store: r.origin.store, App: app, Clock: r.now, Epoch: log.Epoch{1}, Rules: fold.Version + 1})
		if err != nil {
			t.Fatal(err)
		}
		r.origin.submit(create("b"))
		r.write(create("mine"))
		paused := func() bool { s := r.status(); return s.Phase == replica.Paused && s.Accepted == 1 }
		r.run(paused, 50)
		s := r.status()
		if s.Cursor != 1 || s.Issued != 1 || s.Folded != 0 || s.Problem == "" {
			t.Errorf("%v: %+v", live, s)
		}
		before := r.total
		for range 18 {
			r.clock = r.clock.Add(10 * time.Second)
			r.step(replica.Wake{})
			for len(r.requests) > 0 {
				r.deliver(0)
			}
		}
		if s = r.status(); s.Cursor != 1 || s.Phase != replica.Paused || r.total > before+1 {
			t.Errorf("%v: after three minutes and %d requests: %+v", live, r.total-before, s)
		}
		r.rules = fold.Version + 1
		r.crash()
		r.settle()
		r.agree()
		if s = r.status(); s.Problem != "" || s.Folded != 1 || s.Cursor != 4 {
			t.Errorf("%v: a newer version: %+v", live, s)
		}
	}
}

// TestNewerSnapshot does the same with a snapshot of newer rules.
func TestNewerSnapshot(t *testing.T) {
	r := newRig(t, replica.Options{})
	r.origin.submit(create("a"), create("b"))
	if err := r.origin.part.Log().Trim(3); err != nil {
		t.Fatal(err)
	}
	newer := true
	r.wire = func(a *replica.Ask, x *replica.Answer) bool {
		if newer {
			edit(a, x, "snapshot", wire.DecodeManifest, func(m *wire.Manifest) { m.Fold = fold.Version + 1 })
		}
		return true
	}
	r.write(create("mine"))
	r.run(func() bool { s := r.status(); return s.Phase == replica.Paused && s.Accepted == 1 }, 50)
	before := r.total
	for range 18 {
		r.clock = r.clock.Add(10 * time.Second)
		r.step(replica.Wake{})
		for len(r.requests) > 0 {
			r.deliver(0)
		}
	}
	if s := r.status(); s.Cursor != 0 || s.Phase != replica.Paused || s.Problem == "" || r.total > before {
		t.Errorf("after three minutes and %d requests: %+v", r.total-before, s)
	}
	newer = false
	r.settle()
	r.agree()
	if s := r.status(); s.Problem != "" || s.Folded != 1 || s.Rebases != 1 {
		t.Errorf("an origin of rules that it knows: %+v", s)
	}
}
