package partition_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/logtest"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/testkit"
)

// edge is a writer that sends operations in these tests.
const edge log.Writer = 1<<62 + 7

// now returns the time of the origin's clock in these tests.
func now() log.HLC { return log.HLC(clock().UnixMilli()) << 16 }

// writerOps returns operations of a writer with consecutive sequence numbers and clocks, starting at from.
func writerOps(w log.Writer, from uint64, bodies ...log.Body) []log.Op {
	ops := make([]log.Op, len(bodies))
	for i, body := range bodies {
		seq := from + uint64(i)
		ops[i] = log.Op{Dot: log.Dot{Writer: w, Seq: seq}, At: now() - 1<<24 + log.HLC(seq), By: "key", Body: body}
	}
	return ops
}

func accept(t testing.TB, p *partition.Origin, ops []log.Op) []fold.Verdict {
	t.Helper()
	return offer(t, p, partition.Offer{Ops: ops})
}

func offer(t testing.TB, p *partition.Origin, o partition.Offer) []fold.Verdict {
	t.Helper()
	v, last, err := p.AcceptOffer(t.Context(), &o)
	if err != nil || len(v) != len(o.Ops) {
		t.Fatalf("%d verdicts on %d operations, %v", len(v), len(o.Ops), err)
	}
	if head := p.Log().Head(); last > head {
		t.Fatalf("entry %d is told and %d outlives a crash", last, head)
	}
	return v
}

// lastOf returns the last operation of a writer in the log.
func lastOf(t testing.TB, p *partition.Origin, w log.Writer) uint64 {
	t.Helper()
	names, err := p.Names(w)
	if err != nil {
		t.Fatal(err)
	}
	return names.Last()
}

