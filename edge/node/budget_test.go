package node

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/origin/account"
	"github.com/sightline-dev/sightline/origin/system"
	"github.com/sightline-dev/sightline/sync/wire"
)

func budgetOf(t testing.TB, store kv.Store, now time.Time) *budget {
	t.Helper()
	b, err := openBudget(store, anApp, now)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestBudgetIsExact spends budgets with crashes and orderly ends in between: never is one call more answered than
// was leased, and after an orderly end not one less.
func TestBudgetIsExact(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		store := memkv.New()
		b := budgetOf(t, store, day)
		total, answered, burnt := uint64(0), uint64(0), false
		for range 400 {
			switch rng.IntN(40) {
			case 0:
				b, burnt = budgetOf(t, store, day), true
			case 1:
				if err := b.close(); err != nil {
					t.Fatal(err)
				}
				b = budgetOf(t, store, day)
			case 2, 3:
				total += uint64(rng.IntN(60))
				if err := b.grant(leased{number: 1, calls: max(total, 1)}, day); err != nil {
					t.Fatal(err)
				}
				total = max(total, 1)
			default:
				left, err := b.spend(day)
				if err == nil {
					answered++
				} else if !errors.Is(err, auth.ErrQuota) || left != 0 {
					t.Fatal(left, err)
				}
			}
			if number, spent, _, _ := b.report(day); answered > total || number != 0 && spent < answered {
				t.Fatalf("seed %d: %d of %d calls were answered, and %d are told", seed, answered, total, spent)
			}
		}
		for {
			if _, err := b.spend(day); err != nil {
				break
			}
			answered++
		}
		if !burnt && answered != total {
			t.Errorf("seed %d: %d of %d calls were answered without a crash", seed, answered, total)
		}
	}
}

// TestBudgetEnds spends nothing of a lease that is over, returned or of another number.
func TestBudgetEnds(t *testing.T) {
	store := memkv.New()
	b := budgetOf(t, store, day)
	spend := func(want bool, left int64) {
		t.Helper()
		if n, err := b.spend(day); (err == nil) != want || want && n != left || !want && !errors.Is(err, auth.ErrQuota) {
			t.Errorf("spend = %d, %v, want %v with %d left", n, err, want, left)
		}
	}
	grant := func(l leased) {
		t.Helper()
		if err := b.grant(l, day); err != nil {
			t.Fatal(err)
		}
	}
	spend(false, 0)
	grant(leased{number: 1, calls: 3, until: day.Add(time.Hour)})
	spend(true, 2)
	grant(leased{number: 1, calls: 2}) // an answer that was overtaken takes nothing away
	spend(true, 1)
	grant(leased{number: 2, calls: 1})
	spend(true, 0)
	spend(false, 0)
	grant(leased{number: 2, calls: 9, until: day})
	spend(false, 0)
	grant(leased{})
	spend(true, -1)
	b = budgetOf(t, store, day)
	spend(true, -1)
	grant(leased{number: 3, calls: 9})
	if err := b.rest(day.Add(keepIdle - 1)); err != nil {
		t.Fatal(err)
	}
	spend(true, 8)
	if err := b.rest(day.Add(keepIdle)); err != nil {
		t.Fatal(err)
	}
	spend(false, 0)
	b = budgetOf(t, store, day)
	spend(false, 0)
	if number, _, over, _ := b.report(day); number != 3 || !over {
		t.Errorf("after a restart lease %d is told, over: %v", number, over)
	}
	if err := b.returned(); err != nil {
		t.Fatal(err)
	}
	if _, _, _, ok := b.report(day.Add(keepIdle)); ok {
		t.Error("a lease is wanted though nobody asks")
	}
	b.end()
	grant(leased{number: 4, calls: 9})
	if b = budgetOf(t, store, day); b.number != 0 {
		t.Error("a budget is kept of an application that is gone")
	}
	var damaged kv.Batch
	damaged.Put(catalog.AppID{7}.LocalKey("calls"), []byte{9})
	if err := store.Apply(&damaged); err != nil {
		t.Fatal(err)
	}
	if _, err := openBudget(store, anApp, day); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("error %v, want ErrCorrupt", err)
	}
	if _, err := openBudget(store, "nothing", day); err == nil {
		t.Error("opened for what is no application")
	}
}

// lender is an origin that leases calls, and nothing else.
type lender struct {
	mu    sync.Mutex
	calls uint64
	do    wire.Do
	none  bool // it knows nothing of calls
	asked []wire.Position
}

