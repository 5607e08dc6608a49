package replica_test

import (
	"errors"
	"fmt"
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
	own := r.write(create("a"), r.picture(20))
	r.origin.local = true
	r.origin.submit(create("secret"))
	r.origin.got = map[string]int{}
	r.step(replica.Online{})
	r.run(func() bool { return r.status().Phase == replica.Purged }, 50)
	for _, dot := range own {
		if !r.origin.has(dot) {
			t.Errorf("the origin lacks %v", dot)
		}
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
// had, once each, also if the replica has made some in another opening. The replica is then emptied.
func TestDrainRestored(t *testing.T) {
	for _, reopened := range []bool{false, true} {
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
			if reopened {
				r.crash()
				r.step(replica.Offline{})
			}
			if pending {
				r.write(create("pending"), r.picture(20))
				want = append(want, "pending", "") // a picture has no ID
			}
			r.origin.restore(backup, log.Epoch{5})
			r.origin.local = true
			lost := false
			r.wire = func(a *replica.Ask, _ *replica.Answer) bool {
				if a.Path != "/v2/sync/push" || lost {
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
					t.Errorf("reopened %v, pending %v: the origin has %v, want %v once each", reopened, pending, got, want)
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
	own := r.write(create("a"))
	r.origin.local = true
	late := false
	r.wire = func(a *replica.Ask, x *replica.Answer) bool {
		if a.Path == "/v2/sync/push" && !late {
			late = true
			own = append(own, r.write(create("b"))...)
		}
		return true
	}
	r.step(replica.Stop{})
	r.step(replica.Begin{})
	r.run(func() bool { return r.status().Phase == replica.Purged }, 50)
	if len(own) != 2 || !r.origin.has(own[0]) || !r.origin.has(own[1]) {
		t.Errorf("the origin lacks some of %v", own)
	}
}

// TestDrainOtherLog: an application becomes local only at an origin whose log is another one than the replica has pulled, and which takes
// nothing back. The replica sends its outbox to that log, and is then emptied.
func TestDrainOtherLog(t *testing.T) {
	r := newRig(t, replica.Options{})
	r.origin.stable = 1
	r.origin.submit(create("old"))
	backup := copyOf(t, r.origin.store)
	r.settle()
	own := r.write(create("a"))
	r.settle()
	r.step(replica.Offline{})
	own = append(own, r.write(create("b"))...)
	r.origin.restore(backup, log.Epoch{5})
	r.origin.local = true
	r.step(replica.Online{})
	r.run(func() bool { return r.status().Phase == replica.Purged }, 50)
	for _, dot := range own {
		if !r.origin.has(dot) {
			t.Errorf("the origin lacks %v", dot)
		}
	}
}

// TestDrainRefused: operations that the origin does not take stay in the replica, which sends them when the application is shared again.
func TestDrainRefused(t *testing.T) {
	for _, refusal := range []wire.Refusal{{Code: wire.RefusedContent}, {Code: wire.RefusedWriter}, {Code: wire.RefusedQuota, WaitMillis: 1000}} {
		r := newRig(t, replica.Options{})
		r.settle()
		r.step(replica.Offline{})
		r.write(create("a"))
		r.origin.local = true
		pushes := 0
		r.instead = func(a *replica.Ask) *wire.Refusal {
			if a.Path != "/v2/sync/push" || !r.origin.local {
				return nil
			}
			pushes++
			return &refusal
		}
		r.step(replica.Online{})
		r.run(func() bool { return pushes > 1 || r.status().Phase == replica.Purged }, 50)
		if s := r.status(); s.Phase != replica.Paused || s.Problem == "" || s.Pending() != 1 {
			t.Errorf("code %d: status %+v", refusal.Code, s)
		}
		missing := blob.Sum([]byte("elsewhere"))
		r.step(replica.BlobWanted{Blob: missing})
		if want := (replica.BlobReady{Blob: missing, Err: blob.ErrNotFound}); !slices.Contains(r.effects, replica.Effect(want)) {
			t.Errorf("a picture that the origin does not send is not answered: %v", r.effects)
		}
		r.origin.local = false
		r.step(replica.Offline{})
		r.step(replica.Online{})
		r.settle()
		r.agree()
	}
}

// TestDrainNothing: a replica without operations that the origin may lack is emptied at once, whatever it has sent before.
func TestDrainNothing(t *testing.T) {
	for _, writes := range []int{0, 3} {
		for _, reopened := range []bool{false, true} {
			r := newRig(t, replica.Options{})
			r.origin.submit(create("a"))
			for i := range writes {
				r.write(create(fmt.Sprint("mine", i)))
			}
			r.settle()
			r.origin.local = true
			r.origin.got = map[string]int{}
			if reopened {
				r.disk.durable = len(r.disk.batches)
				r.crash()
			} else {
				r.step(replica.Offline{})
				r.step(replica.Online{})
			}
			r.run(func() bool { return r.status().Phase == replica.Purged }, 2)
			if n := r.origin.got["push"]; n > 0 {
				t.Errorf("%d writes, reopened %v: %d pushes", writes, reopened, n)
			}
		}
	}
}
