package replica_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
)

// newSealedRig returns a rig whose origin takes back what it lacks. Nothing in its log is stable.
func newSealedRig(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, replica.Options{})
	r.origin.byNames()
	r.origin.seals, r.origin.stable = true, 1
	return r
}

// record records the requests from now on by their names: a request for the entries of a snapshot is "fill".
func (r *rig) record() *[]string {
	list := &[]string{}
	r.instead = func(a *replica.Ask) *wire.Refusal {
		*list = append(*list, nameOf(a))
		return nil
	}
	return list
}

// nameOf returns the name of a request, without the hashes in paths.
func nameOf(a *replica.Ask) string {
	name := strings.TrimPrefix(a.Path, "/v2/sync/")
	switch {
	case strings.Contains(a.Query, "only=entries"):
		return "fill"
	case strings.HasPrefix(name, "snapshot/"):
		return "chunk"
	case a.Method == "PUT":
		return "upload"
	}
	return name
}

// kept returns the frames that the replica keeps.
func (r *rig) kept() (list []partition.Frame) {
	r.Helper()
	err := r.part.KeptAfter(0, func(_ uint64, f partition.Frame) bool {
		list = append(list, f)
		return true
	})
	if err != nil {
		r.Fatal(err)
	}
	return list
}

// keeps checks that the replica keeps the entries of the log after its first one, and no others.
func (r *rig) keeps() {
	r.Helper()
	at := uint64(1)
	for _, f := range r.kept() {
		if f.From != at || f.Before != r.origin.chain(f.From) || f.Chain != r.origin.chain(f.To) || f.Epoch != r.origin.part.Log().EpochOf(f.To).Epoch {
			r.Errorf("after entry %d a frame from %d to %d of epoch %x", at, f.From, f.To, f.Epoch)
		}
		at = f.To
	}
	if head := r.origin.part.Log().Head(); at != head {
		r.Errorf("the replica keeps entries up to %d of %d", at, head)
	}
}

