package account

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/proof"
)

// holder is an edge that spends what it was leased.
type holder struct {
	Leased
	name  string
	spent uint64
}

// spend answers a call; false: it may not.
func (h *holder) spend(now time.Time) bool {
	if h.spent >= h.Calls || !h.Until.IsZero() && !now.Before(h.Until) {
		return false
	}
	h.spent++
	return true
}

// take takes the answer to a request.
func (h *holder) take(l Leased) {
	if l.Number != h.Number {
		h.spent = 0
	}
	h.Leased = l
}

// TestLeasesAreExact has edges and an origin share the calls of an account, with answers that are lost,
// leases that are returned, restarts and new months: never is one more answered than the limit says, and where
// no lease was lost, not one less.
func TestLeasesAreExact(t *testing.T) {
	for seed := range proof.Seeds(t, 60, 2000) {
		rng := rand.New(rand.NewPCG(seed, 4))
		verified := rng.IntN(3) > 0
		limit := 1 + rng.Int64N(400)
		w := open(t, func(o *Options) { o.Plans = []Plan{{"metered", limit}} })
		w.operator()
		_, a := w.person("ada@x.example")
		if verified {
			if _, err := w.Verify(t.Context(), a.ID, w.code(), home); err != nil {
				t.Fatal(err)
			}
		} else {
			limit = TrialCalls
		}
		answered, lost := int64(0), false
		holders := []*holder{{name: "e1"}, {name: "e2"}, {name: "e3"}}
		ask := func(h *holder, arrives bool) {
			l, err := w.Lease(a.ID, anApp, h.name, h.Number, h.spent)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if arrives {
				h.take(l)
			}
		}
		origin := func() bool {
			_, err := w.Spend(t.Context(), call(a.ID))
			if err != nil && !errors.Is(err, auth.ErrQuota) {
				t.Fatalf("seed %d: %v", seed, err)
			}
			return err == nil
		}
		count := func(ok bool) bool {
			if ok {
				answered++
			}
			if answered > limit {
				t.Fatalf("seed %d: %d calls of %d were answered", seed, answered, limit)
			}
			return ok
		}
		for range 300 {
			h := holders[rng.IntN(len(holders))]
			switch rng.IntN(12) {
			case 0, 1:
				ask(h, true)
			case 2:
				ask(h, h.Number == 0) // it is lost, but not that which begins a lease: nobody would know of it
			case 3:
				if rng.IntN(4) == 0 {
					if err := w.Return(a.ID, anApp, h.name, h.Number, h.spent); err != nil {
						t.Fatal(err)
					}
					*h = holder{name: h.name}
				}
			case 4:
				if rng.IntN(8) == 0 { // its folder is lost
					lost = lost || h.Number != 0
					*h = holder{name: h.name}
				}
			case 5:
				if err := w.Registry.Close(); err != nil {
					t.Fatal(err)
				}
				var err error
				if w.Registry, err = Open(w.o); err != nil {
					t.Fatal(err)
				}
			case 6:
				if verified && rng.IntN(20) == 0 {
					w.clock.pass(31 * 24 * time.Hour)
					answered, lost = 0, true // what was leased in the old month is over
				}
			case 7, 8, 9:
				count(h.spend(w.clock.now()))
			default:
				count(origin())
			}
		}
		for more := true; more; { // until nothing is left anywhere
			more = count(origin())
			for _, h := range holders {
				ask(h, true)
				for count(h.spend(w.clock.now())) {
					more = true
				}
			}
		}
		if answered < limit && !lost {
			t.Errorf("seed %d: %d of %d calls were answered, and no lease was lost", seed, answered, limit)
		}
		if err := errors.Join(w.Close(), w.o.Store.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLeases tells of shares, numbers and ends.
func TestLeases(t *testing.T) {
	w := open(t, func(o *Options) { o.Plans = []Plan{{"metered", 1600}} })
	w.operator()
	_, a := w.person("ada@x.example")
	lease := func(account, holder string, number, spent uint64) Leased {
		t.Helper()
		l, err := w.Lease(account, anApp, holder, number, spent)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	left := func(want int64) {
		t.Helper()
		if n, _, err := w.Allowance(a.ID); n != want || err != nil {
			t.Errorf("%d calls are left, %v, want %d", n, err, want)
		}
	}
	answered := func(want int64) { // as the pages show it
		t.Helper()
		u, err := w.Usage(anApp, 1)
		if err != nil || u.Total != want || len(u.Keys) != 1 || u.Keys[0] != (Count{"edge", want}) || u.Endpoints[0] != (Count{"edge", want}) {
			t.Errorf("%+v, %v, want %d calls of an edge", u, err, want)
		}
	}
	if l := lease(a.ID, "e", 0, 0); l.Number != 1 || l.Calls != TrialCalls/shareOfLease || !l.Until.IsZero() {
		t.Errorf("of the calls before the address is verified: %+v", l)
	}
	if _, err := w.Verify(t.Context(), a.ID, w.code(), home); err != nil {
		t.Fatal(err)
	}
	end := time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)
	if l := lease(a.ID, "e", 1, 3); l != (Leased{2, 100, end}) {
		t.Errorf("once it is: %+v", l)
	}
	answered(3)
	left(1500)
	if l := lease(a.ID, "e", 2, 10); l != (Leased{2, 100, end}) {
		t.Errorf("with most of it left: %+v", l)
	}
	if l := lease(a.ID, "e", 2, 80); l != (Leased{2, 175, end}) {
		t.Errorf("with little of it left: %+v", l)
	}
	if l := lease(a.ID, "e", 2, 80); l != (Leased{2, 175, end}) {
		t.Errorf("asked again: %+v", l)
	}
	left(1425)
	if err := w.Return(a.ID, anApp, "e", 2, 90); err != nil {
		t.Fatal(err)
	}
	left(1510)
	for _, number := range []uint64{0, 1, 2, 3, 9} { // it is over, or never was
		if err := w.Return(a.ID, anApp, "e", number, 80); err != nil {
			t.Fatal(err)
		}
	}
	left(1510)
	answered(90 + 3)
	if l := lease(a.ID, "e", 2, 60); l.Number != 3 || l.Calls != 94 {
		t.Errorf("an old copy of an edge goes on: %+v", l)
	}
	if l := lease(a.ID, "e", 3, 200); l.Number != 4 {
		t.Errorf("who has spent more than there was goes on: %+v", l)
	}
	if l := lease(a.ID, "other", 4, 0); l.Number != 5 {
		t.Errorf("another's lease: %+v", l)
	}
	answered(90 + 3)
	if err := w.DropUsage(anApp); err != nil {
		t.Fatal(err)
	}
	if _, err := w.o.Store.Get(leaseKey(anApp, "e")); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("the lease of a deleted application: %v", err)
	}
	if _, err := w.Lease(fmt.Sprintf("%032x", 5), anApp, "e", 0, 0); !errors.Is(err, auth.ErrQuota) {
		t.Errorf("an account that is no more: %v, want ErrQuota", err)
	}
	var b kv.Batch
	b.Put(leaseKey(anApp, "e"), []byte{1})
	if err := w.o.Store.Apply(&b); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Lease(a.ID, anApp, "e", 0, 0); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("a damaged lease: %v, want ErrCorrupt", err)
	}
}

// TestNoLease leases nothing of an account that may make any number of calls.
func TestNoLease(t *testing.T) {
	w := open(t, nil)
	op := w.operator()
	if l, err := w.Lease(op.ID, anApp, "e", 7, 3); l != (Leased{}) || err != nil {
		t.Errorf("Lease = %+v, %v", l, err)
	}
	if err := w.Return(op.ID, anApp, "e", 7, 3); err != nil {
		t.Error(err)
	}
}
