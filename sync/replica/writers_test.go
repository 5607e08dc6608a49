package replica_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
)

// sent is a push without its operations: their names, and what it says of those before.
type sent struct {
	first, last log.Dot
	before, gap bool
}

func sentOf(t *testing.T, pushes []wire.Push) (list []sent) {
	t.Helper()
	for i := range pushes {
		ops, err := wire.DecodeOps(pushes[i].Rows)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, sent{ops[0].Dot, ops[len(ops)-1].Dot, pushes[i].Before != 0, pushes[i].Gap})
	}
	return list
}

// TestWriteBeforeContact: a replica takes operations before it has met its origin, and keeps them over a power cut.
func TestWriteBeforeContact(t *testing.T) {
	r := newRig(t, replica.Options{})
	r.step(replica.Offline{})
	written := r.write(create("a"), create("b"))
	r.powerless()
	written = append(written, r.write(create("c"))...)
	if got := inputs(t, r.store); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("the replica has the inputs %v", got)
	}
	r.step(replica.Online{})
	r.settle()
	r.agree()
	r.ordered(0, written)
}

// TestWritersInOrder: a replica has pending operations of three openings. It pushes them in the order in which they were made, those of each
// writer with its secret and the operation before them. It continues no writer of an earlier opening.
func TestWritersInOrder(t *testing.T) {
	r := newRig(t, replica.Options{})
	r.origin.unstable = true // all operations stay in the outbox
	r.settle()
	pushes := r.pushes()
	r.step(replica.Offline{})
	written := r.write(create("a"), create("b"))
	written = append(written, r.write(create("c"))...)
	r.powerless()
	written = append(written, r.write(create("d"))...)
	r.powerless()
	r.powerless() // an opening that writes nothing has no writer
	written = append(written, r.write(create("e"), create("f"))...)
	r.step(replica.Online{})
	r.settle()
	r.agree()
	r.ordered(0, written)
	want := []sent{{written[0], written[2], false, false}, {written[3], written[3], false, false}, {written[4], written[5], false, false}}
	if got := sentOf(t, *pushes); !slices.Equal(got, want) {
		t.Errorf("pushes %v, want %v", got, want)
	}
	for i, p := range *pushes { // the rig's origin compares the secrets with the writers
		if p.Writer != want[i].first.Writer || slices.ContainsFunc((*pushes)[:i], func(q wire.Push) bool { return q.Writer == p.Writer }) {
			t.Errorf("push %d is of writer %v", i, p.Writer)
		}
	}
	for i, dot := range written {
		if want := []uint64{1, 2, 3, 1, 1, 2}[i]; dot.Seq != want || dot.Writer.IsSite() {
			t.Errorf("operation %d is %v, want sequence %d", i, dot, want)
		}
	}
	*pushes = nil
	written = r.write(create("g"))
	r.settle()
	if got := sentOf(t, *pushes); !slices.Equal(got, []sent{{written[0], written[0], true, false}}) || written[0].Seq != 3 {
		t.Errorf("the next push is %v, of %v", got, written)
	}
}

// TestImageOpenedTwice: two replicas run on images of one disk, which has a pending operation. Both write. The origin has the pending
// operation once and all others, and neither replica lists a conflict.
func TestImageOpenedTwice(t *testing.T) {
	r := newRig(t, replica.Options{})
	r.origin.byNames()
	r.write(create("a"))
	r.settle()
	r.step(replica.Offline{})
	r.write(create("pending"))
	twin := r.another()
	twin.disk = r.image()
	twin.start()
	for i := range 3 {
		twin.write(create(fmt.Sprint("twin", i)))
		r.write(create(fmt.Sprint("mine", i)))
		if i == 1 {
			twin.settle()
			r.step(replica.Online{})
			r.settle()
			r.crash()
		}
	}
	for range 2 {
		twin.run(twin.isSettled, 200)
		r.settle()
	}
	twin.agree()
	r.agree()
	got := r.origin.dots()
	for _, id := range []string{"a", "pending", "twin0", "twin1", "twin2", "mine0", "mine1", "mine2"} {
		if got[id] != 1 {
			t.Errorf("the origin has %v, want %s once", got, id)
		}
	}
	if n := r.status().Refused + twin.status().Refused; n > 0 {
		t.Errorf("%d conflicts", n)
	}
}

