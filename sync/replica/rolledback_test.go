package replica_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/replica"
)

// TestOriginRolledBack: the disk of the origin is set back to an older image, without a restore, while the disk of a replica is full. The
// replica shows the origin an entry that it lacks. The origin gets everything back, and the status of the replica reports the rollback.
func TestOriginRolledBack(t *testing.T) {
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
			r.origin.rollBack(image, log.Epoch{6})
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
			if s := r.status(); !strings.Contains(s.Renewed, "the origin was set back") {
				t.Errorf("the replica reports %+v", s)
			}
			f.low = false
			want = slices.DeleteFunc(want, func(id string) bool { return id == "c" }) // the deletion waited for the snapshot
			r.settle()
			r.agree()
			if got := inputs(t, r.origin.store); !has() || r.status().Refused > 0 {
				t.Errorf("in the end the origin has %v, and the replica reports %+v", got, r.status())
			}
		})
	}
}

// TestOriginRolledBackTwice: the image that the disk is set back to again has the epoch of before the first time.
func TestOriginRolledBackTwice(t *testing.T) {
	r := newSealedRig(t)
	r.origin.submit(create("a"))
	r.settle()
	image := copyOf(t, r.origin.store)
	var want []string
	for life := range 3 {
		id := fmt.Sprint("of life ", life)
		r.origin.submit(create(id))
		r.write(create("mine " + id))
		r.settle()
		want = append(want, id, "mine "+id)
		r.step(replica.Offline{})
		r.origin.rollBack(copyOf(t, image), log.Epoch{6, byte(life)})
		r.step(replica.Online{})
		r.settle()
		r.agree()
		got := inputs(t, r.origin.store)
		for _, id := range want {
			if !slices.Contains(got, id) {
				t.Errorf("life %d: the origin lacks %s and has %v", life, id, got)
			}
		}
	}
}

// TestOriginRolledBackAfterPush: the answer to a push is lost, that to the same push is not. Then the disk of the origin is set back to an
// image without the operation. The log continues to lead on from the replica, which sends the operation again, however long the log is.
func TestOriginRolledBackAfterPush(t *testing.T) {
	for _, written := range [][]log.Body{nil, {create("x"), create("y")}} {
		testRolledBackAfterPush(t, written)
	}
}

func testRolledBackAfterPush(t *testing.T, written []log.Body) {
	t.Helper()
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
	r.origin.rollBack(image, log.Epoch{6})
	want := []string{"a", "mine"}
	for _, body := range written {
		r.origin.submit(body)
		want = append(want, body.(*log.InputCreate).ID)
	}
	r.lose, r.wire = nil, nil
	r.run(r.isSettled, 100)
	r.agree()
	got := inputs(t, r.origin.store)
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("the origin has %v, want %v", got, want)
	}
}

// TestOriginRolledBackBehindSnapshot: a replica shows an origin whose disk was rolled back the snapshot that it took of the log. It has
// kept no entry that the log lacks, and gives back its own operation.
func TestOriginRolledBackBehindSnapshot(t *testing.T) {
	r := newSealedRig(t)
	r.origin.submit(create("a"))
	r.settle()
	image := copyOf(t, r.origin.store)
	r.lose = func(a *replica.Ask) bool { return a.Path == "/v2/sync/changes" }
	r.write(create("mine"))
	head := r.origin.part.Log().Head()
	r.run(func() bool { return r.origin.part.Log().Head() > head }, 100)
	r.origin.submit(create("b"))
	if err := r.origin.part.Log().Trim(r.origin.part.Log().Head() + 1); err != nil {
		t.Fatal(err)
	}
	r.lose = nil
	r.settle()
	if r.status().Rebases == 0 {
		t.Fatal("the replica took no snapshot")
	}
	r.step(replica.Offline{})
	r.origin.rollBack(image, log.Epoch{6})
	r.origin.submit(create("x"))
	r.step(replica.Online{})
	r.settle()
	r.agree()
	got := inputs(t, r.origin.store)
	if slices.Sort(got); !slices.Equal(got, []string{"a", "mine", "x"}) || r.origin.part.Log().Epoch() != (log.Epoch{6}) {
		t.Errorf("the origin has %v in epoch %x, and the replica reports %+v", got, r.origin.part.Log().Epoch(), r.status())
	}
}

// TestOriginNotRolledBack: an origin that needs a snapshot to be taken for another reason has the entry that is shown, which is shown once.
func TestOriginNotRolledBack(t *testing.T) {
	r := newSealedRig(t)
	r.origin.submit(create("a"), create("b"))
	r.settle()
	epoch := r.origin.part.Log().Epoch()
	r.step(replica.Offline{})
	r.origin.submit(create("c"), create("d"))
	if err := r.origin.part.Log().Trim(r.origin.part.Log().Head() + 1); err != nil {
		t.Fatal(err)
	}
	r.step(replica.Online{})
	r.settle()
	r.agree()
	if n := r.origin.got["back"]; n != 1 || r.origin.part.Log().Epoch() != epoch || r.status().Renewed != "" {
		t.Errorf("%d requests, epoch %x, %+v", n, r.origin.part.Log().Epoch(), r.status())
	}
}

