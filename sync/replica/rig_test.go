package replica_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
)

// disk is the journal of a store. cut returns the disk after a power cut: it has all synced batches and some of the unsynced ones.
type disk struct {
	batches [][]byte
	durable int
	syncs   int
}

func (d *disk) Replay(yield func(batch []byte) error) error {
	for _, b := range d.batches {
		if err := yield(b); err != nil {
			return err
		}
	}
	return nil
}

func (d *disk) Append(batch []byte) (wait func() error, err error) {
	d.batches = append(d.batches, slices.Clone(batch))
	n := len(d.batches)
	return func() error {
		d.durable = max(d.durable, n)
		d.syncs++
		return nil
	}, nil
}

func (d *disk) cut(rng *rand.Rand) *disk {
	n := d.durable + rng.IntN(len(d.batches)-d.durable+1)
	return &disk{batches: slices.Clone(d.batches[:n]), durable: n}
}

// register stores the app record of a replica in memory.
type register struct{ seq uint64 }

func (r *register) Seq() uint64 { return r.seq }

func (r *register) Apply(seq uint64, data []byte) (reason string, err error) {
	if string(data) != "register" {
		return "deleted", nil
	}
	r.seq = max(r.seq, seq)
	return "", nil
}

// rig is a replica with its stores, and the origin that it syncs with. The test controls the connection between them.
type rig struct {
	testing.TB
	rng     *rand.Rand
	clock   time.Time
	options replica.Options
	origin  *origin
	disk    *disk
	store   kv.Store
	blobs   *blob.Memory
	part    *partition.Replica
	machine *replica.Machine

	requests []replica.Ask // requests without an answer yet
	wake     time.Time     // time at which the machine wants a Wake event; zero: none
	effects  []replica.Effect
	total    int       // number of requests so far
	rules    uint32    // newest fold rules that the replica knows; 0: fold.Version
	chance   log.Epoch // random bytes of the next opening, which has the same ones as another from one image of its memory; zero: drawn

	// wire delivers one answer. It may change the answer, and returns false if the answer is lost. nil: no answer changes.
	wire     func(a *replica.Ask, x *replica.Answer) bool
	instead  func(a *replica.Ask) *wire.Refusal // returns a refusal to send instead of the origin's answer, or nil
	over     func(s kv.Store) kv.Store          // wraps the store; nil: no wrapper
	lose     func(a *replica.Ask) bool          // reports whether a request is lost; nil: none is
	cuts     bool                               // answers arrive in random pieces
	batch    int                                // approximate bytes of a batch of a snapshot; 0: the default
	lies     int                                // number of next chunks that are reported as stored but are not
	installs int                                // number of snapshots that the host installed
}

func newRig(t testing.TB, options replica.Options) *rig {
	t.Helper()
	r := &rig{
		TB: t, rng: rand.New(rand.NewPCG(1, 2)), clock: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		options: options, disk: &disk{}, blobs: blob.NewMemory(blob.Options{}),
	}
	r.origin = newOrigin(t, r.now)
	r.options.App, r.options.Rand = app, random{r.rng}
	if r.options.Audit == 0 {
		r.options.Audit = -1
	}
	r.start()
	return r
}

type random struct{ *rand.Rand }

func (r random) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r.Uint32())
	}
	return len(p), nil
}

func (r *rig) now() time.Time { return r.clock }

// start opens the store on the disk, and begins a new machine.
func (r *rig) start() {
	r.Helper()
	var err error
	if r.store, err = memkv.Open(memkv.Options{Journal: r.disk}); err != nil {
		r.Fatal(err)
	}
	if r.over != nil {
		r.store = r.over(r.store)
	}
	chance := r.chance
	if chance == (log.Epoch{}) {
		_, _ = random{r.rng}.Read(chance[:])
	}
	r.part, err = partition.OpenReplica(partition.Options{
		Store: r.store, App: app, Clock: r.now, Epoch: chance, Rules: r.rules,
	}, partition.ReplicaOptions{BatchBytes: r.batch})
	if err != nil {
		r.Fatal(err)
	}
	r.options.Partition, r.options.Store, r.options.Blobs = r.part, r.store, r.blobs
	if r.machine, err = replica.New(r.options); err != nil {
		r.Fatal(err)
	}
	r.requests, r.wake = nil, time.Time{}
	r.step(replica.Begin{})
}

// crash cuts the power of the disk and starts the replica again.
func (r *rig) crash() {
	r.Helper()
	r.disk = r.disk.cut(r.rng)
	r.start()
}

