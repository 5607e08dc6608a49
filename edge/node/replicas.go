package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/control"
	"github.com/sightline-dev/sightline/origin/server/synclink"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// replicaSet holds the applications that this edge replicates. The state machine in each application's guest synchronizes it:
//
//	origin ◀─HTTP─ link ◀─ effects ─ machine, in the application's guest
//	          └────────────events──▶   │
//	   register ◀──────────────────────┴──▶ pictures by hash, log and state in the store
//
// The edge itself writes the app record, which has the application's keys, because a guest must not write it.
type replicaSet struct {
	e        *engine
	identity *identity
	token    string
	store    kv.Store
	blobs    blob.Blobs
	wants    wire.Wants
	log      *slog.Logger
	now      func() time.Time
	asker    *asker

	mu   sync.Mutex
	list []*appReplica // nil before the edge is enrolled
	why  string        // reason why the edge is not enrolled; empty if it is enrolled or has not tried yet
}

// appReplica is the replica of one application.
type appReplica struct {
	app  string
	kick chan struct{} // holds one token after a local write
	age  *keyAge       // time since the origin last confirmed the keys

	calls *calls // calls that this edge has answered

	applying sync.Mutex // held while an app record is stored, so that no older one replaces it

	mu         sync.Mutex
	status     replica.Status
	stale      time.Duration  // key age after which the edge refuses writes; 0: the default
	trust      catalog.Trust  // keys that verify tokens
	account    string         // ID of the account that owns the application; empty: the operator
	link       *synclink.Link // nil if no link runs
	problem    string         // last error, while no link runs
	revocation *revocation
	firstSync  *firstSync                 // nil: the application was in sync before, or another process joined it
	own        bool                       // the origin refused the application; this edge's operations may exist only here
	waits      map[blob.Hash][]chan error // channels of the callers that wait for a picture
}

// revocation is an app record that deletes the application. The edge applies it once the guest is idle.
type revocation struct {
	seq  uint64
	data []byte
}

func newReplicaSet(e *engine, id *identity, on *server.Node) (*replicaSet, error) {
	c := &replicaSet{
		e: e, identity: id, token: e.node.token, store: on.Folder.Store, blobs: on.Folder.Blobs, log: on.Log, now: system.Now, asker: newAsker(),
		wants: wire.Wants{Vectors: wire.VectorsQ16, Blobs: e.node.pictures},
	}
	if id.ID == "" {
		return c, nil
	}
	return c, c.loadApps()
}

// loadApps opens the saved state of every enrolled application.
func (c *replicaSet) loadApps() error {
	var list []*appReplica
	for _, app := range c.identity.Apps {
		one := &appReplica{app: app, kick: make(chan struct{}, 1), waits: map[blob.Hash][]chan error{}}
		var err error
		if one.age, err = openKeyAge(c.store, app, c.now()); err == nil {
			one.calls, err = openCalls(c.store, app)
		}
		if err == nil {
			err = c.loadAppRecord(one)
		}
		if err != nil {
			return fmt.Errorf("application %s: %w", app, err)
		}
		list = append(list, one)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.why, c.list = "", list
	return nil
}

// all returns the current replicas. The caller must not change the list.
func (c *replicaSet) all() []*appReplica {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.list
}

// of returns the replica of an application, or nil if the edge does not replicate it.
func (c *replicaSet) of(app string) *appReplica {
	for _, one := range c.all() {
		if one.app == app {
			return one
		}
	}
	return nil
}

// replica returns the settings with which an application's instance replicates it, or nil if the application belongs to this edge.
func (c *replicaSet) replica(app string) *abi.Replica {
	if c.of(app) == nil {
		return nil
	}
	return &abi.Replica{Name: c.identity.Name, Origin: c.identity.Origin, Live: replica.Stream, Wants: c.wants}
}

// wrote makes the state machine send an application's new writes.
func (c *replicaSet) wrote(app string) {
	if one := c.of(app); one != nil {
		select {
		case one.kick <- struct{}{}:
		default:
		}
	}
}

// The pause between two tries doubles from firstPause to lastPause.
const (
	firstPause = time.Second
	lastPause  = time.Minute
)

// retry calls try until it returns true or ctx ends, with a pause after each failed try. After a try that lasted longer than
// lastPause, the pause starts at firstPause again.
func retry(ctx context.Context, try func() (final bool)) {
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, lastPause) {
		begun := system.Now()
		if try() {
			return
		}
		if system.Now().Sub(begun) > lastPause {
			pause = firstPause
		}
		system.Pause(ctx, pause)
	}
}

