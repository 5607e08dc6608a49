package partition_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// TestRolledBack rolls the disk of an origin back to an image, without a restore. An entry that a replica has pulled proves it, once. The
// origin takes back what it lacks, also if it has written since.
func TestRolledBack(t *testing.T) {
	store := memkv.New()
	origin := sealing(t, store)
	doomed := submit(t, origin, create("doomed"))[0].Dot
	image := imageOf(t, store)
	r := openNamed(t, memkv.New(), 1)
	pullSealed(t, r, origin)
	old := lastStored(t, r)
	a := submit(t, origin, create("a"), create("b"))[0].Dot
	label := []log.Op{{Dot: log.Dot{Writer: 9, Seq: 1}, Body: &log.InputLabels{Input: a, Labels: []log.Label{{Concept: "mine", Value: log.True}}}}}
	if _, _, err := origin.Accept(t.Context(), label, nil); err != nil {
		t.Fatal(err)
	}
	submit(t, origin, &log.InputDelete{Input: doomed})
	pullSealed(t, r, origin)
	proof := lastStored(t, r)
	if found, err := origin.RolledBack(&proof); found || err != nil {
		t.Errorf("a log that has the entry was rolled back: %v, %v", found, err)
	}

	written := []log.Body{create("x"), create("b"), &log.InputDelete{Input: doomed}}
	for _, tt := range []struct {
		name      string
		written   []log.Body
		inputs    string
		conflicts int
	}{
		{"as it was", nil, "[a b late]", 0},
		{"written since", written, "[a b late x]", 2}, // input b, and the deletion of an input that was deleted before
	} {
		t.Run(tt.name, func(t *testing.T) {
			store := imageOf(t, image)
			if len(tt.written) > 0 {
				submit(t, sealing(t, store), tt.written...)
			}
			p := sealingAs(t, store, log.Epoch{5})
			forged := proof
			forged.Seal = append([]byte{1}, proof.Seal[1:]...)
			for name, not := range map[string]partition.StoredRun{"a forged entry": forged, "an entry that it has": old} {
				if found, err := p.RolledBack(&not); found || err != nil {
					t.Errorf("%s proves a rollback: %v, %v", name, found, err)
				}
			}
			if found, err := p.RolledBack(&proof); !found || err != nil || p.Log().Epoch() != (log.Epoch{5}) {
				t.Fatalf("RolledBack = %v, %v; epoch %x", found, err, p.Log().Epoch())
			}
			if found, err := p.RolledBack(&proof); found || err != nil {
				t.Errorf("the second time: %v, %v", found, err)
			}
			if verdict := submit(t, p, create("late"))[0]; verdict.Dot.Writer == a.Writer {
				t.Errorf("the log writes as %v, like that of before", verdict.Dot)
			}
			for round := range 2 { // another replica gives back the same
				b, listed := storedRun(t, r), tt.conflicts
				if round == 0 { // the second one brings the picture
					b.Missing = map[log.Dot]string{a: partition.LostPicture}
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
	store := memkv.New()
	origin := sealing(t, store)
	submit(t, origin, create("first"))
	image := imageOf(t, store)
	lost := submit(t, origin, create("lost"), create("other"))[0].Dot
	early := submit(t, origin, create("deleted early"))[0].Dot
	r := openNamed(t, memkv.New(), 1)
	pullSealed(t, r, origin)

	p := sealingAs(t, imageOf(t, image), log.Epoch{5})
	newer := submit(t, p, create("newer"))[0].Dot
	sent := []log.Op{{Dot: log.Dot{Writer: 7, Seq: 1}, Body: &log.InputDelete{Input: early}}} // the replica does not name its place in the log
	if _, _, err := p.Accept(t.Context(), sent, nil); err != nil {
		t.Fatal(err)
	}
	proof, stored := lastStored(t, r), storedRun(t, r)
	if found, err := p.RolledBack(&proof); !found || err != nil {
		t.Fatalf("RolledBack = %v, %v", found, err)
	}
	if err := p.TakeBack(t.Context(), &stored, nil); err != nil {
		t.Fatal(err)
	}
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
	store := memkv.New()
	origin := sealing(t, store)
	submit(t, origin, create("old"))
	image := imageOf(t, store)
	submit(t, origin, create("a"), create("b"))
	before := openNamed(t, memkv.New(), 1)
	pullSealed(t, before, origin)
	offered := storedRun(t, before)

	var p *partition.Partition
	back := func(life byte, id string, b *partition.StoredRun) {
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
	r := openNamed(t, memkv.New(), 2)
	keepSealed(t, r, p, 0)
	laterRun := storedRun(t, r)
	back(6, "y", &laterRun)
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

// TestRolledBackTrimmed shows an entry to a log that was trimmed past its place. The log lacks the entry if it has no operation of that
// name. An operation that came to it again proves nothing, like one of a log that was never rolled back.
func TestRolledBackTrimmed(t *testing.T) {
	store := memkv.New()
	origin := sealing(t, store)
	submit(t, origin, create("old"))
	image := imageOf(t, store)
	sent := []log.Op{{Dot: log.Dot{Writer: 9, Seq: 1}, Body: create("sent")}}
	accept := func(p *partition.Partition) {
		t.Helper()
		if _, _, err := p.Accept(t.Context(), slices.Clone(sent), nil); err != nil {
			t.Fatal(err)
		}
	}
	accept(origin)
	r := openNamed(t, memkv.New(), 1)
	pullSealed(t, r, origin)
	accepted := lastStored(t, r)
	submit(t, origin, create("written"))
	pullSealed(t, r, origin)
	for _, tt := range []struct {
		name   string
		disk   kv.Store
		resent bool // the replica that made it sends it again
		proof  partition.StoredRun
		want   bool
	}{
		{"never rolled back", store, false, lastStored(t, r), false},
		{"an operation of a replica", image, false, accepted, true},
		{"an operation that came again", image, true, accepted, false},
		{"an operation of the origin", image, true, lastStored(t, r), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := sealingAs(t, imageOf(t, tt.disk), log.Epoch{5})
			if tt.resent {
				accept(p)
			}
			submit(t, p, create("x"), create("y"), create("z"))
			if err := p.Log().Trim(p.Log().Head() + 1); err != nil {
				t.Fatal(err)
			}
			if found, err := p.RolledBack(&tt.proof); found != tt.want || err != nil {
				t.Errorf("RolledBack = %v, %v", found, err)
			}
		})
	}
}

// TestRebaseOnRolledBack: a replica takes a snapshot of a log that lost an operation of the replica. The operation waits to be sent again,
// also when entries of the log up to its former place are stable.
func TestRebaseOnRolledBack(t *testing.T) {
	store := memkv.New()
	origin := sealing(t, store)
	submit(t, origin, create("old"))
	image := imageOf(t, store)
	r := openNamed(t, memkv.New(), 1)
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
