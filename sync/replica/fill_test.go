package replica_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
)

// lacking returns a replica whose origin was restored to before "b" and "mine", and the backup. The replica is offline, and "pending" is in its
// outbox.
func lacking(t *testing.T) (r *rig, backup kv.Store) {
	t.Helper()
	r = newSealedRig(t)
	f := &full{}
	r.over = func(s kv.Store) kv.Store { f.Store = s; return f }
	r.crash()
	r.origin.submit(create("a"))
	r.settle()
	backup = copyOf(t, r.origin.store)
	r.origin.submit(create("b"))
	r.write(create("mine"))
	r.settle()
	r.step(replica.Offline{})
	r.write(create("pending"))
	r.origin.restore(copyOf(t, backup), log.Epoch{5})
	return r, backup
}

// TestFillForOlderSnapshot gives up a snapshot whose pieces the origin no longer has. The answer to the request for its entries arrives
// when the next snapshot is complete. The replica keeps the entries of that one, too.
func TestFillForOlderSnapshot(t *testing.T) {
	r := newSealedRig(t)
	r.origin.do = wire.DoRebase
	r.origin.submit(create("a"), create("b"), create("c")) // after the entry of the rules
	fills := func(a replica.Ask) bool { return a.Path == "/v2/sync/changes" }
	r.run(func() bool { return slices.ContainsFunc(r.requests, fills) }, 10)
	i := slices.IndexFunc(r.requests, fills)
	late := r.origin.answer(&r.requests[i])
	r.requests = slices.Delete(r.requests, i, i+1)
	r.origin.submit(create("d"), create("e"))
	if err := r.origin.export.Close(); err != nil {
		t.Fatal(err)
	}
	r.origin.export, r.origin.stable = nil, 4
	refused := r.origin.got["snapshot"]
	r.run(func() bool {
		return r.origin.got["snapshot"] >= refused+3 && (len(r.requests) == 0 || fills(r.requests[0]))
	}, 10)
	r.step(late)
	r.run(func() bool { return r.status().Cursor == 6 }, 50)
	var stored []string
	for _, f := range r.kept() {
		entries, err := log.DecodeRows(f.Rows, f.From)
		if err != nil {
			t.Fatal(err)
		}
		for i := range entries {
			stored = append(stored, entries[i].Op.Body.(*log.InputCreate).ID)
		}
	}
	if want := []string{"d", "e"}; !slices.Equal(stored, want) || r.status().Rebases != 1 {
		t.Errorf("after %d snapshots the replica keeps the inputs %v, want %v after 1", r.status().Rebases, stored, want)
	}
}

// TestFillWhileFull: the disk is full when the replica keeps the entries of a snapshot. It installs no snapshot without them and keeps what it has,
// which it gives back to an origin that is restored again meanwhile. With space it continues.
func TestFillWhileFull(t *testing.T) {
	for _, low := range []bool{false, true} {
		for _, again := range []bool{false, true} {
			r, backup := lacking(t)
			f := r.store.(*full)
			r.instead = func(a *replica.Ask) *wire.Refusal {
				if nameOf(a) == "fill" {
					f.low, f.is = low, !low
				}
				return nil
			}
			kept := r.kept()
			r.step(replica.Online{})
			r.run(func() bool { return strings.Contains(r.status().Problem, "the disk is full: ") }, 100)
			if s := r.status(); s.Rebases > 0 || s.Pending() != 1 || len(r.kept()) != len(kept) {
				t.Errorf("on a full disk %+v, %d frames of %d", s, len(r.kept()), len(kept))
			}
			if again {
				r.origin.restore(copyOf(t, backup), log.Epoch{6})
			}
			r.instead = nil
			f.low, f.is = false, false
			r.settle()
			r.equals("a", "b", "mine", "pending")
			r.keeps()
		}
	}
}

// TestUpdateNeeded: the origin answers one of the calls, or all, with a refusal of the protocol, as one of another version does. The replica keeps
// everything, reports that a side needs an update, and asks for a session ten minutes later at the earliest. Afterwards it continues.
func TestUpdateNeeded(t *testing.T) {
	for _, name := range []string{"", "session", "blobs/have", "upload", "back", "snapshot", "chunk", "fill", "changes", "push"} {
		r, _ := lacking(t)
		picture := r.picture(100)
		picture.ID = "picture"
		r.write(picture)
		old, refused := true, 0
		r.instead = func(a *replica.Ask) *wire.Refusal {
			if !old || name != "" && nameOf(a) != name {
				return nil
			}
			refused++
			return &wire.Refusal{Code: wire.RefusedProtocol, Detail: "version 3 of the protocol is needed: update this program", Min: 3, Max: 3}
		}
		r.step(replica.Online{})
		r.run(func() bool { return refused > 0 }, 100)
		kept := len(r.kept())
		for n := 0; len(r.requests) > 0 && n < 100; n++ {
			r.deliver(0)
		}
		calls := 0
		end := r.clock.Add(9 * time.Minute)
		for r.clock.Before(end) {
			r.clock = r.clock.Add(10 * time.Second)
			r.step(replica.Wake{})
			for len(r.requests) > 0 && calls < 100 {
				calls++
				r.deliver(0)
			}
		}
		s := r.status()
		if calls > 0 || !strings.Contains(s.Problem, "update this program") || s.Phase != replica.Connecting || s.Pending() == 0 {
			t.Errorf("%q: %d calls in nine minutes, %+v", name, calls, s)
		}
		if got := inputs(t, r.store); !slices.Contains(got, "b") || !slices.Contains(got, "picture") || len(r.kept()) < kept {
			t.Errorf("%q: the replica has %q, and %d frames of %d", name, got, len(r.kept()), kept)
		}
		old = false
		r.run(func() bool { return r.origin.got["back"] > 0 }, 100)
		if s := r.status(); name == "session" && (s.Problem != "" || s.Denied != "") {
			t.Errorf("while the replica gives back after the update: %+v", s)
		}
		r.run(r.isSettled, 100)
		r.equals("a", "b", "mine", "pending", "picture")
		if s := r.status(); s.Problem != "" || s.Denied != "" {
			t.Errorf("%q: after the update %+v", name, s)
		}
	}
}

// TestPowerCutInRebase: the power fails after each batch that a replica writes while it keeps the entries of a snapshot and installs it, in one
// batch or in several. The origin is restored once more before the next contact, or only restarted.
func TestPowerCutInRebase(t *testing.T) {
	for _, batch := range []int{0, 1} {
		r, backup := lacking(t)
		r.batch = batch
		r.reopen(r.image())
		first := len(r.disk.batches)
		r.run(func() bool { return r.status().Rebases == 1 }, 100)
		whole, restored := r.image(), copyOf(t, r.origin.store)
		if len(whole.batches) < first+3+batch {
			t.Fatalf("%d batches were written", len(whole.batches)-first)
		}
		for n := first; n <= len(whole.batches); n++ {
			for _, again := range []bool{false, true} {
				if again {
					r.origin.restore(copyOf(t, backup), log.Epoch{6, byte(n)})
				} else {
					r.origin.restore(copyOf(t, restored), log.Epoch{7, byte(n)})
				}
				r.reopen(&disk{batches: slices.Clone(whole.batches[:n]), durable: n})
				r.settle()
				r.equals("a", "b", "mine", "pending")
				if s := r.status(); s.Refused > 0 || s.Problem != "" {
					t.Errorf("after batch %d of %d to %d: %+v", n, first, len(whole.batches), s)
				}
			}
		}
	}
}