// run synchronizes the applications until ctx ends.
func (c *replicaSet) run(ctx context.Context) {
	if c.identity.ID == "" && !c.enrol(ctx) {
		return
	}
	var running sync.WaitGroup
	for _, one := range c.all() {
		running.Go(func() { c.runReplica(ctx, one) })
	}
	running.Go(func() { c.asker.run(ctx, c.ask) })
	running.Go(func() {
		system.Every(ctx, storeInterval, func(context.Context) {
			for _, one := range c.all() {
				one.keyAge(c)
			}
			if err := c.writeCalls(); err != nil {
				c.log.Warn("cannot store the number of calls", "error", err)
			}
		})
	})
	running.Go(func() {
		system.Every(ctx, reportEvery, func(ctx context.Context) {
			if err := c.reportCalls(ctx); err != nil && ctx.Err() == nil {
				c.log.Debug("cannot report calls to the origin", "origin", c.identity.Origin, "error", err)
			}
		})
	})
	running.Wait()
}

// enrol enrols the edge at its origin. It returns false if the origin refuses the edge or ctx ends.
func (c *replicaSet) enrol(ctx context.Context) (done bool) {
	retry(ctx, func() bool {
		err := c.identity.enrol(ctx, &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, c.token)
		if err == nil {
			err = c.identity.write(c.e.dir)
		}
		if err == nil {
			err = c.loadApps()
		}
		if err != nil {
			c.log.Error("enrolment failed", "origin", c.identity.Origin, "error", err)
			c.mu.Lock()
			c.why = err.Error()
			c.mu.Unlock()
			return errors.Is(err, errEnrol)
		}
		for _, one := range c.all() { // in a restored folder without an identity, instances may treat them as the edge's own
			c.e.detach(one.app)
		}
		c.log.Info("enrolled", "origin", c.identity.Origin, "edge", c.identity.ID, "name", c.identity.Name, "apps", len(c.identity.Apps))
		done = true
		return true
	})
	return done
}

// runReplica synchronizes one application until ctx ends or the origin removes the application from the edge.
func (c *replicaSet) runReplica(ctx context.Context, one *appReplica) {
	retry(ctx, func() (final bool) {
		err := c.join(ctx, one)
		if errors.Is(err, register.ErrApplication) {
			return true // the origin removed it
		}
		if err == nil {
			err = c.runLink(ctx, one)
		}
		for errors.Is(err, errSnapshotInstalled) && ctx.Err() == nil {
			err = c.runLink(ctx, one)
		}
		if errors.Is(err, synclink.ErrPurged) {
			final, err = c.purge(ctx, one, err)
		}
		if err != nil && ctx.Err() == nil {
			c.log.Error("cannot sync application", "app", one.app, "origin", c.identity.Origin, "error", err)
			one.fail(err)
		}
		return final
	})
}

func (one *appReplica) fail(err error) {
	one.mu.Lock()
	defer one.mu.Unlock()
	one.problem = err.Error()
}

// options returns the options of a link to the origin.
func (c *replicaSet) options() synclink.Options {
	return synclink.Options{Origin: c.identity.Origin, Authorize: c.identity.authorize, Now: system.Now}
}

// join fetches the app record of an application if the edge has none yet. If the application was deleted, the error is ErrApplication.
func (c *replicaSet) join(ctx context.Context, one *appReplica) error {
	_, have, err := c.e.Register.AppRecordSeq(one.app)
	if err != nil {
		return err
	}
	if have > 0 {
		_, err := c.e.Register.App(one.app)
		return err
	}
	seq, data, err := synclink.Join(ctx, c.options(), one.app)
	var refused *wire.Refusal
	if errors.As(err, &refused) && refused.Code == wire.RefusedGone {
		return fmt.Errorf("%w: %w", register.ErrApplication, err)
	}
	if err != nil {
		return err
	}
	x, err := catalog.DecodeAppRecord(data)
	if err != nil {
		return err
	}
	if x.Revoked != "" {
		one.forget()
		return register.ApplyAppRecord(ctx, c.store, one.app, seq, data)
	}
	one.back()
	one.mu.Lock()
	one.firstSync = c.newFirstSync(one.app)
	one.mu.Unlock()
	return c.applyAppRecord(ctx, one, seq, data)
}

