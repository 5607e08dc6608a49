package fold_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/testkit"
)

// author is a party that writes as one drawn writer after another, and knows some of the things that others made.
type author struct {
	writer log.Writer
	seq    uint64
	clock  log.HLC
	known  []log.Op // creations that it has seen
}

// authors make operations as real parties do: a deletion names what its maker has seen, and its clock is above the clocks of that.
type authors struct {
	chooser
	all   []*author
	drawn log.Writer
	ops   []log.Op
}

func newAuthors(c chooser) *authors {
	a := &authors{chooser: c, drawn: log.FirstRandomWriter}
	for range 3 {
		a.all = append(a.all, &author{clock: 100})
	}
	return a
}

// step makes an operation, or lets an author draw another writer, see what another has seen, or wait.
func (a *authors) step() {
	x := a.all[a.IntN(len(a.all))]
	if x.writer == 0 || a.IntN(15) == 0 {
		x.writer, x.seq = a.drawn, 0
		a.drawn++
	}
	switch a.IntN(12) {
	case 0, 1, 2:
		a.make(x, &log.InputCreate{Blob: blob.Sum([]byte("p"))})
	case 3:
		a.make(x, &log.ModelCreate{})
	case 4:
		a.make(x, &log.WorkflowCreate{})
	case 5, 6:
		if body := a.deletion(x); body != nil {
			a.make(x, body)
		}
	case 7:
		if a.IntN(3) == 0 {
			a.make(x, x.deleteAll())
		}
	case 8:
		a.make(x, &log.Feedback{JSON: []byte("1")})
	case 9, 10:
		x.see(a.all[a.IntN(len(a.all))].known)
	case 11:
		x.clock += log.HLC(a.IntN(40))
	}
}

// make appends an operation. The log it comes to may set its clock to another one.
func (a *authors) make(x *author, body log.Body) {
	x.seq++
	x.clock++
	op := log.Op{Dot: log.Dot{Writer: x.writer, Seq: x.seq}, At: x.clock, Body: body}
	if a.IntN(8) == 0 {
		op.At, op.Made = x.clock-log.HLC(a.IntN(10)), x.clock
	}
	switch body.(type) {
	case *log.InputCreate, *log.ModelCreate, *log.WorkflowCreate:
		x.known = append(x.known, op)
	}
	a.ops = append(a.ops, op)
}

func (x *author) see(creations []log.Op) {
	for _, op := range creations {
		if !slices.ContainsFunc(x.known, func(k log.Op) bool { return k.Dot == op.Dot }) {
			x.known = append(x.known, op)
			x.clock = max(x.clock, op.At)
		}
	}
}

func (a *authors) deletion(x *author) log.Body {
	if len(x.known) == 0 {
		return nil
	}
	op := x.known[a.IntN(len(x.known))]
	switch op.Body.(type) {
	case *log.ModelCreate:
		return &log.ModelDelete{Model: op.Dot}
	case *log.WorkflowCreate:
		return &log.WorkflowDelete{Workflow: op.Dot}
	}
	return &log.InputDelete{Input: op.Dot}
}

func (x *author) deleteAll() log.Body {
	newest := map[log.Writer]uint64{x.writer: 0}
	for _, op := range x.known {
		if _, ok := op.Body.(*log.InputCreate); ok {
			newest[op.Dot.Writer] = max(newest[op.Dot.Writer], op.Dot.Seq)
		}
	}
	b := &log.InputDeleteAll{}
	for _, w := range slices.Sorted(maps.Keys(newest)) {
		b.Upto = append(b.Upto, log.Dot{Writer: w, Seq: newest[w]})
	}
	return b
}

// plain is the meaning of a log: sets that never forget.
type plain struct {
	seen    map[log.Dot]bool
	things  map[log.Dot]log.Body // creations that came above the horizon
	deleted map[log.Dot]bool
	all     []*log.InputDeleteAll
	horizon log.HLC
}

func newPlain() *plain {
	return &plain{seen: map[log.Dot]bool{}, deleted: map[log.Dot]bool{}, things: map[log.Dot]log.Body{}}
}

