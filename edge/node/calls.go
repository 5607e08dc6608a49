package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/origin/server/synclink"
	"github.com/sightline-dev/sightline/sync/wire"
)

const (
	reportEvery = 10 * time.Second // interval in which the edge reports calls that the origin does not know
	reportTime  = 10 * time.Second // time limit of one report
)

// calls counts the calls of an application that an account owns. The edge reports the count to the origin, which adds the new calls to
// those of the account. The origin answers until when the account has no calls left, so the limit may be late by one report.
//
// A count is written before it is reported, so the store never holds less than the origin knows. A crash forgets the calls that were
// answered after the last write, which is at most a minute old.
type calls struct {
	store kv.Store
	key   []byte

	mu       sync.Mutex
	record          // current values
	written  record // values in the store
	reported uint64 // count that the origin has confirmed since the start
	revoked  bool   // the application was removed: nothing is written any more
}

// record has the values of calls that are stored.
//
//field:message
type record struct {
	count uint64    `wire:"1"`    // calls that were ever answered here
	over  time.Time `wire:"2,ms"` // until then the account has no calls left, by this machine's clock
}

// openCalls reads the count of an application. Errors: kv.ErrCorrupt, those of the store, and of a malformed application ID.
func openCalls(store kv.Store, app string) (*calls, error) {
	id, err := catalog.ParseAppID(app)
	if err != nil {
		return nil, err
	}
	c := &calls{store: store, key: id.LocalKey("counted")}
	data, err := kv.Find(store, c.key)
	if err != nil || data == nil {
		return c, err
	}
	if c.record, err = decodeRecord(data); err != nil {
		return nil, fmt.Errorf("count of calls: %w: %w", kv.ErrCorrupt, err)
	}
	c.written = c.record
	return c, nil
}

// spend counts a call. If the account has no calls left, it returns the reason for the refusal instead.
func (c *calls) spend(now time.Time) (refused string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Before(c.over) {
		return "the account of this application gets new calls on " + c.over.UTC().Format(time.DateOnly)
	}
	c.count++
	return ""
}

// due returns the count, and whether to report it: the origin does not know all calls, or the account may have calls again.
func (c *calls) due(now time.Time) (count uint64, due bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count, c.count != c.reported || now.Before(c.over)
}

// confirm stores the origin's answer to a report.
func (c *calls) confirm(count uint64, over time.Time) error {
	c.mu.Lock()
	c.reported, c.over = count, over
	c.mu.Unlock()
	return c.write()
}

// write makes the count durable.
func (c *calls) write() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.revoked || c.record == c.written {
		return nil
	}
	var b kv.Batch
	b.Put(c.key, encodeRecord(nil, &c.record))
	err := kv.CommitAndWait(c.store, &b)
	if err == nil {
		c.written = c.record
	}
	return err
}

// end stops all writes, because the application was removed.
func (c *calls) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.revoked = true
}

// back undoes end. The count starts at zero, because the store was emptied.
func (c *calls) back() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.revoked {
		c.revoked, c.record, c.written, c.reported = false, record{}, record{}, 0
	}
}

// count counts a call of an application, or returns the reason why it is refused. Applications of the operator have no limit.
func (c *replicaSet) count(app string) (refused string) {
	if one := c.of(app); one != nil && one.owner() != "" {
		return one.calls.spend(c.now())
	}
	return ""
}

// reportCalls reports the number of answered calls of each application to the origin, unless it knows them, and stores its answers.
func (c *replicaSet) reportCalls(ctx context.Context) error {
	s := wire.Session{Min: wire.Oldest, Max: wire.Protocol, Fold: fold.Version, Schema: field.Version, Name: c.identity.Name}
	replicas := map[string]*appReplica{}
	for _, one := range c.all() {
		count, due := one.calls.due(c.now())
		if !due || one.owner() == "" {
			continue
		}
		if err := one.calls.write(); err != nil {
			return err
		}
		s.Apps = append(s.Apps, wire.Position{App: one.app, Calls: count})
		replicas[one.app] = one
	}
	if len(replicas) == 0 {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, reportTime)
	defer stop()
	o, err := synclink.BeginSession(ctx, c.options(), &s)
	if err != nil {
		return err
	}
	for i := range min(len(o.Grants), len(s.Apps)) {
		g, at := &o.Grants[i], &s.Apps[i]
		if g.App != at.App || g.Do == wire.DoErase || g.Do == wire.DoRefused {
			continue // the application's own session gets this answer
		}
		var over time.Time
		if g.Over != 0 { // by the origin's clock, so that ours need not be right
			over = c.now().Add(g.Over.Time().Sub(o.Now.Time()))
		}
		err = errors.Join(err, replicas[at.App].calls.confirm(at.Calls, over))
	}
	return err
}

// owner returns the account that owns the application; empty: the operator of the origin.
func (one *appReplica) owner() string {
	one.mu.Lock()
	defer one.mu.Unlock()
	return one.account
}

// writeCalls makes all counts durable.
func (c *replicaSet) writeCalls() (err error) {
	for _, one := range c.all() {
		err = errors.Join(err, one.calls.write())
	}
	return err
}
