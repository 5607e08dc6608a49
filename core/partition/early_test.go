package partition_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// TestTakeBackDeleted has deletions come before what they delete, from replicas that hold less of the log: nothing comes back to life.
func TestTakeBackDeleted(t *testing.T) {
	for name, body := range map[string]func(log.Dot) log.Body{
		"one": func(d log.Dot) log.Body { return &log.InputDelete{Input: d} },
		"all": func(log.Dot) log.Body { return &log.InputDeleteAll{} },
	} {
		store := memkv.New()
		origin := sealing(t, store)
		image := imageOf(t, store)
		input := submit(t, origin, create("gone"))[0].Dot
		r := openNamed(t, memkv.New(), 1)
		pullSealed(t, r, origin)
		submit(t, r, body(input))

		p := openRestored(t, image, 2)
		if err := sendLives(t, r, p); err != nil {
			t.Fatal(err)
		}
		b := storedRun(t, r)
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

// TestDeletedBeforeMove: another replica deleted an input that its own replica sends again as another site, before or after the deletion
// comes back, or is pushed for the first time. The input is deleted. If nobody gives back the input by its old name, the log cannot know
// which input the deletion means, and lists it.
func TestDeletedBeforeMove(t *testing.T) {
	store := memkv.New()
	origin := sealing(t, store)
	image := imageOf(t, store)
	at := log.HLC(clock().UnixMilli()) << 16
	creation := log.Op{Dot: log.Dot{Writer: 9, Seq: 1}, At: at, By: "key", Body: &log.InputCreate{Blob: blob.Sum([]byte("a")), ContentType: "image/png"}}
	deletes := log.Op{Dot: log.Dot{Writer: 11, Seq: 1}, At: at + 1, By: "key", Body: &log.InputDelete{Input: creation.Dot}}
	accept := func(p *partition.Partition, op log.Op) {
		t.Helper()
		if _, _, err := p.Accept(t.Context(), []log.Op{op}, nil); err != nil {
			t.Fatal(err)
		}
	}
	accept(origin, creation)
	before := openNamed(t, memkv.New(), 1)
	pullSealed(t, before, origin)
	accept(origin, deletes)
	r := openNamed(t, memkv.New(), 1)
	pullSealed(t, r, origin)
	sent := creation
	sent.Dot.Writer = 30
	sends := func(p *partition.Partition) { accept(p, sent) }
	back := func(r *partition.Partition) func(*partition.Partition) {
		return func(p *partition.Partition) {
			b := storedRun(t, r)
			if err := p.TakeBack(t.Context(), &b, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	pushes := func(p *partition.Partition) {
		ops := []log.Op{deletes}
		ops[0].Body = &log.InputDelete{Input: creation.Dot}
		if err := p.ResolveNames(ops); err != nil {
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
		"sent, pushed, given back": {sends, pushes, back(before)},
		"pushed, sent, given back": {pushes, sends, back(before)},
		"pushed, given back, sent": {pushes, back(before), sends},
	} {
		p := openRestored(t, image, 2)
		if _, err := p.Moves(9, 9); err != nil {
			t.Fatal(err)
		}
		for _, step := range steps {
			step(p)
		}
		v := p.View()
		conflicts := conflictsOf(t, p)
		listed := slices.ContainsFunc(conflicts, func(c partition.Conflict) bool { return c.Op.Dot == creation.Dot || c.Op.Dot == deletes.Dot })
		if got := ids(t, v.Reader); len(got) > 0 || listed {
			t.Errorf("%s: inputs %v live, conflicts %+v", name, got, conflicts)
		}
		_ = v.Close()
	}
	moves := func(p *partition.Partition) {
		if _, err := p.Moves(9, 9); err != nil {
			t.Fatal(err)
		}
	}
	for name, steps := range map[string][]func(*partition.Partition){
		"moved, sent, pushed": {moves, sends, pushes},
		"moved, pushed, sent": {moves, pushes, sends},
		"pushed, moved, sent": {pushes, moves, sends},
	} {
		p := openRestored(t, image, 2)
		for _, step := range steps {
			step(p)
		}
		if c := conflictsOf(t, p); len(c) != 1 || c[0].Op.Dot != deletes.Dot {
			t.Errorf("%s, never given back: conflicts %+v, want the deletion", name, c)
		}
	}
}

// TestTakeBackEarlyTwice: the log of a first restore has a deletion of an input that came later. The log of a second restore has it from
// there, as it was, and deletes the input, too.
func TestTakeBackEarlyTwice(t *testing.T) {
	store := memkv.New()
	submit(t, sealing(t, store), create("old"))
	first := openRestored(t, store, 2)
	deletion := log.Op{Dot: log.Dot{Writer: 8, Seq: 1}, Body: &log.InputDelete{Input: log.Dot{Writer: 9, Seq: 1}}}
	if _, _, err := first.Accept(t.Context(), []log.Op{deletion}, nil); err != nil {
		t.Fatal(err)
	}
	r := openNamed(t, memkv.New(), 1)
	keepSealed(t, r, first, 0)
	second, b := openRestored(t, store, 3), storedRun(t, r)
	if err := second.TakeBack(t.Context(), &b, nil); err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]*partition.Partition{"first": first, "second": second} {
		if _, _, err := p.Accept(t.Context(), []log.Op{{Dot: log.Dot{Writer: 9, Seq: 1}, Body: create("deleted")}}, nil); err != nil {
			t.Fatal(err)
		}
		v := p.View()
		if got := ids(t, v.Reader); !slices.Equal(got, []string{"old"}) {
			t.Errorf("after the %s restore the inputs are %v", name, got)
		}
		_ = v.Close()
	}
}

// TestTakeBackLostThenDeleted: an input is not taken back, since operations before it are lost, but one that deleted it with all others is.
// Its replica sends the input later. It is deleted, although its clock is newer than that of the deletion.
func TestTakeBackLostThenDeleted(t *testing.T) {
	store := memkv.New()
	image := imageOf(t, store)
	origin := sealing(t, store)
	at := log.HLC(clock().UnixMilli()) << 16
	input := func(seq uint64) log.Op {
		return log.Op{Dot: log.Dot{Writer: 9, Seq: seq}, At: at + log.HLC(seq), By: "key", Body: &log.InputCreate{Blob: blob.Sum([]byte{byte(seq)}), ContentType: "image/png"}}
	}
	all := log.Op{Dot: log.Dot{Writer: 11, Seq: 1}, At: at, By: "key", Body: &log.InputDeleteAll{}}
	accept := func(p *partition.Partition, ops ...log.Op) {
		t.Helper()
		if _, _, err := p.Accept(t.Context(), ops, nil); err != nil {
			t.Fatal(err)
		}
	}
	accept(origin, input(1))
	r := openNamed(t, memkv.New(), 1)
	pulled := origin.Log().Head()
	accept(origin, input(2))
	accept(origin, all)
	keepSealed(t, r, origin, pulled)

	p := openRestored(t, image, 2)
	b := storedRun(t, r)
	if err := p.TakeBack(t.Context(), &b, nil); err != nil {
		t.Fatal(err)
	}
	accept(p, input(1), input(2))
	v := p.View()
	defer v.Close()
	if n := len(ids(t, v.Reader)); n != 1 {
		t.Errorf("%d inputs live, want the first one alone, which no kept entry has", n)
	}
	if list := conflictsOf(t, p); len(list) > 0 {
		t.Errorf("conflicts: %+v", list)
	}
}