// step passes an event to the machine and records its effects.
func (r *rig) step(e replica.Event) {
	r.Helper()
	before, was := r.status(), r.part.Cursor()
	effects, err := r.machine.Step(r.clock, e)
	if err != nil {
		r.Fatalf("Step(%T): %v", e, err)
	}
	for _, x := range effects {
		switch x := x.(type) {
		case replica.Ask:
			r.total++
			r.requests = append(r.requests, x)
		case replica.Cancel:
			r.requests = slices.DeleteFunc(r.requests, func(a replica.Ask) bool { return a.ID == x.ID })
		case replica.WakeAt:
			r.wake = x.At
		case replica.InstallSnapshot:
			r.installSnapshot(&x)
			return
		default:
			r.effects = append(r.effects, x)
		}
	}
	r.holds(&before, was)
}

// installSnapshot installs a snapshot as a host does, and begins a new machine.
func (r *rig) installSnapshot(x *replica.InstallSnapshot) {
	r.Helper()
	if err := replica.ApplySnapshot(context.Background(), replica.Options{App: app, Partition: r.part, Store: r.store}, x.Manifest); err != nil {
		r.Fatal(err)
	}
	r.installs++
	r.start()
}

// places stores a chunk of a snapshot as a host does. While r.lies is positive, it only reports that the chunk is stored.
func (r *rig) places(a *replica.Ask, x *replica.Answer) {
	r.Helper()
	if !a.Place || x.Status != 200 || x.Err != nil {
		return
	}
	x.Sum = blob.Sum(x.Body)
	if r.lies > 0 {
		r.lies--
		x.Placed = true
	} else {
		var err error
		if x.Placed, err = replica.Place(r.store, app, x.Sum, x.Body); err != nil {
			r.Fatal(err)
		}
	}
	if x.Placed {
		x.Body = nil
	}
}

// status returns the status of the machine. The machine need not have begun.
func (r *rig) status() replica.Status { return r.machine.Status() }

// holds checks the invariants that are true after every step. was is the cursor before it.
func (r *rig) holds(before *replica.Status, was partition.Cursor) {
	r.Helper()
	s := r.status()
	seen := map[string]bool{}
	for _, a := range r.requests { // one request of a kind at a time
		key := a.Method + " " + a.Path
		if seen[key] {
			r.Fatalf("two requests %s at a time", key)
		}
		seen[key] = true
	}
	if s.Cursor < before.Cursor && r.origin != nil && !r.origin.lacks(was) {
		r.Fatalf("cursor went from %d back to %d", before.Cursor, s.Cursor)
	}
	if s.Issued < before.Issued {
		r.Fatalf("own operations went from %d to %d", before.Issued, s.Issued)
	}
	if s.Accepted > s.Issued || s.Folded > s.Accepted {
		r.Fatalf("%d folded, %d accepted, %d issued", s.Folded, s.Accepted, s.Issued)
	}
	r.truthful(&s)
}

// truthful compares the reported status of own operations with the origin's log.
func (r *rig) truthful(s *replica.Status) {
	r.Helper()
	if r.origin == nil || r.origin.lacks(r.part.Cursor()) {
		return
	}
	err := r.part.LocalOps(0, func(at uint64, op log.Op) bool {
		if at > s.Folded || r.origin.has(op.Dot) {
			return at <= s.Folded
		}
		if _, err := r.part.Conflict(op.Dot); err != nil { // it is not listed either
			r.Fatalf("%d operations are confirmed, and the origin lacks %v: %v", s.Folded, op.Dot, err)
		}
		return true
	})
	if err != nil {
		r.Fatal(err)
	}
}

// deliver answers the i-th of r.asks.
func (r *rig) deliver(i int) {
	r.Helper()
	a := r.requests[i]
	r.requests = slices.Delete(r.requests, i, i+1)
	if r.lose != nil && r.lose(&a) {
		r.step(replica.Answer{ID: a.ID, Err: errors.New("no route")})
		return
	}
	var x replica.Answer
	if refusal := r.refusal(&a); refusal != nil {
		x = replica.Answer{ID: a.ID, Status: refusal.Status(), Header: []api.Field{{Name: "Content-Type", Value: wire.ContentType}}, Body: refusal.Encode()}
	} else {
		x = r.origin.answer(&a)
	}
	if r.wire != nil && !r.wire(&a, &x) {
		x = replica.Answer{ID: a.ID, Err: errors.New("connection lost")}
	}
	r.places(&a, &x)
	if !r.cuts {
		r.step(x)
		return
	}
	for more := true; more; {
		piece := x
		n := len(x.Body)
		if n > 0 && r.rng.IntN(4) > 0 {
			n = r.rng.IntN(n + 1)
		}
		piece.Body, x.Body = x.Body[:n], x.Body[n:]
		if more = len(x.Body) > 0; more {
			piece.More, piece.Err = true, nil
		}
		r.step(piece)
		x.Status, x.Header = 0, nil
	}
}

func (r *rig) refusal(a *replica.Ask) *wire.Refusal {
	if r.instead == nil {
		return nil
	}
	return r.instead(a)
}

