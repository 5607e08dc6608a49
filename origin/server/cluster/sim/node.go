package sim

import (
	"context"
	"errors"
	"fmt"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/origin/server/account"
	"github.com/sightline-dev/sightline/origin/server/cluster/channel"
)

// node is one machine of the cluster.
type node struct {
	*world
	number int
	disk   *disk
	starts int
	synced int64 // revision up to which the disk survives a loss of power
	*process
}

// process is one start of a node.
type process struct {
	self     string
	store    *channel.Store
	engine   *core.Engine
	accounts *account.Registry
	shown    int64 // revision of the last event that the watch showed
	saw      int64 // revision of the newest claim that it showed
	dead     bool

	calls   int    // calls that wait
	changes bool   // a change of the role waits for its writes
	ends    bool   // the term ended while calls waited
	led     bool   // the engine leads, or began to
	open    bool   // the engine and the accounts lead
	asleep  int    // steps for which the node does nothing
	checked uint64 // last entry of the log that the oracle has read
	writes  bool   // the calls that wait only write inputs, so they hold no lock
}

// start starts the node on its disk.
func (n *node) start() error {
	n.starts++
	p := &process{self: fmt.Sprint(n.number, "/", n.starts)}
	n.process = p
	local, err := memkv.Open(memkv.Options{Journal: n.disk})
	if err != nil {
		return err
	}
	p.store, err = channel.Open(channel.Options{Store: local, Cluster: clusterID, Self: p.self, RecordSize: recordSize, Await: func(ready func() bool) {
		n.await(p, ready)
	}})
	if err != nil {
		return err
	}
	at, _ := p.store.Position()
	p.shown, p.saw = at.Revision, at.Term
	o := accountOptions(p.store, n.now, n.random)
	o.Follow = true
	if p.accounts, err = account.Open(o); err != nil {
		return err
	}
	hosted, err := blob.OpenHosted(blob.HostedOptions{Blobs: n.blobs, Random: n.random})
	if err != nil {
		return err
	}
	p.engine, err = core.Open(core.Options{
		Store: p.store, Follow: true, Models: n.models, Hosted: hosted, Clock: n.now, Rand: n.random, Seals: n.random,
		Retention: partition.Retention{Age: keepAge, Entries: 12, MaxOffline: keepOffline},
		Audit:     p.accounts.Audit,
	})
	return err
}

// crash ends the process at this moment. Calls that wait get no answer.
func (n *node) crash(power bool) {
	n.stats.Crashes++
	if power {
		n.disk = n.disk.cut(n.rng)
	} else {
		n.disk = n.disk.copy() // opening a store makes all durable that it finds
	}
	n.dead = true
	n.store.Resign(errCrash)
	n.fail(n.start())
}

// errCrash is the end of a call whose node crashed.
var errCrash = errors.New("the node crashed")

// show lets the watch show the next event, if there is one. If etcd has compacted it, the node copies the disk of another one.
func (n *node) show() {
	if n.asleep > 0 || n.changes || n.ends {
		return
	}
	events, ok := n.etcd.after(n.shown)
	if !ok {
		n.copyDisk()
	}
	if !ok || len(events) == 0 {
		return
	}
	e := events[0]
	if n.rng.IntN(30) == 0 && len(events) > 1 { // the watch skips an event
		n.stats.Skips++
		e = events[1]
	}
	n.take(e)
}

// take shows the store an event, and lets the machine above it follow.
func (n *node) take(e channel.Event) {
	b, role, err := n.store.Show(e)
	if errors.Is(err, channel.ErrGap) {
		n.shown = n.store.Rewind() - 1
		return
	}
	if err != nil {
		n.fail(fmt.Errorf("node %s: %w", n.self, err))
		return
	}
	if e.Key == channel.Primary {
		n.saw = max(n.saw, e.Revision)
	}
	if n.shown = e.Revision; n.rng.IntN(30) == 0 {
		n.shown = n.store.Rewind() - 1
	}
	switch {
	case role == channel.Leads:
		n.stats.Terms++
		n.ends, n.changes = n.led, true
		n.turn()
	case role == channel.Follows:
		n.ends = true
		n.turn()
	case b != nil:
		if err := n.engine.Advance(context.Background(), b); err != nil {
			n.fail(fmt.Errorf("node %s: %w", n.self, err))
		}
		n.observe(n)
	}
}

// turn makes the changes of the role, once no call waits.
func (n *node) turn() {
	p := n.process
	if p.calls > 0 {
		return
	}
	if p.ends {
		p.ends, p.led, p.open = false, false, false
		p.accounts.Follow()
		if err := p.engine.Follow(context.Background()); err != nil {
			n.fail(fmt.Errorf("node %s: follow: %w", p.self, err))
		}
		n.observe(n)
	}
	_, term := p.store.Position()
	if !p.changes || term == 0 {
		p.changes = false
		return
	}
	p.changes = false
	if was := n.terms[term]; was != "" && was != p.self {
		n.fail(fmt.Errorf("term %d has the primaries %s and %s", term, was, p.self))
	}
	n.terms[term] = p.self
	p.calls++ // the writes of a change wait like those of a call
	p.writes, p.led = false, true
	err := p.engine.Lead()
	if err == nil {
		err = p.accounts.Lead()
	}
	if err == nil { // so that a later call does not open the application under a lock
		_, err = p.engine.Origin(n.world.app.String())
	}
	p.open = err == nil
	if p.calls--; p.dead {
		return
	}
	if err != nil && !p.ends {
		n.fail(fmt.Errorf("node %s: lead: %w", p.self, err))
	}
	n.turn()
}

// send sends the next transaction, if there is one.
func (n *node) send() {
	if t, ok := n.store.Next(); ok && n.asleep == 0 {
		n.transmit(n, t)
	}
}

// copyDisk replaces the disk by that of another node, if no call waits at either and etcd has what the other one needs next.
func (n *node) copyDisk() {
	from := n.nodes[(n.number+1+n.rng.IntN(len(n.nodes)-1))%len(n.nodes)]
	if _, ok := n.etcd.after(from.shown); !ok || n.calls > 0 || from.calls > 0 || from.changes || from.ends {
		return
	}
	n.stats.Copies++
	n.dead = true
	n.disk = from.disk.copy()
	n.fail(n.start())
	n.synced = n.shown
}

// leads reports whether the node takes calls.
func (n *node) leads() bool {
	_, term := n.store.Position()
	return term != 0 && n.open && !n.changes && !n.ends && n.asleep == 0
}