func (p *plain) take(op *log.Op) {
	if p.seen[op.Dot] {
		return
	}
	p.seen[op.Dot] = true
	switch b := op.Body.(type) {
	case *log.Horizon:
		p.horizon = max(p.horizon, b.At)
	case *log.InputCreate, *log.ModelCreate, *log.WorkflowCreate:
		if min(op.At, op.MadeAt()) >= p.horizon {
			p.things[op.Dot] = b
		}
	case *log.InputDelete:
		p.deleted[b.Input] = true
	case *log.ModelDelete:
		p.deleted[b.Model] = true
	case *log.WorkflowDelete:
		p.deleted[b.Workflow] = true
	case *log.InputDeleteAll:
		p.all = append(p.all, b)
	}
}

// living returns the names of the things that no deletion in the log names, wherever it is.
func (p *plain) living() string {
	var dots []log.Dot
	for dot, body := range p.things {
		_, isInput := body.(*log.InputCreate)
		if !p.deleted[dot] && !(isInput && slices.ContainsFunc(p.all, func(b *log.InputDeleteAll) bool { return b.Covers(dot) })) {
			dots = append(dots, dot)
		}
	}
	return text(dots)
}

// living returns the names of all live things.
func living(t tb, w *world) string {
	t.Helper()
	var dots []log.Dot
	r := w.reader()
	for _, err := range []error{
		r.Inputs(0, func(x catalog.Input) bool { dots = append(dots, x.Dot); return true }),
		r.Models(func(x catalog.Model) bool { dots = append(dots, x.Dot); return true }),
		r.Workflows(func(x catalog.Workflow) bool { dots = append(dots, x.Dot); return true }),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return text(dots)
}

func text(dots []log.Dot) string {
	lines := make([]string, len(dots))
	for i, d := range dots {
		lines[i] = fmt.Sprintf("%d.%d", d.Writer-log.FirstRandomWriter, d.Seq)
	}
	slices.Sort(lines)
	return strings.Join(lines, " ")
}

// newNamesWorld returns a log in which the rules of names are in force.
func newNamesWorld(t tb) *world {
	w := newWorld(t)
	w.expect(fold.OK, log.Origin, 1, &log.Rules{Version: fold.RulesOfNames})
	return w
}

// TestDeletionsIgnoreArrivalOrder folds a set of operations in two orders, each with repetitions. The same things live: those that no
// deletion of the set names.
func TestDeletionsIgnoreArrivalOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, p := newAuthors(rapidChooser{t}), newPlain()
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			a.step()
		}
		for i := range a.ops {
			p.take(&a.ops[i])
		}
		for range 2 {
			w := newNamesWorld(t)
			for _, i := range rapid.Permutation(indexes(len(a.ops))).Draw(t, "order") {
				for range rapid.IntRange(1, 2).Draw(t, "times") {
					w.raw(a.ops[i])
				}
			}
			w.fold(rapid.IntRange(1, 20).Draw(t, "run"))
			w.check()
			if got, want := living(t, w), p.living(); got != want {
				t.Fatalf("%s live, want %s", got, want)
			}
		}
	})
}

