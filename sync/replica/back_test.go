package replica_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
)

// newSealedRig returns a rig whose origin takes back what it lacks. Nothing in its log is stable.
func newSealedRig(t *testing.T) *rig {
	r := newRig(t, replica.Options{})
	r.origin.byNames()
	r.origin.seals, r.origin.stable = true, 1
	return r
}

// TestSameBackupTwice: the origin is restored a second time from the same backup. It wrote inputs after the first restore, before its
// replica made contact, and the replica received these inputs with a snapshot. The replica gives them back, too, and nothing deleted comes
// back.
func TestSameBackupTwice(t *testing.T) {
	for _, way := range []string{"restore", "image", "join"} {
		t.Run(way, func(t *testing.T) {
			r := newSealedRig(t)
			old := r.origin.submit(create("old"))[0].Dot
			backup := copyOf(t, r.origin.store)
			restore := func(life byte) {
				r.step(replica.Offline{})
				if way == "image" {
					r.origin.rollBack(copyOf(t, backup), log.Epoch{life})
				} else {
					r.origin.restore(copyOf(t, backup), log.Epoch{life})
				}
			}
			if way == "join" { // a replica that has nothing takes a snapshot of a long log
				r.origin.do = wire.DoRebase
			} else {
				r.settle()
				r.origin.submit(create("before"))
				r.settle()
				restore(5)
			}
			var doomed log.Body
			for _, id := range []string{"a", "b", "c", "d", "e"} {
				doomed = &log.InputDelete{Input: r.origin.submit(create(id))[0].Dot}
			}
			r.origin.submit(&log.InputDelete{Input: old})
			r.step(replica.Online{})
			r.settle()
			r.agree()
			if r.status().Rebases == 0 {
				t.Fatal("the replica took no snapshot")
			}
			r.origin.do = 0
			r.origin.submit(doomed)
			r.settle()
			want := inputs(t, r.origin.store)
			slices.Sort(want)
			for life := byte(6); life < 9; life++ {
				restore(life)
				r.step(replica.Online{})
				r.settle()
				r.agree()
				got := inputs(t, r.origin.store)
				if slices.Sort(got); !slices.Equal(got, want) {
					t.Errorf("after restore %d the origin has %v, want %v", life, got, want)
				}
			}
		})
	}
}

// TestBackInRequests: a restored origin lacks more entries of another replica than one request takes. It gets all of them back, in their
// order, and lists none.
func TestBackInRequests(t *testing.T) {
	r := newSealedRig(t)
	r.origin.runs = 500
	const n = wire.MaxOps + 3
	r.origin.submit(&log.ConceptCreate{ID: "c", Name: "c", Language: "en"})
	r.settle()
	backup := copyOf(t, r.origin.store)
	ops := make([]log.Op, n)
	for i := range ops {
		at := log.HLC(r.now().UnixMilli())<<16 + log.HLC(i)
		ops[i] = log.Op{Dot: log.Dot{Writer: log.Drawn + 99, Seq: uint64(i) + 1}, At: at, By: "key", Body: &log.ConceptName{ID: "c", Name: fmt.Sprint(i)}}
	}
	if _, _, err := r.origin.part.Accept(t.Context(), ops, nil); err != nil {
		t.Fatal(err)
	}
	r.settle()
	r.step(replica.Offline{})
	r.origin.restore(backup, log.Epoch{5})
	head := r.origin.part.Log().Head()
	r.step(replica.Online{})
	r.settle()
	r.agree()
	var got []log.Op
	if err := r.origin.part.Log().Read(head+1, func(e log.Entry) bool { got = append(got, e.Op); return true }); err != nil {
		t.Fatal(err)
	}
	if len(got) != n || !slices.EqualFunc(got, ops, func(a, b log.Op) bool { return a.Dot == b.Dot && a.MadeAt() == b.At }) {
		t.Errorf("the log has %d more entries, want %d", len(got), n)
	}
	if listed := r.origin.lists(); len(listed) > 0 || r.origin.got["back"] < 2 {
		t.Errorf("after %d requests the origin lists %v", r.origin.got["back"], listed)
	}
}

