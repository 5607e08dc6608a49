package channel

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// ErrCompacted is returned by [Driver.Run] if etcd no longer has the records that the store lacks. The store needs the copy of another node's.
var ErrCompacted = errors.New("etcd no longer has the records that this node lacks")

// Machine is all that a node has above its store. The driver calls one method at a time, except that Advance and Follow wait for Lead.
type Machine interface {
	// Advance takes in a batch of another node, which the store shows. After an error the machine must be opened again.
	Advance(ctx context.Context, b *kv.Batch) error

	// Lead makes the machine write. Its own Commits return kv.ErrFollows if the term ends meanwhile, and so does Lead.
	Lead(ctx context.Context) error

	// Follow makes a machine follow that led, or whose Lead failed with kv.ErrFollows.
	Follow(ctx context.Context) error
}

// DriverOptions are the settings of a [Driver] apart from those of its store. Client and Log are required.
type DriverOptions struct {
	Client func() *clientv3.Client // client of etcd, which may change
	Log    *slog.Logger

	// Leads reports whether the member of this node leads etcd, so that the node claims. changed is closed when that may change. nil: never.
	Leads func() (leads bool, changed <-chan struct{})
}

// Driver connects the store of a node with etcd: it shows the store what etcd decides, sends the store's transactions, and claims.
type Driver struct {
	DriverOptions
	Store   *Store
	machine Machine
	wake    chan struct{} // receives when there may be a transaction to send

	mu      sync.Mutex
	lead    chan error         // receives the result of Machine.Lead; nil: the machine follows
	serving int64              // term in which the machine writes; 0: it does not
	term    context.Context    // ends with the term of the newest claim
	end     context.CancelFunc // ends term
	shown   Progress
	newest  Claim
	took    time.Duration      // time from the newest claim of this node until its machine wrote
	changed chan struct{}      // closed when serving or newest changes
	unwatch context.CancelFunc // ends the present watch
}

// Progress describes the records that a node has applied.
type Progress struct {
	Revision int64 // last revision that the node has seen
	Position Position
	Bytes    int64 // bytes of the records since the start of the driver
}

// Claim is a claim of a node.
type Claim struct {
	Revision int64  // 0: no node has claimed
	Self     string // Options.Self of the node
}

// OpenDriver opens a store with its driver. It sets Wake of the store's options. Errors: those of [Open].
func OpenDriver(o Options, do DriverOptions) (*Driver, error) {
	d := &Driver{DriverOptions: do, wake: make(chan struct{}, 1), changed: make(chan struct{})}
	o.Wake = d.poke
	var err error
	if d.Store, err = Open(o); err != nil {
		return nil, err
	}
	at, _ := d.Store.Position()
	d.shown = Progress{Revision: at.Revision, Position: at}
	d.unwatch = func() {}
	d.term, d.end = context.WithCancel(context.Background())
	return d, nil
}

// poke lets send look for a transaction.
func (d *Driver) poke() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// errStopped is the result of the writes that wait when a driver ends: they may have happened.
var errStopped = errors.New("this node stops: the write may have happened")

// Run works until ctx ends, and returns nil then. Errors: ErrCompacted, ErrRecord, those of the store and of the machine. Afterwards the machine
// follows, and the store refuses Commits.
func (d *Driver) Run(ctx context.Context, m Machine) error {
	d.machine = m
	inner, stop := context.WithCancel(ctx)
	var loops sync.WaitGroup
	loops.Go(func() { d.send(inner) })
	loops.Go(func() { d.claim(inner) })
	err := d.apply(inner)
	stop()
	d.Store.Resign(errStopped)
	d.end()
	loops.Wait()
	if follows := d.follow(context.WithoutCancel(ctx)); !errors.Is(follows, errStopped) {
		err = errors.Join(err, follows)
	}
	return err
}

// Serving returns the term in which the machine writes; 0: it does not. newest is the newest claim that this node knows. changed is closed when
// one of them changes.
func (d *Driver) Serving() (term int64, newest Claim, changed <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.serving, d.newest, d.changed
}

