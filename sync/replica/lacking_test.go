package replica_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
)

// TestOriginIsSetBackRepeatedly: the origin is set back to one backup or image again and again. It wrote inputs after the first time,
// before its replica made contact, and the replica received these inputs with a snapshot. The replica gives them back, too, and nothing
// deleted comes back.
func TestOriginIsSetBackRepeatedly(t *testing.T) {
	for _, way := range []string{"restore", "memory", "join"} {
		t.Run(way, func(t *testing.T) {
			r := newSealedRig(t)
			old := r.origin.submit(create("old"))[0].Dot
			backup, opening := copyOf(t, r.origin.store), r.origin.part.Opening()
			restore := func(life byte) {
				r.step(replica.Offline{})
				r.clock = r.clock.Add(time.Second)
				if way == "memory" {
					r.origin.restore(copyOf(t, backup), opening)
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
			for life := byte(6); life < 9; life++ {
				restore(life)
				r.step(replica.Online{})
				r.settle()
				r.equals(want...)
				r.keeps()
			}
		})
	}
}

// TestOriginIsRestoredDuringReturn: the origin is restored a second time while a replica gives back what the first restored log lacks, just
// before one of its requests arrives or after it. The replica offers all again, and takes another snapshot. The same holds if the machine
// of the origin is set back with its memory, so that it has the opening to which the replica has offered all.
func TestOriginIsRestoredDuringReturn(t *testing.T) {
	for _, again := range []log.Epoch{{5}, {6}} {
		for _, name := range []string{"back", "session", "snapshot", "chunk", "fill", "changes", "push"} {
			if again != (log.Epoch{5}) || name != "session" { // a session does not show that this log has not taken the frames
				lacksWhileOffering(t, again, name, false)
				lacksWhileOffering(t, again, name, true)
			}
		}
	}
}

// lacksWhileOffering restores the origin as an opening when a request arrives. If after is set, the request arrives before, and the answer is lost.
func lacksWhileOffering(t *testing.T, opening log.Epoch, before string, after bool) {
	t.Helper()
	r := newSealedRig(t)
	r.origin.submit(create("a"))
	r.settle()
	backup := copyOf(t, r.origin.store)
	r.origin.submit(create("b"), create("c"))
	r.write(create("mine"))
	r.settle()
	r.step(replica.Offline{})
	r.write(create("pending"))
	r.origin.restore(copyOf(t, backup), log.Epoch{5})
	r.origin.submit(create("lost")) // no party but the first restored log has it
	again := false
	restore := func() {
		again = true
		r.clock = r.clock.Add(time.Second)
		r.origin.restore(copyOf(t, backup), opening)
	}
	r.instead = func(a *replica.Ask) *wire.Refusal {
		if !again && !after && nameOf(a) == before && (before == "back" || r.origin.got["back"] > 0) {
			restore()
		}
		return nil
	}
	r.wire = func(a *replica.Ask, _ *replica.Answer) bool {
		if !again && after && nameOf(a) == before && r.origin.got["back"] > 0 {
			restore()
			return false
		}
		return true
	}
	r.step(replica.Online{})
	r.run(func() bool { return again }, 100)
	r.settle()
	got := slices.DeleteFunc(inputs(t, r.origin.store), func(id string) bool { return id == "lost" }) // the replica may have pulled it
	slices.Sort(got)
	if want := []string{"a", "b", "c", "mine", "pending"}; !slices.Equal(got, want) || len(r.origin.lists()) > 0 {
		t.Errorf("%s, after %v, opening %x: the origin has %v and lists %v, want %v", before, after, opening[:1], got, r.origin.lists(), want)
	}
	r.agree()
	r.keeps()
	if s := r.status(); s.Refused > 0 || s.Problem != "" {
		t.Errorf("%s, after %v: %+v", before, after, s)
	}
}

// TestWritesOfAllOpeningsStay: a replica has written in two openings, and the origin is restored from a backup of before both. The replica shows
// the writes of both as soon as it has taken a snapshot, and sends them in their order.
func TestWritesOfAllOpeningsStay(t *testing.T) {
	r := newSealedRig(t)
	r.origin.seals = false // the replica keeps only its own
	r.origin.submit(create("stable"))
	r.settle()
	backup := copyOf(t, r.origin.store)
	written := r.write(create("a"))
	r.settle()
	r.crash()
	written = append(written, r.write(create("after"))...)
	r.settle()
	r.step(replica.Offline{})
	r.origin.restore(backup, log.Epoch{5})
	r.step(replica.Online{})
	r.run(func() bool { return r.status().Rebases == 1 }, 200)
	v := r.part.View()
	for _, id := range []string{"a", "after"} {
		if _, err := v.InputByID(id); err != nil {
			t.Errorf("the replica's own input %q: %v", id, err)
		}
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	r.settle()
	r.equals("stable", "a", "after")
	r.ordered(0, written)
}

// TestOriginIsSetBackWhileReplicaIsFull: the disk of the origin is set back to an older image while the disk of a replica is full. The
// origin gets everything back, and the replica takes its snapshot and sends its deletion once there is space.
func TestOriginIsSetBackWhileReplicaIsFull(t *testing.T) {
	for name, written := range map[string][]log.Body{"as it was": nil, "written since": {create("x"), create("y"), create("z"), create("zz")}} {
		t.Run(name, func(t *testing.T) {
			r := newSealedRig(t)
			f := &full{}
			r.over = func(s kv.Store) kv.Store { f.Store = s; return f }
			r.crash()
			r.origin.submit(create("a"))
			r.settle()
			image := copyOf(t, r.origin.store)
			c := r.origin.submit(create("b"), create("c"))[1].Dot
			r.settle()
			r.write(create("mine"))
			r.settle()
			f.low = true
			r.step(replica.Offline{})
			r.write(&log.InputDelete{Input: c})
			r.origin.restore(image, log.Epoch{6})
			for _, body := range written {
				r.origin.submit(body)
			}
			r.step(replica.Online{})
			want := []string{"a", "b", "c", "mine"}
			for _, body := range written {
				want = append(want, body.(*log.InputCreate).ID)
			}
			has := func() bool {
				got := inputs(t, r.origin.store)
				slices.Sort(got)
				return slices.Equal(got, want)
			}
			r.run(has, 60)
			f.low = false
			want = slices.DeleteFunc(want, func(id string) bool { return id == "c" }) // the deletion waited for the snapshot
			r.settle()
			r.equals(want...)
			if r.status().Refused > 0 {
				t.Errorf("in the end the replica reports %+v", r.status())
			}
		})
	}
}

// TestOriginIsSetBackInTurns: the disk of the origin is set back to one image again and again, and both sides write in between.
func TestOriginIsSetBackInTurns(t *testing.T) {
	r := newSealedRig(t)
	r.origin.submit(create("a"))
	r.settle()
	image := copyOf(t, r.origin.store)
	want := []string{"a"}
	for life := range 3 {
		id := fmt.Sprint("of life ", life)
		r.origin.submit(create(id))
		r.write(create("mine " + id))
		r.settle()
		want = append(want, id, "mine "+id)
		r.step(replica.Offline{})
		r.origin.restore(copyOf(t, image), log.Epoch{6, byte(life)})
		r.step(replica.Online{})
		r.settle()
		r.equals(want...)
	}
}

// TestLostAfterPush: the answer to a push is lost, that to the same push is not. Then the disk of the origin is set back to an image without the
// operation. The log has the place of the replica, which sends the operation again, however long the log is.
func TestLostAfterPush(t *testing.T) {
	for _, written := range [][]log.Body{nil, {create("x"), create("y")}} {
		r := newSealedRig(t)
		r.origin.submit(create("a"))
		r.settle()
		image := copyOf(t, r.origin.store)
		r.lose = func(a *replica.Ask) bool { return a.Path == "/v2/sync/changes" }
		r.wire = func(a *replica.Ask, _ *replica.Answer) bool {
			return a.Path != "/v2/sync/push" || r.origin.got["push"] > 1
		}
		r.write(create("mine"))
		r.run(func() bool { return r.status().Accepted == 1 }, 100)
		r.origin.restore(image, log.Epoch{6})
		want := []string{"a", "mine"}
		for _, body := range written {
			r.origin.submit(body)
			want = append(want, body.(*log.InputCreate).ID)
		}
		r.lose, r.wire = nil, nil
		r.run(r.isSettled, 100)
		r.equals(want...)
		if r.origin.got["back"] > 0 || r.status().Rebases > 0 {
			t.Errorf("%d requests gave frames back, and the replica took %d snapshots", r.origin.got["back"], r.status().Rebases)
		}
	}
}

// TestLogLacksSnapshot: a log lacks the snapshot that a replica took of it. The replica keeps no entries of it, and sends its own
// operation.
func TestLogLacksSnapshot(t *testing.T) {
	r := newSealedRig(t)
	r.origin.submit(create("a"))
	r.settle()
	image := copyOf(t, r.origin.store)
	r.lose = func(a *replica.Ask) bool { return a.Path == "/v2/sync/changes" }
	r.write(create("mine"))
	head := r.origin.part.Log().Head()
	r.run(func() bool { return r.origin.part.Log().Head() > head }, 100)
	r.origin.submit(create("b"))
	r.trim()
	r.lose = nil
	r.settle()
	if r.status().Rebases == 0 {
		t.Fatal("the replica took no snapshot")
	}
	r.step(replica.Offline{})
	r.origin.restore(image, log.Epoch{6})
	r.origin.submit(create("x"))
	r.step(replica.Online{})
	r.settle()
	r.equals("a", "mine", "x")
}

// TestTrimmedIsNotLacking: an origin that needs a snapshot to be taken for another reason has the place of the replica, and gets nothing.
func TestTrimmedIsNotLacking(t *testing.T) {
	r := newSealedRig(t)
	r.origin.submit(create("a"), create("b"))
	r.settle()
	opening := r.origin.part.Opening()
	r.step(replica.Offline{})
	r.origin.submit(create("c"), create("d"))
	r.trim()
	r.step(replica.Online{})
	r.settle()
	r.equals("a", "b", "c", "d")
	if n := r.origin.got["back"]; n != 0 || r.origin.part.Opening() != opening || r.status().Rebases != 1 {
		t.Errorf("%d requests, opening %x, %+v", n, r.origin.part.Opening(), r.status())
	}
}

// TestLogLacksOpening: an origin is set back to an image of before an opening in which a replica joined: the log has no epoch that the
// replica knows. The replica gives back what the log lacks, or if it lacks nothing, sends only its own operation.
func TestLogLacksOpening(t *testing.T) {
	for _, pending := range []bool{false, true} {
		r := newSealedRig(t)
		r.origin.unstable = pending
		r.origin.submit(create("old"))
		image := copyOf(t, r.origin.store)
		r.origin.restore(copyOf(t, image), log.Epoch{5})
		want := []string{"mine", "old"}
		if !pending {
			r.origin.submit(create("of the opening"))
			want = append(want, "of the opening")
		}
		r.settle()
		r.write(create("mine"))
		if pending {
			r.step(replica.Offline{})
		}
		r.run(func() bool { return pending || r.isSettled() }, 60)
		r.step(replica.Offline{})
		r.origin.restore(image, log.Epoch{6})
		r.step(replica.Online{})
		r.run(r.isSettled, 60)
		r.equals(want...)
		if n := r.origin.got["back"]; n > 0 == pending {
			t.Errorf("pending %v: %d requests gave frames back", pending, n)
		}
	}
}

// TestTrimmedLogLacksOperation: an origin whose disk was set back has trimmed its log past all that a replica pulled. The list of epochs
// shows what the log lacks: an operation of the replica, or a write at the origin before an operation that came to it again.
func TestTrimmedLogLacksOperation(t *testing.T) {
	for _, name := range []string{"mine", "written"} {
		t.Run(name, func(t *testing.T) {
			r := newSealedRig(t)
			r.origin.submit(create("a"))
			r.settle()
			image := copyOf(t, r.origin.store)
			send := func() {}
			want := []string{"a", name, "x", "y", "z", "zz"}
			if name == "mine" {
				r.write(create(name))
			} else {
				want = append(want, "again")
				r.origin.submit(create(name))
				send = func() { // from another replica
					t.Helper()
					ops := []log.Op{{Dot: log.Dot{Writer: 99, Seq: 1}, Body: create("again")}}
					if _, _, err := r.origin.part.Accept(t.Context(), ops, nil); err != nil {
						t.Fatal(err)
					}
				}
			}
			send()
			r.settle()
			r.step(replica.Offline{})
			r.origin.restore(image, log.Epoch{6})
			send()
			r.origin.submit(create("x"), create("y"), create("z"), create("zz"))
			r.trim()
			r.step(replica.Online{})
			r.settle()
			r.equals(want...)
		})
	}
}

// TestRollbackDuringRestore: the disk of a replica is rolled back, and the origin is restored to before what the replica wrote since the
// image. Another replica has pulled those writes, and has labelled an input among them. The next write of the replica has another name, so
// the other one gives all of them back, and no label goes to another input. The image may have nothing of the log.
func TestRollbackDuringRestore(t *testing.T) {
	for _, c := range []struct{ empty, writes bool }{{false, true}, {false, false}, {true, true}, {true, false}} {
		r := newSealedRig(t)
		r.origin.submit(create("old"))
		r.run(func() bool { return r.origin.got["session"] > 0 }, 10)
		other := r.another()
		other.start()
		want := []string{"after", "before", "old"}
		if !c.empty {
			want = []string{"a", "after", "before", "old"}
			r.write(create("a"))
			r.settle()
		}
		image := r.image()
		backup := copyOf(t, r.origin.store)
		lost := r.write(create("before"))[0]
		r.settle()
		other.settle()
		other.step(replica.Offline{})
		other.write(&log.InputLabels{Input: lost, Labels: []log.Label{{Concept: "x", Value: log.True}}})
		r.origin.restore(backup, log.Epoch{5})
		r.reopen(image)
		if c.writes { // before it reaches the origin
			r.write(create("after"))
		}
		r.settle()
		if !c.writes {
			r.write(create("after"))
			r.settle()
		}
		other.step(replica.Online{})
		other.run(other.isSettled, 300)
		r.settle()
		r.agree()
		err := catalog.Read(r.origin.store, app).Inputs(0, func(in catalog.Input) bool {
			labels := 1
			if in.Dot == lost {
				labels = 2
			}
			if len(in.Labels) != labels || in.Dot == lost != (in.ID == "before") {
				t.Errorf("%+v: input %q, %v, has the labels %v", c, in.ID, in.Dot, in.Labels)
			}
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		got, listed := inputs(t, r.origin.store), r.origin.lists()
		if slices.Sort(got); !slices.Equal(got, want) || len(listed) > 0 || r.status().Refused+other.status().Refused > 0 {
			t.Errorf("%+v: the origin has %v and lists %v, and the other replica reports %+v", c, got, listed, other.status())
		}
		other.reopen(&disk{}) // a replica that joins the restored log
		other.run(other.isSettled, 100)
		other.agree()
	}
}

// TestSameWriteAfterRollback: the disk of a replica is rolled back to before its second write, which a backup of the origin has. The
// replica writes again what it had written later, and another replica gives that back before. The two writes have different names: the log
// has both, and the replica lists its second one, whose id is taken.
func TestSameWriteAfterRollback(t *testing.T) {
	r := newSealedRig(t)
	r.settle()
	other := r.another()
	other.start()
	r.write(create("a"))
	r.settle()
	image := r.image()
	r.write(create("b"))
	r.settle()
	backup := copyOf(t, r.origin.store)
	r.write(create("c"))
	first := r.write(create("again"))[0]
	r.settle()
	other.settle()
	other.step(replica.Offline{})
	r.origin.restore(backup, log.Epoch{5})
	r.reopen(image)
	r.step(replica.Offline{})
	r.write(create("d"))
	second := r.write(create("again"))[0]
	holds := true
	r.lose = func(a *replica.Ask) bool { return a.Path == "/v2/sync/push" && holds } // until the other has given back
	r.step(replica.Online{})
	r.run(func() bool { return r.status().Phase == replica.Current }, 200)
	other.step(replica.Online{})
	other.settle()
	holds = false
	r.settle()
	other.settle()
	r.agree()
	got := inputs(t, r.origin.store)
	if slices.Sort(got); !slices.Equal(got, []string{"a", "again", "b", "c", "d"}) || !r.origin.has(first) || !r.origin.has(second) || first == second {
		t.Errorf("the origin has %v, written as %v and %v", got, first, second)
	}
	v := r.origin.part.View()
	defer v.Close()
	if in, err := v.InputByID("again"); err != nil || in.Dot != first {
		t.Errorf("the input is %v, %v; want %v", in.Dot, err, first)
	}
	var listed []log.Dot
	err := r.part.Conflicts(func(c partition.Conflict) bool { listed = append(listed, c.Op.Dot); return true })
	if err != nil || !slices.Equal(listed, []log.Dot{second}) || len(r.origin.lists()) > 0 {
		t.Errorf("the replica lists %v, %v, and the origin %v", listed, err, r.origin.lists())
	}
}

// TestOlderSnapshot: a restored origin has a snapshot from before a replica gave back what it lacked. The replica takes a newer one, since that
// one lacks what the replica keeps: the origin may be restored again before the replica has pulled all of it.
func TestOlderSnapshot(t *testing.T) {
	r := newSealedRig(t)
	r.origin.submit(create("a"))
	r.settle()
	backup := copyOf(t, r.origin.store)
	r.origin.submit(create("b"))
	r.write(create("mine"))
	r.settle()
	r.step(replica.Offline{})
	r.origin.restore(copyOf(t, backup), log.Epoch{5})
	r.origin.manifest(0)
	r.origin.old = true
	r.lose = func(a *replica.Ask) bool { return nameOf(a) == "changes" }
	r.step(replica.Online{})
	r.run(func() bool { return r.status().Rebases == 1 }, 100)
	v := r.part.View()
	for _, id := range []string{"a", "b", "mine"} {
		if _, err := v.InputByID(id); err != nil {
			t.Errorf("the replica lacks %q: %v", id, err)
		}
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	r.origin.restore(copyOf(t, backup), log.Epoch{6})
	r.lose = nil
	r.settle()
	r.equals("a", "b", "mine")
}

// TestStableOfOtherLog: a log that lacks entries which were stable has fewer stable ones. After the snapshot of that log, writes of the replica stay
// in its outbox, so another restored log gets them.
func TestStableOfOtherLog(t *testing.T) {
	r := newSealedRig(t)
	r.settle()
	backup := copyOf(t, r.origin.store)
	r.origin.submit(create("a"), create("b"), create("c"), create("d"))
	r.origin.stable = 0 // all entries
	r.settle()
	r.origin.stable = 1
	for life := range byte(3) {
		r.step(replica.Offline{})
		r.origin.restore(copyOf(t, backup), log.Epoch{5, life})
		r.step(replica.Online{})
		r.settle()
		if life == 0 {
			r.write(create("mine"))
			r.settle()
		}
		if got := inputs(t, r.origin.store); !slices.Contains(got, "mine") || r.part.Cursor().Stable != 1 {
			t.Errorf("life %d: the origin has %q, and the cursor is %+v", life, got, r.part.Cursor())
		}
		r.agree()
	}
}

// TestReturnsEntriesPulledSince: a replica has offered all to an opening of the log, and has pulled more since. Then the machine of the
// origin is set back with the memory of that opening. The replica offers what it has pulled since.
func TestReturnsEntriesPulledSince(t *testing.T) {
	r := newSealedRig(t)
	r.origin.submit(create("a"))
	r.settle()
	backup := copyOf(t, r.origin.store)
	r.origin.submit(create("b"))
	r.settle()
	r.origin.restore(backup, log.Epoch{5})
	r.settle()
	image := copyOf(t, r.origin.store)
	r.origin.open(log.Epoch{6})
	r.origin.submit(create("c"))
	r.settle()
	r.clock = r.clock.Add(time.Second)
	r.origin.restore(image, log.Epoch{5})
	r.settle()
	r.equals("a", "b", "c")
}
