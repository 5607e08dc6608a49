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

// TestCallsOfEdges takes the counts that an edge reports and answers until when the account has no calls left. It takes no count from a
// page, for an application of another edge, and from a session without a count.
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
		name  string
		who   *replica
		app   string
		calls uint64
		over  time.Time
		told  []string
		want  wire.Millis
	}{
		{"calls are left", edge, w.App, 40, time.Time{}, []string{w.App[:4] + " true 40"}, 0},
		{"none are left", edge, w.App, 41, until, []string{w.App[:4] + " true 41"}, wire.MillisOf(until)},
		{"no count", edge, w.App, 0, until, nil, 0},
		{"another's application", edge, other, 3, until, nil, 0},
		{"a page", page, w.App, 3, until, nil, 0},
	} {
		over, reported = tt.over, nil
		o := tt.who.session(&wire.Session{
			Min: 1, Max: 1, Fold: fold.Version, Schema: 1, Site: tt.who.site, Secret: []byte(tt.who.secret),
			Partitions: []wire.Position{{App: tt.app, Calls: tt.calls}},
		})
		if len(o.Grants) != 1 || o.Grants[0].Over != tt.want {
			t.Errorf("%s: granted %+v, want over until %v", tt.name, o.Grants, tt.want.Time())
		}
		if !slices.Equal(reported, tt.told) {
			t.Errorf("%s: reported %q, want %q", tt.name, reported, tt.told)
		}
	}
}