// TakeoverTime returns the time from the newest claim of this node until its machine wrote.
func (d *Driver) TakeoverTime() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.took
}

// Rewatch starts the watch again, with the present client.
func (d *Driver) Rewatch() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unwatch()
}

// learn notes a claim.
func (d *Driver) learn(c Claim) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.Revision > d.newest.Revision {
		d.newest = c
		d.turned()
	}
}

// Progress returns how far the node has applied the records.
func (d *Driver) Progress() Progress {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.shown
}

// pauseAfter is the time until a failed call of etcd is repeated.
const pauseAfter = 50 * time.Millisecond

// apply shows the store all that etcd decides, until ctx ends or an error remains.
func (d *Driver) apply(ctx context.Context) error {
	gaps := 0
	for ctx.Err() == nil {
		before := d.Progress().Revision
		err := d.pass(ctx, gaps > 0)
		if d.Progress().Revision > before {
			gaps = 0
		}
		switch {
		case errors.Is(err, ErrGap):
			if gaps++; gaps > 3 { // read one by one, so nothing was skipped
				return fmt.Errorf("the cluster's records do not continue this node's: %w", err)
			}
			d.Log.Warn("the watch of the cluster starts again", "error", err)
		case err != nil && !isTransient(err):
			if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, errStopped)) {
				return nil
			}
			return err
		case err != nil:
			d.Log.Debug("cannot read the cluster's records", "error", err)
		}
		system.Pause(ctx, pauseAfter)
	}
	return nil
}

// errEtcd wraps an error of a call of etcd, which may succeed later.
var errEtcd = errors.New("etcd")

func isTransient(err error) bool { return errors.Is(err, errEtcd) }

// oneByOne is the number of revisions that a node is behind from which it does not watch. etcd 3.7 reads the whole backlog of a late watch
// into memory, under the lock of its writes (etcd issue 22264).
const oneByOne = 1000

// pass reads and shows what comes after the store's position, until the watch ends.
func (d *Driver) pass(ctx context.Context, careful bool) error {
	from := d.Store.Rewind()
	d.mu.Lock()
	d.shown.Revision = min(d.shown.Revision, from-1)
	d.mu.Unlock()
	for {
		now, err := d.revision(ctx)
		if err != nil {
			return err
		}
		if now-from < oneByOne && !careful {
			return d.watch(ctx, from)
		}
		for ; from <= now; from += readAtOnce {
			if err := d.read(ctx, from, min(from+readAtOnce-1, now)); err != nil {
				return err
			}
		}
		from = now + 1
		careful = false
	}
}

// revision returns etcd's revision.
func (d *Driver) revision(ctx context.Context) (int64, error) {
	res, err := d.Client().Get(ctx, string(Primary))
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errEtcd, err)
	}
	for _, x := range res.Kvs {
		d.learn(Claim{x.ModRevision, string(x.Value)})
	}
	return res.Header.Revision, nil
}

// readAtOnce is the number of revisions that one call reads. With one call for each revision, a node that is behind is slower than the writers of the
// primary, and never follows. A record has at most 256 KB.
const readAtOnce = 32

// read shows the changes of some revisions, if they are those of the cluster's two keys.
func (d *Driver) read(ctx context.Context, first, last int64) error {
	var gets []clientv3.Op
	for revision := first; revision <= last; revision++ {
		for _, k := range []Key{Primary, Log} {
			gets = append(gets, clientv3.OpGet(string(k), clientv3.WithRev(revision), clientv3.WithMinModRev(revision), clientv3.WithSerializable()))
		}
	}
	res, err := d.Client().Txn(ctx).Then(gets...).Commit()
	if err != nil {
		return d.explain(err)
	}
	for i, r := range res.Responses {
		revision := first + int64(i/2)
		for _, x := range r.GetResponseRange().Kvs {
			if err := d.show(ctx, x); err != nil {
				return err
			}
		}
		d.mu.Lock()
		d.shown.Revision = max(d.shown.Revision, revision)
		d.mu.Unlock()
	}
	return nil
}

