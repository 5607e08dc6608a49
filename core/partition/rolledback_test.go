package partition_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// TestRolledBackOrigin rolls the disk of an origin back to an image, without a restore. The log lacks the places of the lost entries, and
// takes the entries back, also if it has written since.
func TestRolledBackOrigin(t *testing.T) {
	store := kvtest.OrLate(t, memkv.New())
	origin := sealing(t, store)
	doomed := submit(t, origin, create("doomed"))[0].Dot
	image := imageOf(t, store)
	r := openNamed(t, kvtest.OrLate(t, memkv.New()), 1)
	pullSealed(t, r, origin)
	old := r.Cursor()
	a := submit(t, origin, create("a"), create("b"))[0].Dot
	label := []log.Op{{Dot: log.Dot{Writer: 9, Seq: 1}, Body: &log.InputLabels{Input: a, Labels: []log.Label{{Concept: "mine", Value: log.True}}}}}
	if _, _, err := origin.Accept(t.Context(), label, nil); err != nil {
		t.Fatal(err)
	}
	submit(t, origin, &log.InputDelete{Input: doomed})
	pullSealed(t, r, origin)

	written := []log.Body{create("x"), create("b"), create("y"), create("z"), &log.InputDelete{Input: doomed}}
	for _, tt := range []struct {
		name      string
		written   []log.Body
		inputs    string
		conflicts int
	}{
		{"as it was", nil, "[a b late]", 0},
		{"written since", written, "[a b late x y z]", 2}, // input b, and the deletion of an input that was deleted before
	} {
		t.Run(tt.name, func(t *testing.T) {
			store := imageOf(t, image)
			if len(tt.written) > 0 {
				submit(t, sealing(t, store), tt.written...)
			}
			p := sealingAs(t, store, log.Epoch{5})
			places := map[bool]partition.Cursor{true: old, false: r.Cursor()}
			for want, at := range places {
				if has, err := p.HasPlace(log.Mark{Epoch: at.Epoch, To: at.Seq}, at.Chain); has != want || err != nil {
					t.Errorf("the log has place %d: %v, %v", at.Seq, has, err)
				}
			}
			if have, chain, err := p.Common(r.Kept()); have != old.Seq || chain != old.Chain || err != nil {
				t.Errorf("the log has the entries up to %d, %v, want %d", have, err, old.Seq)
			}
			if verdict := submit(t, p, create("late"))[0]; verdict.Dot.Writer == a.Writer {
				t.Errorf("the log writes as %v, like that of before", verdict.Dot)
			}
			frames := framesAfter(t, origin, old.Seq)
			for round := range 2 { // another replica gives back the same
				var missing map[log.Dot]string
				listed := tt.conflicts
				if round == 0 { // the second one brings the picture
					missing = map[log.Dot]string{a: partition.LostPicture}
					listed++
				}
				takeBack(t, p, frames, missing)
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
			pending := []log.Op{{Dot: log.Dot{Writer: 9, Seq: 2}, At: 1, Body: &log.InputDelete{Input: a}}} // made before the rollback was found
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

// TestRolledBackNames rolls the disk of an origin back. The origin writes, and a replica pulls that, before another one shows what the
// origin lacks. Operations that wait at either replica mean the inputs that it has pulled.
func TestRolledBackNames(t *testing.T) {
	store := kvtest.OrLate(t, memkv.New())
	origin := sealing(t, store)
	submit(t, origin, create("first"))
	image := imageOf(t, store)
	lost := submit(t, origin, create("lost"), create("other"))[0].Dot
	early := submit(t, origin, create("deleted early"))[0].Dot
	r := openNamed(t, kvtest.OrLate(t, memkv.New()), 1)
	pullSealed(t, r, origin)

	p := sealingAs(t, imageOf(t, image), log.Epoch{5})
	newer := submit(t, p, create("newer"))[0].Dot
	sent := []log.Op{{Dot: log.Dot{Writer: 7, Seq: 1}, Body: &log.InputDelete{Input: early}}} // the replica does not name its place in the log
	if _, _, err := p.Accept(t.Context(), sent, nil); err != nil {
		t.Fatal(err)
	}
	giveBack(t, r, p)
	for w, input := range map[log.Writer]log.Dot{8: lost, 9: newer} {
		accept(t, p, writerOps(w, 1, &log.InputDelete{Input: input}))
	}
	v := p.View()
	defer v.Close()
	if got := fmt.Sprint(ids(t, v.Reader)); got != "[first other]" || len(conflictsOf(t, p)) > 0 {
		t.Errorf("inputs %s, conflicts %+v; want [first other] and none", got, conflictsOf(t, p))
	}
}

// TestRolledBackTwice: the disk of an origin is set back twice to the same image. Another replica gives back the log of the first time, which
// has a deletion. A replica that has only the log of before then offers the deleted input again.
func TestRolledBackTwice(t *testing.T) {
	store := kvtest.OrLate(t, memkv.New())
	origin := sealing(t, store)
	submit(t, origin, create("old"))
	image := imageOf(t, store)
	submit(t, origin, create("a"), create("b"))
	before := openNamed(t, kvtest.OrLate(t, memkv.New()), 1)
	pullSealed(t, before, origin)

	var p *partition.Origin
	back := func(name byte, id string, from *partition.Replica) {
		t.Helper()
		now := func() time.Time { return clock().Add(time.Duration(name) * time.Second) }
		var err error
		p, err = partition.OpenOrigin(partition.Options{Store: imageOf(t, image), App: app, Clock: now, Epoch: log.Epoch{name}, Secret: [32]byte{1}})
		if err != nil {
			t.Fatal(err)
		}
		submit(t, p, create(id))
		giveBack(t, from, p)
	}
	back(5, "x", before)
	v := p.View()
	a, err := v.InputByID("a")
	if err = errors.Join(err, v.Close()); err != nil {
		t.Fatal(err)
	}
	submit(t, p, &log.InputDelete{Input: a.Dot})
	r := openNamed(t, kvtest.OrLate(t, memkv.New()), 2)
	pullSealed(t, r, p)
	back(6, "y", r)
	for range 2 {
		giveBack(t, before, p)
	}
	v = p.View()
	defer v.Close()
	got := ids(t, v.Reader)
	if slices.Sort(got); !slices.Equal(got, []string{"b", "old", "x", "y"}) || len(conflictsOf(t, p)) != 0 {
		t.Errorf("the origin has %v and lists %+v", got, conflictsOf(t, p))
	}
}

// TestRestoredTwice: an origin is restored twice from one backup. A replica that followed the first restored log gives the second one all that
// both logs had, and so does a replica that followed neither. Operations that come again have no effect.
func TestRestoredTwice(t *testing.T) {
	store := kvtest.OrLate(t, memkv.New())
	origin := sealing(t, store)
	submit(t, origin, create("old"))
	image := imageOf(t, store)
	dots := submit(t, origin, create("a"), create("b"))
	submit(t, origin, &log.InputDelete{Input: dots[0].Dot})
	follower, away := openReplica(t, kvtest.OrLate(t, memkv.New())), openNamed(t, memkv.New(), 2)
	pullSealed(t, follower.Replica, origin)
	pullSealed(t, away, origin)

	first := openRestored(t, image, 5)
	submit(t, first, create("c"))
	giveBack(t, follower.Replica, first)
	submit(t, first, create("d"))
	keepSealed(t, follower.Replica, first, 0)
	rebase(t, follower, first)
	second := openRestored(t, image, 6)
	submit(t, second, create("e"))
	for i, r := range []*partition.Replica{away, follower.Replica, away, follower.Replica} {
		c := r.Cursor()
		if has, err := second.HasPlace(log.Mark{Epoch: c.Epoch, To: c.Seq}, c.Chain); has || err != nil {
			t.Errorf("replica %d: the log has its place: %v, %v", i, has, err)
		}
		head := second.Log().Head()
		giveBack(t, r, second)
		if added := second.Log().Head() - head; added != []uint64{3, 2, 0, 0}[i] {
			t.Errorf("replica %d gave %d operations back", i, added)
		}
	}
	v := second.View()
	defer v.Close()
	if got := fmt.Sprint(ids(t, v.Reader)); got != "[old e b c d]" || len(conflictsOf(t, second)) > 0 {
		t.Errorf("inputs %s, conflicts %+v", got, conflictsOf(t, second))
	}
}

// TestTakeBackFails: a full log takes nothing back, and one that cannot sync returns an error. The next offer brings all of it, and lists each
// operation once.
func TestTakeBackFails(t *testing.T) {
	disk := kvtest.OrLate(t, memkv.New())
	origin := sealing(t, disk)
	image := imageOf(t, disk)
	a := submit(t, origin, create("a"), create("b"))[0].Dot
	frames := framesAfter(t, origin, 0)
	store := &faulty{Store: imageOf(t, image)}
	p := sealingAs(t, store, log.Epoch{2})
	submit(t, p, create("b"))
	head := p.Log().Head()
	back := func() error {
		return p.TakeBack(t.Context(), &partition.Returned{Opening: p.Opening(), Frames: frames, Missing: map[log.Dot]string{a: partition.LostPicture}}, nil)
	}
	store.set(&store.room, kv.ErrFull)
	if err := back(); !errors.Is(err, kv.ErrFull) || p.Log().Head() != head || len(conflictsOf(t, p)) > 0 {
		t.Errorf("a full log: %v, %d entries, conflicts %+v", err, p.Log().Head()-head, conflictsOf(t, p))
	}
	store.set(&store.room, nil)
	store.set(&store.syncs, kv.ErrFailed)
	if err := back(); !errors.Is(err, kv.ErrFailed) {
		t.Errorf("a log that cannot sync: %v", err)
	}
	for _, kept := range []bool{true, false} { // whether the disk has what was not synced
		disk := imageOf(t, image)
		if kept {
			disk = imageOf(t, store.Store)
		}
		p = sealingAs(t, disk, log.Epoch{3})
		if !kept {
			submit(t, p, create("b"))
		}
		for range 2 {
			if err := back(); err != nil {
				t.Fatal(err)
			}
		}
		v := p.View()
		if got := fmt.Sprint(ids(t, v.Reader)); got != "[b a]" || p.Log().Head() != head+2 || len(conflictsOf(t, p)) != 2 {
			t.Errorf("kept %v: inputs %s, %d entries, conflicts %+v", kept, got, p.Log().Head()-head, conflictsOf(t, p))
		}
		_ = v.Close()
	}
}

// TestRolledBackTrimmed: a log that was trimmed beyond the place of a replica knows whether it had that place.
func TestRolledBackTrimmed(t *testing.T) {
	store := kvtest.OrLate(t, memkv.New())
	origin := sealing(t, store)
	submit(t, origin, create("old"))
	image := imageOf(t, store)
	r := openNamed(t, kvtest.OrLate(t, memkv.New()), 1)
	pullSealed(t, r, origin)
	old := r.Cursor()
	submit(t, origin, create("written"))
	pullSealed(t, r, origin)
	for _, tt := range []struct {
		name string
		disk kv.Store
		at   partition.Cursor
		want bool
		have uint64
	}{
		{"never rolled back", store, r.Cursor(), true, r.Cursor().Seq},
		{"an entry before the rollback", image, old, true, old.Seq},
		{"a lost entry", image, r.Cursor(), false, old.Seq},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := sealingAs(t, imageOf(t, tt.disk), log.Epoch{5})
			submit(t, p, create("x"), create("y"), create("z"))
			if err := p.Log().Trim(p.Log().Head() + 1); err != nil {
				t.Fatal(err)
			}
			if has, err := p.HasPlace(log.Mark{Epoch: tt.at.Epoch, To: tt.at.Seq}, tt.at.Chain); has != tt.want || err != nil {
				t.Errorf("the log has the place: %v, %v", has, err)
			}
			have, chain, err := p.Common(r.Kept())
			if have != tt.have || chain != (log.Chain{}) || err != nil {
				t.Errorf("the log has the entries up to %d with %x, %v, want %d", have, chain, err, tt.have)
			}
			if from, err := r.KeptFrom(have, chain); from != 0 || err != nil {
				t.Errorf("the log may lack the frames from %d on, %v, want all: it does not know the chain", from, err)
			}
		})
	}
}

// TestRebaseOnRolledBackLog: a replica takes a snapshot of a log that lost an operation of the replica. The operation waits to be sent
// again, also when entries of the log up to its former place are stable.
func TestRebaseOnRolledBackLog(t *testing.T) {
	store := kvtest.OrLate(t, memkv.New())
	origin := sealing(t, store)
	submit(t, origin, create("old"))
	image := imageOf(t, store)
	r := openNamed(t, kvtest.OrLate(t, memkv.New()), 1)
	submit(t, r, create("mine"))
	sendAllPending(t, r, origin)
	pullSealed(t, r, origin)
	if _, settled := r.Outbox(); settled != 1 {
		t.Fatalf("the log confirms %d operations", settled)
	}

	p := sealingAs(t, image, log.Epoch{5})
	submit(t, p, create("x"), create("y"))
	x, _ := export(t, p, network)
	if err := r.Rebase(t.Context(), x.Snapshot); err != nil {
		t.Fatal(err)
	}
	submit(t, p, create("z"))
	if _, err := r.Pull(t.Context(), run(t, p, r.Cursor(), 9)); err != nil { // all of it is stable
		t.Fatal(err)
	}
	var waiting []log.Op
	err := r.Pending(0, func(_ uint64, op log.Op) bool {
		waiting = append(waiting, op)
		return true
	})
	if err != nil || len(waiting) != 1 || waiting[0].Dot.Seq != 1 {
		t.Fatalf("operations that wait: %+v, %v", waiting, err)
	}
	if in, ok := waiting[0].Body.(*log.InputCreate); !ok || in.ID != "mine" {
		t.Errorf("the operation is %T %+v", waiting[0].Body, waiting[0].Body)
	}
}

// resumedOrigins returns two origins that continue from one image of a machine with its memory, the second one a second later. They have made the
// inputs old and a, and continue as one writer.
func resumedOrigins(t *testing.T) (first, second *partition.Origin) {
	t.Helper()
	image := kvtest.OrLate(t, memkv.New())
	submit(t, sealing(t, image), create("old"))
	c := &ticking{at: clock()}
	machine := func(now func() time.Time) *partition.Origin {
		p, err := partition.OpenOrigin(partition.Options{Store: imageOf(t, image), App: app, Clock: now, Epoch: log.Epoch{3}, Secret: [32]byte{1}})
		if err != nil {
			t.Fatal(err)
		}
		submit(t, p, create("a"))
		return p
	}
	first, second = machine(clock), machine(c.now)
	c.at = c.at.Add(time.Second)
	return first, second
}

// TestReusedNamesAtOrigin: an origin continues from an image of its memory. It draws another writer once a replica returns an operation
// that it has not made. It lists that operation if it has used the name, and else takes it back. That it has drawn another writer before,
// because it lacked an entry of its opening, does not matter.
func TestReusedNamesAtOrigin(t *testing.T) {
	for _, writes := range []int{0, 1} {
		for _, draws := range []bool{false, true} {
			first, second := resumedOrigins(t)
			used := submit(t, first, create("b"), create("c"))[0].Dot
			between, writers := "", map[log.Writer]bool{used.Writer: true}
			want := "[old a b c after]"
			if writes > 0 {
				if dot := submit(t, second, create("new"))[0].Dot; dot != used {
					t.Fatalf("the operation is %v, want %v", dot, used)
				}
				want = "[old a new c after]"
			}
			if draws {
				second.SetOpening(log.Epoch{4})
				between = "between"
				writers[submit(t, second, create(between))[0].Dot.Writer] = true
				want = strings.NewReplacer("a b", "a between b", "new c", "new between c").Replace(want)
			}
			for range 2 {
				takeBack(t, second, framesAfter(t, first, 0), nil)
				if writes > 0 {
					checkListed(t, second, used.Writer, used.Seq, "b")
				} else if list := conflictsOf(t, second); len(list) > 0 {
					t.Errorf("conflicts %+v", list)
				}
			}
			dot := submit(t, second, create("after"))[0].Dot
			if known := writers[dot.Writer]; known != draws || dot.Writer == used.Writer || known != (dot.Seq > 1) {
				t.Errorf("draws %v: the next operation is %v, after those of %v", draws, dot, writers)
			}
			v := second.View()
			if got := fmt.Sprint(ids(t, v.Reader)); got != want {
				t.Errorf("the log has the inputs %s, want %s", got, want)
			}
			_ = v.Close()
		}
	}
}

// TestPendingOperationOnReusedThing: a replica waits with an operation about a thing whose name the origin uses again, because it continued
// from an image of its memory. A snapshot lists the operation, since it means a thing that the log lacks.
func TestPendingOperationOnReusedThing(t *testing.T) {
	first, second := resumedOrigins(t)
	used := submit(t, first, create("b"))[0].Dot
	r := openNamed(t, kvtest.OrLate(t, memkv.New()), 1)
	pullSealed(t, r, first)
	own := submit(t, r, isTrue(used, "x"))[0]
	if dot := submit(t, second, create("new"))[0].Dot; dot != used {
		t.Fatalf("the input is %v, want %v", dot, used)
	}
	x, _ := export(t, second, network)
	x.Lacked = true
	if err := r.Rebase(t.Context(), x.Snapshot); err != nil {
		t.Fatal(err)
	}
	list := conflictsOf(t, r)
	if len(list) != 1 || !strings.Contains(list[0].Verdict.Detail, "used twice") {
		t.Errorf("conflicts %+v after %+v", list, own)
	}
	v := r.View()
	defer v.Close()
	if in, err := v.InputByID("new"); err != nil || in.Dot != used || len(in.Labels) > 0 {
		t.Errorf("the input that has the name now: %+v, %v", in, err)
	}
}

// TestReturnedOperationsOnReusedThings: an origin that continued from an image of its memory lists returned operations about a thing whose
// name it has used, also if they are returned later than the thing. It lists no operation that it has.
func TestReturnedOperationsOnReusedThings(t *testing.T) {
	for _, together := range []bool{true, false} {
		first, second := resumedOrigins(t)
		used := submit(t, first, create("b"))[0].Dot
		accept(t, first, writerOps(edge, 1, isTrue(used, "x"), &log.InputDelete{Input: used}, create("theirs")))
		submit(t, second, create("new"))
		var frames []partition.Frame
		for seq := range first.Log().Head() {
			frames = append(frames, singleFrame(t, first, seq+1))
		}
		for range 2 {
			if together {
				takeBack(t, second, frames, nil)
			} else {
				for i := range frames {
					takeBack(t, second, frames[i:i+1], nil)
				}
			}
			list := conflictsOf(t, second)
			for i, c := range list {
				if _, deletes := c.Op.Body.(*log.InputDelete); i < 2 && c.Op.Dot != (log.Dot{Writer: edge, Seq: uint64(i + 1)}) || i == 2 && c.Op.Dot != used || deletes != (i == 1) {
					t.Errorf("conflict %d: %+v", i, c)
				}
				if !strings.Contains(c.Verdict.Detail, "used twice") || c.ID != "" {
					t.Errorf("conflict %d: %+v", i, c.Verdict)
				}
			}
			v := second.View()
			in, err := v.InputByID("new")
			if got := fmt.Sprint(ids(t, v.Reader)); len(list) != 3 || got != "[old a new theirs]" || err != nil || len(in.Labels) > 0 || in.Dot != used {
				t.Errorf("inputs %s, new is %+v, %v; %d conflicts", got, in, err, len(list))
			}
			_ = v.Close()
		}
		accept(t, second, writerOps(edge+1, 1, isTrue(used, "y"))) // its replica means the new thing
		takeBack(t, second, framesAfter(t, second, 0), nil)
		if list := conflictsOf(t, second); len(list) != 3 {
			t.Errorf("conflicts %+v", list)
		}
	}
}
