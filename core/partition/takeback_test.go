package partition_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
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
	p, err := partition.Open(partition.Options{Store: store, App: app, Clock: clock, Epoch: life, Secret: [32]byte{1}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// restored opens an origin from an image of its store, as a restore leaves it.
func restored(t testing.TB, image kv.Store, epoch byte) *partition.Partition {
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

// keptBy are the entries that a replica keeps, as it offers them.
func keptBy(t testing.TB, p *partition.Partition) (b partition.Back) {
	t.Helper()
	err := p.KeptAfter(partition.KeptAt{}, func(k partition.Kept) bool {
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
	r := opened(t, memkv.New(), 1)
	pullSealed(t, r, origin)
	b := keptBy(t, r)

	gone := restored(t, image, 4)
	lacking := keptBy(t, r)
	first := lacking.Entries[len(lacking.Entries)-2].Op
	lacking.Gone = map[log.Dot]string{first.Dot: partition.LostPicture}
	if err := gone.TakeBack(t.Context(), &lacking, nil); err != nil {
		t.Fatal(err)
	}
	if lost, err := lostOf(gone); !lost[first.Body.(*log.InputCreate).Blob] || len(lost) != 1 || err != nil {
		t.Errorf("LostPictures = %v, %v", lost, err)
	}

	same := restored(t, image, 2)
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

	other := restored(t, image, 3)
	made := submit(t, other, create("a"))[0]
	if made.Dot.Site < partition.RestoredSites {
		t.Errorf("a restored log writes as %v", made.Dot)
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
	if x, ok := c[0].Op.Body.(*log.InputCreate); !ok || x.ID != "a" || c[0].Verdict.Dot != made.Dot {
		t.Errorf("conflict %+v", c[0])
	}
}

// lastKept is the last entry of kept ones alone.
func lastKept(t testing.TB, p *partition.Partition) partition.Back {
	t.Helper()
	k, sealed, err := p.LastKept()
	if err != nil || !sealed {
		t.Fatalf("the last entry: sealed %v, %v", sealed, err)
	}
	return partition.Back{From: k.At.Seq - 1, Before: k.Before, Entries: []log.Entry{{Seq: k.At.Seq, Op: k.Op}}, Seal: k.Seal}
}

// TestRolledBack rolls the disk of an origin back to an image, without a restore. An entry that a replica has pulled proves it, once. The origin
// takes back what it lacks, also if it has written since, by the names that lost operations have.
func TestRolledBack(t *testing.T) {
	store := memkv.New()
	origin := sealing(t, store)
	doomed := submit(t, origin, create("doomed"))[0].Dot
	image := imageOf(t, store)
	r := opened(t, memkv.New(), 1)
	pullSealed(t, r, origin)
	old := lastKept(t, r)
	a := submit(t, origin, create("a"), create("b"))[0].Dot
	label := []log.Op{{Dot: log.Dot{Site: 9, Seq: 1}, Body: &log.InputLabels{Input: a, Labels: []log.Label{{Concept: "mine", Value: log.True}}}}}
	if _, _, err := origin.Accept(t.Context(), label, nil); err != nil {
		t.Fatal(err)
	}
	submit(t, origin, &log.InputDelete{Input: doomed})
	pullSealed(t, r, origin)
	proof := lastKept(t, r)
	if found, err := origin.RolledBack(&proof); found || err != nil {
		t.Errorf("a log that has the entry was rolled back: %v, %v", found, err)
	}

	written := []log.Body{create("x"), create("b"), &log.InputDelete{Input: doomed}}
	for _, tt := range []struct {
		name      string
		written   []log.Body
		by        log.Epoch // life that writes; zero: one of an earlier version, which writes as the site of before
		inputs    string
		conflicts int
	}{
		{"as it was", nil, log.Epoch{5}, "[a b late]", 0},
		{"written since", written, log.Epoch{5}, "[a b late x]", 2}, // input b, and a deletion of what is deleted
		{"written since by an earlier version", written, log.Epoch{}, "[a b late x]", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			store := imageOf(t, image)
			if len(tt.written) > 0 {
				submit(t, sealingAs(t, store, tt.by), tt.written...)
			}
			p := sealingAs(t, store, log.Epoch{5})
			forged := proof
			forged.Seal = append([]byte{1}, proof.Seal[1:]...)
			for what, not := range map[string]partition.Back{"a forged entry": forged, "an entry that it has": old} {
				if found, err := p.RolledBack(&not); found || err != nil {
					t.Errorf("%s proves a rollback: %v, %v", what, found, err)
				}
			}
			if found, err := p.RolledBack(&proof); !found || err != nil || p.Log().Epoch() != (log.Epoch{5}) {
				t.Fatalf("RolledBack = %v, %v; epoch %x", found, err, p.Log().Epoch())
			}
			if found, err := p.RolledBack(&proof); found || err != nil {
				t.Errorf("the second time: %v, %v", found, err)
			}
			if made := submit(t, p, create("late"))[0]; made.Dot.Site < partition.RestoredSites {
				t.Errorf("the log writes as %v", made.Dot)
			}
			for again := range 2 { // another replica gives back the same
				b, listed := keptBy(t, r), tt.conflicts
				if again == 0 { // the second one brings the picture
					b.Gone = map[log.Dot]string{a: partition.LostPicture}
					listed++
				}
				if err := p.TakeBack(t.Context(), &b, nil); err != nil {
					t.Fatal(err)
				}
				v := p.View()
				got := ids(t, v.Reader)
				slices.Sort(got)
				if fmt.Sprint(got) != tt.inputs || len(conflictsOf(t, p)) != listed {
					t.Errorf("inputs %v, conflicts %+v; want %s and %d", got, conflictsOf(t, p), tt.inputs, listed)
				}
				for _, id := range []string{"a", "x"} {
					in, err := v.InputByID(id)
					if labelled := slices.ContainsFunc(in.Labels, func(l catalog.Label) bool { return l.Concept == "mine" }); err == nil && labelled != (id == "a") {
						t.Errorf("input %s is labelled: %v", id, labelled)
					}
				}
				_ = v.Close()
			}
			pending := []log.Op{{Dot: log.Dot{Site: 9, Seq: 2}, At: 1, Body: &log.InputDelete{Input: a}}} // made before the rollback was found
			if err := p.Meant(pending); err != nil {
				t.Fatal(err)
			}
			if _, _, err := p.Accept(t.Context(), pending, nil); err != nil {
				t.Fatal(err)
			}
			v := p.View()
			defer v.Close()
			if _, err := v.InputByID("a"); !errors.Is(err, catalog.ErrNotFound) {
				t.Errorf("the deleted input: %v", err)
			}
			if _, err := v.InputByID("x"); err != nil && len(tt.written) > 0 {
				t.Errorf("the input that has the name now: %v", err)
			}
		})
	}
}

// TestRolledBackNames rolls the disk of an origin back. The origin writes, and a replica pulls that, before another one shows what the origin
// lacks. Operations that wait at either replica mean the inputs that it has pulled.
func TestRolledBackNames(t *testing.T) {
	store := memkv.New()
	origin := sealing(t, store)
	submit(t, origin, create("first"))
	image := imageOf(t, store)
	lost := submit(t, origin, create("lost"), create("other"))[0].Dot
	early := submit(t, origin, create("deleted early"))[0].Dot
	r := opened(t, memkv.New(), 1)
	pullSealed(t, r, origin)

	p := sealingAs(t, imageOf(t, image), log.Epoch{5})
	newer := submit(t, p, create("newer"))[0].Dot
	sent := []log.Op{{Dot: log.Dot{Site: 7, Seq: 1}, Body: &log.InputDelete{Input: early}}} // by a replica that does not say where it stands
	if _, _, err := p.Accept(t.Context(), sent, nil); err != nil {
		t.Fatal(err)
	}
	proof, kept := lastKept(t, r), keptBy(t, r)
	if found, err := p.RolledBack(&proof); !found || err != nil {
		t.Fatalf("RolledBack = %v, %v", found, err)
	}
	if err := p.TakeBack(t.Context(), &kept, nil); err != nil {
		t.Fatal(err)
	}
	for site, input := range map[log.Site]log.Dot{8: lost, 9: newer} {
		ops := []log.Op{{Dot: log.Dot{Site: site, Seq: 1}, Body: &log.InputDelete{Input: input}}}
		if err := p.Meant(ops); err != nil {
			t.Fatal(err)
		}
		if _, _, err := p.Accept(t.Context(), ops, nil); err != nil {
			t.Fatal(err)
		}
	}
	v := p.View()
	defer v.Close()
	if got := fmt.Sprint(ids(t, v.Reader)); got != "[first other]" || len(conflictsOf(t, p)) > 0 {
		t.Errorf("inputs %s, conflicts %+v; want [first other] and none", got, conflictsOf(t, p))
	}
}

// TestRolledBackPicture: a log whose disk was rolled back uses the name of a lost input again. A replica gives that input back without its
// picture. The input stays listed when another replica gives back the entry that has its name, until a replica brings the picture.
func TestRolledBackPicture(t *testing.T) {
	store := memkv.New()
	origin := sealing(t, store)
	submit(t, origin, create("before"))
	image := imageOf(t, store)
	lost := submit(t, origin, create("a"))[0]
	r := opened(t, memkv.New(), 1)
	pullSealed(t, r, origin)
	proof := lastKept(t, r)

	rolled := imageOf(t, image)
	used := submit(t, sealingAs(t, rolled, log.Epoch{}), create("x"))[0] // by an earlier version
	p := sealingAs(t, rolled, log.Epoch{5})
	if used.Dot != lost.Dot {
		t.Fatalf("the log names %v, want %v", used.Dot, lost.Dot)
	}
	q := opened(t, memkv.New(), 2)
	pullSealed(t, q, p)
	if found, err := p.RolledBack(&proof); !found || err != nil {
		t.Fatalf("RolledBack = %v, %v", found, err)
	}
	for _, step := range []struct {
		what string
		by   *partition.Partition
		gone map[log.Dot]string
		want string
	}{
		{"without the picture", r, map[log.Dot]string{lost.Dot: partition.LostPicture}, "[a]"},
		{"the entry that has its name", q, nil, "[a]"},
		{"that entry without its picture", q, map[log.Dot]string{used.Dot: partition.LostPicture}, "[a]"},
		{"without the picture again", r, map[log.Dot]string{lost.Dot: partition.LostPicture}, "[a]"},
		{"with the picture", r, nil, "[]"},
	} {
		b := keptBy(t, step.by)
		b.Gone = step.gone
		if err := p.TakeBack(t.Context(), &b, nil); err != nil {
			t.Fatal(err)
		}
		listed := []string{}
		for _, c := range conflictsOf(t, p) {
			id := c.Op.Body.(*log.InputCreate).ID
			listed = append(listed, id)
			v := p.View()
			if in, err := v.InputByID(id); err != nil || in.Dot != c.Op.Dot {
				t.Errorf("%s: the input is %v, %v, listed as %v", step.what, in.Dot, err, c.Op.Dot)
			}
			_ = v.Close()
		}
		if fmt.Sprint(listed) != step.want {
			t.Errorf("%s: listed are %v, want %s", step.what, listed, step.want)
		}
	}
}

// TestTakeBackMoved: a replica whose site a restored log does not know sends an operation again as another site. Another replica gives the
// same operation back, before or after that. It is there once.
func TestTakeBackMoved(t *testing.T) {
	store := memkv.New()
	origin := sealing(t, store)
	image := imageOf(t, store)
	accept := func(p *partition.Partition, dot log.Dot) {
		t.Helper()
		op := log.Op{Dot: dot, At: log.HLC(clock().UnixMilli()) << 16, By: "key", Body: &log.InputCreate{Blob: blob.Sum([]byte("a"))}}
		if _, _, err := p.Accept(t.Context(), []log.Op{op}, nil); err != nil {
			t.Fatal(err)
		}
	}
	accept(origin, log.Dot{Site: 9, Seq: 1})
	r := opened(t, memkv.New(), 1)
	pullSealed(t, r, origin)
	for _, sent := range []bool{true, false} {
		p := restored(t, image, 2)
		if last, err := p.Moves(9); last != 0 || err != nil {
			t.Fatalf("Moves = %d, %v", last, err)
		}
		b := keptBy(t, r)
		if sent {
			accept(p, log.Dot{Site: 30, Seq: 1})
		}
		if err := p.TakeBack(t.Context(), &b, nil); err != nil {
			t.Fatal(err)
		}
		if !sent {
			if c := conflictsOf(t, p); len(c) != 1 || c[0].Op.Dot != (log.Dot{Site: 9, Seq: 1}) {
				t.Errorf("before it is sent: conflicts %+v", c)
			}
			accept(p, log.Dot{Site: 30, Seq: 1})
		}
		v := p.View()
		if got := ids(t, v.Reader); len(got) != 1 || len(conflictsOf(t, p)) > 0 {
			t.Errorf("sent %v: inputs %v, conflicts %+v", sent, got, conflictsOf(t, p))
		}
		_ = v.Close()
	}
}

// TestTakeBackRefused: a restored log refuses an operation that it had before, when its replica sends it again. Another replica gives the
// operation back. It is listed with its content, also if the log was trimmed since.
func TestTakeBackRefused(t *testing.T) {
	store := memkv.New()
	origin := sealing(t, store)
	image := imageOf(t, store)
	made := log.Op{Dot: log.Dot{Site: 9, Seq: 1}, At: log.HLC(clock().UnixMilli()) << 16, By: "token", Body: &log.ModelCreate{ID: "m", Version: "v"}}
	if _, _, err := origin.Accept(t.Context(), []log.Op{made}, nil); err != nil {
		t.Fatal(err)
	}
	r := opened(t, memkv.New(), 1)
	pullSealed(t, r, origin)
	b := keptBy(t, r)
	p := restored(t, image, 2)
	no := made
	partition.Refuse(&no, "scope: the token was revoked")
	if _, _, err := p.Accept(t.Context(), []log.Op{no}, nil); err != nil {
		t.Fatal(err)
	}
	if err := p.Log().Trim(p.Log().Head() + 1); err != nil {
		t.Fatal(err)
	}
	for _, again := range []bool{false, true} {
		if again { // a replica that has pulled the refusal gives it to a log that was restored once more
			p = restored(t, image, 3)
			first := partition.Back{From: b.From, Before: b.Before, Entries: []log.Entry{{Seq: b.From + 1, Op: no}}}
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
			t.Errorf("again %v: conflicts %+v", again, c)
		}
	}
}

// TestTakeBackSentLater: a replica gives back an operation without the one before it, which its own replica sends later. The origin lists it as
// lost until it has it. An operation of other content under its name leaves it listed.
func TestTakeBackSentLater(t *testing.T) {
	store := memkv.New()
	origin := sealing(t, store)
	image := imageOf(t, store)
	send := func(p *partition.Partition, ids ...string) {
		t.Helper()
		var ops []log.Op
		for i, id := range ids {
			at := log.HLC(clock().UnixMilli())<<16 + log.HLC(i)
			ops = append(ops, log.Op{Dot: log.Dot{Site: 9, Seq: uint64(i) + 1}, At: at, By: "key", Body: create(id)})
		}
		if _, _, err := p.AcceptAgain(t.Context(), ops, ops, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	send(origin, "a", "b")
	r := opened(t, memkv.New(), 1)
	pullSealed(t, r, origin)
	for want, second := range []string{"b", "c"} {
		p := restored(t, image, 2)
		b := lastKept(t, r)
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

// TestTakeBackForged has an origin list entries that it did not seal, and take none.
func TestTakeBackForged(t *testing.T) {
	store := memkv.New()
	origin := sealing(t, store)
	submit(t, origin, create("a"))
	image := imageOf(t, store)
	submit(t, origin, create("b"))
	r := opened(t, memkv.New(), 1)
	pullSealed(t, r, origin)
	b := keptBy(t, r)
	if err := origin.TakeBack(t.Context(), &b, nil); !errors.Is(err, partition.ErrRestored) {
		t.Errorf("a log that was not restored takes entries back: %v", err)
	}
	b.Entries[len(b.Entries)-1].Op.Body = &log.Rules{Version: 1 << 20}
	p := restored(t, image, 2)
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

// TestTakeBackDeleted has deletions come before what they delete, from replicas that hold less of the log: nothing comes back to life.
func TestTakeBackDeleted(t *testing.T) {
	for name, body := range map[string]func(log.Dot) log.Body{
		"one": func(d log.Dot) log.Body { return &log.InputDelete{Input: d} },
		"all": func(log.Dot) log.Body { return &log.InputDeleteAll{} },
	} {
		store := memkv.New()
		origin := sealing(t, store)
		image := imageOf(t, store)
		made := submit(t, origin, create("gone"))[0].Dot
		r := opened(t, memkv.New(), 1)
		pullSealed(t, r, origin)
		submit(t, r, body(made))

		p := restored(t, image, 2)
		if err := sendLives(t, r, p); err != nil {
			t.Fatal(err)
		}
		b := keptBy(t, r)
		if err := p.TakeBack(t.Context(), &b, nil); err != nil {
			t.Fatal(err)
		}
		v := p.View()
		if _, err := v.InputByID("gone"); !errors.Is(err, catalog.ErrNotFound) {
			t.Errorf("%s: the deleted input lives: %v", name, err)
		}
		v.Close()
	}
}

// TestKeptBound has a replica keep no more of the log than it may, and the newest of it.
func TestKeptBound(t *testing.T) {
	origin := sealing(t, memkv.New())
	r, err := partition.Open(partition.Options{Store: memkv.New(), App: app, Clock: clock, Epoch: log.Epoch{9}, Replica: &partition.Replica{Keep: 4000}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		submit(t, origin, create(fmt.Sprint(i)))
		pullSealed(t, r, origin)
	}
	b := keptBy(t, r)
	if n := len(b.Entries); n < 10 || n > 40 || b.From+uint64(n) != origin.Log().Head() {
		t.Errorf("%d entries after %d are kept of %d", n, b.From, origin.Log().Head())
	}
	head := origin.Log().Head()
	chain, err := origin.Log().Chain(head)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Pull(t.Context(), partition.Run{Epoch: log.Epoch{1}, From: head, To: head, Chain: chain, Stable: head}); err != nil {
		t.Fatal(err)
	}
	if b := keptBy(t, r); len(b.Entries) > 0 {
		t.Errorf("%d entries are kept that are stable", len(b.Entries))
	}
}

// TestKeptUntilListed has a replica take a snapshot of a restored log, which is older than what the replica gave back. Another backup may be older than
// that, too, so the replica keeps the entries of the log of before until that is stable.
func TestKeptUntilListed(t *testing.T) {
	store := memkv.New()
	origin := sealing(t, store)
	image := imageOf(t, store)
	submit(t, origin, create("x"))
	r := opened(t, memkv.New(), 1)
	pullSealed(t, r, origin)
	old := r.KeptOf()
	p := restored(t, image, 2)
	submit(t, p, create("a"))
	x, _ := export(t, p, network)
	at := x.Snapshot.Seq
	submit(t, p, create("b"), create("x"))
	b := keptBy(t, r)
	if err := p.TakeBack(t.Context(), &b, nil); err != nil {
		t.Fatal(err)
	}
	x.Snapshot.Head = p.Log().Head()
	if err := r.Rebase(t.Context(), x.Snapshot); err != nil || r.KeptOf() == old {
		t.Fatal(err)
	}
	submit(t, p, create("c"))
	pullSealed(t, r, p)
	kept := func(stable uint64) (older bool) {
		t.Helper()
		c := r.Cursor()
		if _, err := r.Pull(t.Context(), partition.Run{Epoch: c.Epoch, From: c.Seq, To: c.Seq, Chain: c.Chain, Stable: stable}); err != nil {
			t.Fatal(err)
		}
		err := r.KeptAfter(partition.KeptAt{}, func(k partition.Kept) bool {
			older = older || k.At.Run == 1
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		return older
	}
	if !kept(at + 1) {
		t.Error("entries of the log of before are dropped that a backup may not list")
	}
	if kept(x.Snapshot.Head + 1) {
		t.Error("entries are kept that are stable")
	}
}

// TestKeptLeft has a replica leave its site: what is in the log of it, and may not be stable, is still offered to a restored origin.
func TestKeptLeft(t *testing.T) {
	origin, store := sealing(t, memkv.New()), memkv.New()
	r := opened(t, store, 1)
	submit(t, r, create("a"), create("b"))
	if err := sendLives(t, r, origin); err != nil {
		t.Fatal(err)
	}
	submit(t, r, create("c"))
	if err := r.Renew(edge+1, 2, log.Epoch{1}); err != nil {
		t.Fatal(err)
	}
	pullSealed(t, r, origin)
	for range 2 {
		var got []string
		sites, err := r.ConfirmedSites()
		if err != nil || len(sites) != 1 || sites[0] != edge {
			t.Fatalf("sites %v, %v", sites, err)
		}
		err = r.ConfirmedAfter(edge, 0, func(op log.Op) bool {
			got = append(got, op.Body.(*log.InputCreate).ID)
			return true
		})
		if err != nil || fmt.Sprint(got) != "[a b]" {
			t.Errorf("operations %v, %v", got, err)
		}
		r = opened(t, store, 2)
	}
	c := r.Cursor()
	if _, err := r.Pull(t.Context(), partition.Run{Epoch: c.Epoch, From: c.Seq, To: c.Seq, Chain: c.Chain, Stable: c.Seq}); err != nil {
		t.Fatal(err)
	}
	if sites, err := r.ConfirmedSites(); err != nil || len(sites) > 0 {
		t.Errorf("sites %v are kept of stable operations, %v", sites, err)
	}
}

// lostOf are the pictures that are listed as lost.
func lostOf(p *partition.Partition) (map[blob.Hash]bool, error) {
	v := p.View()
	defer v.Close()
	return partition.LostPictures(v.Reader.KV(), app)
}

// TestDeletedBeforeMove: another replica deleted an input that its own replica sends again as another site, before or after the deletion comes
// back, or is pushed for the first time. The input is deleted.
func TestDeletedBeforeMove(t *testing.T) {
	store := memkv.New()
	origin := sealing(t, store)
	image := imageOf(t, store)
	at := log.HLC(clock().UnixMilli()) << 16
	made := log.Op{Dot: log.Dot{Site: 9, Seq: 1}, At: at, By: "key", Body: &log.InputCreate{Blob: blob.Sum([]byte("a"))}}
	deletes := log.Op{Dot: log.Dot{Site: 11, Seq: 1}, At: at + 1, By: "key", Body: &log.InputDelete{Input: made.Dot}}
	accept := func(p *partition.Partition, op log.Op) {
		t.Helper()
		if _, _, err := p.Accept(t.Context(), []log.Op{op}, nil); err != nil {
			t.Fatal(err)
		}
	}
	accept(origin, made)
	before := opened(t, memkv.New(), 1)
	pullSealed(t, before, origin)
	accept(origin, deletes)
	r := opened(t, memkv.New(), 1)
	pullSealed(t, r, origin)
	sent := made
	sent.Dot.Site = 30
	sends := func(p *partition.Partition) { accept(p, sent) }
	back := func(r *partition.Partition) func(*partition.Partition) {
		return func(p *partition.Partition) {
			b := keptBy(t, r)
			if err := p.TakeBack(t.Context(), &b, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	pushes := func(p *partition.Partition) {
		ops := []log.Op{deletes}
		ops[0].Body = &log.InputDelete{Input: made.Dot}
		if err := p.Meant(ops); err != nil {
			t.Fatal(err)
		}
		accept(p, ops[0])
	}
	for name, steps := range map[string][]func(*partition.Partition){
		"sent, given back":         {sends, back(r)},
		"given back, sent":         {back(r), sends},
		"sent, given back, pushed": {sends, back(before), pushes},
		"given back, sent, pushed": {back(before), sends, pushes},
		"given back, pushed, sent": {back(before), pushes, sends},
	} {
		p := restored(t, image, 2)
		if _, err := p.Moves(9); err != nil {
			t.Fatal(err)
		}
		for _, step := range steps {
			step(p)
		}
		v := p.View()
		conflicts := conflictsOf(t, p)
		listed := slices.ContainsFunc(conflicts, func(c partition.Conflict) bool { return c.Op.Dot == made.Dot })
		if got := ids(t, v.Reader); len(got) > 0 || listed {
			t.Errorf("%s: inputs %v live, conflicts %+v", name, got, conflicts)
		}
		_ = v.Close()
	}
}

// TestTakeBackEarlyTwice: the log of a first restore has a deletion of an input that came later. The log of a second restore has it from there, as
// it was, and deletes the input, too.
func TestTakeBackEarlyTwice(t *testing.T) {
	store := memkv.New()
	submit(t, sealing(t, store), create("old"))
	first := restored(t, store, 2)
	deletion := log.Op{Dot: log.Dot{Site: 8, Seq: 1}, Body: &log.InputDelete{Input: log.Dot{Site: 9, Seq: 1}}}
	if _, _, err := first.Accept(t.Context(), []log.Op{deletion}, nil); err != nil {
		t.Fatal(err)
	}
	r := opened(t, memkv.New(), 1)
	keepSealed(t, r, first, 0)
	second, b := restored(t, store, 3), keptBy(t, r)
	if err := second.TakeBack(t.Context(), &b, nil); err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]*partition.Partition{"first": first, "second": second} {
		if _, _, err := p.Accept(t.Context(), []log.Op{{Dot: log.Dot{Site: 9, Seq: 1}, Body: create("deleted")}}, nil); err != nil {
			t.Fatal(err)
		}
		v := p.View()
		if got := ids(t, v.Reader); !slices.Equal(got, []string{"old"}) {
			t.Errorf("after the %s restore the inputs are %v", name, got)
		}
		_ = v.Close()
	}
}

// TestRolledBackTwice: the disk of an origin is set back twice to the same image. The log of the first time gave a lost operation another name. A
// replica that has only the log of before offers that operation by its old name to the log of the second time, which knows it again.
func TestRolledBackTwice(t *testing.T) {
	store := memkv.New()
	origin := sealing(t, store)
	submit(t, origin, create("old"))
	image := imageOf(t, store)
	submit(t, origin, create("a"), create("b"))
	before := opened(t, memkv.New(), 1)
	pullSealed(t, before, origin)
	offered := keptBy(t, before)

	var p *partition.Partition
	back := func(life byte, id string, b *partition.Back) {
		t.Helper()
		now := func() time.Time { return clock().Add(time.Duration(life) * time.Second) }
		var err error
		p, err = partition.Open(partition.Options{Store: imageOf(t, image), App: app, Clock: now, Epoch: log.Epoch{life}, Secret: [32]byte{1}})
		if err != nil {
			t.Fatal(err)
		}
		submit(t, p, create(id))
		if found, err := p.RolledBack(b); !found || err != nil {
			t.Fatalf("RolledBack = %v, %v", found, err)
		}
		if err := p.TakeBack(t.Context(), b, nil); err != nil {
			t.Fatal(err)
		}
	}
	back(5, "x", &offered)
	v := p.View()
	a, err := v.InputByID("a")
	if err = errors.Join(err, v.Close()); err != nil {
		t.Fatal(err)
	}
	submit(t, p, &log.InputDelete{Input: a.Dot})
	r := opened(t, memkv.New(), 2)
	keepSealed(t, r, p, 0)
	again := keptBy(t, r)
	back(6, "y", &again)
	for range 2 {
		if err := p.TakeBack(t.Context(), &offered, nil); err != nil {
			t.Fatal(err)
		}
	}
	v = p.View()
	defer v.Close()
	got := ids(t, v.Reader)
	if slices.Sort(got); !slices.Equal(got, []string{"b", "old", "x", "y"}) || len(conflictsOf(t, p)) != 0 {
		t.Errorf("the origin has %v and lists %+v", got, conflictsOf(t, p))
	}
}

// keepSealed has a replica keep the log of an origin after an entry for a snapshot, as one run.
func keepSealed(t testing.TB, p, origin *partition.Partition, after uint64) {
	t.Helper()
	before, err := origin.Log().Chain(after)
	if err != nil {
		t.Fatal(err)
	}
	r := run(t, origin, partition.Cursor{Epoch: origin.Log().Epoch(), Seq: after, Chain: before}, 1000)
	r.Seal, r.Stable = origin.Seal(r.To, r.Chain), after
	wrong := before
	wrong[0]++
	if err := p.Keep(&r, wrong, r.To); !errors.Is(err, partition.ErrChain) {
		t.Fatalf("Keep of another log = %v", err)
	}
	if err := p.Keep(&r, before, r.To); err != nil {
		t.Fatal(err)
	}
}