// TestDrainGivesBack: a replica that is emptied because its application is local only gives a restored origin what that lacks before.
func TestDrainGivesBack(t *testing.T) {
	r := newSealedRig(t)
	r.origin.submit(create("a"))
	r.settle()
	backup := copyOf(t, r.origin.store)
	r.origin.submit(create("b"))
	r.write(create("mine"))
	r.settle()
	r.step(replica.Offline{})
	r.origin.restore(backup, log.Epoch{5})
	r.origin.local = true
	r.step(replica.Online{})
	r.run(func() bool { return r.status().Phase == replica.Purged }, 60)
	got := inputs(t, r.origin.store)
	if slices.Sort(got); !slices.Equal(got, []string{"a", "b", "mine"}) {
		t.Errorf("the origin has %v", got)
	}
}

// TestDrainShowsItsPlace: the grant that empties a replica has no head. The replica shows the origin its newest entry once. The origin has it,
// so the log was not rolled back, and gets only the replica's own operation.
func TestDrainShowsItsPlace(t *testing.T) {
	r := newSealedRig(t)
	r.origin.submit(create("a"), create("b"))
	r.settle()
	r.step(replica.Offline{})
	r.write(create("mine"))
	r.origin.local = true
	epoch, head := r.origin.part.Log().Epoch(), r.origin.part.Log().Head()
	r.step(replica.Online{})
	r.run(func() bool { return r.status().Phase == replica.Purged }, 60)
	if l := r.origin.part.Log(); r.origin.got["back"] != 1 || l.Epoch() != epoch || l.Head() != head+1 || r.origin.dots()["mine"] != 1 {
		t.Errorf("after %d requests the log has %d entries in epoch %x", r.origin.got["back"], l.Head(), l.Epoch())
	}
}

// TestBackWithoutPicture has a replica lose the picture of an entry that a restored origin lacks. The replica gives back the entry and what
// follows it, and continues. The origin lists the entry.
func TestBackWithoutPicture(t *testing.T) {
	r := newRig(t, replica.Options{})
	r.origin.seals, r.origin.stable = true, 1 // the entries of the backup
	r.origin.submit(create("a"))
	r.settle()
	backup := copyOf(t, r.origin.store)
	lost := r.picture(1000)
	r.write(lost)
	r.write(create("b"))
	r.settle()
	r.origin.restore(backup, log.Epoch{77})
	delete(r.origin.blobs, lost.Blob)
	r.blobs = blob.NewMemory(blob.Options{})
	r.start()
	began := r.clock
	r.run(func() bool { return r.isSettled() && r.status().Epoch == log.Epoch{77} }, 200)
	if took := r.clock.Sub(began); took > time.Second {
		t.Errorf("the replica waited %v, though the origin had answered all", took)
	}
	r.agree()
	if got := inputs(t, r.origin.store); len(got) != 3 || !slices.Contains(got, "b") {
		t.Errorf("the origin has the inputs %v, want a, the one without its picture, and b", got)
	}
	listed := 0
	err := r.origin.part.Conflicts(func(c partition.Conflict) bool {
		if b, ok := c.Op.Body.(*log.InputCreate); ok && b.Blob == lost.Blob && strings.HasSuffix(c.Verdict.Detail, partition.LostPicture) {
			listed++
		}
		return true
	})
	if err != nil || listed != 1 {
		t.Errorf("the origin lists the entry %d times, %v; want once", listed, err)
	}
}

// TestBackBehindStable restores an origin that lacks an operation of the replica's, which a snapshot brought, and a later one that deletes
// all inputs. The replica gives back the deletion first, since it keeps that entry, and sends its own operation later. Its input stays
// deleted.
func TestBackBehindStable(t *testing.T) {
	r := newSealedRig(t)
	r.settle()
	r.write(create("a"))
	r.settle()
	r.origin.stable = r.origin.part.Log().Head()
	backup := copyOf(t, r.origin.store)
	r.lose = func(a *replica.Ask) bool { return a.Path == "/v2/sync/changes" }
	r.write(create("b"))
	r.run(func() bool { return r.origin.dots()["b"] == 1 }, 100)
	r.trim()
	r.lose = nil
	r.settle()
	if r.status().Rebases == 0 {
		t.Fatal("the replica took no snapshot")
	}
	r.origin.submit(&log.InputDeleteAll{})
	r.settle()
	r.origin.restore(backup, log.Epoch{77})
	r.run(func() bool { return r.isSettled() && r.status().Epoch == log.Epoch{77} }, 200)
	r.agree()
	if got := inputs(t, r.origin.store); len(got) != 0 {
		t.Errorf("the origin has the inputs %v, which were deleted", got)
	}
}