// resumed returns two replicas that continue one image of a machine with its memory: their disks and their random bytes are the same, and
// they have written "a" at the same time. The first has sent it.
func resumed(t *testing.T) (twin, r *rig) {
	t.Helper()
	twin = newRig(t, replica.Options{})
	twin.origin.byNames()
	twin.settle()
	twin.disk, twin.chance = twin.image(), log.Epoch{3}
	r = twin.another()
	r.disk, r.chance = twin.image(), twin.chance
	twin.reopen(twin.disk)
	r.start()
	r.step(replica.Offline{})
	if got, want := r.write(create("a")), twin.write(create("a")); !slices.Equal(got, want) {
		t.Fatalf("the machines draw %v and %v", got, want)
	}
	twin.settle()
	r.clock = twin.clock
	return twin, r
}

// TestRolledBackWithMemory resumes a machine from an image of its memory. It writes operations by names that the image's other machine has
// used. The replica lists those with their content, and not the operation that both have. Once it has met the origin it writes as another
// writer.
func TestRolledBackWithMemory(t *testing.T) {
	for writes := 1; writes <= 4; writes++ {
		twin, r := resumed(t)
		twin.write(create("old-1"))
		used := twin.write(create("old-2"))[0]
		twin.settle()
		r.clock = twin.clock.Add(time.Second)
		var listed []log.Dot
		for n := range writes {
			listed = append(listed, r.write(create(fmt.Sprint("new-", n)))...)
		}
		if listed[0].Writer != used.Writer || listed[0].Seq != 2 {
			t.Fatalf("the machine continues with %v", listed[0])
		}
		r.step(replica.Online{})
		r.run(r.isSettled, 200)
		r.agree()
		var got []log.Dot
		err := r.part.Conflicts(func(c partition.Conflict) bool {
			if b, ok := c.Op.Body.(*log.InputCreate); !ok || b.ID != fmt.Sprint("new-", len(got)) {
				t.Errorf("%d writes: listed with %+v", writes, c.Op.Body)
			}
			got = append(got, c.Op.Dot)
			return true
		})
		if err != nil || !slices.Equal(got, listed) {
			t.Errorf("%d writes: the replica lists %v, %v; want %v", writes, got, err, listed)
		}
		next := r.write(create("next"))[0]
		r.run(r.isSettled, 200)
		r.agree()
		if ids := inputs(t, r.origin.store); next.Writer == used.Writer || !slices.Equal(ids, []string{"a", "old-1", "old-2", "next"}) {
			t.Errorf("%d writes: the origin has the inputs %v, and the next write is %v", writes, ids, next)
		}
	}
}

// TestReusedNamesBeforeWrite: a machine that was resumed from an image of its memory meets operations of its writer that it has not made,
// before it writes. It writes as another writer, and all reach the origin.
func TestReusedNamesBeforeWrite(t *testing.T) {
	for _, way := range []string{"entries", "snapshot"} {
		twin, r := resumed(t)
		used := twin.write(create("old"))[0]
		twin.settle()
		if way == "snapshot" {
			twin.trim()
		}
		r.clock = twin.clock
		r.step(replica.Online{})
		r.run(r.isSettled, 100)
		next := r.write(create("new"))[0]
		r.run(r.isSettled, 100)
		r.agree()
		if ids := inputs(t, r.origin.store); next.Writer == used.Writer || !slices.Equal(ids, []string{"a", "old", "new"}) || r.status().Refused > 0 {
			t.Errorf("%s: the origin has the inputs %v, the next write is %v after %v, and the replica reports %+v", way, ids, next, used, r.status())
		}
	}
}

