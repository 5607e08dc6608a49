package feed_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/sync/feed"
	"github.com/sightline-dev/sightline/sync/wire"
)

// books are accounts' as a test keeps them.
type books struct {
	lease feed.Lease
	err   error
	said  []string
}

func (b *books) Lease(_ context.Context, app, edge string, number, spent uint64) (feed.Lease, error) {
	b.said = append(b.said, fmt.Sprintf("lease %s %t %d %d", app[:4], edge != "", number, spent))
	return b.lease, b.err
}

func (b *books) Return(_ context.Context, app, edge string, number, spent uint64) error {
	b.said = append(b.said, fmt.Sprintf("return %s %t %d %d", app[:4], edge != "", number, spent))
	return b.err
}

// TestBudgets leases calls to an edge that wants some, takes back what one returns, and does neither for a replica that is no
// edge or for an application that is another's.
func TestBudgets(t *testing.T) {
	b := &books{}
	w := newWorld(t, func(o *feed.Options) { o.Budgets = b })
	key := w.NewKey(t, apitest.Tenant{App: w.App}, auth.All)
	edge := w.enrolled(1)
	other := w.NewTenant(t, "", "en").App
	until := w.Now.Add(time.Hour).Truncate(time.Millisecond)
	greet := func(r *replica, features []string, app string, lease, spent uint64) (wire.Offered, wire.Grant) {
		t.Helper()
		o := r.session(&wire.Session{
			Min: 1, Max: 1, Fold: fold.Version, Schema: 1, Site: r.site, Secret: []byte(r.secret), Features: features,
			Partitions: []wire.Position{{App: app, Lease: lease, Spent: spent}},
		})
		if len(o.Grants) != 1 {
			t.Fatalf("%d grants", len(o.Grants))
		}
		return o, o.Grants[0]
	}
	said := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, b.said); diff != "" {
			t.Errorf("the books were told (-want +got):\n%s", diff)
		}
		b.said = nil
	}
	calls := []string{wire.FeatureCalls, "later"}
	b.lease = feed.Lease{Number: 3, Calls: 100, Until: until}
	o, g := greet(edge, calls, w.App, 2, 40)
	if !slices.Equal(o.Features, calls[:1]) || g.Lease != 3 || g.Calls != 100 || !g.Until.Time().Equal(until) {
		t.Errorf("offered %v, granted %+v", o.Features, g)
	}
	said("lease " + w.App[:4] + " true 2 40")
	b.lease = feed.Lease{}
	if o, g := greet(edge, calls, w.App, 0, 0); len(o.Features) != 1 || g.Lease != 0 || g.Calls != 0 || g.Until != 0 {
		t.Errorf("without a limit: offered %v, granted %+v", o.Features, g)
	}
	said("lease " + w.App[:4] + " true 0 0")
	if o, g := greet(edge, nil, w.App, 3, 41); o.Features != nil || g.Lease != 0 || g.Do == wire.DoRefused {
		t.Errorf("returned: offered %v, granted %+v", o.Features, g)
	}
	said("return " + w.App[:4] + " true 3 41")
	greet(edge, nil, w.App, 0, 0)
	said()
	b.err = auth.ErrQuota
	if _, g := greet(edge, calls, w.App, 0, 0); g.Lease == 0 || g.Calls != 0 {
		t.Errorf("of an account that is no more: %+v", g)
	}
	said("lease " + w.App[:4] + " true 0 0")
	b.err = nil
	if _, g := greet(edge, calls, other, 3, 1); g.Do != wire.DoRefused || g.Lease != 0 {
		t.Errorf("another's application: %+v", g)
	}
	page := w.join(w.App, key)
	if o, g := greet(page, calls, w.App, 3, 1); o.Features != nil || g.Lease != 0 {
		t.Errorf("a page: offered %v, granted %+v", o.Features, g)
	}
	said()
}
