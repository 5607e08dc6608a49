package node

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/origin/account"
	"github.com/sightline-dev/sightline/origin/link"
	"github.com/sightline-dev/sightline/origin/system"
	"github.com/sightline-dev/sightline/sync/wire"
)

// Times of leases.
const (
	leaseEvery  = 5 * time.Minute       // the origin is told what was spent
	leaseAgain  = 20 * time.Millisecond // between two requests
	leaseEmpty  = 10 * time.Second      // likewise, when the account had none left
	leaseFailed = 5 * time.Second       // likewise, when the origin did not answer
	leaseTime   = 10 * time.Second      // of one request
	leaseWait   = 2 * time.Second       // that a call waits for one
)

// counted are the accounts of an edge that holds an origin's applications: their calls are spent out of what the
// origin has leased. An application of the operator's has no limit.
type counted struct {
	*account.Registry
	copies *copies
}

var _ api.Accounts = counted{}

// Spend implements [api.Accounts].
func (a counted) Spend(ctx context.Context, s api.Spent) (left int64, err error) {
	one := a.copies.of(s.App)
	if one == nil || s.Account == "" {
		return a.Registry.Spend(ctx, s)
	}
	if left, err = one.budget.spend(a.copies.now()); err != nil {
		return 0, err
	}
	s.Account = "" // its limit is the origin's to count
	_, err = a.Registry.Spend(ctx, s)
	return left, err
}

// lease keeps an application's budget of calls until ctx ends.
func (c *copies) lease(ctx context.Context, one *copied) {
	for ctx.Err() == nil {
		if one.owner() != "" {
			if err := c.askLease(ctx, one); err != nil && ctx.Err() == nil {
				one.budget.fail()
				c.log.Debug("calls", "app", one.app, "origin", c.who.Origin, "error", err)
			}
		}
		system.Pause(ctx, one.budget.pause())
		system.Await(ctx, one.budget.want, leaseEvery)
	}
}

// askLease tells the origin what was spent, and gets more.
func (c *copies) askLease(ctx context.Context, one *copied) error {
	if err := one.budget.rest(c.now()); err != nil {
		return err
	}
	number, spent, over, ok := one.budget.report(c.now())
	if !ok {
		return nil
	}
	s := wire.Session{
		Min: wire.Oldest, Max: wire.Protocol, Fold: fold.Version, Schema: field.Version, Name: c.who.Name,
		Partitions: []wire.Position{{App: one.app, Lease: number, Spent: spent}},
	}
	if !over {
		s.Features = []string{wire.FeatureCalls}
	}
	ctx, stop := context.WithTimeout(ctx, leaseTime)
	defer stop()
	o, err := link.Greet(ctx, c.options(), &s)
	if err != nil {
		return err
	}
	if len(o.Grants) != 1 || o.Grants[0].App != one.app || o.Grants[0].Do == wire.DoErase || o.Grants[0].Do == wire.DoRefused {
		return fmt.Errorf("the origin leases nothing of application %s", one.app)
	}
	if over {
		return one.budget.returned()
	}
	l := leased{}
	if g := &o.Grants[0]; slices.Contains(o.Features, wire.FeatureCalls) {
		l = leased{number: g.Lease, calls: g.Calls}
		if g.Until != 0 { // by the origin's clock, so that ours need not be right
			l.until = c.now().Add(g.Until.Time().Sub(o.Now.Time()))
		}
	}
	return one.budget.grant(l, c.now())
}

// ready has a call wait for a budget where there is none and the origin can be asked for one.
func (c *copies) ready(ctx context.Context, one *copied) {
	if one.owner() == "" {
		return
	}
	one.budget.wait(c.now(), func(moved <-chan struct{}) { system.Await(ctx, moved, leaseWait) })
}

// owner is the account that an application belongs to; empty: the operator of the origin.
func (one *copied) owner() string {
	one.mu.Lock()
	defer one.mu.Unlock()
	return one.account
}

// close keeps what was spent.
func (c *copies) close() (err error) {
	for _, one := range c.all() {
		if failed := one.budget.close(); failed != nil {
			err = failed
		}
	}
	return err
}