// entries returns all entries of a partition's log.
func entries(t testing.TB, p *partition.Origin) (all []log.Entry) {
	t.Helper()
	err := p.Log().Read(1, func(e log.Entry) bool {
		all = append(all, e)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestAccept accepts an edge's operations in overlapping parts, between operations of the origin.
func TestAccept(t *testing.T) {
	store := kvtest.OrLate(t, memkv.New())
	p := open(t, store)
	ours := submit(t, p, create("ours"))[0].Dot
	a := log.Dot{Writer: edge, Seq: 1}
	ops := writerOps(edge, 1,
		create("a"), create("ours"), &log.InputLabels{Input: a, Labels: []log.Label{{Concept: "cat", Value: log.True}}},
		&log.InputDelete{Input: log.Dot{Writer: edge, Seq: 99}}, create("b"))
	v := accept(t, p, ops[:3])
	if v[0].Code != fold.OK || v[0].Dot != a || v[1].Code != fold.Duplicate || v[2].Code != fold.OK {
		t.Errorf("verdicts %+v", v)
	}
	v = accept(t, p, ops)
	for i, want := range []fold.Code{0, 0, 0, fold.Gone, fold.OK} {
		if v[i].Code != want {
			t.Errorf("verdict %d is %v, want %v", i, v[i].Code, want)
		}
	}
	head := p.Log().Head()
	for _, part := range [][]log.Op{ops, ops[:1], ops[4:], nil} {
		accept(t, p, part)
	}
	if p.Log().Head() != head || head != 6 || lastOf(t, p, edge) != 5 || lastOf(t, p, ours.Writer) != 1 || lastOf(t, p, 8) != 0 {
		t.Errorf("head %d, was %d; of the writer %d", p.Log().Head(), head, lastOf(t, p, edge))
	}
	want := digest(t, store)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p = open(t, store)
	if lastOf(t, p, edge) != 5 || digest(t, store) != want {
		t.Error("another state after opening it again")
	}
	accept(t, p, writerOps(edge, 6, &log.InputDelete{Input: a}))
	view := p.View()
	if got := ids(t, view.Reader); !equal(got, "ours", "b") {
		t.Errorf("inputs %v", got)
	}
	if err := view.Close(); err != nil {
		t.Error(err)
	}
}

func equal(got []string, want ...string) bool { return fmt.Sprint(got) == fmt.Sprint(want) }

// TestAcceptRefusesForged: operations that are not the next ones of a single other writer are rejected and change nothing.
func TestAcceptRefusesForged(t *testing.T) {
	store := kvtest.OrLate(t, memkv.New())
	p := open(t, store)
	ours := submit(t, p, create("ours"))[0].Dot
	accept(t, p, writerOps(edge, 1, create("a"), create("b")))
	before := digest(t, store)
	mixed := append(writerOps(edge, 3, create("c")), writerOps(8, 4, create("d"))...)
	torn := append(writerOps(edge, 3, create("c")), writerOps(edge, 5, create("d"))...)
	back := append(writerOps(edge, 3, create("c")), writerOps(edge, 3, create("d"))...)
	tests := []struct {
		name string
		ops  []log.Op
		want error
	}{
		{"the origin's writer", writerOps(ours.Writer, 2, create("x")), partition.ErrForged},
		{"the origin's site", writerOps(log.Origin, 2, create("x")), partition.ErrForged},
		{"no writer", writerOps(0, 1, create("x")), partition.ErrForged},
		{"no sequence", writerOps(edge, 0, create("x")), partition.ErrForged},
		{"two writers", mixed, partition.ErrForged},
		{"a gap before", writerOps(edge, 4, create("x")), partition.ErrSequence},
		{"a gap between", torn, partition.ErrSequence},
		{"one twice", back, partition.ErrSequence},
		{"a gap before the first", writerOps(9, 2, create("x")), partition.ErrSequence},
		{"the last number there is", writerOps(edge, 1<<64-1, create("x")), partition.ErrSequence},
	}
	for _, tt := range tests {
		if v, _, err := p.Accept(t.Context(), tt.ops, nil); !errors.Is(err, tt.want) || v != nil {
			t.Errorf("%s: %v, %v, want %v", tt.name, v, err, tt.want)
		}
	}
	if digest(t, store) != before || p.Log().Head() != 3 {
		t.Error("what was refused has changed the state")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := p.Accept(ended, writerOps(edge, 3, create("c")), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("after its end: %v", err)
	}
	control, err := partition.OpenOrigin(partition.Options{Store: kvtest.OrLate(t, memkv.New()), Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := control.Accept(t.Context(), writerOps(edge, 1, &log.KeyDelete{}), nil); !errors.Is(err, partition.ErrForged) {
		t.Errorf("the control partition: %v, want ErrForged", err)
	}
}

// publicName returns a public name of a picture that starts with text.
func publicName(text string) (name [16]byte) {
	copy(name[:], text)
	return name
}

// writable has the kinds of bodies that a replica may write.
var writable = map[string]bool{
	"*log.InputCreate": true, "*log.InputFetched": true, "*log.InputLabels": true, "*log.InputMeta": true, "*log.InputGeo": true,
	"*log.InputDelete": true, "*log.InputDeleteAll": true, "*log.OutputsPatch": true, "*log.Feedback": true,
	"*log.ConceptCreate": true, "*log.ConceptName": true, "*log.ConceptDelete": true, "*log.ModelCreate": true, "*log.ModelPatch": true,
	"*log.ModelDelete": true, "*log.ModelDeleteAll": true, "*log.VersionTrain": true, "*log.VersionResult": true,
	"*log.VersionDelete": true, "*log.WorkflowCreate": true, "*log.WorkflowDelete": true, "*log.Refused": true,
}

// wellFormed returns a body of every kind. Those that a replica may write have a valid form.
func wellFormed() []log.Body {
	bodies := logtest.Bodies()
	for i, body := range bodies {
		switch b := body.(type) {
		case *log.InputCreate:
			b.URL = "https://example.com/a.png"
		case *log.ConceptCreate:
			b.ID = "a"
		case *log.ConceptName:
			b.ID, b.Name = "a", "A"
		case *log.ConceptDelete:
			b.ID = "a"
		case *log.VersionResult:
			b.Version = "v"
		case *log.VersionDelete:
			b.Version = "v"
		case *log.WorkflowCreate:
			b.Nodes = []log.WorkflowNode{{ID: "1", Model: "general"}}
		case *log.Feedback:
			b.Model, b.JSON = "m", []byte("{}")
		}
		bodies[i] = body
	}
	return bodies
}

// TestAcceptForm: Accept refuses an operation that /v2 would refuse for its form. An origin takes it back after a restore if its log had it.
func TestAcceptForm(t *testing.T) {
	for want, body := range map[string]log.Body{
		"schema: invalid id":       &log.InputCreate{ID: "\x1b[2J", URL: "https://example.com/a.png"},
		"schema: invalid URL":      &log.InputCreate{ID: "a", URL: "javascript:alert(1)"},
		"schema: invalid name":     &log.ConceptCreate{ID: "a", Name: "\x00"},
		"schema: unknown language": &log.ConceptCreate{ID: "a", Language: "tlh"},
	} {
		p := open(t, kvtest.OrLate(t, memkv.New()))
		v := accept(t, p, writerOps(edge, 1, body, create("next")))
		if v[0].Code != fold.Refused || v[0].Detail != want || v[1].Code != fold.OK {
			t.Errorf("verdicts %+v, want %s and ok", v, want)
		}

		store := kvtest.OrLate(t, memkv.New())
		origin := sealing(t, store)
		image := imageOf(t, store)
		had := submit(t, origin, body)[0].Dot
		p = openRestored(t, image, 2)
		takeBack(t, p, framesAfter(t, origin, 0), nil)
		if e := entries(t, p); fmt.Sprintf("%T", e[len(e)-1].Op.Body) != fmt.Sprintf("%T", body) || e[len(e)-1].Op.Dot != had || len(conflictsOf(t, p)) > 0 {
			t.Errorf("the log took back %+v, conflicts %+v", e[len(e)-1], conflictsOf(t, p))
		}
	}
}

// TestAcceptOpening: the log refuses operations that were offered to another opening. The next own operation has another writer.
func TestAcceptOpening(t *testing.T) {
	p := open(t, kvtest.OrLate(t, memkv.New()))
	ops := writerOps(edge, 1, create("a"), create("b"), create("c"))
	before := submit(t, p, create("before"))[0].Dot.Writer
	o := partition.Offer{Opening: p.Opening(), Ops: ops[:1]}
	offer(t, p, o)
	p.SetOpening(log.Epoch{9})
	head := p.Log().Head()
	o.Ops = ops[1:2]
	if v, _, err := p.AcceptOffer(t.Context(), &o); !errors.Is(err, partition.ErrOpening) || v != nil || p.Log().Head() != head {
		t.Errorf("operations for the opening of before: %v, %v, want ErrOpening", v, err)
	}
	o.Opening = p.Opening()
	offer(t, p, o)
	offer(t, p, partition.Offer{Ops: ops[2:]}) // for any opening
	if after := submit(t, p, create("after"))[0].Dot; after.Writer == before || after.Seq != 1 {
		t.Errorf("the next own operation is %v", after)
	}
	if first, last := p.Log().EpochOf(head), p.Log().EpochOf(head+3); first.To != head || last != (log.Mark{Epoch: log.Epoch{9}, To: head + 3}) {
		t.Errorf("the entries have the epochs %x and %x", first, last)
	}
}

// TestAcceptKinds: Accept appends the operations that a replica may write. It appends every other operation as a refusal.
func TestAcceptKinds(t *testing.T) {
	p := open(t, kvtest.OrLate(t, memkv.New()))
	takenName := "an input has this"
	submit(t, p, &log.InputCreate{ID: "ours", Blob: create("ours").Blob, ContentType: "image/png", Hosted: publicName(takenName)})
	bodies := append(wellFormed(), nil, &log.Unknown{Kind: 200, Data: []byte("x")}, &log.Unknown{Kind: 21, Data: []byte{8, 1}},
		&log.InputCreate{ID: "big", Blob: create("big").Blob, ContentType: "image/png", Meta: fmt.Appendf(nil, `{"a":%q}`, strings.Repeat("x", partition.MaxOperation))},
		&log.InputCreate{ID: "stolen", Blob: create("stolen").Blob, ContentType: "image/png", Hosted: publicName(takenName)},
		&log.InputCreate{ID: "own", Blob: create("own").Blob, ContentType: "image/png", Hosted: publicName("own")})
	ops := writerOps(edge, 1, bodies...)
	ops[0].By = strings.Repeat("k", 300)
	ops[1].By = "\xff"
	ops[2].Extra.Body = []byte{0x78, 1} // a field of a later version
	verdicts := accept(t, p, ops)
	all := entries(t, p)[1:]
	if len(all) != len(ops) {
		t.Fatalf("%d entries, want %d", len(all), len(ops))
	}
	for i, e := range all {
		kind := fmt.Sprintf("%T", bodies[i])
		refused, isRefused := e.Op.Body.(*log.Refused)
		switch last := len(bodies) - 1; {
		case e.Op.Dot != ops[i].Dot:
			t.Errorf("entry %d has dot %v, want %v", e.Seq, e.Op.Dot, ops[i].Dot)
		case i < 2 || i == last-1 || i == last-2 || !writable[kind]:
			if !isRefused || verdicts[i].Code != fold.Refused || verdicts[i].Detail != refused.Reason || refused.Reason == "" || e.Op.Extra.Body != nil {
				t.Errorf("%d, %s: stands as %T %+v, verdict %+v", i, kind, e.Op.Body, e.Op.Body, verdicts[i])
			}
			if len(log.Encode(nil, &e.Op)) > 400 || !bytes.Equal([]byte(e.Op.By), bytes.ToValidUTF8([]byte(e.Op.By), nil)) {
				t.Errorf("%d, %s: by %q, and %d bytes of it are kept", i, kind, e.Op.By, len(log.Encode(nil, &e.Op)))
			}
		case isRefused && kind != "*log.Refused":
			t.Errorf("%s: refused: %s", kind, refused.Reason)
		case i == 2 && len(e.Op.Extra.Body) == 0:
			t.Errorf("what a later version wrote is gone")
		}
	}
	if verdicts[len(bodies)-1].Code != fold.OK {
		t.Errorf("a fresh public name: %+v", verdicts[len(bodies)-1])
	}
}

// TestAcceptClamps: Accept sets clocks that are far ahead to the origin's time and keeps all others. The clocks of one writer still rise. A
// changed operation keeps the clock of its maker, also if it is refused.
func TestAcceptClamps(t *testing.T) {
	wall := clock()
	store := kvtest.OrLate(t, memkv.New())
	p, err := partition.OpenOrigin(partition.Options{Store: store, App: app, Clock: func() time.Time { return wall }, Epoch: log.Epoch{1}, Rules: fold.FirstVersion})
	if err != nil {
		t.Fatal(err)
	}
	at := func(ms int64, tick log.HLC) log.HLC { return log.HLC(wall.UnixMilli()+ms)<<16 + tick }
	ops := writerOps(edge, 1, create("a"), create("b"), create("c"), create("d"), create("e"), &log.Horizon{At: 1})
	clocks := []log.HLC{at(-1e9, 5), at(1999, 3), at(60_000, 0), at(60_000, 1), 1<<64 - 1, 3}
	for i := range ops {
		ops[i].At = clocks[i]
	}
	accept(t, p, ops)
	limit := at(2001, 0)
	before := log.HLC(0)
	for i, e := range entries(t, p) {
		if e.Op.At <= before || e.Op.At > limit {
			t.Errorf("entry %d is at %v, after %v, the limit is %v", e.Seq, e.Op.At, before, limit)
		}
		if i < 2 && e.Op.At != clocks[i] {
			t.Errorf("entry %d is at %v, want %v, as it was sent", e.Seq, e.Op.At, clocks[i])
		}
		if e.Op.MadeAt() != clocks[i] || (e.Op.Made != 0) != (i >= 2) {
			t.Errorf("entry %d was made at %v, %v, want %v", e.Seq, e.Op.MadeAt(), e.Op.Made, clocks[i])
		}
		before = e.Op.At
	}
	v := submit(t, p, create("ours"))
	if at := entries(t, p)[6].Op.At; v[0].Code != fold.OK || at <= before {
		t.Errorf("our own next operation is at %v, not after %v", at, before)
	}
	wall = wall.Add(-time.Hour) // the machine's clock was wrong
	ops = writerOps(edge, 7, create("g"))
	ops[0].At = at(0, 0)
	accept(t, p, ops)
	if e := entries(t, p)[7]; e.Op.At <= before {
		t.Errorf("the writer's next operation is at %v, not after %v", e.Op.At, before)
	}
}

// TestAcceptWhileFull: a full store accepts operations that free space, up to the first one that needs space.
func TestAcceptWhileFull(t *testing.T) {
	store := &filling{Store: kvtest.OrLate(t, memkv.New())}
	p := open(t, store)
	accept(t, p, writerOps(edge, 1, create("a"), create("b")))
	store.full = true
	deletion := func(seq uint64) log.Body { return &log.InputDelete{Input: log.Dot{Writer: edge, Seq: seq}} }
	ops := writerOps(edge, 1, create("a"), create("b"), deletion(1), create("c"), deletion(2))
	v, last, err := p.Accept(t.Context(), ops, nil)
	if !errors.Is(err, kv.ErrFull) || len(v) != 3 || v[2].Code != fold.OK || last != 3 || lastOf(t, p, edge) != 3 {
		t.Fatalf("%d verdicts, entry %d, writer's %d, %v", len(v), last, lastOf(t, p, edge), err)
	}
	v, last, err = p.Accept(t.Context(), ops[3:], nil)
	if !errors.Is(err, kv.ErrFull) || len(v) != 0 || last != 3 {
		t.Fatalf("%d verdicts, entry %d, %v", len(v), last, err)
	}
	store.full = false
	accept(t, p, ops)
	if lastOf(t, p, edge) != 5 {
		t.Errorf("of the writer %d, want 5", lastOf(t, p, edge))
	}
}

type filling struct {
	kv.Store
	full bool
}

func (s *filling) Room() error {
	if s.full {
		return kv.ErrFull
	}
	return s.Store.Room()
}

// failing is a store that fails the next Commit, or the wait for it.
type failing struct {
	kv.Store
	commit, wait error
}

func (s *failing) Commit(b *kv.Batch) (func() error, error) {
	if s.commit != nil {
		return nil, s.commit
	}
	wait, err := s.Store.Commit(b)
	return func() error { return errors.Join(wait(), s.wait) }, err
}

// TestAcceptFails: after a failed write the writer's sequence does not advance. Operations that may be lost are not acknowledged, even when
// they are sent again.
func TestAcceptFails(t *testing.T) {
	store := &failing{Store: kvtest.OrLate(t, memkv.New())}
	p := open(t, store)
	ops := writerOps(edge, 1, create("a"), create("b"))
	store.commit = kv.ErrFull
	if _, _, err := p.Accept(t.Context(), ops, nil); !errors.Is(err, kv.ErrFull) || lastOf(t, p, edge) != 0 {
		t.Fatalf("%v; of the writer %d", err, lastOf(t, p, edge))
	}
	store.commit = nil
	accept(t, p, ops[:1])
	store.wait = kv.ErrFailed
	for range 2 {
		if v, _, err := p.Accept(t.Context(), ops, nil); !errors.Is(err, kv.ErrFailed) || v != nil {
			t.Fatalf("%v, %v, want ErrFailed", v, err)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	store.wait = nil
	p = open(t, store)
	accept(t, p, ops)
	if lastOf(t, p, edge) != 2 || p.Log().Head() != 2 {
		t.Errorf("of the writer %d, entries %d", lastOf(t, p, edge), p.Log().Head())
	}
	p.Shut(kv.ErrClosed)
	if _, _, err := p.Accept(t.Context(), writerOps(edge, 3, create("c")), nil); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("after it was shut: %v", err)
	}
}

// TestAcceptConcurrently: several senders per writer send overlapping operations, while callers write at the origin. The log has each
// operation once, in its writer's order. A caller that got an answer can read its effect.
func TestAcceptConcurrently(t *testing.T) {
	for seed := range testkit.Seeds(t, 20, 2000) {
		store := kvtest.OrLate(t, memkv.New())
		p := open(t, store)
		const writers, each = 3, 40
		var group sync.WaitGroup
		for s := range writers {
			w := edge + log.Writer(s)
			var bodies []log.Body
			for i := range each {
				bodies = append(bodies, create(fmt.Sprint(w, "-", i)))
			}
			ops := writerOps(w, 1, bodies...)
			for w := range 2 {
				rng := rand.New(rand.NewPCG(seed, uint64(10*s+w)))
				group.Go(func() { sendAll(t, p, ops, rng) })
			}
		}
		group.Go(func() {
			for i := range each {
				if _, err := p.Submit(t.Context(), "key", []log.Body{create(fmt.Sprint("ours-", i))}, nil); err != nil {
					t.Error(err)
				}
			}
		})
		group.Wait()
		if head := p.Log().Head(); head != (writers+1)*each {
			t.Errorf("seed %d: %d entries, want %d", seed, head, (writers+1)*each)
		}
		next := map[log.Writer]uint64{}
		for _, e := range entries(t, p) {
			if next[e.Op.Dot.Writer]++; e.Op.Dot.Seq != next[e.Op.Dot.Writer] {
				t.Fatalf("seed %d: entry %d is %v", seed, e.Seq, e.Op.Dot)
			}
		}
		if t.Failed() {
			return
		}
	}
}

// sendAll sends operations in overlapping parts until all are accepted, and checks that their inputs can be read.
func sendAll(t *testing.T, p *partition.Origin, ops []log.Op, rng *rand.Rand) {
	for done := 0; done < len(ops); {
		from := max(done-rng.IntN(5), 0)
		to := min(from+1+rng.IntN(8), len(ops))
		v, last, err := p.Accept(t.Context(), ops[from:to], nil)
		if err != nil || len(v) != to-from || last == 0 {
			t.Errorf("%d verdicts on %d operations from %d, entry %d: %v", len(v), to-from, from, last, err)
			return
		}
		view := p.View()
		for _, op := range ops[from:to] {
			if _, err := view.InputByDot(op.Dot); err != nil {
				t.Errorf("%v was accepted and is not read: %v", op.Dot, err)
			}
		}
		if err := view.Close(); err != nil {
			t.Error(err)
		}
		done = max(done, to)
	}
}

// TestRefusedOperationsChangeOnlySequences: refused operations change nothing in the header except the sequences.
func TestRefusedOperationsChangeOnlySequences(t *testing.T) {
	p := open(t, kvtest.OrLate(t, memkv.New()))
	accept(t, p, writerOps(edge, 1, &log.Horizon{At: now() << 1}, &log.NetworkSwitch{Base: [32]byte{1}}, &log.AppDelete{ID: app.String()}))
	view := p.View()
	defer view.Close()
	h, err := view.Header()
	if err != nil || h.Horizon != 0 || h.Base != [32]byte{} || h.Seq != 3 || h.Counts != (catalog.Counts{}) {
		t.Errorf("header %+v, %v", h, err)
	}
}