func indexes(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// TestHorizonsChangeNoState folds operations in any order, with repetitions and horizons. Although the fold forgets names at a horizon, the
// same things live as in sets that never forget.
func TestHorizonsChangeNoState(t *testing.T) {
	for seed := range testkit.Seeds(t, 200, 20_000) {
		a, p, w := newAuthors(rand.New(rand.NewPCG(seed, 2))), newPlain(), newNamesWorld(t)
		made := 20 + a.IntN(120)
		for range made {
			a.step()
		}
		end := log.HLC(0)
		for i := range a.ops {
			end = max(end, a.ops[i].MadeAt())
		}
		for n := a.IntN(4*made) + 1; n > 0 && len(a.ops) > 0; n-- {
			op := a.ops[a.IntN(len(a.ops))]
			if a.IntN(12) == 0 {
				at := log.HLC(a.IntN(int(end)))
				w.sites[log.Origin]++
				op = log.Op{Dot: log.Dot{Writer: log.Origin, Seq: w.sites[log.Origin]}, At: end + at, Body: &log.Horizon{At: at}}
			}
			w.raw(op)
			p.take(&op)
			if a.IntN(4) > 0 {
				continue
			}
			w.fold(1 + a.IntN(8))
			if got, want := living(t, w), p.living(); got != want {
				t.Fatalf("seed %d: entry %d: %s live, want %s", seed, len(w.entries), got, want)
			}
		}
		w.fold(10)
		w.check()
	}
}

// TestNamesOfEarlierRulesStay: what earlier rules wrote of a site stays as it is, byte for byte, also when the site continues. A horizon
// forgets a drawn writer and the deletions below it, and no site.
func TestNamesOfEarlierRulesStay(t *testing.T) {
	w := newWorld(t)
	names := func(s log.Writer) string {
		n, err := w.reader().Names(s)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(n)
	}
	w.expect(fold.OK, 2, 10, create("a"))
	w.expect(fold.OK, log.Origin, 11, &log.Rules{Version: fold.RulesOfNames})
	w.expect(fold.OK, 2, 12, create("b"))
	want := fmt.Sprint(catalog.Names{Ranges: []catalog.NameRange{{First: 1, Last: 2}}})
	if got := names(2); got != want {
		t.Errorf("a site that continues has %v, want %v", got, want)
	}
	drawn := w.expect(fold.OK, log.FirstRandomWriter, 20, create("c")).Dot
	w.sites[log.FirstRandomWriter] = 4
	w.expect(fold.OK, log.FirstRandomWriter, 21, create("d")) // after a gap
	want = fmt.Sprint(catalog.Names{Ranges: []catalog.NameRange{{First: 1, Last: 1}, {First: 5, Last: 5}}, Newest: 21})
	if got := names(log.FirstRandomWriter); got != want {
		t.Errorf("a drawn writer has %v, want %v", got, want)
	}
	early := log.Dot{Writer: log.FirstRandomWriter + 1, Seq: 3}
	w.expect(fold.OK, 2, 22, &log.InputDelete{Input: early})
	w.expect(fold.OK, log.Origin, 40, &log.Horizon{At: 22})
	if got, at := names(log.FirstRandomWriter), must(w.reader().Deletion(early)); got != fmt.Sprint(catalog.Names{}) || at != 22 {
		t.Errorf("after the horizon a drawn writer has %v, and the deletion has %d", got, at)
	}
	w.expect(fold.OK, log.Origin, 41, &log.Horizon{At: 23})
	if at := must(w.reader().Deletion(early)); at != 0 || names(2) == fmt.Sprint(catalog.Names{}) {
		t.Errorf("after another one the deletion has %d, and the site %v", at, names(2))
	}
	w.raw(log.Op{Dot: drawn, At: 20, Body: create("c")})
	if v := w.fold(1)[0]; v.Code != fold.Stale {
		t.Errorf("an operation of a forgotten writer that comes again: %v", v.Code)
	}
	w.expect(fold.OK, log.FirstRandomWriter+1, 30, &log.InputDelete{Input: drawn}) // it lives, although its name is forgotten
	w.check()
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// TestSizeOfNames: 10,000 writers that left nothing else add at most 400 kB to a state, as pairs of a snapshot.
func TestSizeOfNames(t *testing.T) {
	const writers, limit = 10_000, 400_000
	w := newNamesWorld(t)
	before := w.size()
	for i := range uint64(writers) {
		writer, at := log.FirstRandomWriter+log.Writer(i)*0x1_0000_0000_0001, log.HLC(1_790_000_000_000+i)<<16
		made := w.entry(writer, at, create("a"))
		w.entry(writer, at+1, &log.InputDelete{Input: made})
	}
	w.fold(512)
	if got := w.size() - before; got > limit {
		t.Errorf("%d writers take %d bytes, want at most %d", writers, got, limit)
	}
}

// size returns the bytes of the state's pairs.
func (w *world) size() (n int) {
	w.Helper()
	if err := w.reader().CopyTables([32]byte{}, nil, func(key, value []byte) bool {
		n += len(key) + len(value) + 2 // and their lengths
		return true
	}); err != nil {
		w.Fatal(err)
	}
	return n
}