// runLink runs the link between the origin and the machine in the application's instance.
func (c *replicaSet) runLink(ctx context.Context, one *appReplica) error {
	f, err := c.e.fleet()
	if err != nil {
		return err
	}
	o := c.options()
	machine := &stepper{ctx: context.WithoutCancel(ctx), fleet: f, one: one, c: c}
	o.Machine, o.Local, o.Place, o.Effect = machine, one.kick, machine.place, one.effect
	l, err := synclink.New(o)
	if err != nil {
		return err
	}
	one.mu.Lock()
	one.link, one.problem = l, ""
	one.mu.Unlock()
	defer func() {
		one.mu.Lock()
		one.link = nil
		one.mu.Unlock()
	}()
	err = l.Run(ctx)
	if err != nil && !errors.Is(err, errReplaced) { // otherwise the machine waits for answers that never come
		if _, failed := f.Sync(context.WithoutCancel(ctx), one.app, replica.Stop{}); failed != nil {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// purge deletes an application that its app record reports as deleted. If the origin refused it without an app record, purge acts as if
// there were one. If the edge may get the application again, purge leaves the folder as if it had never had it, and final is false.
func (c *replicaSet) purge(ctx context.Context, one *appReplica, why error) (final bool, err error) {
	ctx = context.WithoutCancel(ctx)
	c.e.detach(one.app)
	one.forget()
	one.mu.Lock()
	deletion, own := one.revocation, one.own
	one.mu.Unlock()
	final = deletion != nil || own
	if deletion == nil && final {
		epoch, seq, err := c.e.Register.AppRecordSeq(one.app)
		if err != nil {
			return false, err
		}
		deletion = &revocation{seq + 1, (&catalog.AppRecord{Epoch: epoch, App: one.app, Revoked: catalog.ReasonRevoked}).Encode()}
	}
	if !final {
		deletion = &revocation{0, (&catalog.AppRecord{App: one.app, Revoked: catalog.ReasonRevoked}).Encode()}
	}
	if err := register.ApplyAppRecord(ctx, c.store, one.app, deletion.seq, deletion.data); err != nil {
		return false, err
	}
	c.e.Register.ScheduleCollect()
	c.log.Warn("the origin took an application away; its local data was deleted", "app", one.app, "origin", c.identity.Origin, "reason", why)
	return final, nil
}

// AppRecordSeq implements [hostcalls.AppRecords].
func (c *replicaSet) AppRecordSeq(app string) (uint64, error) {
	_, seq, err := c.e.Register.AppRecordSeq(app)
	return seq, err
}

// ApplyAppRecord implements [hostcalls.AppRecords]. If the record deletes the application, it waits until the guest is idle.
func (c *replicaSet) ApplyAppRecord(app string, seq uint64, data []byte) error {
	x, err := catalog.DecodeAppRecord(data)
	if err != nil {
		return err
	}
	one := c.of(app)
	if one == nil {
		return register.ErrApplication
	}
	if x.Revoked != "" {
		one.mu.Lock()
		defer one.mu.Unlock()
		one.revocation = &revocation{seq, data}
		return nil
	}
	return c.applyAppRecord(context.Background(), one, seq, data)
}

// fetchTime is the maximum time that a request for a picture waits for the origin.
const fetchTime = 15 * time.Second

// have returns nil once a picture is stored here. If the picture is not available now, the error is blob.ErrNotFound. have does not
// wait for an origin that is known to be unreachable.
func (c *replicaSet) have(ctx context.Context, h blob.Hash) error {
	ctx, stop := context.WithTimeout(ctx, fetchTime)
	defer stop()
	if has, err := c.blobs.Has(ctx, h); has || err != nil {
		return err
	}
	all := c.all()
	got := make(chan error, len(all))
	requests := 0
	for _, one := range all {
		one.mu.Lock()
		l := one.link
		waits := l != nil && !originUnreachable(&one.status)
		if waits {
			one.waits[h] = append(one.waits[h], got)
		}
		one.mu.Unlock()
		if waits && l.Send(ctx, replica.BlobWanted{Blob: h}) {
			requests++
		}
	}
	for ; requests > 0; requests-- {
		select {
		case err := <-got:
			if err == nil {
				return nil
			}
		case <-ctx.Done():
			return fmt.Errorf("%w: the origin did not send it in time", blob.ErrNotFound)
		}
	}
	return blob.ErrNotFound
}

// originUnreachable reports whether a replica knows that its origin is unreachable.
func originUnreachable(s *replica.Status) bool {
	return s.Phase == replica.Unreachable || s.Phase == replica.Connecting && s.Problem != ""
}

// giveUp ends all waits for pictures with err.
func (one *appReplica) giveUp(err error) {
	one.mu.Lock()
	all := one.waits
	one.waits = map[blob.Hash][]chan error{}
	one.mu.Unlock()
	for _, waits := range all {
		for _, w := range waits {
			w <- err
		}
	}
}

// status returns the status for the operator.
func (c *replicaSet) status() []control.ReplicaStatus {
	c.mu.Lock()
	why, list := c.why, c.list
	c.mu.Unlock()
	if len(list) == 0 {
		return []control.ReplicaStatus{{Origin: c.identity.Origin, Phase: "not enrolled", Problem: why}}
	}
	var out []control.ReplicaStatus
	for _, one := range list {
		old := one.keyAge(c)
		one.mu.Lock()
		s := &one.status
		x := control.ReplicaStatus{
			App: one.app, Origin: c.identity.Origin, Phase: s.Phase.String(), Cursor: s.Cursor, Head: s.Head, Pending: s.Pending(),
			Contact: s.Contact, AsOf: s.AsOf, Conflicts: s.Refused, Problem: s.Problem, KeysAge: int64(old / time.Second), Admits: admits(old, one.stale),
		}
		if one.link == nil && one.problem != "" {
			x.Problem = one.problem
		}
		one.mu.Unlock()
		out = append(out, x)
	}
	return out
}
