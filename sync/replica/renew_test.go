package replica_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
)

// TestWriteBesideARollback: a replica whose disk was rolled back writes while its session is answered. Its new write has the sequence of
// one that the origin has from before, and reaches the origin all the same.
func TestWriteBesideARollback(t *testing.T) {
	r := newRig(t, replica.Options{})
	r.settle()
	r.write(create("a"))
	r.settle()
	image := &disk{batches: slices.Clone(r.disk.batches), durable: len(r.disk.batches)}
	r.write(create("before"))
	r.settle()
	r.disk = image
	r.requests = nil
	r.start()
	wrote := false
	r.wire = func(a *replica.Ask, _ *replica.Answer) bool {
		if a.Path == "/v2/sync/session" && !wrote {
			wrote = true
			r.write(create("after"))
		}
		return true
	}
	r.step(replica.Begin{})
	r.run(func() bool { return r.isSettled() && wrote }, 200)
	r.agree()
	if ids := inputs(t, r.origin.store); !slices.Contains(ids, "before") || !slices.Contains(ids, "after") {
		t.Errorf("the origin has the inputs %v, want those before and after the rollback", ids)
	}
}

// TestRolledBackWithMemory rolls a replica back together with its memory, as a snapshot of a virtual machine does: the session
// and the life are those of before. The origin has operations that the replica issues again. Every write of both
// histories reaches the origin, and the replica reports the rollback.
func TestRolledBackWithMemory(t *testing.T) {
	for writes := 1; writes <= 4; writes++ {
		r := newRig(t, replica.Options{})
		r.settle()
		r.write(create("a"))
		r.settle()
		// The twin is the replica after the snapshot, and r what the snapshot has.
		twin := &rig{
			TB: t, rng: r.rng, clock: r.clock, options: r.options, origin: r.origin, blobs: r.blobs,
			disk: &disk{batches: slices.Clone(r.disk.batches), durable: len(r.disk.batches)},
		}
		twin.start()
		twin.settle()
		twin.write(create("old-1"))
		twin.write(create("old-2"))
		twin.settle()
		want := []string{"a", "old-1", "old-2"}
		for _, a := range slices.Clone(r.requests) {
			r.step(replica.Answer{ID: a.ID, Err: errors.New("connection reset")})
		}
		r.requests = nil
		for n := range writes {
			id := fmt.Sprint("new-", n)
			want = append(want, id)
			r.write(create(id))
		}
		r.run(r.isSettled, 200)
		r.agree()
		got := inputs(t, r.origin.store)
		slices.Sort(got)
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("%d writes: the origin has the inputs %v, want %v", writes, got, want)
		}
		if s := r.status(); s.Renewed == "" {
			t.Errorf("%d writes: the rollback is not reported: %+v", writes, s)
		}
	}
}

// TestRolledBackBoth rolls back the disk of a replica, and, while the replica waits for its old operations, that of the origin, which
// nobody notices since no replica has pulled what the origin lacks. The replica does not wait for ever: it sends all that it has.
func TestRolledBackBoth(t *testing.T) {
	r := newRig(t, replica.Options{})
	r.origin.lives = true
	r.settle()
	first := copyOf(t, r.origin.store)
	r.step(replica.Offline{})
	r.write(create("a"))
	image := &disk{batches: slices.Clone(r.disk.batches), durable: len(r.disk.batches)}
	r.step(replica.Online{})
	r.write(create("b"))
	r.settle()
	r.disk = image
	r.requests, r.life = nil, 1
	r.start()
	r.write(create("c"))
	r.run(func() bool { // until the session after the one that leased another site
		return r.part.Renewing() && len(r.requests) > 0 && strings.HasPrefix(r.requests[0].Path, "/v2/sync/changes")
	}, 200)
	r.origin.rollBack(first, log.Epoch{6})
	r.run(r.isSettled, 400)
	r.agree()
	if got := inputs(t, r.origin.store); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("the origin has the inputs %v, want a and c", got)
	}
}

