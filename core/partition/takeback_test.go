package partition_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// sealing opens an origin whose log has seals.
func sealing(t testing.TB, store kv.Store) *partition.Partition {
	t.Helper()
	return sealingAs(t, store, log.Epoch{1})
}

// sealingAs is sealing in a process with a name.
func sealingAs(t testing.TB, store kv.Store, life log.Epoch) *partition.Partition {
	t.Helper()
	p, err := partition.Open(partition.Options{Store: store, App: app, Clock: clock, Epoch: life, Secret: [32]byte{1}, Rules: fold.First})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// openRestored opens an origin from an image of its store, as a restore leaves it.
func openRestored(t testing.TB, image kv.Store, epoch byte) *partition.Partition {
	t.Helper()
	store := imageOf(t, image)
	l, err := log.Open(store, log.Options{Prefix: app.LogPrefix()})
	if err == nil {
		err = l.Renew(log.Epoch{epoch})
	}
	if err != nil {
		t.Fatal(err)
	}
	return sealing(t, store)
}

// pullSealed pulls all that an origin has, as one run.
func pullSealed(t testing.TB, p, origin *partition.Partition) {
	t.Helper()
	r := run(t, origin, p.Cursor(), 1000)
	r.Seal, r.Stable = origin.Seal(r.To, r.Chain), 0
	if _, err := p.Pull(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

// storedRun are the entries that a replica keeps, as it offers them.
func storedRun(t testing.TB, p *partition.Partition) (b partition.StoredRun) {
	t.Helper()
	err := p.EntriesAfter(partition.StoredPlace{}, func(k partition.StoredEntry) bool {
		if len(b.Entries) == 0 {
			b.From, b.Before = k.At.Seq-1, k.Before
		}
		b.Entries = append(b.Entries, log.Entry{Seq: k.At.Seq, Op: k.Op})
		b.Seal = k.Seal
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func conflictsOf(t testing.TB, p *partition.Partition) (list []partition.Conflict) {
	t.Helper()
	if err := p.Conflicts(func(c partition.Conflict) bool { list = append(list, c); return true }); err != nil {
		t.Fatal(err)
	}
	return list
}

// TestTakeBack has a restored origin take back what a replica has pulled: the same log, unless it was written to before.
func TestTakeBack(t *testing.T) {
	store := memkv.New()
	origin := sealing(t, store)
	doomed := submit(t, origin, create("doomed"))[0].Dot
	image := imageOf(t, store)
	submit(t, origin, create("a"), create("b"))
	submit(t, origin, &log.InputDelete{Input: doomed})
	r := openNamed(t, memkv.New(), 1)
	pullSealed(t, r, origin)
	b := storedRun(t, r)

	restored := openRestored(t, image, 4)
	lacking := storedRun(t, r)
	first := lacking.Entries[len(lacking.Entries)-2].Op
	lacking.Missing = map[log.Dot]string{first.Dot: partition.LostPicture}
	if err := restored.TakeBack(t.Context(), &lacking, nil); err != nil {
		t.Fatal(err)
	}
	if lost, err := lostOf(restored); !lost[first.Body.(*log.InputCreate).Blob] || len(lost) != 1 || err != nil {
		t.Errorf("LostPictures = %v, %v", lost, err)
	}

	same := openRestored(t, image, 2)
	if err := same.TakeBack(t.Context(), &b, nil); err != nil {
		t.Fatal(err)
	}
	head := origin.Log().Head()
	want, err := origin.Log().Chain(head)
	if err != nil {
		t.Fatal(err)
	}
	if chain, err := same.Log().Chain(head); err != nil || chain != want || same.Log().Head() != head || len(conflictsOf(t, same)) > 0 {
		t.Errorf("the log ends at %d with %x, %v, want %d with %x", same.Log().Head(), chain, err, head, want)
	}

	other := openRestored(t, image, 3)
	verdict := submit(t, other, create("a"))[0]
	if verdict.Dot.Writer < log.RestoredSites {
		t.Errorf("a restored log writes as %v", verdict.Dot)
	}
	if err := other.TakeBack(t.Context(), &b, nil); err != nil {
		t.Fatal(err)
	}
	v := other.View()
	defer v.Close()
	if got := fmt.Sprint(ids(t, v.Reader)); got != "[a b]" {
		t.Errorf("inputs %v", got)
	}
	c := conflictsOf(t, other)
	if len(c) != 1 {
		t.Fatalf("conflicts %+v", c)
	}
	if x, ok := c[0].Op.Body.(*log.InputCreate); !ok || x.ID != "a" || c[0].Verdict.Dot != verdict.Dot {
		t.Errorf("conflict %+v", c[0])
	}
}

// lastStored is the last entry of kept ones alone.
func lastStored(t testing.TB, p *partition.Partition) partition.StoredRun {
	t.Helper()
	k, sealed, err := p.LastStored()
	if err != nil || !sealed {
		t.Fatalf("the last entry: sealed %v, %v", sealed, err)
	}
	return partition.StoredRun{From: k.At.Seq - 1, Before: k.Before, Entries: []log.Entry{{Seq: k.At.Seq, Op: k.Op}}, Seal: k.Seal}
}

// TestTakeBackMoved: a replica whose site a restored log does not know sends an operation again as another site. Another replica gives the
// same operation back, before or after that. It is there once.
func TestTakeBackMoved(t *testing.T) {
	store := memkv.New()
	origin := sealing(t, store)
	image := imageOf(t, store)
	accept := func(p *partition.Partition, dot log.Dot) {
		t.Helper()
		op := log.Op{Dot: dot, At: log.HLC(clock().UnixMilli()) << 16, By: "key", Body: &log.InputCreate{Blob: blob.Sum([]byte("a")), ContentType: "image/png"}}
		if _, _, err := p.Accept(t.Context(), []log.Op{op}, nil); err != nil {
			t.Fatal(err)
		}
	}
	accept(origin, log.Dot{Writer: 9, Seq: 1})
	r := openNamed(t, memkv.New(), 1)
	pullSealed(t, r, origin)
	for _, sent := range []bool{true, false} {
		p := openRestored(t, image, 2)
		if last, err := p.Moves(9, 9); last != 0 || err != nil {
			t.Fatalf("Moves = %d, %v", last, err)
		}
		b := storedRun(t, r)
		if sent {
			accept(p, log.Dot{Writer: 30, Seq: 1})
		}
		if err := p.TakeBack(t.Context(), &b, nil); err != nil {
			t.Fatal(err)
		}
		if !sent {
			if c := conflictsOf(t, p); len(c) != 1 || c[0].Op.Dot != (log.Dot{Writer: 9, Seq: 1}) {
				t.Errorf("before it is sent: conflicts %+v", c)
			}
			accept(p, log.Dot{Writer: 30, Seq: 1})
		}
		v := p.View()
		if got := ids(t, v.Reader); len(got) != 1 || len(conflictsOf(t, p)) > 0 {
			t.Errorf("sent %v: inputs %v, conflicts %+v", sent, got, conflictsOf(t, p))
		}
		_ = v.Close()
	}
}

// TestTakeBackOtherLife: the disk of a replica was rolled back to the first operation of those that the log has of its site. The replica
// makes an operation again that its earlier life made later, or that the log has and lists without its picture. The log keeps the two
// apart.
func TestTakeBackOtherLife(t *testing.T) {
	store := memkv.New()
	origin := sealing(t, store)
	image := imageOf(t, store)
	at := log.HLC(clock().UnixMilli()) << 16
	accept := func(p *partition.Partition, site log.Writer, seq uint64, picture string) {
		t.Helper()
		at++
		op := log.Op{
			Dot: log.Dot{Writer: site, Seq: seq}, At: at, By: "key", Body: &log.InputCreate{Blob: blob.Sum([]byte(picture)), ContentType: "image/png", AllowDuplicate: true},
		}
		if _, _, err := p.Accept(t.Context(), []log.Op{op}, nil); err != nil {
			t.Fatal(err)
		}
	}
	for seq, picture := range []string{"a", "b"} {
		accept(origin, 9, uint64(seq+1), picture)
	}
	later := imageOf(t, store)
	for seq, picture := range []string{"c", "d"} {
		accept(origin, 9, uint64(seq+3), picture)
	}
	r := openNamed(t, memkv.New(), 1)
	pullSealed(t, r, origin)
	listed := func(p *partition.Partition) (seqs []uint64) {
		for _, c := range conflictsOf(t, p) {
			seqs = append(seqs, c.Op.Dot.Seq)
		}
		return seqs
	}

	p, b := openRestored(t, later, 2), storedRun(t, r)
	if had, err := p.Moves(9, 1); had != 2 || err != nil {
		t.Fatalf("Moves = %d, %v", had, err)
	}
	if err := p.TakeBack(t.Context(), &b, nil); err != nil {
		t.Fatal(err)
	}
	accept(p, 30, 1, "x")
	accept(p, 30, 2, "d")
	if got := listed(p); !slices.Equal(got, []uint64{3, 4}) {
		t.Errorf("listed %v, want 3 and 4", got)
	}

	p, b = openRestored(t, image, 2), storedRun(t, r)
	b.Missing = map[log.Dot]string{{Writer: 9, Seq: 2}: partition.LostPicture}
	if err := p.TakeBack(t.Context(), &b, nil); err != nil {
		t.Fatal(err)
	}
	if had, err := p.Moves(9, 1); had != 4 || err != nil {
		t.Fatalf("Moves = %d, %v", had, err)
	}
	accept(p, 30, 1, "b")
	if got := listed(p); !slices.Equal(got, []uint64{2}) {
		t.Errorf("listed %v, want 2, whose picture is lost", got)
	}
}

// TestTakeBackRenamedLater: the last operation of a replica is given back before the first, and listed. The replica sends both: its clock
// was set back, and the last one names an input that has another name now. It is no longer listed.
func TestTakeBackRenamedLater(t *testing.T) {
	store := memkv.New()
	origin := sealing(t, store)
	image := imageOf(t, store)
	at := log.HLC(clock().UnixMilli()) << 16
	accept := func(p *partition.Partition, ops ...log.Op) {
		t.Helper()
		if err := p.ResolveNames(ops); err != nil {
			t.Fatal(err)
		}
		if _, _, err := p.AcceptAgain(t.Context(), ops, ops, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	creation := log.Op{Dot: log.Dot{Writer: 9, Seq: 1}, At: at, Body: create("made")}
	ops := func(at log.HLC) []log.Op {
		label := &log.InputLabels{Input: creation.Dot, Labels: []log.Label{{Concept: "x", Value: 1}}}
		return []log.Op{{Dot: log.Dot{Writer: 11, Seq: 1}, At: at, Body: create("a")}, {Dot: log.Dot{Writer: 11, Seq: 2}, At: at, Body: label}}
	}
	first, r := openNamed(t, memkv.New(), 1), openNamed(t, memkv.New(), 1)
	accept(origin, creation)
	pullSealed(t, first, origin)
	accept(origin, ops(at)...)
	pullSealed(t, r, origin)

	p := openRestored(t, image, 2)
	if _, err := p.Moves(9, 9); err != nil {
		t.Fatal(err)
	}
	sent := creation
	sent.Dot.Writer = 30
	accept(p, sent)
	for _, b := range []partition.StoredRun{storedRun(t, first), lastStored(t, r)} {
		if err := p.TakeBack(t.Context(), &b, nil); err != nil {
			t.Fatal(err)
		}
	}
	if c := conflictsOf(t, p); len(c) != 1 {
		t.Fatalf("conflicts %+v, want the label", c)
	}
	accept(p, ops(at+9)...)
	if c := conflictsOf(t, p); len(c) > 0 {
		t.Errorf("conflicts %+v", c)
	}
}

// TestTakeBackRefused: a restored log refuses an operation that it had before, when its replica sends it again. Another replica gives the
// operation back. It is listed with its content, also if the log was trimmed since.
func TestTakeBackRefused(t *testing.T) {
	store := memkv.New()
	origin := sealing(t, store)
	image := imageOf(t, store)
	creation := log.Op{Dot: log.Dot{Writer: 9, Seq: 1}, At: log.HLC(clock().UnixMilli()) << 16, By: "token", Body: &log.ModelCreate{ID: "m", Version: "v"}}
	if _, _, err := origin.Accept(t.Context(), []log.Op{creation}, nil); err != nil {
		t.Fatal(err)
	}
	r := openNamed(t, memkv.New(), 1)
	pullSealed(t, r, origin)
	b := storedRun(t, r)
	p := openRestored(t, image, 2)
	no := creation
	partition.Refuse(&no, "scope: the token was revoked")
	if _, _, err := p.Accept(t.Context(), []log.Op{no}, nil); err != nil {
		t.Fatal(err)
	}
	if err := p.Log().Trim(p.Log().Head() + 1); err != nil {
		t.Fatal(err)
	}
	for _, secondRestore := range []bool{false, true} {
		if secondRestore { // a replica that has pulled the refusal gives it to a log that was restored once more
			p = openRestored(t, image, 3)
			first := partition.StoredRun{From: b.From, Before: b.Before, Entries: []log.Entry{{Seq: b.From + 1, Op: no}}}
			first.Seal = p.Seal(b.From+1, b.Before.Next(log.Encode(nil, &no)))
			if err := p.TakeBack(t.Context(), &first, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.TakeBack(t.Context(), &b, nil); err != nil {
			t.Fatal(err)
		}
		c := conflictsOf(t, p)
		if len(c) != 1 || !bytes.Equal(log.Encode(nil, &c[0].Op), log.Encode(nil, &b.Entries[0].Op)) || !strings.Contains(c[0].Verdict.Detail, "the token was revoked") {
			t.Errorf("again %v: conflicts %+v", secondRestore, c)
		}
	}
}

// TestTakeBackSentLater: a replica gives back an operation without the one before it, which its own replica sends later. The origin lists
// it as lost until it has it. An operation of other content under its name leaves it listed.
func TestTakeBackSentLater(t *testing.T) {
	store := memkv.New()
	origin := sealing(t, store)
	image := imageOf(t, store)
	send := func(p *partition.Partition, ids ...string) {
		t.Helper()
		var ops []log.Op
		for i, id := range ids {
			at := log.HLC(clock().UnixMilli())<<16 + log.HLC(i)
			ops = append(ops, log.Op{Dot: log.Dot{Writer: 9, Seq: uint64(i) + 1}, At: at, By: "key", Body: create(id)})
		}
		if _, _, err := p.AcceptAgain(t.Context(), ops, ops, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	send(origin, "a", "b")
	r := openNamed(t, memkv.New(), 1)
	pullSealed(t, r, origin)
	for want, second := range []string{"b", "c"} {
		p := openRestored(t, image, 2)
		b := lastStored(t, r)
		if err := p.TakeBack(t.Context(), &b, nil); err != nil {
			t.Fatal(err)
		}
		if c := conflictsOf(t, p); len(c) != 1 {
			t.Fatalf("conflicts %+v", c)
		}
		send(p, "a", second)
		if c := conflictsOf(t, p); len(c) != want {
			t.Errorf("after a and %s: conflicts %+v, want %d", second, c, want)
		}
	}
}

// TestTakeBackParted: two replicas have had the same site, since a rollback of the origin's disk took back a lease. The log has the first
// operation of the other one. It takes no operation that follows another first one than that. It does where a later life of the other
// replica made it.
func TestTakeBackParted(t *testing.T) {
	store := memkv.New()
	origin := sealing(t, store)
	image := imageOf(t, store)
	accept := func(p *partition.Partition, seq, life uint64, id string) {
		t.Helper()
		op := log.Op{Dot: log.Dot{Writer: 9, Seq: seq}, At: log.HLC(clock().UnixMilli())<<16 + log.HLC(seq), By: "key", Body: create(id)}
		if _, _, err := p.AcceptOf(t.Context(), []log.Op{op}, []partition.Life{{First: seq, ID: life}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	storedRun := func(of *partition.Partition) partition.StoredRun {
		r := openNamed(t, memkv.New(), 1)
		pullSealed(t, r, of)
		return storedRun(t, r)
	}
	accept(origin, 1, 1, "a")
	accept(origin, 2, 1, "b")
	other := sealing(t, imageOf(t, image))
	accept(other, 1, 2, "x")
	accept(other, 2, 3, "y")
	for _, c := range []struct {
		name       string
		from       *partition.Partition
		lives      []partition.Life // of the operations that come back, and of the one before
		skip, head uint64
		want       int
	}{
		{"both", origin, []partition.Life{{First: 1, ID: 1}}, 0, 2, 2},
		{"the second", origin, []partition.Life{{First: 1, ID: 1}}, 1, 2, 1},
		{"of a later life", other, []partition.Life{{First: 1, ID: 2}, {First: 2, ID: 3}}, 1, 3, 0},
		{"after one of a life that nobody knows", other, []partition.Life{{First: 2, ID: 3}}, 1, 3, 0},
	} {
		p := openRestored(t, image, 2)
		accept(p, 1, 2, "x")
		submit(t, p, create("own")) // the entries do not keep their places
		b := storedRun(c.from)
		for ; c.skip > 0; c.skip-- {
			b.From, b.Before, b.Entries = b.From+1, b.Before.Next(log.Encode(nil, &b.Entries[0].Op)), b.Entries[1:]
		}
		for _, l := range c.lives {
			b.Lives = append(b.Lives, partition.SiteLife{Site: 9, Life: l})
		}
		for range 2 { // the answer to the first request was lost
			if err := p.TakeBack(t.Context(), &b, nil); err != nil {
				t.Fatal(err)
			}
			if n, head := len(conflictsOf(t, p)), p.Log().Head(); n != c.want || head != c.head {
				t.Errorf("%s: %d conflicts and %d entries, want %d and %d", c.name, n, head, c.want, c.head)
			}
		}
	}
}

// TestTakeBackForged has an origin list entries that it did not seal, and take none.
func TestTakeBackForged(t *testing.T) {
	store := memkv.New()
	origin := sealing(t, store)
	submit(t, origin, create("a"))
	image := imageOf(t, store)
	submit(t, origin, create("b"))
	r := openNamed(t, memkv.New(), 1)
	pullSealed(t, r, origin)
	b := storedRun(t, r)
	if err := origin.TakeBack(t.Context(), &b, nil); !errors.Is(err, partition.ErrRestored) {
		t.Errorf("a log that was not restored takes entries back: %v", err)
	}
	b.Entries[len(b.Entries)-1].Op.Body = &log.Rules{Version: 1 << 20}
	p := openRestored(t, image, 2)
	head := p.Log().Head()
	if err := p.TakeBack(t.Context(), &b, nil); err != nil {
		t.Fatal(err)
	}
	if p.Log().Head() != head {
		t.Error("the log has a forged entry")
	}
	if c := conflictsOf(t, p); len(c) != 1 {
		t.Errorf("conflicts %+v", c)
	}
}

// lostOf are the pictures that are listed as lost.
func lostOf(p *partition.Partition) (map[blob.Hash]bool, error) {
	v := p.View()
	defer v.Close()
	return partition.LostPictures(v.Reader.KV(), app)
}
