//go:build !wasip1

package partition_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/testkit"
)

// TestSuiteOnLateStore runs the tests of this package on a store that shows a commit as late as its wait returns, and lets each Apply
// overtake. The tests left out have other stores, or take long.
func TestSuiteOnLateStore(t *testing.T) {
	kvtest.RunLate(t, testkit.Seeds(t, 80, 500), "^Test", "^Test(SuiteOnLateStore|RoleChanges|Lead.*|SearchAfterJoin|Kill.*|ReplicaEqualsFoldLong|DeleteAllOfManyWriters|Damaged.*|Large.*|Export.*|LocksInOnePlace)$")
}

// member is one of two machines with the same partition.
type member struct {
	store *kvtest.Late
	p     *partition.Origin
}

// nextSpace is the space of the network that follows the one of space.
var nextSpace = index.Space{Base: [32]byte{8}, Concepts: space.Concepts}

func (m *member) next(t testing.TB) bool {
	t.Helper()
	if m.store.Next() == nil {
		return false
	}
	if err := m.p.Advance(context.Background()); err != nil {
		t.Fatal(err)
	}
	return true
}

// TestRoleChanges: two machines have one partition, and change their roles at random moments. Their states are equal wherever both have
// folded the same entries, and have every acknowledged operation once. Their indexes agree with their states.
func TestRoleChanges(t *testing.T) {
	for seed := range testkit.Seeds(t, 300, 3000) {
		f := &following{t: t, rng: rand.New(rand.NewPCG(seed, 5)), channel: kvtest.NewChannel(seed), acked: map[log.Dot]bool{}, leader: -1}
		f.run()
	}
}

// entryReads is a store that counts the reads of a log's entries.
type entryReads struct {
	kv.Store
	n int
}

func (s *entryReads) note(key []byte) {
	if bytes.HasPrefix(key, append(app.LogPrefix(), 'e')) {
		s.n++
	}
}

func (s *entryReads) Get(key []byte) ([]byte, error) {
	s.note(key)
	return s.Store.Get(key)
}

func (s *entryReads) Scan(lo, hi []byte, yield func(key, value []byte) bool) error {
	s.note(lo)
	return s.Store.Scan(lo, hi, yield)
}

func (s *entryReads) ScanBack(lo, hi []byte, yield func(key, value []byte) bool) error {
	s.note(lo)
	return s.Store.ScanBack(lo, hi, yield)
}

// TestLeadingReadsNoEntry: a machine that has followed begins to lead without a read of the log.
func TestLeadingReadsNoEntry(t *testing.T) {
	store := &entryReads{Store: memkv.New()}
	p := openAs(t, store, opening(), fold.Version)
	submit(t, p, create("a"), create("b"))
	if err := p.Follow(context.Background()); err != nil {
		t.Fatal(err)
	}
	before := store.n
	if err := p.Lead(opening()); err != nil || before == 0 {
		t.Fatalf("%v after %d reads by Follow", err, before)
	}
	if store.n != before {
		t.Errorf("Lead reads %d entries", store.n-before)
	}
	submit(t, p, create("c"))
}

