package partition_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
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

// TestWriterOf: the writer of a secret is the same in every version, and another one in another application.
func TestWriterOf(t *testing.T) {
	secret := []byte("0123456789abcdef")
	if got, want := partition.WriterOf(app, secret), log.Writer(0x511316325f03a940); got != want {
		t.Errorf("WriterOf = %x, want %x", uint64(got), uint64(want))
	}
	seen := map[log.Writer]bool{}
	for i := range 200 {
		w := partition.WriterOf(catalog.AppID{byte(i % 2)}, fmt.Append(nil, i/2))
		if w < 1<<62 || w >= 1<<63 || seen[w] {
			t.Errorf("secret %d in application %d: writer %x", i/2, i%2, uint64(w))
		}
		seen[w] = true
	}
}

// TestSecrets: a replica has the secrets of all writers in its outbox, also after another opening. A writer is drawn with the first operation.
func TestSecrets(t *testing.T) {
	store := kvtest.OrLate(t, memkv.New())
	var writers []log.Writer
	for range 3 {
		c := openReplica(t, store)
		if n := localRecords(t, store, "writer/"); n != len(writers) {
			t.Errorf("%d writers before the first operation, want %d", n, len(writers))
		}
		writers = append(writers, submit(t, c.Replica, create(""))[0].Dot.Writer)
		for _, w := range writers {
			if secret := c.Secret(w); len(secret) != partition.SecretSize || partition.WriterOf(app, secret) != w || !c.MadeBy(w) {
				t.Errorf("the secret of writer %v of %v is %x", w, writers, secret)
			}
		}
		if c.Secret(edge) != nil || c.MadeBy(edge) {
			t.Error("the secret of another writer is known")
		}
	}
	if slices.Sort(writers); len(slices.Compact(writers)) != 3 {
		t.Errorf("writers %v of three openings", writers)
	}
	origin := open(t, kvtest.OrLate(t, memkv.New()))
	if w := submit(t, origin, create(""))[0].Dot.Writer; !origin.MadeBy(w) || origin.MadeBy(writers[0]) {
		t.Error("an origin does not know what it has made")
	}
}

// TestResumedMachinesDrawDifferentWriters: two machines that resume from one image of a memory have the same random bytes. They draw
// different writers, because their clocks differ.
func TestResumedMachinesDrawDifferentWriters(t *testing.T) {
	seen := map[log.Writer]bool{}
	for i := range 3 {
		p, err := partition.OpenReplica(partition.Options{
			Store: kvtest.OrLate(t, memkv.New()), App: app, Epoch: log.Epoch{1}, Clock: func() time.Time { return clock().Add(time.Duration(i)) },
		}, partition.ReplicaOptions{})
		if err != nil {
			t.Fatal(err)
		}
		seen[submit(t, p, create("a"))[0].Dot.Writer] = true
	}
	if len(seen) != 3 {
		t.Errorf("writers %v", seen)
	}
}

// past is an origin and a replica whose disks go back in time. Several processes may run, each on its copy of an image.
type past struct {
	*testing.T
	*rand.Rand
	opened  byte
	n       int // counter for unique inputs
	made    map[log.Dot]string
	images  [2][]kv.Store // of the origin and of the replica
	running [2][]process
}

// process is a running process with its disk: an origin or a replica.
type process struct {
	store kv.Store
	kind
}

// open starts a process on a disk. side is 0 for the origin and 1 for the replica.
func (w *past) open(side int, store kv.Store) process {
	w.opened++
	o := partition.Options{Store: store, App: app, Clock: clock, Epoch: log.Epoch{byte(2 + side), w.opened}, Secret: [32]byte{1}}
	p := process{store: store}
	var err error
	if side == 0 {
		p.kind, err = partition.OpenOrigin(o)
	} else {
		p.kind, err = partition.OpenReplica(o, partition.ReplicaOptions{})
	}
	if err != nil {
		w.Fatal(err)
	}
	return p
}

func (w *past) pick(side int) *process { return &w.running[side][w.IntN(len(w.running[side]))] }

