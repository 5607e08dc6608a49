package partition_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// openNamed opens a replica's store. Openings with the same name draw the same writer.
func openNamed(t testing.TB, store kv.Store, name byte) *partition.Partition {
	t.Helper()
	p, err := partition.Open(partition.Options{Store: store, App: app, Clock: clock, Epoch: log.Epoch{name}, Replica: &partition.Replica{}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// imageOf copies a store.
func imageOf(t testing.TB, store kv.Store) kv.Store {
	t.Helper()
	var b kv.Batch
	err := store.Scan(nil, nil, func(key, value []byte) bool {
		b.Put(key, value)
		return true
	})
	out := memkv.New()
	if err == nil {
		err = out.Apply(&b)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// sendAllPending pushes what is pending at a replica.
func sendAllPending(t testing.TB, p, to *partition.Partition) {
	t.Helper()
	(&testReplica{Partition: p}).push(t, to, 1<<30)
}

// sealing opens an origin whose log has seals.
func sealing(t testing.TB, store kv.Store) *partition.Partition {
	t.Helper()
	return sealingAs(t, store, opening())
}

// sealingAs is sealing in an opening with a name.
func sealingAs(t testing.TB, store kv.Store, name log.Epoch) *partition.Partition {
	t.Helper()
	p, err := partition.Open(partition.Options{Store: store, App: app, Clock: clock, Epoch: name, Secret: [32]byte{1}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// openRestored opens an origin from an image of its store, as a restore leaves it.
func openRestored(t testing.TB, image kv.Store, epoch byte) *partition.Partition {
	t.Helper()
	return sealing(t, restored(t, image, epoch))
}

// restored returns the store of an origin as a restore of an image leaves it.
func restored(t testing.TB, image kv.Store, epoch byte) kv.Store {
	t.Helper()
	store := imageOf(t, image)
	l, err := log.Open(store, log.Options{Prefix: app.LogPrefix()})
	if err == nil {
		err = l.Renew(log.Epoch{epoch})
	}
	if err != nil {
		t.Fatal(err)
	}
	return store
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
	if verdict.Dot.Writer == doomed.Writer {
		t.Errorf("a restored log writes as %v, like the log of before", verdict.Dot)
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
		if len(c) != 1 || !bytes.Equal(log.Encode(nil, &c[0].Op), log.Encode(nil, &creation)) || !strings.Contains(c[0].Verdict.Detail, "the token was revoked") {
			t.Errorf("again %v: conflicts %+v", secondRestore, c)
		}
	}
}

// TestTakeBackSentLater: a replica gives back an operation without the one before it, which its own replica sends later, with or without the
// other one. The log has both, once each, and lists nothing.
func TestTakeBackSentLater(t *testing.T) {
	store := memkv.New()
	origin := sealing(t, store)
	image := imageOf(t, store)
	ops := writerOps(edge, 1, create("a"), create("b"))
	accept(t, origin, ops)
	r := openNamed(t, memkv.New(), 1)
	pullSealed(t, r, origin)
	for n := 1; n <= 2; n++ {
		p, b := openRestored(t, image, 2), lastStored(t, r)
		head := p.Log().Head()
		if err := p.TakeBack(t.Context(), &b, nil); err != nil {
			t.Fatal(err)
		}
		accept(t, p, ops[:n])
		v := p.View()
		if got := fmt.Sprint(ids(t, v.Reader)); got != "[b a]" || p.Log().Head() != head+2 || len(conflictsOf(t, p)) > 0 {
			t.Errorf("sent %d: inputs %s, %d entries, conflicts %+v", n, got, p.Log().Head()-head, conflictsOf(t, p))
		}
		_ = v.Close()
	}
}

// TestTakeBackDeleted: an input and its deletion come back to a restored log from several parties, in every order. The input is deleted. It is
// listed only if it comes back after a deletion of all inputs.
func TestTakeBackDeleted(t *testing.T) {
	for name, body := range map[string]func(log.Dot) log.Body{
		"one": func(d log.Dot) log.Body { return &log.InputDelete{Input: d} },
		"all": func(log.Dot) log.Body { return &log.InputDeleteAll{} },
	} {
		store := memkv.New()
		origin := sealing(t, store)
		image := imageOf(t, store)
		sent := writerOps(edge, 1, create("gone"))
		accept(t, origin, sent)
		before, deleted := openNamed(t, memkv.New(), 1), openNamed(t, memkv.New(), 2)
		pullSealed(t, before, origin)
		pullSealed(t, deleted, origin)
		submit(t, deleted, body(sent[0].Dot))
		sendAllPending(t, deleted, origin)
		after := openNamed(t, memkv.New(), 3)
		pullSealed(t, after, origin)

		back := func(r *partition.Partition) func(*partition.Partition) {
			return func(p *partition.Partition) {
				b := storedRun(t, r)
				if err := p.TakeBack(t.Context(), &b, nil); err != nil {
					t.Fatal(err)
				}
			}
		}
		sends := func(p *partition.Partition) { accept(t, p, sent) }
		pushes := func(p *partition.Partition) { sendAllPending(t, deleted, p) }
		for order, steps := range map[string][]func(*partition.Partition){
			"sent, given back":         {sends, back(after)},
			"given back, sent":         {back(after), sends},
			"sent, given back, pushed": {sends, back(before), pushes},
			"given back, pushed, sent": {back(before), pushes, sends},
			"sent, pushed, given back": {sends, pushes, back(before)},
			"pushed, sent, given back": {pushes, sends, back(before)},
			"pushed, given back, sent": {pushes, back(before), sends},
			"pushed, given back twice": {pushes, back(before), back(after)},
		} {
			p := openRestored(t, image, 2)
			for _, step := range steps {
				step(p)
			}
			v, want := p.View(), 0
			if name == "all" && strings.HasPrefix(order, "pushed, given back") {
				want = 1
			}
			c := conflictsOf(t, p)
			if got := ids(t, v.Reader); len(got) > 0 || len(c) != want || want > 0 && (c[0].Op.Dot != sent[0].Dot || c[0].Verdict.Code != fold.Gone) {
				t.Errorf("%s, %s: inputs %v live, conflicts %+v", name, order, got, c)
			}
			_ = v.Close()
		}
	}
}

// TestTakeBackEarlyTwice: the log of a first restore has a deletion of an input that came later. The log of a second restore has it from
// there, as it was, and deletes the input, too.
func TestTakeBackEarlyTwice(t *testing.T) {
	store := memkv.New()
	submit(t, sealing(t, store), create("old"))
	first := openRestored(t, store, 2)
	accept(t, first, writerOps(edge+1, 1, &log.InputDelete{Input: log.Dot{Writer: edge, Seq: 1}}))
	r := openNamed(t, memkv.New(), 1)
	keepSealed(t, r, first, 0)
	second, b := openRestored(t, store, 3), storedRun(t, r)
	if err := second.TakeBack(t.Context(), &b, nil); err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]*partition.Partition{"first": first, "second": second} {
		accept(t, p, writerOps(edge, 1, create("deleted")))
		v := p.View()
		if got := fmt.Sprint(ids(t, v.Reader)); got != "[old]" || len(conflictsOf(t, p)) > 0 {
			t.Errorf("after the %s restore the inputs are %v, conflicts %+v", name, got, conflictsOf(t, p))
		}
		_ = v.Close()
	}
}

// TestTakeBackLostThenDeleted: the entry that made an input is lost, but one that deletes it with all others comes back. Its replica sends
// the input later. It is deleted, although its clock is newer than that of the deletion.
func TestTakeBackLostThenDeleted(t *testing.T) {
	store := memkv.New()
	origin := sealing(t, store)
	image := imageOf(t, store)
	inputs := writerOps(edge, 1, create("a"), create("b"), create("unseen"))
	accept(t, origin, inputs[:2])
	lost := origin.Log().Head()
	all := writerOps(edge+1, 1, &log.InputDeleteAll{Upto: []log.Dot{inputs[1].Dot}})
	all[0].At = inputs[0].At - 1
	accept(t, origin, all)
	r := openNamed(t, memkv.New(), 1)
	keepSealed(t, r, origin, lost)

	p, b := openRestored(t, image, 2), storedRun(t, r)
	if err := p.TakeBack(t.Context(), &b, nil); err != nil {
		t.Fatal(err)
	}
	if v := accept(t, p, inputs); v[0].Code != fold.Gone || v[1].Code != fold.Gone || v[2].Code != fold.OK {
		t.Errorf("verdicts %+v, want gone, gone and ok", v)
	}
	v := p.View()
	defer v.Close()
	if got := fmt.Sprint(ids(t, v.Reader)); got != "[unseen]" || len(conflictsOf(t, p)) > 0 {
		t.Errorf("inputs %s, conflicts %+v", got, conflictsOf(t, p))
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

// TestTakeBackTwice: a log has an operation twice if a horizon dropped its name in between. A restored origin takes it back once.
func TestTakeBackTwice(t *testing.T) {
	store := memkv.New()
	origin := sealing(t, store)
	image := imageOf(t, store)
	maker := openReplica(t, memkv.New())
	submit(t, maker.Partition, create("a"))
	maker.push(t, origin, 9)
	submit(t, origin, &log.Horizon{At: now() + 100})
	maker.sent = 0
	maker.push(t, origin, 9)
	p := openNamed(t, memkv.New(), 7)
	pullSealed(t, p, origin)
	again := openRestored(t, image, 9)
	b := storedRun(t, p)
	if err := again.TakeBack(t.Context(), &b, nil); err != nil {
		t.Fatal(err)
	}
	count := map[log.Dot]int{}
	if err := again.Log().Read(1, func(e log.Entry) bool { count[e.Op.Dot]++; return true }); err != nil {
		t.Fatal(err)
	}
	for dot, n := range count {
		if n != 1 {
			t.Errorf("the log has %v %d times", dot, n)
		}
	}
	if len(count) < 3 {
		t.Errorf("the log has %d operations", len(count))
	}
}