// TestLatePush restores a replica from an older image while a push of its earlier life is under way, which arrives after the lives were
// compared. The replica sends nothing again that the push brought and it still has, and the origin has the writes of both lives.
func TestLatePush(t *testing.T) {
	r := newRig(t, replica.Options{})
	r.origin.lives = true
	r.settle()
	r.step(replica.Offline{})
	r.write(create("a"))
	image := &disk{batches: slices.Clone(r.disk.batches), durable: len(r.disk.batches)}
	r.write(create("b"))
	var late []byte
	r.step(replica.Online{})
	r.lose = func(a *replica.Ask) bool {
		if a.Path == "/v2/sync/push" {
			late = slices.Clone(a.Body)
		}
		return late != nil
	}
	r.run(func() bool { return late != nil }, 200)
	r.lose = nil

	store, err := memkv.Open(memkv.Options{Journal: image})
	if err != nil {
		t.Fatal(err)
	}
	l, err := log.Open(store, log.Options{Prefix: app.LogPrefix()})
	if err == nil {
		err = l.Renew(log.Epoch{77})
	}
	if err != nil {
		t.Fatal(err)
	}
	r.disk, r.requests, r.life = image, nil, 1
	r.start()
	r.write(create("c"))
	r.run(func() bool {
		if len(r.requests) == 0 || r.requests[0].Path != "/v2/sync/session" {
			return false
		}
		s, err := wire.DecodeSession(r.requests[0].Body)
		return err == nil && s.Leaves != 0
	}, 200)
	if _, err := r.origin.push(late); err != nil {
		t.Fatal(err)
	}
	r.settle()
	r.agree()
	if dots := r.origin.dots(); dots["a"] != 1 || dots["b"] != 1 || dots["c"] != 1 {
		t.Errorf("the origin has made inputs so many times: %v", dots)
	}
}

// TestSiteOfAnother: an edge was restored from a backup without its identity, and enrolled as another edge. The origin refuses its site,
// though the log is the same. It takes another site and sends what is not confirmed, also if the origin has it already. A replica with a
// secret does the same: the disk of the origin may have been rolled back to before the lease.
func TestSiteOfAnother(t *testing.T) {
	for _, secret := range []bool{false, true} {
		r := newRig(t, replica.Options{})
		if !secret { // the origin of the rig knows sites by their secrets, and one of an edge by its key
			r.lose = func(a *replica.Ask) bool {
				if m, err := wire.DecodeSession(a.Body); a.Path == "/v2/sync/session" && err == nil && m.Site != 0 {
					m.Secret = fmt.Append(nil, "secret", m.Site)
					a.Body = m.Encode()
				}
				return false
			}
			r.wire = func(a *replica.Ask, x *replica.Answer) bool {
				if o, err := wire.DecodeSessionReply(x.Body); a.Path == "/v2/sync/session" && x.Status == 200 && err == nil {
					o.Secret = nil
					x.Body = o.Encode()
				}
				return true
			}
		}
		r.settle()
		r.write(create("a"))
		r.settle()
		refused := r.refuses(2)
		r.start()
		r.write(create("b"))
		r.run(func() bool { return r.isSettled() || *refused == 3 }, 200)
		got := inputs(t, r.origin.store)
		if secret {
			t.Log("with a secret")
		}
		if slices.Sort(got); !slices.Equal(got, []string{"a", "b"}) || *refused != 1 || r.status().Renewed == "" {
			t.Errorf("%d refusals, the origin has %v, %+v", *refused, got, r.status())
		}
		r.agree()
	}
}

// TestMoveToRestoredLog: a replica and its origin are both restored from backups. The replica sends an operation again as another site that
// another replica had pulled before, and gives back before or after that. The log has it once.
func TestMoveToRestoredLog(t *testing.T) {
	for _, first := range []bool{true, false} {
		r := newSealedRig(t)
		r.settle()
		other := &rig{TB: t, rng: r.rng, clock: r.clock, options: r.options, origin: r.origin, blobs: r.blobs, disk: &disk{}}
		other.start()
		r.origin.submit(create("a"))
		r.settle()
		other.settle()
		backup := copyOf(t, r.origin.store)
		r.lose = func(a *replica.Ask) bool { return a.Path == "/v2/sync/changes" }
		r.write(create("x"))
		r.run(func() bool { return r.origin.dots()["x"] == 1 }, 20)
		other.settle()
		other.step(replica.Offline{})
		r.origin.restore(backup, log.Epoch{5})
		l, err := log.Open(r.store, log.Options{Prefix: app.LogPrefix()})
		if err == nil {
			err = l.Renew(log.Epoch{44})
		}
		if err != nil {
			t.Fatal(err)
		}
		r.lose, r.requests = nil, nil
		r.start()
		for i, x := range []*rig{other, r, other} {
			if i > 0 || first {
				x.step(replica.Online{})
				x.run(x.isSettled, 300)
			}
		}
		if n := r.origin.dots(); n["x"] != 1 || r.status().Site == 2 {
			t.Errorf("given back first %v: the origin has inputs %v times, and the replica writes as site %d", first, n, r.status().Site)
		}
	}
}