// step lets one of the processes write, a disk go back in time, a process end, or a replica exchange operations with an origin.
func (w *past) step() {
	side := w.IntN(2)
	p := w.pick(side)
	switch n := w.IntN(10); {
	case n < 3:
		w.write(p)
	case n < 4:
		w.images[side] = append(w.images[side], imageOf(w, p.store))
	case n < 5:
		store := imageOf(w, w.images[side][w.IntN(len(w.images[side]))])
		if next := w.open(side, store); len(w.running[side]) < 3 {
			w.running[side] = append(w.running[side], next)
		} else {
			*p = next
		}
	case n < 6:
		*p = w.open(side, p.store)
	default:
		w.exchange(w.pick(1).kind.(*partition.Replica), w.pick(0).kind.(*partition.Origin))
	}
}

// write makes operations, and checks that no other ones have their names.
func (w *past) write(p *process) {
	bodies := make([]log.Body, 1+w.IntN(3))
	for i := range bodies {
		w.n++
		bodies[i] = create(fmt.Sprint(w.n))
	}
	_, span, err := p.SubmitSpan(w.Context(), partition.Caller{By: "key"}, bodies, nil)
	if err != nil {
		w.Fatal(err)
	}
	for i := range bodies {
		dot := log.Dot{Writer: span.Writer, Seq: span.First + uint64(i)}
		if w.made[dot] != "" {
			w.Fatalf("the name %v of input %s is given again", dot, w.made[dot])
		}
		w.made[dot] = bodies[i].(*log.InputCreate).ID
	}
}

// exchange brings a replica to the end of a log, and sends what is pending there. It first gives what the replica keeps back to a log that lacks
// the replica's place.
func (w *past) exchange(r *partition.Replica, origin *partition.Origin) {
	c := r.Cursor()
	has, err := origin.HasPlace(log.Mark{Epoch: c.Epoch, To: c.Seq}, c.Chain)
	if err != nil {
		w.Fatal(err)
	}
	if has {
		w.pull(r, origin)
	} else {
		w.giveBack(r, origin)
		keepSealed(w, r, origin, 0)
		x, err := origin.Export([32]byte{})
		if err == nil {
			x.Lacked = true
			err = errors.Join(r.Rebase(w.Context(), x.Snapshot), x.Close())
		}
		if err != nil {
			w.Fatal(err)
		}
	}
	sendAllPending(w, r, origin)
	w.pull(r, origin)
	pending := 0
	if err := r.Pending(0, func(uint64, log.Op) bool { pending++; return true }); err != nil || pending > 0 {
		w.Errorf("%d operations are pending that the log has, %v", pending, err)
	}
}

func (w *past) pull(r *partition.Replica, origin *partition.Origin) {
	for _, x := range sealedRuns(w, origin, r.Cursor().Seq) {
		if w.IntN(3) == 0 {
			x.Stable = x.To
		}
		if _, err := r.Pull(w.Context(), x); err != nil {
			w.Fatal(err)
		}
	}
}

// giveBack gives what a replica keeps back to a log, and checks that the log has all of it then, and lists nothing.
func (w *past) giveBack(r *partition.Replica, origin *partition.Origin) {
	giveBack(w, r, origin)
	frames, _ := framesOf(w, r)
	for _, f := range frames {
		entries, err := log.DecodeRows(f.Rows, f.From)
		if err != nil {
			w.Fatal(err)
		}
		for _, e := range entries {
			if names, err := origin.Names(e.Op.Dot.Writer); err != nil || !names.Has(e.Op.Dot.Seq) {
				w.Errorf("the log lacks %v of the kept entry %d, %v", e.Op.Dot, e.Seq, err)
			}
		}
	}
	if list := conflictsOf(w, origin); len(list) > 0 {
		w.Errorf("the origin lists %+v", list)
	}
}