// TestOwnWithoutPicture restores an origin that lacks an operation of the replica's, which a snapshot brought. The replica has lost its
// picture. It sends a refusal, and lists the operation with its content, since nobody else has it.
func TestOwnWithoutPicture(t *testing.T) {
	r := newSealedRig(t)
	r.settle()
	lost := r.picture(1000)
	r.write(create("a"))
	r.settle()
	r.origin.stable = r.origin.part.Log().Head()
	backup := copyOf(t, r.origin.store)
	r.lose = func(a *replica.Ask) bool { return a.Path == "/v2/sync/changes" }
	mine := r.write(lost)[0]
	r.run(func() bool { return r.origin.has(mine) }, 100)
	r.trim()
	r.lose = nil
	r.settle()
	if r.status().Rebases == 0 {
		t.Fatal("the replica took no snapshot")
	}
	r.origin.restore(backup, log.Epoch{77})
	delete(r.origin.blobs, lost.Blob)
	r.blobs = blob.NewMemory(blob.Options{})
	r.start()
	r.run(func() bool { return r.isSettled() && r.status().Epoch == log.Epoch{77} }, 200)
	r.agree()
	var listed []log.Op
	if err := r.part.Conflicts(func(c partition.Conflict) bool { listed = append(listed, c.Op); return true }); err != nil {
		t.Fatal(err)
	}
	if len(listed) != 1 || listed[0].Dot != mine || !slices.Equal(inputs(t, r.origin.store), []string{"a"}) {
		t.Fatalf("listed %+v; the origin has %v", listed, inputs(t, r.origin.store))
	}
	if b, ok := listed[0].Body.(*log.InputCreate); !ok || b.Blob != lost.Blob {
		t.Errorf("listed %+v", listed[0].Body)
	}
}