// sleep moves the clock to the time for which the machine asked, and wakes it.
func (r *rig) sleep() {
	r.Helper()
	if r.wake.After(r.clock) {
		r.clock = r.wake
	}
	r.step(replica.Wake{})
}

// turns delivers n answers, oldest first. In a turn without a request the machine sleeps.
func (r *rig) turns(n int) {
	r.Helper()
	for range n {
		if len(r.requests) > 0 {
			r.deliver(0)
		} else {
			r.sleep()
		}
	}
}

// run answers requests in order, and advances the clock to the next wake time, until done reports true. It fails the test after
// more than limit requests.
func (r *rig) run(done func() bool, limit int) {
	r.Helper()
	for start := r.total; !done(); {
		if r.total > start+limit {
			r.Fatalf("not done after %d requests: %+v", limit, r.status())
		}
		if len(r.requests) > 0 {
			r.clock = r.clock.Add(10 * time.Millisecond)
			r.deliver(0)
			continue
		}
		if r.wake.IsZero() {
			r.Fatalf("nothing is asked for and nothing is waited for: %+v", r.status())
		}
		if r.wake.After(r.clock) {
			r.clock = r.wake
		}
		r.wake = time.Time{} // the host wakes the machine once per WakeAt
		r.step(replica.Wake{})
	}
}

// settle runs until the replica and the origin have all operations of each other.
func (r *rig) settle() {
	r.Helper()
	r.run(r.isSettled, 2000)
}

func (r *rig) isSettled() bool {
	s := r.status()
	return s.IsSettled() && s.Cursor == r.origin.part.Log().Head() && !r.origin.lacks(r.part.Cursor())
}

// write submits operations of a user of the replica. It returns their names.
func (r *rig) write(bodies ...log.Body) []log.Dot {
	r.Helper()
	dots := r.writeWith(nil, bodies...)
	r.step(replica.LocalWrite{})
	return dots
}

func (r *rig) writeWith(also func(*kv.Batch), bodies ...log.Body) (dots []log.Dot) {
	r.Helper()
	_, span, err := r.part.SubmitSpan(context.Background(), partition.Caller{By: "key"}, bodies, also)
	if err != nil {
		r.Fatal(err)
	}
	for seq := span.First; seq <= span.Last; seq++ {
		dots = append(dots, log.Dot{Writer: span.Writer, Seq: seq})
	}
	return dots
}

// another returns a replica of the same origin on an empty disk. It starts with start.
func (r *rig) another() *rig {
	return &rig{TB: r.TB, rng: r.rng, clock: r.clock, options: r.options, origin: r.origin, blobs: r.blobs, disk: &disk{}}
}

// image returns a copy of the replica's disk, which loses nothing.
func (r *rig) image() *disk {
	return &disk{batches: slices.Clone(r.disk.batches), durable: len(r.disk.batches)}
}

// reopen opens an image of the replica's disk.
func (r *rig) reopen(image *disk) {
	r.Helper()
	r.disk, r.requests = image, nil
	r.start()
}

// pushes records the pushes of the replica, also those whose answer is lost.
func (r *rig) pushes() (list *[]wire.Push) {
	list = &[]wire.Push{}
	r.origin.lie = func(p *wire.Push) *wire.Pushed {
		*list = append(*list, *p)
		return nil
	}
	return list
}

// picture stores a random picture of size bytes at the replica, and returns the operation that creates its input.
func (r *rig) picture(size int) *log.InputCreate {
	r.Helper()
	data := make([]byte, size)
	_, _ = random{r.rng}.Read(data)
	h, err := r.blobs.Put(context.Background(), bytesReader(data), blob.Hash{})
	if err != nil {
		r.Fatal(err)
	}
	return &log.InputCreate{Blob: h, ContentType: "image/jpeg", Hosted: [16]byte(h[:16])}
}

// agree checks that the replica's confirmed state is equal to the origin's state.
func (r *rig) agree() {
	r.Helper()
	want, err := fold.Digest(r.origin.store, app)
	if err != nil {
		r.Fatal(err)
	}
	err = r.part.ReadConfirmed(func(k kv.Reader) error {
		got, err := fold.Digest(k, app)
		if err == nil && got != want {
			err = fmt.Errorf("digest %x, the origin's is %x", got, want)
		}
		return err
	})
	if err != nil {
		r.Fatal(err)
	}
}

// inputs returns the ids of all inputs in a store.
func inputs(t testing.TB, k kv.Reader) (ids []string) {
	t.Helper()
	err := catalog.Read(k, app).Inputs(0, func(in catalog.Input) bool {
		ids = append(ids, in.ID)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func create(id string) *log.InputCreate {
	return &log.InputCreate{ID: id, URL: "http://example.org/" + id, Labels: []log.Label{{Concept: "c" + id, Value: log.True}}}
}