// equals checks that the origin and the replica have the same state, with these inputs in any order, and that the origin lists no conflict.
func (r *rig) equals(want ...string) {
	r.Helper()
	r.agree()
	got := inputs(r.TB, r.origin.store)
	slices.Sort(got)
	if slices.Sort(want); !slices.Equal(got, want) {
		r.Errorf("the origin has %q, want %q", got, want)
	}
	if listed := r.origin.lists(); len(listed) > 0 {
		r.Errorf("the origin lists %q", listed)
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

// TestReturnsFramesBeforeSession: a log lacks the place of a replica. The replica first offers the frames after the common entry. Then it
// begins a session, takes a snapshot and keeps its entries, and pushes what is pending.
func TestReturnsFramesBeforeSession(t *testing.T) {
	r := newSealedRig(t)
	r.origin.runs = 1
	r.origin.submit(create("a"))
	r.origin.submit(create("b"))
	r.settle()
	backup := copyOf(t, r.origin.store)
	have := r.origin.part.Log().Head()
	r.origin.submit(create("c"))
	r.write(create("mine"))
	r.settle()
	r.keeps()
	r.step(replica.Offline{})
	r.write(create("pending"))
	r.origin.restore(backup, log.Epoch{5})
	r.origin.submit(create("since"))
	calls := r.record()
	r.step(replica.Online{})
	r.settle()
	r.equals("a", "b", "c", "mine", "pending", "since")
	r.keeps()
	var order []string
	for _, name := range *calls {
		if n := len(order); n == 0 || order[n-1] != name {
			order = append(order, name)
		}
	}
	want := []string{"session", "back", "session", "snapshot", "chunk", "fill", "changes", "push"}
	if !slices.Equal(order[:min(len(want), len(order))], want) {
		t.Errorf("the replica calls %q, want %q", order, want)
	}
	if n := len(r.origin.backs); n != 1 || r.status().Rebases != 1 {
		t.Fatalf("%d requests gave frames back, %d snapshots", n, r.status().Rebases)
	}
	frames := r.origin.backs[0]
	if len(frames) != 2 || frames[0].From != have || frames[1].From != have+1 || frames[1].To != have+2 {
		t.Errorf("after entry %d the replica gives back %+v", have, frames)
	}
}

// TestReturnsAllFramesOfOtherChain: the machine of the origin was set back with its memory, and has appended other entries by the same
// epoch. The chain there differs from the replica's, so the replica offers all frames. The origin draws another opening.
func TestReturnsAllFramesOfOtherChain(t *testing.T) {
	r := newSealedRig(t)
	r.origin.submit(create("a"))
	r.settle()
	image, opening := copyOf(t, r.origin.store), r.origin.part.Opening()
	r.origin.submit(create("b"))
	r.write(create("mine"))
	r.settle()
	kept, c := r.kept(), r.part.Cursor()
	r.step(replica.Offline{})
	r.clock = r.clock.Add(time.Second)
	r.origin.restore(image, opening)
	for _, id := range []string{"w", "x", "y", "z"} {
		r.origin.submit(create(id))
	}
	r.step(replica.Online{})
	r.settle()
	r.equals("a", "b", "mine", "w", "x", "y", "z")
	r.keeps()
	i := slices.IndexFunc(r.origin.grants, func(g wire.Grant) bool { return g.Lacks })
	if g := r.origin.grants[i]; g.Have != c.Seq || g.HaveChain == c.Chain || g.Opening == opening || r.origin.draws != 1 {
		t.Fatalf("%d openings were drawn, grant %+v", r.origin.draws, g)
	}
	var n int
	for _, frames := range r.origin.backs {
		n += len(frames)
	}
	if n != len(kept) || r.origin.backs[0][0].From != kept[0].From {
		t.Errorf("the replica gives back %d of %d frames", n, len(kept))
	}
}

// TestReturnsFramesInSeveralRequests: a restored origin lacks more entries of another replica than one request takes. It gets all of them
// back, in their order, and lists none: also if it is restarted or restored again between the requests, and if the replica is.
func TestReturnsFramesInSeveralRequests(t *testing.T) {
	const n = 2*wire.MaxOps + 3
	for _, way := range []string{"", "origin restarted", "origin restored", "replica restarted", "answer lost"} {
		r := newSealedRig(t)
		r.origin.runs = 500
		r.origin.submit(&log.ConceptCreate{ID: "c", Name: "c", Language: "en"})
		r.settle()
		backup := copyOf(t, r.origin.store)
		ops := make([]log.Op, n)
		for i := range ops {
			at := log.HLC(r.now().UnixMilli())<<16 + log.HLC(i)
			ops[i] = log.Op{Dot: log.Dot{Writer: log.FirstRandomWriter + 99, Seq: uint64(i) + 1}, At: at, By: "key", Body: &log.ConceptName{ID: "c", Name: fmt.Sprint(i)}}
		}
		if _, _, err := r.origin.part.Accept(t.Context(), ops, nil); err != nil {
			t.Fatal(err)
		}
		r.settle()
		r.step(replica.Offline{})
		r.origin.restore(copyOf(t, backup), log.Epoch{5})
		head := r.origin.part.Log().Head()
		done := false
		r.wire = func(a *replica.Ask, _ *replica.Answer) bool {
			if a.Path != "/v2/sync/back" || done {
				return true
			}
			done = true
			switch way {
			case "origin restarted":
				r.origin.open(log.Epoch{6})
			case "origin restored":
				r.origin.restore(copyOf(t, backup), log.Epoch{6})
			}
			return way != "answer lost"
		}
		r.step(replica.Online{})
		r.run(func() bool { return done }, 10)
		if way == "replica restarted" {
			r.crash()
		}
		r.settle()
		r.agree()
		var got []log.Op
		if err := r.origin.part.Log().Read(head+1, func(e log.Entry) bool { got = append(got, e.Op); return true }); err != nil {
			t.Fatal(err)
		}
		if len(got) != n || !slices.EqualFunc(got, ops, func(a, b log.Op) bool { return a.Dot == b.Dot && a.MadeAt() == b.At }) {
			t.Errorf("%s: the log has %d more entries, want %d", way, len(got), n)
		}
		listed, err := r.origin.part.CountConflicts()
		if least := min(len(way), 1) + 2; err != nil || listed > 0 || r.origin.got["back"] < least {
			t.Errorf("%s: after %d requests the origin lists %d, %v", way, r.origin.got["back"], listed, err)
		}
		r.keeps()
	}
}

// TestDrainReturnsFramesFirst: a replica that is emptied because its application is local only gives a restored origin what that lacks
// before, and then sends what is pending.
func TestDrainReturnsFramesFirst(t *testing.T) {
	r := newSealedRig(t)
	r.origin.submit(create("a"))
	r.settle()
	backup := copyOf(t, r.origin.store)
	r.origin.submit(create("b"))
	r.write(create("mine"))
	r.settle()
	r.step(replica.Offline{})
	r.write(create("pending"))
	r.origin.restore(backup, log.Epoch{5})
	r.origin.local = true
	calls := r.record()
	r.step(replica.Online{})
	r.run(func() bool { return r.status().Phase == replica.Purged }, 60)
	got := inputs(t, r.origin.store)
	if slices.Sort(got); !slices.Equal(got, []string{"a", "b", "mine", "pending"}) || len(r.origin.lists()) > 0 {
		t.Errorf("the origin has %v and lists %v", got, r.origin.lists())
	}
	if want := []string{"session", "back", "session", "push"}; !slices.Equal((*calls)[:min(4, len(*calls))], want) {
		t.Errorf("the replica calls %q, want %q", *calls, want)
	}
}

// TestDrainOfSameLog: the grant that empties a replica has no head. The log has the place of the replica, so the origin gets only the replica's
// own operation.
func TestDrainOfSameLog(t *testing.T) {
	r := newSealedRig(t)
	r.origin.submit(create("a"), create("b"))
	r.settle()
	r.step(replica.Offline{})
	r.write(create("mine"))
	r.origin.local = true
	opening, head := r.origin.part.Opening(), r.origin.part.Log().Head()
	r.step(replica.Online{})
	r.run(func() bool { return r.status().Phase == replica.Purged }, 60)
	if now := r.origin.part.Log().Head(); r.origin.got["back"] != 0 || r.origin.part.Opening() != opening || now != head+1 || r.origin.dots()["mine"] != 1 {
		t.Errorf("after %d requests the log has %d entries in opening %x", r.origin.got["back"], now, r.origin.part.Opening())
	}
}

// TestPicturesBeforeFrames: a restored origin gets the pictures of the frames before the frames, each once, although some answers are lost. It
// lists nothing.
func TestPicturesBeforeFrames(t *testing.T) {
	r := newSealedRig(t)
	r.origin.submit(create("a"))
	r.settle()
	backup := copyOf(t, r.origin.store)
	size := 0
	var pictures []*log.InputCreate
	for i := range 5 {
		size += 1000 + i
		pictures = append(pictures, r.picture(1000+i))
		pictures[i].ID = fmt.Sprint("p", i)
		r.write(pictures[i])
		r.settle()
	}
	r.step(replica.Offline{})
	r.origin.restore(backup, log.Epoch{5})
	clear(r.origin.blobs)
	r.origin.putBytes = 0
	lost := 0
	calls := r.record()
	r.wire = func(a *replica.Ask, _ *replica.Answer) bool {
		if a.Path == "/v2/sync/blobs/have" && lost < 2 {
			lost++
			return false
		}
		return true
	}
	r.step(replica.Online{})
	r.settle()
	r.equals("a", "p0", "p1", "p2", "p3", "p4")
	if last, first := lastIndex(*calls, "upload"), slices.Index(*calls, "back"); last < 0 || first < last || r.origin.putBytes != size {
		t.Errorf("the replica calls %q and sends %d bytes of %d", *calls, r.origin.putBytes, size)
	}
	for _, p := range pictures {
		if _, ok := r.origin.blobs[p.Blob]; !ok {
			t.Errorf("the origin lacks the picture %v", p.Blob)
		}
	}
}

func lastIndex(list []string, name string) int {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i] == name {
			return i
		}
	}
	return -1
}