// TestBackWithoutAccess has a restored origin refuse a replica that gives back: at the first refusal of an upload the replica asks for a
// session and follows its instruction.
func TestBackWithoutAccess(t *testing.T) {
	r := newRig(t, replica.Options{})
	r.origin.seals = true
	r.settle()
	backup := copyOf(t, r.origin.store)
	r.origin.stable = 1
	r.origin.submit(create("a"))
	r.write(r.picture(1000))
	r.settle()
	r.origin.restore(backup, log.Epoch{77})
	clear(r.origin.blobs)
	uploads := 0
	r.instead = func(a *replica.Ask) *wire.Refusal {
		switch {
		case a.Path == "/v2/sync/blobs/have":
			uploads++
			return &wire.Refusal{Code: wire.RefusedScope, Detail: "no access"}
		case a.Path == "/v2/sync/session" && uploads > 0:
			return &wire.Refusal{Code: wire.RefusedGone, Detail: "deleted"}
		}
		return nil
	}
	r.start()
	purged := func() bool {
		return slices.ContainsFunc(r.effects, func(x replica.Effect) bool {
			_, is := x.(replica.Purge)
			return is
		})
	}
	r.run(func() bool { return purged() || uploads > 9 }, 100)
	if uploads != 1 || !purged() {
		t.Errorf("%d uploads were refused, want 1 and a purge", uploads)
	}
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
	err := r.part.EntriesAfter(partition.StoredPlace{}, func(k partition.StoredEntry) bool {
		stored = append(stored, k.Op.Body.(*log.InputCreate).ID)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"d", "e"}; !slices.Equal(stored, want) || r.status().Rebases != 1 {
		t.Errorf("after %d snapshots the replica keeps the inputs %v, want %v after 1", r.status().Rebases, stored, want)
	}
}

// TestListedAgain restores an origin twice from one backup. The first restored log lists an operation that it cannot take back. The second
// restore takes the list, too, so the replica offers the operation again, although it has pulled from the first restored log since.
func TestListedAgain(t *testing.T) {
	r := newSealedRig(t)
	r.origin.submit(create("a"))
	r.settle()
	backup := copyOf(t, r.origin.store)
	r.origin.seals = false
	r.origin.submit(create("x"))
	r.settle()
	r.origin.seals = true
	for epoch := range byte(2) {
		r.step(replica.Offline{})
		r.origin.restore(copyOf(t, backup), log.Epoch{5 + epoch})
		r.step(replica.Online{})
		r.settle()
		if got := r.origin.lists(); !slices.Equal(got, []string{"x"}) {
			t.Errorf("restore %d: listed %v, want x", epoch, got)
		}
		if epoch == 0 {
			r.origin.submit(create("y"))
			r.settle()
		}
		r.agree()
	}
	if got := inputs(t, r.origin.store); !slices.Equal(got, []string{"a", "y"}) {
		t.Errorf("the origin has %v", got)
	}
}

// TestListedForAnotherBackup restores an origin again, from a backup that it made before the replica gave back what it lacked. The
// snapshot that the replica takes in between is older than the backup.
func TestListedForAnotherBackup(t *testing.T) {
	r := newSealedRig(t)
	r.origin.submit(create("a"))
	r.settle()
	backup := copyOf(t, r.origin.store)
	r.origin.seals = false
	r.origin.submit(create("x"))
	r.settle()
	r.origin.seals = true
	r.step(replica.Offline{})
	r.origin.restore(backup, log.Epoch{5})
	if _, err := r.origin.snapshot("", nil); err != nil {
		t.Fatal(err)
	}
	r.origin.old = true
	r.origin.submit(create("y"))
	backup = copyOf(t, r.origin.store)
	r.origin.stable = r.origin.part.Log().Head()
	for epoch := range byte(2) {
		r.step(replica.Online{})
		r.settle()
		r.agree()
		if got := r.origin.lists(); !slices.Equal(got, []string{"x"}) {
			t.Errorf("restore %d: listed %v, want x", epoch, got)
		}
		r.step(replica.Offline{})
		r.origin.restore(copyOf(t, backup), log.Epoch{6})
		r.origin.old = false
	}
}

// TestWritesOfAllOpeningsStay restores an origin, from a backup of before the first write, to which a replica has written in two openings.
// The replica shows the writes of both from the moment at which it has taken a snapshot, which has to be newer than the last one, and sends
// them in their order.
func TestWritesOfAllOpeningsStay(t *testing.T) {
	r := newSealedRig(t)
	r.origin.submit(create("stable"))
	r.settle()
	backup := copyOf(t, r.origin.store)
	r.write(create("a"))
	r.settle()
	r.crash()
	r.write(create("after"))
	r.settle()
	r.step(replica.Offline{})
	r.origin.restore(backup, log.Epoch{5})
	if _, err := r.origin.snapshot("", nil); err != nil {
		t.Fatal(err)
	}
	r.origin.old = true
	r.step(replica.Online{})
	r.run(func() bool { return r.part.Cursor().Epoch == log.Epoch{5} }, 200)
	v := r.part.View()
	defer v.Close()
	for _, id := range []string{"a", "after"} {
		if _, err := v.InputByID(id); err != nil {
			t.Errorf("the replica's own input %q: %v", id, err)
		}
	}
	r.origin.old = false
	r.settle()
	r.agree()
	if got := inputs(t, r.origin.store); !slices.Equal(got, []string{"stable", "a", "after"}) {
		t.Errorf("the origin has %v", got)
	}
}

// lists returns the ids of the inputs that the origin lists as conflicts.
func (o *origin) lists() (ids []string) {
	o.Helper()
	err := o.part.Conflicts(func(c partition.Conflict) bool {
		ids = append(ids, c.Op.Body.(*log.InputCreate).ID)
		return true
	})
	if err != nil {
		o.Fatal(err)
	}
	return ids
}
