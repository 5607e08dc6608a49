package shares

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestSharesLeaveRoom makes one application take all places that it can get. Each further application finds places at once: half of the
// rest.
func TestSharesLeaveRoom(t *testing.T) {
	s := New(64, 1)
	for i, want := range []int{32, 16, 8, 4, 2, 1, 1, 0} {
		app, got := strconv.Itoa(i), 0
		for ok := true; ok; {
			if ok = s.TryAcquire(app, 1); ok {
				got++
			}
		}
		if got != want {
			t.Errorf("application %d takes %d places, want %d", i, got, want)
		}
	}
}

// TestSharesGoToTheApplicationWithTheFewest frees places while two applications wait.
func TestSharesGoToTheApplicationWithTheFewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(4, 1)
		ctx, stop := context.WithCancel(t.Context())
		var mu sync.Mutex
		var order []string
		var waiting sync.WaitGroup
		take := func(app string) {
			waiting.Go(func() {
				if s.Acquire(ctx, app, 1) == nil {
					mu.Lock()
					order = append(order, app)
					mu.Unlock()
				}
			})
			synctest.Wait()
		}
		for _, app := range []string{"a", "a", "a", "a", "b", "c", "d"} { // two places, one and one: a and d wait
			take(app)
		}
		for _, from := range []string{"a", "a"} {
			s.Release(from, 1)
			synctest.Wait()
		}
		mu.Lock()
		if got := len(order); got != 6 || order[4] != "d" || order[5] != "a" {
			t.Errorf("places went to %v, want d before a at the end", order)
		}
		mu.Unlock()
		stop()
		waiting.Wait()
	})
}

// TestSharesServeInTurns makes one application wait for the only place with many claims before another application waits with one. The
// other application is served second, not last.
func TestSharesServeInTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(1, 1)
		if err := s.Acquire(t.Context(), "a", 1); err != nil {
			t.Fatal(err)
		}
		order := make(chan string, 10)
		for _, app := range []string{"a", "a", "a", "a", "a", "a", "a", "a", "a", "b"} {
			go func() {
				if s.Acquire(t.Context(), app, 1) == nil {
					order <- app
					s.Release(app, 1)
				}
			}()
			synctest.Wait()
		}
		s.Release("a", 1)
		synctest.Wait()
		if first, second := <-order, <-order; first != "a" || second != "b" {
			t.Errorf("places went to %s and %s first, want a and b", first, second)
		}
	})
}

// TestSharesAddUp makes many callers take places, return them and stop waiting at random times. No caller ever waits that could have a
// place, and places in use and free places always add up. In the end all places are free.
func TestSharesAddUp(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			const places = 8
			s := New(places, 1)
			rnd := rand.New(rand.NewPCG(seed, 0))
			moment := func() time.Duration { return time.Duration(rnd.IntN(20)) * time.Millisecond }
			var callers sync.WaitGroup
			for range 200 {
				app, begins, timeout, holdTime := strconv.Itoa(rnd.IntN(4)), moment(), moment(), moment()
				callers.Go(func() {
					time.Sleep(begins) // virtual
					ctx, stop := context.WithTimeout(t.Context(), timeout)
					defer stop()
					if s.Acquire(ctx, app, 1) == nil {
						time.Sleep(holdTime) // virtual
						s.Release(app, 1)
					}
				})
			}
			for range 60 {
				time.Sleep(time.Millisecond) // virtual
				synctest.Wait()
				s.mu.Lock()
				sum := s.free
				for _, n := range s.places {
					sum += n
				}
				for _, c := range s.waiting {
					if s.fits(c.caller, 1) {
						t.Errorf("seed %d: application %s waits and has %v of %d places", seed, c.caller, s.places, places)
					}
				}
				if sum != places || s.free < 0 {
					t.Errorf("seed %d: %d places are free and %v taken, want %d in all", seed, s.free, s.places, places)
				}
				s.mu.Unlock()
			}
			callers.Wait()
			if s.free != places || len(s.places) != 0 || len(s.waiting) != 0 {
				t.Errorf("seed %d: %d places are free, %v are taken, %d callers wait at the end", seed, s.free, s.places, len(s.waiting))
			}
		})
	}
}

// TestSharesOfBytes makes callers reserve bytes. Each can have at least 100 while there are enough.
func TestSharesOfBytes(t *testing.T) {
	s := New(1200, 100)
	for _, step := range []struct {
		caller string
		n      int64
		want   bool
	}{
		{"a", 600, true},
		{"a", 1, false}, // half of all
		{"b", 300, true},
		{"b", 1, false}, // half of the rest
		{"c", 150, true},
		{"a", 1, false},
		{"d", 100, true},
		{"e", 50, true},
		{"f", 1, false}, // no bytes are left
	} {
		if got := s.Fits(step.caller, step.n); got != step.want {
			t.Errorf("%s may take %d: %t, want %t", step.caller, step.n, got, step.want)
		}
		if got := s.TryAcquire(step.caller, step.n); got != step.want {
			t.Errorf("%s takes %d: %t, want %t", step.caller, step.n, got, step.want)
		}
	}
	s.Release("a", 600)
	if !s.TryAcquire("f", 200) || s.Free() != 400 {
		t.Errorf("after a has given back %d are left, want 400", s.Free())
	}
}

// TestRoomIsLargestThatFits compares a caller's room with the largest number of places that fit.
func TestRoomIsLargestThatFits(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		s := New(rnd.Int64N(40), rnd.Int64N(4))
		for range 6 {
			caller := strconv.Itoa(rnd.IntN(3))
			if rnd.IntN(4) == 0 {
				s.Force(caller, rnd.Int64N(8))
			}
			want := int64(0)
			for n := range int64(41) {
				if s.Fits(caller, n) {
					want = n
				}
			}
			if got := s.Room(caller); got != want {
				t.Fatalf("seed %d: room for %d of %d, %d fit", seed, got, s.all, want)
			}
			s.TryAcquire(caller, rnd.Int64N(want+1))
		}
	}
}
