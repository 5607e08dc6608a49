package replica_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/sync/replica"
)

// sealed is a rig whose origin takes back what it lacks. Nothing in its log is stable.
func sealed(t *testing.T) *rig {
	r := newRig(t, replica.Options{})
	r.origin.seals, r.origin.stable = true, 1
	return r
}

// TestOriginRolledBack: the disk of the origin is set back to an older image, without a restore, while the disk of a replica is full. The
// replica shows the origin an entry that it lacks. The origin gets everything back, and the status of the replica reports the rollback.
func TestOriginRolledBack(t *testing.T) {
	for name, written := range map[string][]log.Body{"as it was": nil, "written since": {create("x"), create("y"), create("z"), create("zz")}} {
		t.Run(name, func(t *testing.T) {
			r := sealed(t)
			f := &full{}
			r.over = func(s kv.Store) kv.Store { f.Store = s; return f }
			r.crash()
			r.origin.submit(create("a"))
			r.settle()
			image := copyOf(t, r.origin.store)
			r.origin.submit(create("b"), create("c"))
			r.settle()
			r.write(create("mine"))
			r.settle()
			f.low = true
			site := r.status().Site
			r.step(replica.Offline{})
			r.write(&log.InputDelete{Input: log.Dot{Site: log.Origin, Seq: 3}}) // c
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
			if got := inputs(t, r.origin.store); !has() || r.status().Site != site || r.status().Refused > 0 {
				t.Errorf("in the end the origin has %v, and the replica reports %+v", got, r.status())
			}
		})
	}
}

// TestOriginRolledBackTwice: the image that the disk is set back to again has the epoch of before the first time.
func TestOriginRolledBackTwice(t *testing.T) {
	r := sealed(t)
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

// TestOriginNotRolledBack: an origin that needs a snapshot to be taken for another reason has the entry that is shown, which is shown once.
func TestOriginNotRolledBack(t *testing.T) {
	r := sealed(t)
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

// TestDrainGivesBack: a replica that is emptied because its application is local only gives a restored origin what that lacks before.
func TestDrainGivesBack(t *testing.T) {
	r := sealed(t)
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