// TestNamesAreUnique: the disks of both sides go back in time, and copies of them run at once. No opening gives a name that another opening
// gave, every log has the same content by a name, and no operation waits in vain. A log that lacks the place of a replica gets all that it
// keeps.
func TestNamesAreUnique(t *testing.T) {
	for seed := range testkit.Seeds(t, 100, 20_000) {
		w := &past{T: t, Rand: rand.New(rand.NewPCG(seed, 9)), made: map[log.Dot]string{}}
		for side := range w.running {
			w.images[side] = []kv.Store{kvtest.OrLate(t, memkv.New())}
			w.running[side] = []process{w.open(side, kvtest.OrLate(t, memkv.New()))}
		}
		for range 60 {
			w.step()
		}
		for _, origin := range w.running[0] {
			for _, e := range entries(t, origin.kind.(*partition.Origin)) {
				if b, ok := e.Op.Body.(*log.InputCreate); ok && b.ID != w.made[e.Op.Dot] {
					t.Errorf("a log has input %s as %v, which is the name of input %q", b.ID, e.Op.Dot, w.made[e.Op.Dot])
				}
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// twins returns two replicas that resume from one image of a machine with its memory, one of them a second later. They have made input a, and
// continue as one writer.
func twins(t *testing.T) (first, second *testReplica) {
	t.Helper()
	c := &ticking{at: clock()}
	first, second = twin(t, kvtest.OrLate(t, memkv.New()), 1, (&ticking{at: clock()}).now), twin(t, memkv.New(), 1, c.now)
	for _, r := range []*testReplica{first, second} {
		submit(t, r.Replica, create("a"))
	}
	c.at = c.at.Add(time.Second)
	return first, second
}

// twin opens a replica in an opening with a name.
func twin(t *testing.T, store kv.Store, name byte, now func() time.Time) *testReplica {
	t.Helper()
	p, err := partition.OpenReplica(partition.Options{
		Store: store, App: app, Clock: now, Epoch: log.Epoch{name}, Index: &index.Options{Space: plainSpace},
	}, partition.ReplicaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return &testReplica{store: store, Replica: p}
}

// checkListed checks that operations of a writer are listed because their names were used twice, in sequence from first, with their content: the
// inputs ids.
func checkListed(t *testing.T, r kind, w log.Writer, first uint64, ids ...string) {
	t.Helper()
	list := conflictsOf(t, r)
	if len(list) != len(ids) {
		t.Fatalf("conflicts %+v, want those of %v", list, ids)
	}
	for i, c := range list {
		b, ok := c.Op.Body.(*log.InputCreate)
		if !ok || b.ID != ids[i] || b.Blob != create(ids[i]).Blob || c.Op.Dot != (log.Dot{Writer: w, Seq: first + uint64(i)}) {
			t.Errorf("conflict %+v, want input %s", c, ids[i])
		}
		if twice := c.Verdict.Code == fold.Refused && strings.Contains(c.Verdict.Detail, "used twice"); !twice {
			t.Errorf("conflict of %s: %+v", ids[i], c.Verdict)
		}
	}
}

// checkGoesOn checks that a replica sends its next operation, as another writer, and that the log then has the inputs want.
func checkGoesOn(t *testing.T, r *testReplica, origin *partition.Origin, w log.Writer, want string) {
	t.Helper()
	r.check(t, origin)
	if pending := r.waiting(t, 0, 9); len(pending) > 0 {
		t.Errorf("pending %+v", pending)
	}
	if dot := submit(t, r.Replica, create("after"))[0].Dot; dot.Writer == w || dot.Seq != 1 {
		t.Errorf("the next operation is %v", dot)
	}
	r.push(t, origin, 9)
	r.pull(t, origin, 9)
	r.check(t, origin)
	v := origin.View()
	defer v.Close()
	if got := fmt.Sprint(ids(t, v.Reader)); got != want {
		t.Errorf("the log has the inputs %s, want %s", got, want)
	}
}

// TestReusedNames: a machine continues from an image of its memory, and pulls operations of its writer that it has not made. It lists its
// own ones with their content, from the first one whose name was used, and draws another writer. How many it has made does not matter.
func TestReusedNames(t *testing.T) {
	for writes := range 4 {
		origin := openAs(t, kvtest.OrLate(t, memkv.New()), opening(), fold.Version)
		first, second := twins(t)
		w := submit(t, first.Replica, create("old-1"), create("old-2"))[0].Dot.Writer
		first.push(t, origin, 9)
		var lost []string
		for i := range writes {
			lost = append(lost, fmt.Sprint("new-", i))
			submit(t, second.Replica, create(lost[i]))
		}
		verdicts := second.pull(t, origin, 9)
		if len(verdicts) != 1 || verdicts[0].Verdict.Code != fold.OK || verdicts[0].Op.Dot != (log.Dot{Writer: w, Seq: 1}) {
			t.Errorf("%d writes: told %+v, want that of a", writes, verdicts)
		}
		checkListed(t, second.Replica, w, 2, lost...)
		checkGoesOn(t, second, origin, w, "[a old-1 old-2 after]")
	}
}

// TestReusedNamesInSnapshot is TestReusedNames with a snapshot instead of entries. If entries were stored for the snapshot, they show the
// first used name. If not, the clock of a thing that the operation made shows it, or that of the newest operation of the writer.
func TestReusedNamesInSnapshot(t *testing.T) {
	for writes := range 4 {
		for _, stored := range []bool{true, false} {
			origin := openAs(t, kvtest.OrLate(t, memkv.New()), opening(), fold.Version)
			first, second := twins(t)
			w := submit(t, first.Replica, create("old-1"), create("old-2"))[0].Dot.Writer
			first.push(t, origin, 9)
			var lost []string
			for i := range writes {
				lost = append(lost, fmt.Sprint("new-", i))
				submit(t, second.Replica, create(lost[i]))
			}
			if stored {
				keepSealed(t, second.Replica, origin, 0)
			}
			rebase(t, second, origin)
			checkListed(t, second.Replica, w, 2, lost...)
			checkGoesOn(t, second, origin, w, "[a old-1 old-2 after]")
		}
	}
}

// TestReusedNamesWithoutClock: a snapshot has the name of an operation of the replica, which makes nothing, and no clock with it. A later
// operation of the writer shows that the names were used twice. Both are listed.
func TestReusedNamesWithoutClock(t *testing.T) {
	origin := openAs(t, kvtest.OrLate(t, memkv.New()), opening(), fold.Version)
	first, second := twins(t)
	w := submit(t, first.Replica, create("old-1"), create("old-2"))[0].Dot.Writer
	first.push(t, origin, 9)
	submit(t, second.Replica, &log.InputDelete{Input: log.Dot{Writer: w, Seq: 1}})
	submit(t, second.Replica, create("new"))
	rebase(t, second, origin)
	var listed []log.Dot
	if err := second.Conflicts(func(c partition.Conflict) bool {
		listed = append(listed, c.Op.Dot)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if want := []log.Dot{{Writer: w, Seq: 2}, {Writer: w, Seq: 3}}; !slices.Equal(listed, want) {
		t.Errorf("listed are %v, want %v", listed, want)
	}
	checkGoesOn(t, second, origin, w, "[a old-1 old-2 after]")
}

// TestReusedNamesOfTwoWriters: the names of two openings were used twice, and one pull shows both. The process does not continue as the
// writer of the second one.
func TestReusedNamesOfTwoWriters(t *testing.T) {
	origin := openAs(t, kvtest.OrLate(t, memkv.New()), opening(), fold.Version)
	machine := func(ahead time.Duration, also ...log.Body) (*testReplica, []log.Writer) {
		c := &ticking{at: clock()}
		store := kvtest.OrLate(t, memkv.New())
		r := twin(t, store, 1, c.now)
		writers := []log.Writer{submit(t, r.Replica, create("a"))[0].Dot.Writer}
		c.at = c.at.Add(ahead)
		submit(t, r.Replica, create(fmt.Sprint("b-", ahead)))
		c.at = clock().Add(time.Hour)
		r = twin(t, store, 2, c.now)
		writers = append(writers, submit(t, r.Replica, append([]log.Body{create("c")}, also...)...)[0].Dot.Writer)
		return r, writers
	}
	first, writers := machine(time.Second, create("d"))
	second, same := machine(time.Minute)
	if !slices.Equal(writers, same) {
		t.Fatalf("writers %v and %v", writers, same)
	}
	first.push(t, origin, 9)
	second.pull(t, origin, 9)
	checkListed(t, second.Replica, writers[0], 2, "b-1m0s")
	if dot := submit(t, second.Replica, create("after"))[0].Dot; dot.Seq != 1 || slices.Contains(writers, dot.Writer) {
		t.Errorf("the next operation is %v", dot)
	}
}

// TestOfferGaps: the log takes operations after missing ones only if their replica no longer has these. The missing ones fill the gap when they
// come. The names are a set with at most 64 ranges, also if a replica fills gaps by single operations.
func TestOfferGaps(t *testing.T) {
	store := kvtest.OrLate(t, memkv.New())
	p := openAs(t, store, opening(), fold.Version)
	bodies := make([]log.Body, 300)
	for i := range bodies {
		bodies[i] = create(fmt.Sprint(i + 1))
	}
	ops := writerOps(edge, 1, bodies...)
	names := func(want string) {
		t.Helper()
		for range 2 {
			n, err := p.Names(edge)
			if got := fmt.Sprint(n.Ranges); got != want || err != nil {
				t.Errorf("names %s, %v, want %s", got, err, want)
			}
			p = openAs(t, store, opening(), fold.Version)
		}
	}
	refused := func(want error, o partition.Offer) {
		t.Helper()
		head := p.Log().Head()
		if v, _, err := p.AcceptOffer(t.Context(), &o); !errors.Is(err, want) || v != nil || p.Log().Head() != head {
			t.Errorf("operations from %d: %v, %v, want %v", o.Ops[0].Dot.Seq, v, err, want)
		}
	}
	ok := func(o partition.Offer) {
		t.Helper()
		for i, v := range offer(t, p, o) {
			if v.Code != fold.OK && v.Code != 0 {
				t.Errorf("verdict on operation %d: %+v", o.Ops[i].Dot.Seq, v)
			}
		}
	}
	accept(t, p, ops[:3])
	refused(partition.ErrSequence, partition.Offer{Ops: ops[5:7]})
	ok(partition.Offer{Ops: ops[5:7], Gap: true})
	names("[{1 3} {6 7}]")
	ok(partition.Offer{Ops: ops[4:6]})
	names("[{1 3} {5 7}]")
	ok(partition.Offer{Ops: ops[1:9]})
	names("[{1 9}]")
	for i := 10; i < 10+2*63; i += 2 {
		ok(partition.Offer{Ops: ops[i : i+1], Gap: true})
	}
	refused(partition.ErrGaps, partition.Offer{Ops: ops[150:151], Gap: true})
	ok(partition.Offer{Ops: ops[135:149], Gap: true}) // they follow the last one
	if n, err := p.Names(edge); err != nil || len(n.Ranges) != 64 || n.Last() != 149 {
		t.Errorf("names %+v, %v", n, err)
	}
	ok(partition.Offer{Ops: ops[9:134]}) // all but two missing ones
	names("[{1 149}]")
	for i := 150; len(bodies) > i+1 && i < 150+2*62; i += 2 {
		ok(partition.Offer{Ops: ops[i : i+1], Gap: true})
	}
	ok(partition.Offer{Ops: ops[290:291], Gap: true})
	for i := 276; i < 288; i += 2 { // in the last gap, so that the log has a later operation
		refused(partition.ErrGaps, partition.Offer{Ops: ops[i : i+1]})
	}
	v := p.View()
	defer v.Close()
	if got := len(ids(t, v.Reader)); got != 149+63 {
		t.Errorf("%d inputs, want %d", got, 149+63)
	}
}

// TestOfferNames: the log refuses operations if it has another one by the name of the newest of them that it has, or of the one before them. It
// compares the clock that the writer gave, also if the log changed it or refused the operation, and after a restart.
func TestOfferNames(t *testing.T) {
	store := kvtest.OrLate(t, memkv.New())
	p := openAs(t, store, opening(), fold.Version)
	ops := writerOps(edge, 1, create("a"), &log.Horizon{At: 1}, create("c"), create("d"), create("e"))
	ops[2].At = now() + 1<<32 // the log changes it
	accept(t, p, ops[:2])
	for _, n := range []uint64{2, 3} { // the newest operation was refused, and has another clock in the log
		for range 2 {
			next, other, older := ops[n:n+1], slices.Clone(ops[:n+1]), slices.Clone(ops[:n-1])
			other[n-1].At++
			older[n-2].At++
			for name, o := range map[string]partition.Offer{
				"another operation before":     {Ops: next, Before: ops[n-1].At + 1},
				"another newest one":           {Ops: other[n-1:]},
				"another older one":            {Ops: older},
				"another newest one at last":   {Ops: other[:n]},
				"another newest one, declared": {Ops: other[n-1:], Before: ops[n-2].At, Gap: true},
			} {
				head := p.Log().Head()
				if v, _, err := p.AcceptOffer(t.Context(), &o); !errors.Is(err, partition.ErrName) || v != nil || p.Log().Head() != head {
					t.Errorf("%d operations, %s: %v, %v, want ErrName", n, name, v, err)
				}
			}
			offer(t, p, partition.Offer{Ops: ops[:n]})
			p = openAs(t, store, opening(), fold.Version)
		}
		offer(t, p, partition.Offer{Ops: ops[n : n+1], Before: ops[n-1].At})
	}
	offer(t, p, partition.Offer{Ops: ops[4:]}) // without the clock of the operation before
	if n := lastOf(t, p, edge); n != 5 {
		t.Errorf("the log has %d operations", n)
	}
	site := writerOps(7, 1, create("x"), create("y"))
	accept(t, p, site[:1])
	offer(t, p, partition.Offer{Ops: site[1:], Before: 1}) // the clock of a site's operation is not known
}

// TestDroppedOperationsAfterPowerCut: a power cut undoes that the outbox drops stable operations, but not that their writer leaves it. The
// next process drops them. It does not send them to a log that lacks them, since nobody knows their secret any more.
func TestDroppedOperationsAfterPowerCut(t *testing.T) {
	origin := open(t, kvtest.OrLate(t, memkv.New()))
	store := &brimful{Store: kvtest.OrLate(t, memkv.New()), left: -1}
	c := openReplica(t, store)
	first := submit(t, c.Replica, create("a"), create("b"))[0].Dot
	c = openReplica(t, store)
	second := submit(t, c.Replica, create("c"))[0].Dot
	c.push(t, origin, 2)
	store.left = 1
	if _, err := c.Pull(t.Context(), run(t, origin, c.Cursor(), 9)); !errors.Is(err, kv.ErrFull) {
		t.Fatalf("Pull = %v, want ErrFull where the outbox drops operations", err)
	}
	c = openReplica(t, store.Store)
	if c.Secret(first.Writer) != nil || c.Secret(second.Writer) == nil || c.Log().Floor() != 3 {
		t.Errorf("secrets %x and %x; the outbox begins at %d", c.Secret(first.Writer), c.Secret(second.Writer), c.Log().Floor())
	}
	c.check(t, origin)
	other := open(t, kvtest.OrLate(t, memkv.New()))
	submit(t, other, create("other"))
	rebase(t, c, other)
	c.check(t, other)
	c.push(t, other, 9)
	c.pull(t, other, 9)
	c.check(t, other)
	if got := fmt.Sprint(ids(t, catalog.Read(c.store, app))); got != "[other c]" {
		t.Errorf("inputs %s", got)
	}
}

// TestNameOfAtOrigin: the log of an origin has operations of others between those of one writer. So, unlike in an outbox, no positions follow
// from the numbers of its operations.
func TestNameOfAtOrigin(t *testing.T) {
	p := open(t, kvtest.OrLate(t, memkv.New()))
	submit(t, p, create("a"))
	accept(t, p, writerOps(edge, 1, create("theirs"), create("theirs, too")))
	deletion := &log.InputDelete{Input: submit(t, p, create("b"))[0].Dot}
	for _, want := range []string{"b", ""} {
		if id, err := p.SubjectID(deletion); id != want || err != nil {
			t.Errorf("NameOf = %q, %v, want %q", id, err, want)
		}
		submit(t, p, deletion)
	}
}

// TestHistoryOfPendingInput: a replica knows the whole history of an input as long as the input is pending, whatever the position of the
// operation that made it.
func TestHistoryOfPendingInput(t *testing.T) {
	origin := open(t, kvtest.OrLate(t, memkv.New()))
	c := openReplica(t, kvtest.OrLate(t, memkv.New()))
	exchange := func() {
		t.Helper()
		c.push(t, origin, 9)
		r := run(t, origin, c.Cursor(), 9)
		r.Stable = 0
		if _, err := c.Pull(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	submit(t, c.Replica, create("a"), create("b"))
	exchange()
	c = openReplica(t, c.store)
	input := submit(t, c.Replica, create("c"))[0].Dot
	submit(t, c.Replica, isTrue(input, "x"))
	for _, pending := range []bool{true, false} {
		n := 0
		complete, err := c.History(input, func(log.Entry) bool { n++; return true })
		if err != nil || complete != pending || n != 2 {
			t.Errorf("pending %v: %d operations, complete %v, %v", pending, n, complete, err)
		}
		exchange()
	}
}
