package jobs

import (
	"context"
	"slices"
	"sync"
)

// shares are places that applications share. An application may take a place only while more places are free than it has taken,
// so one application alone takes half of them, and the next one half of the rest. The rule is that of dynamic thresholds in
// switches (Choudhury and Hahne, 1998): no application ever has all places, and a new one finds some without waiting.
type shares struct {
	mu      sync.Mutex
	free    int
	taken   map[string]int // by application, above 0
	waiting []claim        // in the order of their coming; none of them fits
}

// claim is a caller that waits for a place.
type claim struct {
	app  string
	turn chan struct{} // closed when the place is taken
}

func newShares(n int) *shares { return &shares{free: n, taken: map[string]int{}} }

// fits reports whether an application may take n places. The caller holds mu.
func (s *shares) fits(app string, n int) bool { return s.taken[app]+n <= s.free }

// move takes n places, or gives -n back. The caller holds mu.
func (s *shares) move(app string, n int) {
	s.free -= n
	if s.taken[app] += n; s.taken[app] == 0 {
		delete(s.taken, app)
	}
}

// try takes n places if they fit. others reports that the application has none, so others have too many.
func (s *shares) try(app string, n int) (ok, others bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ok = s.fits(app, n); ok {
		s.move(app, n)
	}
	return ok, s.taken[app] == 0
}

// take waits for a place until ctx ends.
func (s *shares) take(ctx context.Context, app string) error {
	s.mu.Lock()
	if s.fits(app, 1) {
		s.move(app, 1)
		s.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	s.waiting = append(s.waiting, claim{app, turn})
	s.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	i := slices.IndexFunc(s.waiting, func(c claim) bool { return c.turn == turn })
	if i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	}
	s.mu.Unlock()
	if i < 0 { // the place came at the last moment
		s.give(app, 1)
	}
	return ctx.Err()
}

// give returns n places. Among the claims that fit now, it serves the application with the fewest places first.
func (s *shares) give(app string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.move(app, -n)
	for {
		next := -1
		for i := range s.waiting {
			if next < 0 || s.taken[s.waiting[i].app] < s.taken[s.waiting[next].app] {
				next = i
			}
		}
		if next < 0 || !s.fits(s.waiting[next].app, 1) {
			return
		}
		c := s.waiting[next]
		s.waiting = slices.Delete(s.waiting, next, next+1)
		s.move(c.app, 1)
		close(c.turn)
	}
}

// used returns the number of places that are taken.
func (s *shares) used() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, taken := range s.taken {
		n += taken
	}
	return n
}
