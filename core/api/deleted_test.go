package api_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/core/testkit"
)

// TestDeletedKeysUnderRequests deletes keys, revokes tokens and deletes applications while requests use them. Requests that begin after the
// acknowledgement are rejected. Every answer is a success or a 401.
func TestDeletedKeysUnderRequests(t *testing.T) {
	_, rounds := testkit.Rounds(t, 60, 5_000)
	e := newEstate(t, nil)
	accepted := 0
	for round := range rounds {
		n := e.settle("anna", uint64(10+round))
		credential := "Key " + e.NewKey(t, n.Tenant, auth.All)
		kill := func() error {
			key, _ := auth.Key(credential)
			return e.Engine.Register.DeleteKey(t.Context(), register.Caller{Account: n.Owner}, n.App, key)
		}
		switch round % 4 {
		case 1:
			credential, kill = e.token(n), func() error {
				return e.Engine.Register.RevokeTokens(t.Context(), register.Caller{Account: n.Owner}, n.App)
			}
		case 2:
			kill = func() error {
				return e.Engine.Register.DeleteApp(t.Context(), register.Caller{Account: n.Owner}, n.App)
			}
		case 3:
			credential, kill = e.token(n), func() error {
				return e.Engine.Register.DeleteApp(t.Context(), register.Caller{Account: n.Owner}, n.App)
			}
		}
		accepted += e.pound(credential, kill)
		e.work(0)
		if round%4 < 2 {
			if err := e.Engine.Register.DeleteApp(t.Context(), register.Caller{Account: n.Owner}, n.App); err != nil {
				t.Fatal(err)
			}
		}
		e.Accounts.Spent = nil
	}
	t.Logf("%d rounds, %d requests let in before their credential was deleted", rounds, accepted)
	if accepted < rounds {
		t.Errorf("%d requests let in in %d rounds: the test asks too late", accepted, rounds)
	}
}

// pound sends requests from two goroutines while kill runs, and returns the number of successful ones.
func (e *estate) pound(credential string, kill func() error) int {
	e.Helper()
	var dead atomic.Bool
	var accepted atomic.Int64
	started := make(chan struct{}, 2)
	var all sync.WaitGroup
	for range cap(started) {
		all.Go(func() {
			for i := 0; ; i++ {
				after := dead.Load()
				r := api.Request{Method: "GET", Path: "/v2/inputs", Authorization: credential}
				got := e.Engine.Begin(context.Background(), &r).Response()
				switch {
				case got.Status == 200 && after:
					e.Errorf("let in after the deletion: %s", got.Body)
				case got.Status == 200:
					accepted.Add(1)
				case got.Status != 401:
					e.Errorf("%d %s", got.Status, got.Body)
				}
				if i == 0 {
					started <- struct{}{}
				}
				if after {
					return
				}
				runtime.Gosched() // for systems with one thread
			}
		})
	}
	for range cap(started) {
		<-started
	}
	err := kill()
	dead.Store(true)
	all.Wait()
	if err != nil {
		e.Fatal(err)
	}
	return int(accepted.Load())
}