// TestRestoredAgainWhileRenewing restores an origin a second time while a replica waits for the state that it takes another site with. The
// replica sends nothing again that the log has.
func TestRestoredAgainWhileRenewing(t *testing.T) {
	r := newSealedRig(t)
	r.origin.submit(create("old"))
	r.settle()
	backup := copyOf(t, r.origin.store)
	r.write(create("a"))
	r.settle()
	site := r.status().Site
	asNew := 0
	r.instead = func(a *replica.Ask) *wire.Refusal {
		if a.Path != "/v2/sync/session" {
			return nil
		}
		s, err := wire.DecodeSession(a.Body)
		if err == nil && s.Site > site {
			asNew++
		}
		if err != nil || s.Site != site { // the lease is later than the backup
			return nil
		}
		return &wire.Refusal{Code: wire.RefusedSite, Detail: "no such site", Epoch: r.origin.part.Log().Epoch()}
	}
	r.lose = func(a *replica.Ask) bool { return strings.HasPrefix(a.Path, "/v2/sync/snapshot") }
	r.step(replica.Offline{})
	r.origin.restore(backup, log.Epoch{77})
	r.step(replica.Online{})
	r.run(func() bool { return asNew > 0 }, 200)
	r.origin.restore(copyOf(t, r.origin.store), log.Epoch{78})
	r.lose = nil
	r.write(create("b"))
	r.run(func() bool { return r.isSettled() && r.status().Epoch == log.Epoch{78} }, 400)
	r.agree()
	got := inputs(t, r.origin.store)
	slices.Sort(got)
	if dots := r.origin.dots(); !slices.Equal(got, []string{"a", "b", "old"}) || dots["a"] != 1 || r.status().Refused > 0 {
		t.Errorf("the origin has the inputs %v, made %v times, and the replica reports %+v", got, dots, r.status())
	}
}

// TestRestoredAgainBeforeLease restores an origin a second time while a replica asks for another site, and another replica gives back what
// it sent before. The replica sends nothing again that the second log has, and does not stay at a site that an edge no longer writes as.
func TestRestoredAgainBeforeLease(t *testing.T) {
	for _, pulled := range []bool{false, true} {
		r := newSealedRig(t)
		other := &rig{TB: t, rng: r.rng, clock: r.clock, options: r.options, origin: r.origin, blobs: r.blobs, disk: &disk{}}
		other.start()
		r.origin.submit(create("old"))
		other.settle()
		if pulled {
			r.settle()
		}
		backup := copyOf(t, r.origin.store)
		r.lose = func(a *replica.Ask) bool { return a.Path == "/v2/sync/changes" }
		r.run(func() bool { return r.status().Site != 0 }, 10)
		site := r.status().Site
		r.write(create("x"))
		r.run(func() bool { return r.origin.dots()["x"] == 1 }, 20)
		other.settle()
		other.step(replica.Offline{})
		r.step(replica.Offline{})
		refused := r.refuses(site) // the lease is later than the backup
		leaves := func(a *replica.Ask) bool {
			s, err := wire.DecodeSession(a.Body)
			return a.Path == "/v2/sync/session" && err == nil && s.Leaves == site
		}
		r.origin.restore(copyOf(t, backup), log.Epoch{5})
		r.step(replica.Online{})
		r.run(func() bool { return len(r.requests) > 0 && leaves(&r.requests[0]) }, 50)
		r.instead, r.lose = nil, nil
		r.origin.restore(backup, log.Epoch{6})
		other.step(replica.Online{})
		other.settle()
		r.run(r.isSettled, 300)
		if n := r.origin.dots(); *refused != 1 || n["x"] != 1 || r.status().Site == site {
			t.Errorf("pulled %v, %d refusals: the origin has inputs %v times, and the replica writes as site %d instead of %d",
				pulled, *refused, n, r.status().Site, site)
		}
		r.agree()
	}
}

// dots counts the operations of the log that make an input, by its ID.
func (o *origin) dots() map[string]int {
	n := map[string]int{}
	if err := o.part.Log().Read(o.part.Log().Floor(), func(e log.Entry) bool {
		if b, ok := e.Op.Body.(*log.InputCreate); ok {
			n[b.ID]++
		}
		return true
	}); err != nil {
		o.Error(err)
	}
	return n
}