// TestOriginRolledBackBeforeRestore: the disk of an origin is set back to an image of before its restore, which a replica has not seen: it
// joined after that. The origin was not restored as far as it knows. The replica shows it what it lacks, and gives it back.
func TestOriginRolledBackBeforeRestore(t *testing.T) {
	r := newSealedRig(t)
	r.origin.submit(create("old"))
	image := copyOf(t, r.origin.store)
	r.origin.restore(copyOf(t, image), log.Epoch{5})
	r.settle()
	r.write(create("mine"))
	r.settle()
	r.step(replica.Offline{})
	r.origin.rollBack(image, log.Epoch{6})
	r.step(replica.Online{})
	r.run(r.isSettled, 60)
	r.agree()
	got := inputs(t, r.origin.store)
	if slices.Sort(got); !slices.Equal(got, []string{"mine", "old"}) {
		t.Errorf("the origin has %v", got)
	}
}

// TestOriginRolledBackToOlderLog: the disk of an origin is set back to an image of before its restore, which lacks nothing that a replica
// has pulled since. The replica shows what it has pulled, which the origin has, and sends its own operation.
func TestOriginRolledBackToOlderLog(t *testing.T) {
	r := newSealedRig(t)
	r.origin.unstable = true
	r.origin.submit(create("old"))
	image := copyOf(t, r.origin.store)
	r.origin.restore(copyOf(t, image), log.Epoch{5})
	r.settle()
	r.step(replica.Offline{})
	r.write(create("mine"))
	r.origin.rollBack(image, log.Epoch{6})
	r.step(replica.Online{})
	r.run(r.isSettled, 60)
	r.agree()
	got := inputs(t, r.origin.store)
	if slices.Sort(got); !slices.Equal(got, []string{"mine", "old"}) {
		t.Errorf("the origin has %v", got)
	}
}

// TestDrainRolledBack: the application becomes local only, and the disk of the origin is set back to before an operation that the replica
// has pulled as its own. The replica is not emptied before the origin has it again.
func TestDrainRolledBack(t *testing.T) {
	r := newSealedRig(t)
	r.origin.submit(create("a"))
	r.settle()
	image := copyOf(t, r.origin.store)
	r.write(create("mine"))
	r.settle()
	r.step(replica.Offline{})
	r.origin.rollBack(image, log.Epoch{6})
	r.origin.local = true
	r.step(replica.Online{})
	r.run(func() bool { return r.status().Phase == replica.Purged }, 60)
	if got := inputs(t, r.origin.store); !slices.Equal(got, []string{"a", "mine"}) {
		t.Errorf("the origin has %v", got)
	}
}

// TestOriginRolledBackTrimmed: an origin whose disk was rolled back has trimmed its log past all that a replica pulled. It learns the
// rollback from a name that it lacks: of an operation of the replica, or of a write at the origin before an operation that came to it
// again.
func TestOriginRolledBackTrimmed(t *testing.T) {
	for _, name := range []string{"mine", "written"} {
		t.Run(name, func(t *testing.T) {
			r := newSealedRig(t)
			r.origin.submit(create("a"))
			r.settle()
			image := copyOf(t, r.origin.store)
			send := func() {}
			if name == "mine" {
				r.write(create(name))
			} else {
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
			r.origin.rollBack(image, log.Epoch{6})
			send()
			r.origin.submit(create("x"), create("y"), create("z"), create("zz"))
			r.trim()
			r.step(replica.Online{})
			r.settle()
			r.agree()
			if got := inputs(t, r.origin.store); !slices.Contains(got, name) || !strings.Contains(r.status().Renewed, "the origin was set back") {
				t.Errorf("the origin has %v, and the replica reports %+v", got, r.status())
			}
		})
	}
}

// TestRolledBackBesideRestore: the disk of a replica is rolled back, and the origin is restored to before what the replica wrote since the
// image. Another replica has pulled those writes, and has labelled an input among them. The next write of the replica has another name, so the
// other one gives all of them back, and no label goes to another input. The image may have nothing of the log.
func TestRolledBackBesideRestore(t *testing.T) {
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
		if s := other.status(); s.Renewed != "" {
			t.Errorf("%+v: a replica that joins reports %+v", c, s)
		}
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
	r.run(func() bool { return r.status().Epoch == log.Epoch{5} }, 200)
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
