package account

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/testkit"
)

// slowStore is a store whose waits let other goroutines run first. The next wait also calls hook first.
type slowStore struct {
	kv.Store
	hook func()
}

func (s *slowStore) Commit(b *kv.Batch) (func() error, error) {
	wait, err := s.Store.Commit(b)
	if err != nil {
		return nil, err
	}
	hook := s.hook
	if hook != nil {
		s.hook = nil
	}
	return func() error {
		if hook != nil {
			hook()
		}
		for range 20 {
			runtime.Gosched()
		}
		return wait()
	}, nil
}

// slow returns a late store with slow waits.
func slow(t *testing.T, seed uint64) *slowStore {
	return &slowStore{Store: kvtest.NewLate(memkv.New(), seed, t.Errorf)}
}

// TestLinkWorksOnce uses a link twice at once.
func TestLinkWorksOnce(t *testing.T) {
	for seed := range testkit.Seeds(t, 80, 10_000) {
		w := open(t, func(o *Options) { o.Store = slow(t, seed) })
		w.operator()
		_, a := w.person("ada@x.example")
		if err := w.SendResetLink(t.Context(), a.Email, home); err != nil {
			t.Fatal(err)
		}
		mails := w.mails()
		token := aToken.FindString(mails[len(mails)-1].Text)
		var group sync.WaitGroup
		var worked atomic.Int32
		for range 2 {
			group.Go(func() {
				_, _, err := w.Reset(context.Background(), token, password+"!", home, nil)
				if err == nil {
					worked.Add(1)
				} else if !errors.Is(err, ErrLink) {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if n := worked.Load(); n != 1 {
			t.Errorf("the link worked %d times", n)
		}
		if _, err := w.VerifyAudit(); err != nil {
			t.Error(err)
		}
	}
}

// TestMeterReadsItsOwnCounts loads the meter of an account while the counts of its previous one wait: after a change of the account, and
// after the meter was evicted.
func TestMeterReadsItsOwnCounts(t *testing.T) {
	for seed := range testkit.Seeds(t, 80, 10_000) {
		for name, load := range map[string]func(w *world, store *slowStore, a Account, count func()){
			"changed": func(w *world, store *slowStore, a Account, count func()) {
				store.hook = count
				if _, err := w.Rename(w.t.Context(), a.ID, "Bob", home); err != nil {
					w.t.Fatal(err)
				}
				w.meters.invalidate(a.ID)
			},
			"evicted": func(w *world, _ *slowStore, _ Account, count func()) {
				count()
				if err := w.meters.close(); err != nil {
					w.t.Fatal(err)
				}
			},
		} {
			store := slow(t, seed)
			w := open(t, func(o *Options) {
				o.Store, o.Plan = store, Plan{"metered", 1000}
				o.Storage.Verified = Storage{Bytes: 1000}
			})
			op := w.operator()
			if _, err := w.SpendSome(call(op.ID), 20); err != nil {
				t.Fatal(err)
			}
			load(w, store, op, func() {
				if fits, err := w.CountPicture(op.ID, 600, time.Hour); !fits || err != nil {
					t.Errorf("KeepPicture = %v, %v", fits, err)
				}
				if _, err := w.SpendSome(call(op.ID), -7); err != nil {
					t.Error(err)
				}
			})
			if fits, err := w.CountPicture(op.ID, 600, time.Hour); fits || err != nil {
				t.Errorf("%s: a second picture: %v, %v", name, fits, err)
			}
			if left, _, err := w.Allowance(op.ID); left != 1000-20+7 || err != nil {
				t.Errorf("%s: %d calls are left, %v, want 987", name, left, err)
			}
		}
	}
}

// TestLateUseKeepsSession uses the oldest session while the store does not show that. Neither its age nor new sessions end it.
func TestLateUseKeepsSession(t *testing.T) {
	for seed := range testkit.Seeds(t, 80, 10_000) {
		w := open(t, func(o *Options) { o.Store = slow(t, seed) })
		op := w.operator()
		w.clock.pass(time.Second)
		enter := func() string {
			t.Helper()
			token, err := w.OpenSession(op.ID, home)
			if err != nil {
				t.Fatal(err)
			}
			return token
		}
		check := func(after string, token string) {
			t.Helper()
			if _, err := w.Session(t.Context(), token); err != nil {
				t.Errorf("after %s: %v", after, err)
			}
		}
		oldest := enter()
		for range maxSessions - 1 { // the last one ends the session of the sign-up
			w.clock.pass(time.Second)
			enter()
		}
		w.clock.pass(2 * time.Hour)
		check("two hours", oldest)
		newest := enter()
		check("a new session", oldest)
		w.clock.pass(SessionLife - time.Hour)
		check("30 days", newest)
		w.clock.pass(2 * time.Hour)
		if seed%2 == 0 {
			check("30 days and an hour", newest)
		}
		if err := w.endSessions(w.clock.now()); err != nil {
			t.Fatal(err)
		}
		check("the removal of expired sessions", newest)
	}
}

// TestSuiteOnLateStore: all of this holds on a store that shows a commit as late as its wait returns, and lets each Apply overtake.
func TestSuiteOnLateStore(t *testing.T) {
	kvtest.RunLate(t, testkit.Seeds(t, 80, 500), "^Test", "^Test(.*OnLateStore|LinkWorksOnce|MeterReadsItsOwnCounts|LateUseKeepsSession|QuotaInPowerCuts|NewTermReusesNothing|FollowerReadsAccounts|ChangeDuringTermChange|AccountsChangeMachines|UsageIsBounded|Cost|(Limits|Windows)ForgetOldKeys)$")
}
