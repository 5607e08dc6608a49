package replica_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
)

// TestDrain: a replica of an application that becomes local only sends its own operations and their pictures, asks for nothing, and is
// then emptied; what it acknowledged is in the origin's log.
func TestDrain(t *testing.T) {
	r := newRig(t, replica.Options{Wants: wire.Wants{Blobs: wire.BlobsFull}})
	r.origin.submit(r.picture(1))
	r.settle()
	r.step(replica.Offline{})
	r.write(create("a"), r.picture(20))
	r.origin.local = true
	r.origin.submit(create("secret"))
	r.origin.got = map[string]int{}
	site, own := r.status().Site, r.status().Issued
	r.step(replica.Online{})
	r.run(func() bool { return r.status().Phase == replica.Purged }, 50)
	if got, err := r.origin.part.SiteSeq(site); err != nil || got != own {
		t.Errorf("the origin has %d of %d operations, %v", got, own, err)
	}
	if n := r.origin.got["changes"] + r.origin.got["snapshot"] + r.origin.got["digest"]; n > 0 {
		t.Errorf("it asked for what is not for it: %v", r.origin.got)
	}
	want := replica.Purge{Reason: "local only"}
	if !slices.Contains(r.effects, replica.Effect(want)) {
		t.Errorf("effects %v, want %+v", r.effects, want)
	}
	if _, err := r.part.Submit(t.Context(), "key", []log.Body{create("late")}, nil); !errors.Is(err, auth.ErrKeyUnknown) {
		t.Errorf("a write after the last push: %v, want it refused", err)
	}
}

// TestDrainRestored: a restored origin keeps an application local only. It gets from a replica what it lacks, with operations that it never
// had, once each, also if the replica's site is later than the backup. The replica is then emptied.
func TestDrainRestored(t *testing.T) {
	for _, known := range []bool{true, false} {
		for _, pending := range []bool{false, true} {
			r := newSealedRig(t)
			r.origin.submit(create("a"))
			r.settle()
			backup := copyOf(t, r.origin.store)
			r.write(create("mine"))
			r.settle()
			r.origin.submit(create("b"))
			r.settle()
			r.step(replica.Offline{})
			want := []string{"a", "b", "mine"}
			if pending {
				r.write(create("pending"), r.picture(20))
				want = append(want, "pending", "") // a picture has no ID
			}
			r.origin.restore(backup, log.Epoch{5})
			r.origin.local = true
			if !known {
				r.refuses(r.status().Site)
			}
			lost := false
			r.wire = func(a *replica.Ask, _ *replica.Answer) bool {
				p, err := wire.DecodePush(a.Body)
				if err != nil || a.Path != "/v2/sync/push" || p.Again || lost {
					return true
				}
				lost = true
				return false
			}
			r.step(replica.Online{})
			r.run(func() bool { return r.status().Phase == replica.Purged || lost }, 100)
			if pending {
				r.crash() // after it sent all
			}
			r.run(func() bool { return r.status().Phase == replica.Purged }, 100)
			got := r.origin.dots()
			for _, id := range want {
				if got[id] != 1 {
					t.Errorf("known %v, pending %v: the origin has %v, want %v once each", known, pending, got, want)
				}
			}
		}
	}
}

// TestDrainMidway: an operation that is made while others are on their way is sent too, and a stream that is open when the application
// becomes local only ends.
func TestDrainMidway(t *testing.T) {
	r := newRig(t, replica.Options{Live: replica.Stream})
	r.settle()
	r.write(create("a"))
	r.origin.local = true
	late := false
	r.wire = func(a *replica.Ask, x *replica.Answer) bool {
		if a.Path == "/v2/sync/push" && !late {
			late = true
			r.write(create("b"))
		}
		return true
	}
	r.step(replica.Stop{})
	r.step(replica.Begin{})
	r.run(func() bool { return r.status().Phase == replica.Purged }, 50)
	if got, err := r.origin.part.SiteSeq(r.status().Site); err != nil || got != 2 || !late {
		t.Errorf("the origin has %d of 2 operations, %v", got, err)
	}
}

// TestDrainOtherLog: operations that the origin cannot take stay in the replica, which sends them when the application is shared again.
func TestDrainOtherLog(t *testing.T) {
	r := newRig(t, replica.Options{})
	backup := copyOf(t, r.origin.store)
	r.settle()
	r.step(replica.Offline{})
	r.write(create("a"))
	r.origin.restore(backup, log.Epoch{5})
	r.origin.local = true
	r.step(replica.Online{})
	r.run(func() bool { s := r.status(); return s.Phase == replica.Paused || s.Phase == replica.Purged }, 50)
	if s := r.status(); s.Problem == "" || s.Pending() != 1 {
		t.Errorf("status %+v", s)
	}
	missing := blob.Sum([]byte("elsewhere"))
	r.step(replica.BlobWanted{Blob: missing})
	if want := (replica.BlobReady{Blob: missing, Err: blob.ErrNotFound}); !slices.Contains(r.effects, replica.Effect(want)) {
		t.Errorf("a picture that the origin does not send is not answered: %v", r.effects)
	}
	r.origin.local = false
	r.clock = r.wake
	r.step(replica.Wake{})
	r.settle()
	r.agree()
}