// TestReturnsEntryWithoutPicture has a replica lose the picture of an entry that a restored origin lacks. The replica gives back the entry
// and what follows it, and continues. The origin lists the entry. Restored again from the same backup it has no list any more, and gets the
// entry again.
func TestReturnsEntryWithoutPicture(t *testing.T) {
	r := newSealedRig(t)
	r.origin.submit(create("a"))
	r.settle()
	backup := copyOf(t, r.origin.store)
	lost := r.picture(1000)
	r.write(lost)
	r.write(create("b"))
	r.settle()
	delete(r.origin.blobs, lost.Blob)
	r.blobs = blob.NewMemory(blob.Options{})
	for life := range byte(3) {
		r.origin.restore(copyOf(t, backup), log.Epoch{77, life})
		r.start()
		began := r.clock
		r.run(r.isSettled, 200)
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
}

// TestReturnedDeletionComesBeforeOwnInput restores an origin that lacks an operation of the replica's, which a snapshot brought, and a
// later one that deletes all inputs. The replica gives back the deletion first, since it keeps that entry, and sends its own operation
// later. Its input stays deleted.
func TestReturnedDeletionComesBeforeOwnInput(t *testing.T) {
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
	r.run(r.isSettled, 200)
	r.agree()
	if got := inputs(t, r.origin.store); len(got) != 0 {
		t.Errorf("the origin has the inputs %v, which were deleted", got)
	}
}

// TestOwnOperationWithoutPicture restores an origin that lacks an operation of the replica's, which a snapshot brought. The replica has
// lost its picture. It sends a refusal, and lists the operation with its content, since nobody else has it.
func TestOwnOperationWithoutPicture(t *testing.T) {
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
	r.run(r.isSettled, 200)
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

// TestRefusedReturnAsksForSession has a restored origin refuse a replica that gives back: at the first refusal of an upload or of the
// frames the replica asks for a session and follows its instruction.
func TestRefusedReturnAsksForSession(t *testing.T) {
	for _, name := range []string{"blobs/have", "back"} {
		r := newSealedRig(t)
		r.settle()
		backup := copyOf(t, r.origin.store)
		r.origin.submit(create("a"))
		r.write(r.picture(1000))
		r.settle()
		r.origin.restore(backup, log.Epoch{77})
		clear(r.origin.blobs)
		refused := 0
		r.instead = func(a *replica.Ask) *wire.Refusal {
			switch {
			case nameOf(a) == name:
				refused++
				return &wire.Refusal{Code: wire.RefusedScope, Detail: "no access"}
			case a.Path == "/v2/sync/session" && refused > 0:
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
		r.run(func() bool { return purged() || refused > 9 }, 100)
		if refused != 1 || !purged() {
			t.Errorf("%s: %d requests were refused, want 1 and a purge", name, refused)
		}
	}
}

// TestFramesWithoutSeal: the origin refuses frames without a valid seal. The replica passes over them without waiting, gives back the others, and
// sends its own operations. A log whose backup is older than the key of the seals refuses all.
func TestFramesWithoutSeal(t *testing.T) {
	for _, all := range []bool{false, true} {
		r := newSealedRig(t)
		r.origin.submit(create("a"))
		r.settle()
		backup := copyOf(t, r.origin.store)
		if all {
			r.origin.forgetSeal(backup)
		}
		var bodies []log.Body
		for i := range 2*wire.MaxOps + 100 { // three requests
			bodies = append(bodies, &log.ConceptCreate{ID: fmt.Sprint("c", i), Name: "c", Language: "en"})
		}
		r.origin.submit(bodies...)
		r.origin.submit(create("b"))
		r.write(create("mine"))
		r.settle()
		r.step(replica.Offline{})
		before := r.origin.part.Log().Head()
		r.origin.restore(backup, log.Epoch{5})
		var bad wire.Entries // the second frame of the first request
		r.instead = func(a *replica.Ask) *wire.Refusal {
			m, err := wire.DecodeBack(a.Body)
			for i := 0; a.Path == "/v2/sync/back" && err == nil && !all && i < len(m.Frames); i++ {
				e, err := wire.DecodeEntriesFrame(m.Frames[i])
				if err != nil {
					t.Fatal(err)
				}
				if bad.To == 0 && i == 1 {
					bad = e
				}
				if e.To == bad.To {
					e.Seal[0]++
					m.Frames[i] = e.Encode()
					a.Body = m.Encode()
				}
			}
			return nil
		}
		r.step(replica.Online{})
		began := r.clock
		r.settle()
		if took := r.clock.Sub(began); took > 2*time.Second || r.origin.got["back"] < 3 {
			t.Errorf("all %v: %d requests took %v", all, r.origin.got["back"], took)
		}
		want := []string{"a", "b", "mine"}
		if all {
			want = []string{"a", "mine"}
		}
		r.equals(want...)
		if head := r.origin.part.Log().Head(); !all && head != before-(bad.To-bad.From) {
			t.Errorf("the log has %d entries, before %d, and the bad frame has %d", head, before, bad.To-bad.From)
		}
	}
}

// forgetSeal removes the key of the seals from a backup.
func (o *origin) forgetSeal(backup kv.Store) {
	o.Helper()
	var b kv.Batch
	b.Delete(app.LocalKey("seal"))
	if err := backup.Apply(&b); err != nil {
		o.Fatal(err)
	}
}