// explain returns ErrCompacted, or an error that may pass.
func (d *Driver) explain(err error) error {
	if errors.Is(err, rpctypes.ErrCompacted) {
		return ErrCompacted
	}
	return fmt.Errorf("%w: %w", errEtcd, err)
}

// watch shows the changes after a revision, until the watch breaks.
func (d *Driver) watch(ctx context.Context, from int64) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	d.mu.Lock()
	d.unwatch = stop
	d.mu.Unlock()
	for res := range d.Client().Watch(ctx, "0/", clientv3.WithPrefix(), clientv3.WithRev(from), clientv3.WithFragment()) {
		if res.CompactRevision != 0 {
			return ErrCompacted
		}
		if err := res.Err(); err != nil {
			return d.explain(err)
		}
		for _, e := range res.Events {
			if err := d.show(ctx, e.Kv); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("%w: the watch ended", errEtcd)
}

// records returns the number of records up to a revision.
func (d *Driver) records(ctx context.Context, revision int64) (int64, error) {
	res, err := d.Client().Get(ctx, string(Log), clientv3.WithRev(revision), clientv3.WithKeysOnly(), clientv3.WithSerializable())
	if err != nil {
		return 0, d.explain(err)
	}
	if len(res.Kvs) == 0 {
		return 0, nil
	}
	return res.Kvs[0].Version, nil
}

// show shows the store a change, and lets the machine follow.
func (d *Driver) show(ctx context.Context, x *mvccpb.KeyValue) (err error) {
	e := Event{Key: Key(x.Key), Revision: x.ModRevision, Version: x.Version, Value: x.Value}
	if e.Key == Primary {
		if e.Version, err = d.records(ctx, e.Revision); err != nil {
			return err
		}
	}
	b, role, err := d.Store.Show(e)
	if err != nil {
		return fmt.Errorf("record %d at revision %d: %w", e.Version, e.Revision, err)
	}
	if role != Same {
		d.end()
		if err := d.follow(ctx); err != nil {
			return err
		}
	}
	if b != nil {
		if err := d.machine.Advance(ctx, b); err != nil {
			return fmt.Errorf("record %d at revision %d: %w", e.Version, e.Revision, err)
		}
	}
	d.mu.Lock()
	d.shown.Revision = max(d.shown.Revision, e.Revision)
	d.shown.Bytes += int64(len(e.Value))
	d.shown.Position, _ = d.Store.Position()
	d.mu.Unlock()
	if e.Key == Primary {
		d.learn(Claim{e.Revision, string(e.Value)})
	}
	if role == Leads {
		d.begin(ctx, e.Revision)
	}
	return nil
}

// turned signals a change of serving or newest. The caller holds mu.
func (d *Driver) turned() {
	close(d.changed)
	d.changed = make(chan struct{})
	d.poke()
}

// begin lets the machine lead. Meanwhile the store must show the machine's own records.
func (d *Driver) begin(ctx context.Context, term int64) {
	d.mu.Lock()
	lead := make(chan error, 1)
	d.lead = lead
	d.term, d.end = context.WithCancel(context.Background())
	d.mu.Unlock()
	go func() {
		began := system.Now()
		err := d.machine.Lead(ctx)
		if err == nil {
			d.mu.Lock()
			if d.lead == lead {
				d.serving, d.took = term, system.Now().Sub(began)
				d.turned()
			}
			d.mu.Unlock()
			d.Log.Info("this node is the primary", "term", term, "took", system.Now().Sub(began))
		}
		lead <- err
	}()
}

// follow ends the term of the machine, if it leads.
func (d *Driver) follow(ctx context.Context) error {
	d.mu.Lock()
	lead := d.lead
	if d.lead, d.serving = nil, 0; lead != nil {
		d.turned()
	}
	d.mu.Unlock()
	if lead == nil {
		return nil
	}
	err := <-lead // its Commits have failed already
	if err != nil && !errors.Is(err, kv.ErrFollows) {
		return fmt.Errorf("lead: %w", err)
	}
	d.Log.Info("this node follows")
	return d.machine.Follow(ctx)
}