// TestRoleChangesDuringLead: the role of a machine changes again before it leads all of its partitions. Those that still follow continue
// to.
func TestRoleChangesDuringLead(t *testing.T) {
	p := openAs(t, kvtest.OrLate(t, memkv.New()), opening(), fold.Version)
	submit(t, p, create("a"))
	for range 2 {
		if err := p.Follow(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Lead(opening()); err != nil {
		t.Fatal(err)
	}
	submit(t, p, create("b"))
}

type following struct {
	t       *testing.T
	rng     *rand.Rand
	channel *kvtest.Channel
	both    [2]*member
	leader  int
	inputs  []log.Dot
	creates []*log.InputCreate
	acked   map[log.Dot]bool
	edge    []log.Op // operations of another writer, all ever made
	at      time.Duration
}

func (f *following) run() {
	t := f.t
	for i := range f.both {
		store := f.channel.Machine(memkv.New(), t.Errorf)
		o := partition.Options{
			Store: store, App: app, Clock: f.clock, Epoch: opening(), Secret: [32]byte{byte(i + 1)}, Follow: true,
			Index:     &index.Options{Space: space, Next: &nextSpace},
			Retention: partition.Retention{Age: 100 * time.Second, Entries: 20, MaxOffline: 300 * time.Second},
		}
		p, err := partition.OpenOrigin(o)
		if err != nil {
			t.Fatal(err)
		}
		f.both[i] = &member{store, p}
	}
	f.lead(0)
	for range 60 {
		f.at += time.Second
		f.step(f.both[f.leader], f.both[1-f.leader])
		if t.Failed() {
			return
		}
	}
	f.channel.Depose()
	if err := f.both[f.leader].p.Follow(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, m := range f.both {
		for m.next(t) {
		}
		steps(t, m.p)
	}
	f.compare(f.both[0], f.both[1])
	have := map[log.Dot]bool{}
	p := f.both[0].p
	if err := p.Log().Read(p.Log().Floor(), func(e log.Entry) bool {
		if have[e.Op.Dot] {
			t.Errorf("operation %v is there twice", e.Op.Dot)
		}
		have[e.Op.Dot] = true
		return true
	}); err != nil {
		t.Fatal(err)
	}
	for dot := range f.acked {
		names, err := p.Names(dot.Writer)
		if err != nil || !names.Has(dot.Seq) && !have[dot] {
			t.Errorf("the acknowledged operation %v is lost: %v", dot, err)
		}
	}
	var lacking [2]string
	for i, m := range f.both {
		v := m.p.View()
		at := m.p.Index().At(v.Reader)
		one, err := at.UnanalysedInputs(space.Base)
		two, failed := at.UnanalysedInputs(nextSpace.Base)
		lacking[i] = fmt.Sprint(one, two)
		if err := errors.Join(err, failed, m.p.Index().Check(context.Background(), v.Reader), v.Close()); err != nil {
			t.Error(err)
		}
	}
	if lacking[0] != lacking[1] {
		t.Errorf("the indexes lack the inputs %s and %s", lacking[0], lacking[1])
	}
}

func (f *following) clock() time.Time { return clock().Add(f.at) }

// lead ends the present leader, and makes the next one lead. A call of the old leader may be in progress.
func (f *following) lead(next int) {
	t := f.t
	f.channel.Depose()
	if f.leader >= 0 {
		old := f.both[f.leader].p
		if _, err := old.Submit(context.Background(), "", []log.Body{create("never")}, nil); !errors.Is(err, kv.ErrFollows) {
			t.Errorf("Submit of a deposed machine = %v, want ErrFollows", err)
		}
		if err := old.Follow(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	m := f.both[next]
	for m.next(t) {
	}
	m.store.Lead()
	if err := m.p.Lead(opening()); err != nil {
		t.Fatal(err)
	}
	f.leader = next
}

func (f *following) step(first, second *member) {
	t, ctx := f.t, context.Background()
	any := func() (at int) { return f.rng.IntN(len(f.inputs)) }
	choice := f.rng.IntN(16)
	if len(f.inputs) == 0 && choice > 4 {
		choice = 5
	}
	var err error
	switch choice {
	case 0:
		f.lead(1 - f.leader)
	case 1, 2, 3:
		second.next(t)
	case 4:
		for _, m := range f.both {
			if _, err := m.p.Step(ctx, f.clock()); err != nil {
				t.Fatal(err)
			}
		}
	case 8, 9:
		_, err = f.submit(first, []log.Body{isTrue(f.inputs[any()], "x")}, nil, nil)
	case 10:
		_, err = f.submit(first, []log.Body{&log.InputDelete{Input: f.inputs[any()]}}, nil, nil)
	case 11:
		i := any()
		b := f.creates[i]
		base := [][32]byte{space.Base, nextSpace.Base}[f.rng.IntN(2)]
		err = first.p.AddDerived([]log.Dot{f.inputs[i]}, func(w kv.Writer, inputs []catalog.Input) {
			for range inputs {
				catalog.PutDerived(w, app, base, b.Blob, b.Crop, derivedRecord(b.Blob))
			}
		})
	case 12:
		if len(f.edge) == 0 || f.rng.IntN(2) == 0 {
			f.edge = append(f.edge, writerOps(1<<62|77, uint64(len(f.edge)+1), create(fmt.Sprint("e", len(f.edge))))...)
		}
		_, _, err = first.p.Accept(ctx, f.edge[max(0, len(f.edge)-3):], nil)
		if errors.Is(err, partition.ErrSequence) {
			_, _, err = first.p.Accept(ctx, f.edge, nil)
		}
	case 13:
		for c := range firstConflict(t, first.p) {
			err = first.p.Dismiss(c.Op.Dot)
		}
	case 14:
		_, err = f.submit(first, []log.Body{&log.NetworkSwitch{Base: [][32]byte{space.Base, nextSpace.Base}[f.rng.IntN(2)]}}, nil, nil)
	case 15:
		_, err = f.submit(first, []log.Body{&log.InputDeleteAll{}}, nil, nil)
	default:
		id := fmt.Sprint("i", f.rng.IntN(30))
		b := create(id)
		_, err = f.submit(first, []log.Body{b}, func(batch *kv.Batch) {
			if f.rng.IntN(2) == 0 {
				catalog.PutDerived(batch, app, space.Base, b.Blob, b.Crop, derivedRecord(b.Blob))
			}
		}, b)
	}
	if err != nil {
		t.Fatalf("choice %d: %v", choice, err)
	}
	if a, b := first.p.Log().Head(), second.p.Log().Head(); a == b && choice < 5 {
		f.compare(first, second)
	}
}

// firstConflict yields the oldest conflict, if there is one.
func firstConflict(t testing.TB, p *partition.Origin) func(yield func(partition.Conflict) bool) {
	return func(yield func(partition.Conflict) bool) {
		if err := p.Conflicts(func(c partition.Conflict) bool {
			yield(c)
			return false
		}); err != nil {
			t.Fatal(err)
		}
	}
}

func (f *following) submit(m *member, bodies []log.Body, also func(*kv.Batch), made *log.InputCreate) ([]fold.Verdict, error) {
	verdicts, span, err := m.p.SubmitSpan(context.Background(), partition.Caller{By: "key"}, bodies, also)
	if err != nil {
		return nil, err
	}
	f.acked[log.Dot{Writer: span.Writer, Seq: span.First}] = true
	if made != nil && verdicts[0].Code == fold.OK {
		f.inputs, f.creates = append(f.inputs, verdicts[0].Dot), append(f.creates, made)
	}
	return verdicts, nil
}

// compare compares the states of machines that have folded the same entries.
func (f *following) compare(a, b *member) {
	if digest(f.t, a.store) != digest(f.t, b.store) {
		f.t.Errorf("the states differ at entry %d", a.p.Log().Head())
	}
}
