package account

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/pebblekv"
	"github.com/sightline-dev/sightline/core/kv/pebblekv/pebbletest"
	"github.com/sightline-dev/sightline/core/testkit"
)

const (
	anApp = "0123456789abcdef0123456789abcdef"
	aKey  = "0011223344556677"
)

func call(account string) api.CountedCall {
	return api.CountedCall{Account: account, App: anApp, By: aKey, Route: "GET /inputs"}
}

// race makes calls from 64 callers until each has been refused once, or until maxCalls were made,
// and returns how many were allowed.
func race(t *testing.T, r *Registry, account string, maxCalls int64) (allowed int64) {
	t.Helper()
	var (
		n     atomic.Int64
		began atomic.Int64
		group sync.WaitGroup
	)
	for range 64 {
		group.Go(func() {
			for began.Add(1) <= maxCalls {
				_, err := r.Spend(context.Background(), call(account))
				if err == nil {
					n.Add(1)
				} else if !errors.Is(err, auth.ErrQuota) {
					t.Errorf("Spend: %v", err)
					return
				} else {
					return
				}
			}
		})
	}
	group.Wait()
	return n.Load()
}

// disk is one that loses its power.
type disk struct{ mem pebbletest.Disk }

func (d *disk) open(t *testing.T) kv.Store {
	t.Helper()
	s, err := pebblekv.Open("store", pebblekv.Options{FS: d.mem, CacheBytes: 1 << 20, MemTableBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return kvtest.OrLate(t, s)
}

func (d *disk) crash(percent int, rng *rand.Rand) *disk {
	return &disk{d.mem.Cut(percent, rng)}
}

// TestQuotaIsExact has 64 callers race for the hundred calls of an account, and for the calls of a plan, whose blocks a restart gives back.
// All calls are allowed and not one more.
func TestQuotaIsExact(t *testing.T) {
	for seed := range testkit.Seeds(t, 10, 100) {
		exact(t, rand.New(rand.NewPCG(seed, 23)))
	}
}

// TestQuotaInPowerCuts cuts the power while 64 callers race: calls that were allowed before are counted after.
func TestQuotaInPowerCuts(t *testing.T) {
	for seed := range testkit.Seeds(t, 10, 100) {
		runPowerCuts(t, rand.New(rand.NewPCG(seed, 29)))
	}
}

// exact is one round without power cuts.
func exact(t *testing.T, rng *rand.Rand) {
	d := &disk{pebbletest.New()}
	w := open(t, func(o *Options) {
		o.Store = d.open(t)
		o.Plan = Plan{"metered", 1 + rng.Int64N(6000)}
	})
	restart := func() {
		t.Helper()
		if err := errors.Join(w.Close(), w.o.Store.Close()); err != nil {
			t.Fatal(err)
		}
		w.o.Store = d.open(t)
		var err error
		if w.Registry, err = Open(w.o); err != nil {
			t.Fatal(err)
		}
	}
	w.operator()
	_, a := w.person("ada@x.example")
	code := w.code()
	first := race(t, w.Registry, a.ID, 1+rng.Int64N(80))
	restart()
	if left, limit, err := w.Allowance(a.ID); left != TrialCalls-first || limit != TrialCalls || err != nil {
		t.Errorf("Allowance after %d calls = %d of %d, %v", first, left, limit, err)
	}
	if n := first + race(t, w.Registry, a.ID, 1e6); n != TrialCalls {
		t.Errorf("%d of %d calls were allowed", n, TrialCalls)
	}
	restart()
	if n := race(t, w.Registry, a.ID, 1e6); n != 0 {
		t.Errorf("%d calls were allowed after the last", n)
	}
	if _, err := w.Verify(t.Context(), a.ID, code, home); err != nil {
		t.Fatal(err)
	}
	limit := w.o.Plan.Calls
	total := race(t, w.Registry, a.ID, rng.Int64N(limit)+1)
	restart()
	total += race(t, w.Registry, a.ID, rng.Int64N(limit)+1)
	restart()
	if total += race(t, w.Registry, a.ID, 1e6); total != limit {
		t.Errorf("%d of a plan's %d calls were allowed", total, limit)
	}
	w.clock.pass(31 * 24 * time.Hour)
	if n := race(t, w.Registry, a.ID, 1e6); n != limit {
		t.Errorf("%d of %d calls in the next month", n, limit)
	}
	w.clock.pass(-31 * 24 * time.Hour)
	if n := race(t, w.Registry, a.ID, 1e6); n != 0 {
		t.Errorf("a clock that goes back gave %d calls", n)
	}
	if err := errors.Join(w.Close(), w.o.Store.Close()); err != nil {
		t.Fatal(err)
	}
}

// runPowerCuts runs one round of power cuts: during the hundred calls, then during a plan's.
func runPowerCuts(t *testing.T, rng *rand.Rand) {
	d := &disk{pebbletest.New()}
	limit := 100 + rng.Int64N(5000)
	w := open(t, func(o *Options) { o.Store, o.Plan = d.open(t), Plan{"metered", limit} })
	w.operator()
	_, a := w.person("ada@x.example")
	code := w.code()
	cut := func(maxCalls, allowance int64) (allowed int64) {
		t.Helper()
		var before, after atomic.Int64
		var group sync.WaitGroup
		at := 1 + rng.Int64N(maxCalls)
		reached := make(chan *disk, 1)
		for range 64 {
			group.Go(func() {
				for before.Add(1) <= maxCalls {
					if _, err := w.Spend(context.Background(), call(a.ID)); err != nil {
						return
					}
					if after.Add(1) == at {
						reached <- nil
					}
				}
			})
		}
		done := make(chan struct{})
		go func() { group.Wait(); close(done) }()
		select {
		case <-reached:
		case <-done:
		}
		least := after.Load() // these were allowed before the power went
		next := d.crash([]int{0, 50, 100}[rng.IntN(3)], rng)
		<-done
		if err := w.o.Store.Close(); err != nil {
			t.Fatal(err)
		}
		d = next
		w.o.Store = d.open(t)
		var err error
		if w.Registry, err = Open(w.o); err != nil {
			t.Fatal(err)
		}
		left, _, err := w.Allowance(a.ID)
		if err != nil || left > allowance-least {
			t.Errorf("%d calls of %d were allowed before the power went, and %d are left: %v", least, allowance, left, err)
		}
		return left
	}
	left := cut(60, TrialCalls)
	left = cut(40, left)
	if n := race(t, w.Registry, a.ID, 1e6); n != left {
		t.Errorf("%d calls were allowed of the %d left", n, left)
	}
	if _, err := w.Verify(t.Context(), a.ID, code, home); err != nil {
		t.Fatal(err)
	}
	left = cut(limit/2+1, limit)
	if left > 0 {
		left = cut(left, left)
	}
	if n := race(t, w.Registry, a.ID, 1e6); n != left {
		t.Errorf("%d calls were allowed of the %d left of a plan", n, left)
	}
	if err := errors.Join(w.Close(), w.o.Store.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestQuotaErrorNamesRemedy(t *testing.T) {
	w := open(t, func(o *Options) { o.Plan = Plan{"metered", 5} })
	op := w.operator()
	_, a := w.person("ada@x.example")
	for i := range TrialCalls {
		if left, err := w.Spend(t.Context(), call(a.ID)); left != int64(TrialCalls-1-i) || err != nil {
			t.Fatalf("call %d: %d left, %v", i+1, left, err)
		}
	}
	if _, err := w.Spend(t.Context(), call(a.ID)); !errors.Is(err, auth.ErrQuota) || !strings.Contains(err.Error(), "verify") {
		t.Errorf("an unverified account is told %v", err)
	}
	for range 5 {
		if _, err := w.Spend(t.Context(), call(op.ID)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Spend(t.Context(), call(op.ID)); !errors.Is(err, auth.ErrQuota) || !strings.Contains(err.Error(), "plan") || !strings.Contains(err.Error(), "2026-04-01") {
		t.Errorf("a verified account is told %v", err)
	}
	if left, err := w.Spend(t.Context(), call("")); left != -1 || err != nil {
		t.Errorf("the operator's call = %d, %v", left, err)
	}
	if _, err := w.Spend(t.Context(), call(anApp)); !errors.Is(err, auth.ErrQuota) {
		t.Errorf("a call of nobody's = %v", err)
	}
	// Another address does not give another hundred.
	w.clock.pass(time.Hour)
	if _, err := w.ChangeEmail(t.Context(), a.ID, "ada@y.example", password, home); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Spend(t.Context(), call(a.ID)); !errors.Is(err, auth.ErrQuota) {
		t.Errorf("a call with another address = %v", err)
	}
}

func TestUnlimited(t *testing.T) {
	full := &fullStore{}
	w := open(t, func(o *Options) { full.Store, o.Store = o.Store, full })
	op := w.operator()
	full.full = true // no call needs a write
	for range 1000 {
		if left, err := w.Spend(t.Context(), call(op.ID)); left != -1 || err != nil {
			t.Fatalf("Spend = %d, %v", left, err)
		}
	}
	full.full = false
	if q, err := readQuota(w.store, op.ID); q != (quota{}) || err != nil {
		t.Errorf("an account without a limit is counted: %+v, %v", q, err)
	}
	if left, limit, err := w.Allowance(op.ID); left != -1 || limit != -1 || err != nil {
		t.Errorf("Allowance = %d of %d, %v", left, limit, err)
	}
	w.clock.pass(time.Hour)
	if _, err := w.ChangeEmail(t.Context(), op.ID, "op@y.example", password, home); err != nil {
		t.Fatal(err)
	}
	if left, err := w.Spend(t.Context(), call(op.ID)); left != TrialCalls-1 || err != nil {
		t.Errorf("Spend with an address that is not verified = %d, %v", left, err)
	}
}

// TestIdleMetersAreUnloaded puts meters away while callers race.
func TestIdleMetersAreUnloaded(t *testing.T) {
	w := open(t, func(o *Options) { o.Plan = Plan{"metered", 5000} })
	op := w.operator()
	stop := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				if err := w.meters.close(); err != nil {
					t.Error(err)
				}
			}
		}
	}()
	if n := race(t, w.Registry, op.ID, 1e6); n != 5000 {
		t.Errorf("%d of 5000 calls were allowed", n)
	}
	close(stop)
	<-stopped
	for i := range maxMeters + 10 {
		w.meters.of(fmt.Sprintf("%032x", i))
	}
	if err := w.meters.rest(); err != nil || len(w.meters.byID) > maxMeters {
		t.Errorf("%d meters in memory, %v", len(w.meters.byID), err)
	}
}

func BenchmarkSpend(b *testing.B) {
	for _, plan := range []Plan{{"unlimited", 0}, {"metered", 1e15}} {
		b.Run(plan.Name, func(b *testing.B) {
			t := &testing.T{}
			w := open(t, func(o *Options) { o.Plan, o.Now = plan, time.Now })
			_, setup, _ := strings.Cut(w.link(), "setup=")
			_, a, err := w.Create(context.Background(), SignUpForm{"Operator", "op@pictures.example", password, setup}, home)
			if err != nil {
				b.Fatal(err)
			}
			c := call(a.ID)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := w.Spend(context.Background(), c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestReturnedCallsOfTrial returns calls of an account that is no longer verified, whose meter has a block of the plan's calls: it gets
// back at most the calls of its trial.
func TestReturnedCallsOfTrial(t *testing.T) {
	w := open(t, func(o *Options) { o.Plan = Plan{"metered", 1000} })
	op := w.operator()
	if _, err := w.Spend(t.Context(), call(op.ID)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.ChangeEmail(t.Context(), op.ID, "op@y.example", password, home); err != nil {
		t.Fatal(err)
	}
	if _, err := w.SpendSome(call(op.ID), -2); err != nil {
		t.Fatal(err)
	}
	if left, _, err := w.Allowance(op.ID); left != TrialCalls || err != nil {
		t.Errorf("%d calls are left, %v, want %d", left, err, TrialCalls)
	}
}

// TestSpendSome counts several calls at once, in a trial and in a plan: as many as are left, and never more, from many callers. Returned calls
// can be made again, also after a restart.
func TestSpendSome(t *testing.T) {
	w := open(t, func(o *Options) { o.Plan = Plan{"metered", 1000} })
	w.operator()
	_, a := w.person("ada@x.example")
	code := w.code()
	for _, limit := range []int64{TrialCalls, 1000} {
		if limit == 1000 {
			if _, err := w.Verify(t.Context(), a.ID, code, home); err != nil {
				t.Fatal(err)
			}
		}
		var all atomic.Int64
		var group sync.WaitGroup
		for range 16 {
			group.Go(func() {
				for {
					n, err := w.SpendSome(call(a.ID), 3)
					if all.Add(n); err != nil {
						if n != 0 || !errors.Is(err, auth.ErrQuota) {
							t.Errorf("SpendSome = %d, %v", n, err)
						}
						return
					}
				}
			})
		}
		group.Wait()
		if n := all.Load(); n != limit {
			t.Errorf("%d calls of %d were counted", n, limit)
		}
		if _, err := w.SpendSome(call(a.ID), 0); !errors.Is(err, auth.ErrQuota) {
			t.Errorf("without calls left: %v", err)
		}
		if _, err := w.SpendSome(call(a.ID), -2); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		var err error
		if w.Registry, err = Open(w.o); err != nil {
			t.Fatal(err)
		}
		if n, err := w.SpendSome(call(a.ID), 0); n != 0 || err != nil {
			t.Errorf("with two calls left: %d, %v", n, err)
		}
		if n, err := w.SpendSome(call(a.ID), 5); n != 2 || err != nil {
			t.Errorf("%d calls were counted of the two that were returned, %v", n, err)
		}
	}
	if n, err := w.SpendSome(api.CountedCall{App: anApp, By: aKey}, 5); n != 5 || err != nil {
		t.Errorf("the operator's: %d, %v", n, err)
	}
	if u, err := w.Usage(anApp, 1); err != nil || u.Total != TrialCalls+1000+5 {
		t.Errorf("usage = %d calls, %v; want %d", u.Total, err, TrialCalls+1000+5)
	}
}
