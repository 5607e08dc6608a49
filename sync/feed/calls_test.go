package feed_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/sync/feed"
	"github.com/sightline-dev/sightline/sync/wire"
)

// TestCallsOfEdges: the feed passes on the number of calls that an edge reports, and answers until when the account has no calls left. It
// ignores counts from pages and for applications that the edge does not have.
func TestCallsOfEdges(t *testing.T) {
	var over time.Time
	var reported []string
	w := newWorld(t, func(o *feed.Options) {
		o.Calls = func(app, edge string, count uint64) (time.Time, error) {
			reported = append(reported, fmt.Sprintf("%s %t %d", app[:4], edge != "", count))
			return over, nil
		}
	})
	key := w.NewKey(t, apitest.Tenant{App: w.App}, auth.All)
	edge, page, other := w.enrolEdge(1), w.join(w.App, key), w.NewTenant(t, "", "en").App
	until := w.Now.Add(time.Hour).Truncate(time.Millisecond)
	for _, tt := range []struct {
		name    string
		caller  *replica
		app     string
		calls   uint64
		over    time.Time
		reports []string
		want    wire.Millis
	}{
		{"calls are left", edge, w.App, 40, time.Time{}, []string{w.App[:4] + " true 40"}, 0},
		{"none are left", edge, w.App, 41, until, []string{w.App[:4] + " true 41"}, wire.MillisOf(until)},
		{"no count", edge, w.App, 0, until, nil, 0},
		{"another's application", edge, other, 3, until, nil, 0},
		{"a page", page, w.App, 3, until, nil, 0},
	} {
		over, reported = tt.over, nil
		o := tt.caller.session(&wire.Session{
			Min: wire.Oldest, Max: wire.Protocol, Fold: fold.Version, Schema: 1,
			Apps: []wire.Position{{App: tt.app, Calls: tt.calls}},
		})
		if len(o.Grants) != 1 || o.Grants[0].Over != tt.want {
			t.Errorf("%s: granted %+v, want over until %v", tt.name, o.Grants, tt.want.Time())
		}
		if !slices.Equal(reported, tt.reports) {
			t.Errorf("%s: reported %q, want %q", tt.name, reported, tt.reports)
		}
	}
}
