package feed

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/sync/wire"
)

// Budgets leases edges calls of the accounts that applications belong to.
type Budgets interface {
	// Lease renews, or begins, the lease that an edge has for an application, where it has spent so many calls
	// of it. The error is auth.ErrQuota where there is nothing that could be leased.
	Lease(ctx context.Context, app, edge string, number, spent uint64) (Lease, error)

	// Return ends it: what is left is the account's again.
	Return(ctx context.Context, app, edge string, number, spent uint64) error
}

// Lease is a budget of calls.
type Lease struct {
	Number uint64    // 0: any number of calls may be answered
	Calls  uint64    // in all, those that are spent among them
	Until  time.Time // zero: it has no end
}

// budget does with calls what an edge wants: where it knows the feature, it has them leased, and one that names a
// lease without it returns that.
func (c *call) budget(at *wire.Position, features []string, g *wire.Grant) error {
	b := c.f.o.Budgets
	if c.edge == nil || b == nil {
		return nil
	}
	if !slices.Contains(features, wire.FeatureCalls) {
		if at.Lease == 0 {
			return nil
		}
		return b.Return(c.ctx, at.App, c.edge.ID, at.Lease, at.Spent)
	}
	l, err := b.Lease(c.ctx, at.App, c.edge.ID, at.Lease, at.Spent)
	if errors.Is(err, auth.ErrQuota) {
		l, err = Lease{Number: max(at.Lease, 1), Calls: at.Spent}, nil
	}
	g.Lease, g.Calls = l.Number, l.Calls
	if !l.Until.IsZero() {
		g.Until = wire.MillisOf(l.Until)
	}
	return err
}
