package partition

import (
	"context"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
)

// naiveOutbox is a plain set of confirmed positions, with the entry of each.
type naiveOutbox struct {
	floor, last uint64
	place       map[uint64]uint64
}

// stable returns the first position that stays once the log is stable up to an entry.
func (n *naiveOutbox) stable(entry uint64) uint64 {
	at := n.floor
	for place, known := n.place[at]; known && place <= entry; place, known = n.place[at] {
		at++
	}
	return at
}

// check compares the runs with the set.
func (n *naiveOutbox) check(t *rapid.T, c confirmedRuns) {
	t.Helper()
	for i := 1; i < len(c); i++ {
		if c[i-1].last >= c[i].first {
			t.Fatalf("run %+v before %+v", c[i-1], c[i])
		}
	}
	next, count := n.last+1, uint64(0) // the first pending position, and the number of confirmed ones, at or after a position
	for at := n.last; at >= n.floor; at-- {
		if _, known := n.place[at]; known {
			count++
		} else {
			next = at
		}
		if _, known := n.place[at]; c.has(at) != known || c.after(at-1) != next || c.count(at, n.last) != count {
			t.Fatalf("position %d: confirmed %v, want %v; the next pending one is %d, want %d; %d confirmed, want %d", at, c.has(at), known, c.after(at-1), next, c.count(at, n.last), count)
		}
	}
}

// TestConfirmedRuns compares the runs of an outbox with a plain set, also after they were stored and read again. They are more cautious than
// the set only if there are too many of them.
func TestConfirmedRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := &naiveOutbox{floor: 1, last: uint64(rapid.SampledFrom([]int{12, 60, 700}).Draw(t, "positions")), place: map[uint64]uint64{}}
		var c confirmedRuns
		var cursor, stable uint64
		grown := false
		for at := uint64(1); n.last == 700 && at <= 300; at++ { // more runs than the outbox stores
			cursor++
			n.place[at] = cursor
			c = c.add(at, cursor)
			grown = true
		}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0, 1:
				stable = max(stable, uint64(rapid.IntRange(0, int(cursor)).Draw(t, "stable")))
				want, before := n.stable(stable), n.floor
				c, n.floor = c.stable(n.floor, stable)
				if n.floor > want || n.floor < want && !grown {
					t.Fatalf("the outbox begins at %d, want %d", n.floor, want)
				}
				if _, again := append(confirmedRuns(nil), c...).stable(before, stable); again != n.floor { // a crash undid the trim
					t.Fatalf("after a crash the outbox begins at %d, want %d", again, n.floor)
				}
			case 2:
				x, err := decodeReplicaState((&replicaState{confirmed: c}).encode())
				if err != nil {
					t.Fatal(err)
				}
				c = x.confirmed
			default:
				at := n.floor + uint64(rapid.IntRange(0, int(n.last-n.floor)).Draw(t, "position"))
				for range rapid.SampledFrom([]int{1, 4, 400}).Draw(t, "positions") {
					if _, known := n.place[at]; !known && at <= n.last {
						n.place[at] = cursor
					}
					if at <= n.last {
						c = c.add(at, cursor)
					}
					at++
					cursor += uint64(rapid.IntRange(0, 2).Draw(t, "entries"))
				}
				grown = grown || len(c) >= maxConfirmed
			}
			if n.floor > n.last {
				break
			}
			n.check(t, c)
		}
		if got, floor := c.stable(n.floor, cursor); floor != n.stable(cursor) {
			t.Fatalf("once all is stable, the outbox begins at %d, want %d: %+v", floor, n.stable(cursor), got)
		}
	})
}

var (
	testApp = catalog.AppID{15: 1}
	testNow = func() time.Time { return time.UnixMilli(1_700_000_000_000) }
)