func (l *lender) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	m, failed := wire.DecodeSession(body)
	if errors.Join(err, failed) != nil || len(m.Partitions) != 1 || r.URL.Path != "/v2/sync/session" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	at := m.Partitions[0]
	l.asked = append(l.asked, at)
	out := wire.Offered{Protocol: 1, Now: wire.MillisOf(day.Add(time.Hour)), Grants: []wire.Grant{{App: at.App, Do: l.do}}}
	if slices.Contains(m.Features, wire.FeatureCalls) && !l.none {
		out.Features = m.Features
		g := &out.Grants[0]
		g.Lease, g.Calls, g.Until = 1, l.calls, wire.MillisOf(day.Add(3*time.Hour))
	}
	w.Header().Set("Content-Type", wire.ContentType)
	_, _ = w.Write(out.Encode())
}

func (l *lender) set(calls uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = calls
}

// TestLeases has an edge lease calls as they are asked for: a first call waits for the first lease, those after
// it are answered out of it, more is leased before it is used up, and when the account has none left that is said.
func TestLeases(t *testing.T) {
	origin := &lender{calls: 4, do: wire.DoTail}
	server := httptest.NewServer(origin)
	defer server.Close()
	store, now := memkv.New(), day
	c := lone(t, store, &now)
	c.who.Origin = server.URL
	one := c.of(anApp)
	register := registered(0)
	register.Record.Owner = "someone"
	if err := c.take(t.Context(), one, 5, register.Encode()); err != nil {
		t.Fatal(err)
	}
	accounts, err := account.Open(account.Options{
		Store: store, Now: c.now, Random: system.Random, Mail: nil, PublicURL: "http://127.0.0.1", Log: c.log, Closed: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	spent := counted{accounts, c}
	call := func() (int64, error) {
		t.Helper()
		if err := c.admit(t.Context(), anApp, &api.Request{Method: "GET", Path: "/v2/inputs"}); err != nil {
			t.Fatal(err)
		}
		return spent.Spend(t.Context(), api.Spent{Account: "someone", App: anApp, By: "0011", Route: "GET /inputs"})
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { c.lease(ctx, one) })
	for i := range int64(4) {
		origin.set(uint64(i + 4)) // one more each time
		if left, err := call(); err != nil || left < 0 {
			t.Fatalf("call %d: %d left, %v", i+1, left, err)
		}
	}
	origin.set(7)
	answered := 4
	for ; ; answered++ {
		if _, err := call(); err != nil {
			if !errors.Is(err, auth.ErrQuota) {
				t.Error(err)
			}
			break
		}
	}
	if answered != 7 {
		t.Errorf("%d calls were answered, want 7", answered)
	}
	stop()
	running.Wait()
	if err := c.askLease(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	if last := origin.asked[len(origin.asked)-1]; last.Lease != 1 || last.Spent != 7 {
		t.Errorf("the origin was told %+v, want 7 calls of lease 1", last)
	}
	if _, err := call(); !errors.Is(err, auth.ErrQuota) || !one.budget.until.Equal(day.Add(2*time.Hour)) || one.budget.pause() != leaseEmpty {
		t.Errorf("with none left: %v, until %v", err, one.budget.until)
	}

	// Another month, or plan: the next to ask has a lease.
	origin.set(10)
	if err := c.askLease(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	if left, err := call(); err != nil || left != 2 {
		t.Errorf("%d left, %v", left, err)
	}
	if left, err := spent.Spend(t.Context(), api.Spent{App: anApp, By: "0011", Route: "GET /inputs"}); left != -1 || err != nil {
		t.Errorf("a call of the operator's: %d left, %v", left, err)
	}

	// After a week without a call the rest goes back, and nothing more is leased.
	now = day.Add(keepIdle + time.Hour)
	one.budget.until = time.Time{}
	for range 2 {
		if err := c.askLease(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}
	if last := origin.asked[len(origin.asked)-1]; last.Lease != 1 || last.Spent != 8 || one.budget.number != 0 {
		t.Errorf("returned %+v", last)
	}
	origin.none = true
	if _, err := one.budget.spend(now); err == nil {
		t.Error("spent what was returned")
	}
	if err := c.askLease(t.Context(), one); err != nil || !one.budget.free {
		t.Errorf("an origin that counts nothing: %v", err)
	}
	origin.do = wire.DoRefused
	if err := c.askLease(t.Context(), one); err == nil {
		t.Error("an application that is taken away has calls")
	}
	server.Close()
	if err := c.askLease(t.Context(), one); err == nil {
		t.Error("leased of nobody")
	}
	one.budget.fail()
	if one.budget.pause() != leaseFailed {
		t.Error("after a failure it is asked again at once")
	}
	if err := errors.Join(c.close(), accounts.Close()); err != nil {
		t.Fatal(err)
	}
}