// TestReplicaFillsGaps: the origin lacks operations before those that the replica pushes. The replica sends them again as far as it has
// them, and declares a gap otherwise.
func TestReplicaFillsGaps(t *testing.T) {
	t.Run("acknowledged and never appended", func(t *testing.T) {
		r := newRig(t, replica.Options{})
		r.origin.byNames()
		r.settle()
		r.lose = func(a *replica.Ask) bool { return a.Path == "/v2/sync/changes" }
		lies := 1
		r.origin.lie = func(p *wire.Push) *wire.Pushed {
			if lies == 0 {
				return nil
			}
			lies--
			return &wire.Pushed{Opening: p.Opening, Accepted: 2, Head: 9}
		}
		written := r.write(create("a"), create("b"))
		r.run(func() bool { return r.status().Accepted == 2 }, 100)
		pushes := r.pushes()
		written = append(written, r.write(create("c"))...)
		r.run(func() bool { return r.origin.has(written[2]) }, 100)
		r.lose = nil
		r.settle()
		r.agree()
		r.ordered(0, written)
		if got := sentOf(t, *pushes); !slices.Equal(got, []sent{{written[2], written[2], true, false}, {written[0], written[2], false, false}}) {
			t.Errorf("pushes %v", got)
		}
	})
	t.Run("stable and lost", func(t *testing.T) {
		r := newRig(t, replica.Options{})
		r.origin.byNames()
		r.settle()
		backup := copyOf(t, r.origin.store)
		r.write(create("a"), create("b"))
		r.settle()
		pushes := r.pushes()
		r.origin.restore(backup, log.Epoch{5}) // it takes nothing back
		written := r.write(create("c"), create("d"))
		r.settle()
		written = append(written, r.write(create("e"))...)
		r.settle()
		r.agree()
		r.ordered(0, written)
		want := []sent{{written[0], written[1], false, false}, {written[0], written[1], false, true}, {written[2], written[2], false, true}}
		if got := sentOf(t, *pushes); !slices.Equal(got, want) {
			t.Errorf("pushes %v, want %v", got, want)
		}
		n, err := r.origin.part.Names(written[0].Writer)
		if err != nil || len(n.Ranges) != 1 || n.Ranges[0].First != 3 || n.Last() != 5 {
			t.Errorf("the log has the names %+v, %v", n, err)
		}
	})
	t.Run("confirmed and forgotten", func(t *testing.T) { // a session finds that the log was not rolled back: a horizon dropped the names
		r := newRig(t, replica.Options{})
		r.origin.byNames()
		r.origin.unstable = true
		r.settle()
		written := r.write(create("a"), create("b"))
		r.settle()
		sessions := r.origin.got["session"]
		lost := false
		r.instead = func(a *replica.Ask) *wire.Refusal {
			if a.Path != "/v2/sync/push" || lost {
				return nil
			}
			lost = true
			return &wire.Refusal{Code: wire.RefusedSequence, Accepted: 1}
		}
		pushes := r.pushes()
		written = append(written, r.write(create("c"))...)
		r.settle()
		r.agree()
		r.ordered(0, written)
		if got := sentOf(t, *pushes); r.origin.got["session"] != sessions+1 || !slices.Equal(got, []sent{{written[2], written[2], true, true}}) {
			t.Errorf("%d sessions, pushes %v", r.origin.got["session"]-sessions, got)
		}
	})
	t.Run("confirmed after a pending one and forgotten", func(t *testing.T) {
		r := newRig(t, replica.Options{})
		r.origin.byNames()
		r.origin.unstable = true
		r.settle()
		lies := true
		pending := r.write(create("a"))[0]
		r.origin.lie = func(p *wire.Push) *wire.Pushed {
			if !lies || p.Writer != pending.Writer {
				return nil
			}
			return &wire.Pushed{Opening: p.Opening, Accepted: 1}
		}
		r.crash()
		confirmed := r.write(create("b"))[0]
		r.run(func() bool { return r.origin.has(confirmed) && r.status().Cursor == r.origin.part.Log().Head() }, 100)
		r.instead = func(a *replica.Ask) *wire.Refusal {
			if p, err := wire.DecodePush(a.Body); a.Path != "/v2/sync/push" || err != nil || p.Writer != confirmed.Writer || p.Gap {
				return nil
			}
			return &wire.Refusal{Code: wire.RefusedSequence}
		}
		next := r.write(create("c"))[0]
		r.run(func() bool { return r.origin.has(next) }, 100)
		lies = false
		r.settle()
		r.agree()
	})
}

// TestWriterRefused: the origin refuses a writer and each of its pushes. The replica asks for no session because of that, sends at most a
// push a minute, and pulls on.
func TestWriterRefused(t *testing.T) {
	for _, refusal := range []wire.Refusal{{Code: wire.RefusedWriter}, {Code: wire.RefusedLimit, Limit: wire.LimitGaps}} {
		r := newRig(t, replica.Options{})
		r.settle()
		pushes := 0
		r.instead = func(a *replica.Ask) *wire.Refusal {
			if a.Path != "/v2/sync/push" {
				return nil
			}
			pushes++
			return &refusal
		}
		sessions, began := r.origin.got["session"], r.clock
		r.write(create("mine"), create("more"))
		for i := range 20 {
			r.origin.submit(create(fmt.Sprint(i)))
			r.run(func() bool { return r.status().Cursor == r.origin.part.Log().Head() }, 100)
			r.clock = r.clock.Add(30 * time.Second)
			r.step(replica.Wake{})
		}
		minutes := int(r.clock.Sub(began)/time.Minute) + 1
		if s := r.status(); pushes < 3 || pushes > minutes || r.origin.got["session"] != sessions || s.Pending() != 2 || s.Problem == "" {
			t.Errorf("code %d: %d pushes in %d minutes, %d sessions, %+v", refusal.Code, pushes, minutes, r.origin.got["session"]-sessions, s)
		}
		r.instead = nil
		r.settle()
		r.agree()
	}
}