func openTest(t *testing.T, o Options) *Origin {
	t.Helper()
	o.App, o.Clock = testApp, testNow
	p, err := OpenOrigin(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func copyTest(t *testing.T, o Options) *Replica {
	t.Helper()
	o.App, o.Clock = testApp, testNow
	p, err := OpenReplica(o, ReplicaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func submitTest(t *testing.T, p interface {
	SubmitSpan(ctx context.Context, c Caller, bodies []log.Body, also func(*kv.Batch)) ([]fold.Verdict, Span, error)
}, n int,
) Span {
	t.Helper()
	bodies := make([]log.Body, n)
	for i := range bodies {
		bodies[i] = &log.InputCreate{Blob: blob.Hash{1}, ContentType: "image/png", AllowDuplicate: true}
	}
	v, span, err := p.SubmitSpan(t.Context(), Caller{By: "key"}, bodies, nil)
	if err != nil || v[n-1].Code != fold.OK {
		t.Fatal(v, err)
	}
	return span
}

// TestMaxSeq: a writer that has too few numbers left for a call is followed by another one, which makes all operations of the call.
func TestMaxSeq(t *testing.T) {
	store := kvtest.OrLate(t, memkv.New())
	p := openTest(t, Options{Store: store})
	first := submitTest(t, p, 1)
	p.own.seq = log.MaxSeq - 3
	if got, want := submitTest(t, p, 2), (Span{first.Writer, log.MaxSeq - 2, log.MaxSeq - 1}); got != want {
		t.Errorf("near the end: %+v, want %+v", got, want)
	}
	second := submitTest(t, p, 2)
	if second.Writer == first.Writer || second.First != 1 || second.Last != 2 {
		t.Errorf("with one number left for two operations: %+v", second)
	}
	p.own.seq = log.MaxSeq - 1
	if got, want := submitTest(t, p, 1), (Span{second.Writer, log.MaxSeq, log.MaxSeq}); got != want {
		t.Errorf("at the end: %+v, want %+v", got, want)
	}
	if third := submitTest(t, p, 1); third.Writer == first.Writer || third.Writer == second.Writer || third.First != 1 {
		t.Errorf("after the last number: %+v", third)
	}
	for w, last := range map[log.Writer]uint64{first.Writer: log.MaxSeq - 1, second.Writer: log.MaxSeq} {
		if n, err := openTest(t, Options{Store: store}).Names(w); err != nil || n.Last() != last {
			t.Errorf("the log has the names %+v of %v, %v; want the last at %d", n, w, err, last)
		}
	}
}

// asSite makes a replica write as a site, as version 0.1.0 did.
func asSite(p *Replica, w log.Writer) {
	p.own.writer = w
	p.drawn.Store(uint64(w))
}

// storeAsSite replaces the records of a replica by those of version 0.1.0, which counted confirmed operations and stored where they are in
// the log.
func storeAsSite(t *testing.T, p *Replica, w log.Writer) {
	t.Helper()
	n := p.replicaState
	n.site, n.acked, n.confirmed, n.converted = w, nil, nil, false
	for _, run := range p.confirmed {
		if run.last >= p.log.Floor() {
			n.acked = append(n.acked, acknowledgement{run.place, run.last})
		}
	}
	var b kv.Batch
	b.Put(noteKey(testApp), n.encode())
	b.Delete(writerKey(testApp, w))
	if err := p.o.Store.Apply(&b); err != nil {
		t.Fatal(err)
	}
}

// TestOutboxOfSite opens the outbox of a replica of version 0.1.0: two operations have left it, two are in the log, two are pending. They keep
// their names. A drawn writer makes the next ones.
func TestOutboxOfSite(t *testing.T) {
	const site log.Writer = 5
	origin := openTest(t, Options{Store: kvtest.OrLate(t, memkv.New()), Epoch: log.Epoch{1}})
	store := kvtest.OrLate(t, memkv.New())
	p := copyTest(t, Options{Store: store, Epoch: log.Epoch{2}})
	asSite(p, site)
	push := func(n int) {
		t.Helper()
		for at, op := range pendingOf(t, p) {
			if n--; n < 0 {
				return
			}
			if _, _, err := origin.Accept(t.Context(), []log.Op{op}, nil); err != nil {
				t.Fatalf("operation %d: %v", at, err)
			}
		}
	}
	pull := func(stable uint64) {
		t.Helper()
		r := Run{Frame: Frame{Epoch: origin.Opening(), From: p.Cursor().Seq, To: origin.log.Head()}, Stable: stable}
		if r.To > r.From {
			err := origin.log.Read(r.From+1, func(e log.Entry) bool {
				r.Entries, r.Rows = append(r.Entries, e), log.AppendRow(r.Rows, log.Encode(nil, &e.Op))
				return true
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		var err error
		if r.Before, err = origin.log.Chain(0); err == nil {
			r.Chain, err = origin.log.Chain(r.To)
		}
		if err == nil {
			_, err = p.Pull(t.Context(), r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	submitTest(t, p, 6)
	push(2)
	pull(origin.log.Head())
	for range 2 {
		push(1)
		pull(0)
	}
	storeAsSite(t, p, site)
	visible := func() (n uint64) {
		h, err := p.Header()
		if err != nil {
			t.Fatal(err)
		}
		return h.Counts.Processed
	}
	for opening := range byte(2) { // Pull stores the record in its new form
		p = copyTest(t, Options{Store: store, Epoch: log.Epoch{3, opening}})
		if last, settled := p.Outbox(); last != 6 || settled != 4 || p.log.Floor() != 3 || visible() != 6 {
			t.Errorf("opening %d: the outbox goes from %d to %d, settled up to %d; %d inputs", opening, p.log.Floor(), last, settled, visible())
		}
		var dots []log.Dot
		for at, op := range pendingOf(t, p) {
			if dots = append(dots, op.Dot); p.Position(op.Dot) != at {
				t.Errorf("operation %v at %d has the position %d", op.Dot, at, p.Position(op.Dot))
			}
		}
		if len(dots) != 2 || dots[0] != (log.Dot{Writer: site, Seq: 5}) || dots[1] != (log.Dot{Writer: site, Seq: 6}) || !p.MadeBy(site) || p.Secret(site) != nil {
			t.Errorf("opening %d: pending %v; made here: %v", opening, dots, p.MadeBy(site))
		}
		pull(0)
	}
	own := submitTest(t, p, 1)
	if own.Writer.IsSite() || own.First != 1 || p.Position(log.Dot{Writer: own.Writer, Seq: 1}) != 7 {
		t.Errorf("the next operation is %+v", own)
	}
	push(9)
	pull(origin.log.Head())
	if last, settled := p.Outbox(); last != 7 || settled != 7 || p.log.Floor() != 8 || p.MadeBy(site) || !p.MadeBy(own.Writer) || visible() != 7 {
		t.Errorf("in the end the outbox goes from %d to %d, settled up to %d; %d inputs", p.log.Floor(), last, settled, visible())
	}
	p = copyTest(t, Options{Store: store, Epoch: log.Epoch{4}})
	if next := submitTest(t, p, 1); p.MadeBy(site) || next.Writer == own.Writer || p.Position(log.Dot{Writer: next.Writer, Seq: 1}) != 8 {
		t.Errorf("after another opening: %+v", next)
	}
}

// pendingOf returns the pending operations of a replica with their positions.
func pendingOf(t *testing.T, p *Replica) func(func(uint64, log.Op) bool) {
	return func(yield func(uint64, log.Op) bool) {
		if err := p.Pending(0, yield); err != nil {
			t.Fatal(err)
		}
	}
}
