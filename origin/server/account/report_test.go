package account

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/testkit"
)

// reporter is an edge that answers calls and reports their number.
type reporter struct {
	name  string
	count uint64
	over  time.Time
	since int // calls since the last answer that it received
}

// maxSince limits the calls that an edge of the test answers between two reports.
const maxSince = 20

// TestReportsCountEveryCallOnce makes edges and an origin answer the calls of an account, with lost answers, repeated reports and restarts
// of the origin. Every call is counted once. The limit is exceeded by at most the calls between two reports of each edge.
func TestReportsCountEveryCallOnce(t *testing.T) {
	for seed := range testkit.Seeds(t, 60, 2000) {
		rng := rand.New(rand.NewPCG(seed, 4))
		limit := 1 + rng.Int64N(400)
		w := open(t, func(o *Options) { o.Plan = Plan{"metered", limit} })
		w.operator()
		_, a := w.person("ada@x.example")
		if _, err := w.Verify(t.Context(), a.ID, w.code(), home); err != nil {
			t.Fatal(err)
		}
		answered := int64(0)
		edges := []*reporter{{name: "e1"}, {name: "e2"}, {name: "e3"}}
		report := func(e *reporter, arrives bool) {
			over, err := w.CountEdgeCalls(a.ID, anApp, e.name, e.count)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if arrives {
				e.over, e.since = over, 0
			}
		}
		for range 600 {
			e := edges[rng.IntN(len(edges))]
			switch rng.IntN(10) {
			case 0:
				report(e, true)
			case 1:
				report(e, false)
			case 2:
				if rng.IntN(10) > 0 {
					continue
				}
				if err := w.Registry.Close(); err != nil {
					t.Fatal(err)
				}
				var err error
				if w.Registry, err = Open(w.o); err != nil {
					t.Fatal(err)
				}
			case 3, 4, 5:
				if _, err := w.Spend(t.Context(), call(a.ID)); err == nil {
					answered++
				} else if !errors.Is(err, auth.ErrQuota) {
					t.Fatalf("seed %d: %v", seed, err)
				}
			default:
				if e.since == maxSince {
					report(e, true)
				}
				if !w.clock.now().Before(e.over) {
					e.count, e.since, answered = e.count+1, e.since+1, answered+1
				}
			}
			if maxAnswered := limit + int64(len(edges))*maxSince; answered > maxAnswered {
				t.Fatalf("seed %d: %d calls were answered, want at most %d", seed, answered, maxAnswered)
			}
		}
		for _, e := range edges {
			report(e, true)
		}
		left, _, err := w.Allowance(a.ID)
		if want := max(limit-answered, 0); left != want || err != nil {
			t.Errorf("seed %d: %d calls are left after %d of %d, want %d (%v)", seed, left, answered, limit, want, err)
		}
		for _, e := range edges {
			if report(e, true); e.over.IsZero() != (left > 0) {
				t.Errorf("seed %d: with %d calls left edge %s hears %v", seed, left, e.name, e.over)
			}
		}
		if err := errors.Join(w.Close(), w.o.Store.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReport checks the calls that a report adds, the time until which an edge must stop, and the usage on the pages.
func TestReport(t *testing.T) {
	w := open(t, func(o *Options) { o.Plan = Plan{"metered", 100} })
	w.operator()
	_, a := w.person("ada@x.example")
	if _, err := w.Verify(t.Context(), a.ID, w.code(), home); err != nil {
		t.Fatal(err)
	}
	end := time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)
	total := uint64(0)
	report := func(edge string, count, adds uint64, over time.Time) {
		t.Helper()
		total += adds
		if got, err := w.CountEdgeCalls(a.ID, anApp, edge, count); !got.Equal(over) || err != nil {
			t.Errorf("Report of %d = %v, %v, want %v", count, got, err, over)
		}
		if left, _, err := w.Allowance(a.ID); left != int64(100-min(total, 100)) || err != nil {
			t.Errorf("after %d: %d calls are left, %v", total, left, err)
		}
		if u, err := w.Usage(anApp, 1); err != nil || u.Total != int64(total) || len(u.Keys) != 1 || u.Keys[0] != (Count{"edge", int64(total)}) {
			t.Errorf("usage %+v, %v, want %d calls of edges", u, err, total)
		}
	}
	report("e", 40, 40, time.Time{})
	report("e", 40, 0, time.Time{}) // the answer to the previous report was lost
	report("f", 30, 30, time.Time{})
	report("e", 10, 0, time.Time{}) // the edge's folder was restored
	report("e", 15, 5, time.Time{})
	report("e", 55, 40, end)
	if _, err := w.Spend(t.Context(), call(a.ID)); !errors.Is(err, auth.ErrQuota) {
		t.Errorf("the origin answers a call of an account that its edges used up: %v", err)
	}
	w.clock.pass(31 * 24 * time.Hour)
	if over, err := w.CountEdgeCalls(a.ID, anApp, "e", 55); !over.IsZero() || err != nil {
		t.Errorf("in the next month: over %v, %v", over, err)
	}

	if over, err := w.CountEdgeCalls(fmt.Sprintf("%032x", 5), anApp, "e", 1); over.IsZero() || err != nil {
		t.Errorf("an account that was deleted: over %v, %v", over, err)
	}
	if err := w.DropUsage(anApp); err != nil {
		t.Fatal(err)
	}
	if _, err := w.o.Store.Get(reportKey(anApp, "e")); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("the count of a deleted application: %v", err)
	}
	for size, want := range map[int]error{leaseBytes: nil, 1: kv.ErrCorrupt} { // the lease record of an older program, and a damaged count
		var b kv.Batch
		b.Put(reportKey(anApp, "e"), make([]byte, size))
		if err := w.o.Store.Apply(&b); err != nil {
			t.Fatal(err)
		}
		if _, err := w.CountEdgeCalls(a.ID, anApp, "e", 1); !errors.Is(err, want) {
			t.Errorf("with %d bytes in the place of the count: %v, want %v", size, err, want)
		}
	}
}

// TestReportWithoutLimit counts the calls of an account without a limit for its usage page, and never stops its edges.
func TestReportWithoutLimit(t *testing.T) {
	w := open(t, nil)
	op := w.operator()
	if over, err := w.CountEdgeCalls(op.ID, anApp, "e", 7); !over.IsZero() || err != nil {
		t.Errorf("Report = %v, %v", over, err)
	}
	if u, err := w.Usage(anApp, 1); err != nil || u.Total != 7 {
		t.Errorf("usage %+v, %v, want 7 calls", u, err)
	}
}