// TestReusedNamesAfterPush: the log has other operations by the names that a replica pushes, and the replica does not find that out by
// pulling. It lists its own with their content, and sends the next one as another writer.
func TestReusedNamesAfterPush(t *testing.T) {
	r := newRig(t, replica.Options{})
	r.origin.unstable = true // all operations stay in the outbox
	r.settle()
	confirmed := r.write(create("confirmed"))
	r.settle()
	r.instead = func(a *replica.Ask) *wire.Refusal {
		if a.Path != "/v2/sync/push" {
			return nil
		}
		return &wire.Refusal{Code: wire.RefusedContent}
	}
	used := r.write(create("mine"), create("more"))
	r.run(func() bool { s := r.status(); return s.Pending() == 0 }, 100)
	r.instead = nil
	var listed []log.Dot
	if err := r.part.Conflicts(func(c partition.Conflict) bool {
		listed = append(listed, c.Op.Dot)
		return true
	}); err != nil || !slices.Equal(listed, used) {
		t.Errorf("conflicts of %v, %v, want %v", listed, err, used)
	}
	if next := r.write(create("next"))[0]; next.Writer == used[0].Writer || next.Seq != 1 {
		t.Errorf("the next operation is %v after %v", next, used)
	}
	r.clock = r.clock.Add(time.Hour)
	r.step(replica.Wake{})
	r.settle()
	r.agree()
	if ids := inputs(t, r.origin.store); !slices.Equal(ids, []string{"confirmed", "next"}) || !r.origin.has(confirmed[0]) {
		t.Errorf("the origin has %v", ids)
	}
}

// TestOutboxOfSite opens a store of version 0.1.0, with operations of a site, the first of which the origin has, and the secret of the lease
// in the machine's note. The replica pushes them as that site with the secret, and writes as a drawn writer from then on.
func TestOutboxOfSite(t *testing.T) {
	const site = log.Writer(7)
	r := newRig(t, replica.Options{})
	r.origin.byNames()
	r.origin.leases[site] = "secret of the lease"
	var ops []log.Op
	var written []log.Dot
	for i := range 5 {
		op := log.Op{Dot: log.Dot{Writer: site, Seq: uint64(i) + 1}, At: log.HLC(r.now().UnixMilli())<<16 + log.HLC(i), By: "key", Body: create(fmt.Sprint("old", i))}
		ops, written = append(ops, op), append(written, op.Dot)
	}
	if _, _, err := r.origin.part.Accept(t.Context(), ops[:2], nil); err != nil { // the answer was lost
		t.Fatal(err)
	}
	disk := &disk{}
	store, err := memkv.Open(memkv.Options{Journal: disk})
	if err != nil {
		t.Fatal(err)
	}
	l, err := log.Open(store, log.Options{Prefix: app.LogPrefix(), Epoch: log.Epoch{8}})
	if err != nil {
		t.Fatal(err)
	}
	var b kv.Batch
	b.Put(app.LocalKey("replica"), protowire.AppendVarint(protowire.AppendTag([]byte{field.Version}, 5, protowire.VarintType), uint64(site)))
	b.Put(app.LocalKey("sync"), protowire.AppendString(protowire.AppendTag([]byte{field.Version}, 1, protowire.BytesType), r.origin.leases[site]))
	_, wait, err := l.Append(ops, &b)
	if err = errors.Join(err); err == nil {
		err = wait()
	}
	if err != nil {
		t.Fatal(err)
	}
	pushes := r.pushes()
	r.reopen(disk)
	r.step(replica.Offline{})
	if s := r.status(); s.Issued != 5 || s.Folded != 0 || len(inputs(t, r.store)) != 5 {
		t.Fatalf("opened with %+v", s)
	}
	written = append(written, r.write(create("new"))...)
	r.step(replica.Online{})
	r.settle()
	r.agree()
	r.ordered(0, written)
	if got := sentOf(t, *pushes); len(got) == 0 || got[len(got)-1] != (sent{written[5], written[5], false, false}) || written[5].Writer.IsSite() || written[5].Seq != 1 {
		t.Errorf("pushes %v", got)
	}
	for _, p := range *pushes {
		if p.Writer.IsSite() && (p.Writer != site || string(p.Secret) != r.origin.leases[site]) {
			t.Errorf("a push of site %v with %q", p.Writer, p.Secret)
		}
	}
	r.crash()
	next := r.write(create("next"))[0]
	r.settle()
	r.agree()
	if next.Writer.IsSite() || next.Writer == written[5].Writer || !r.origin.has(next) {
		t.Errorf("after another opening the replica writes %v", next)
	}
}
