// Package shares divides a limited number of places among callers, so that one caller cannot take all of them.
package shares

import (
	"context"
	"slices"
	"sync"
)

// Shares is a number of places, or of bytes of memory, that callers share. A caller may hold as many places as remain free: the first
// caller gets at most half of all places, and the next one at most half of the rest. This is the rule of dynamic thresholds in switches
// (Choudhury and Hahne, 1998). A caller can hold more only through least and Force, so a new caller usually finds a free place without
// waiting. Shares is safe for concurrent use.
type Shares struct {
	all   int64
	least int64 // number of places that a caller may always hold if they are free

	mu      sync.Mutex
	free    int64             // can be below 0 after Force
	places  map[string]int64  // by caller; values are above 0
	waiting []claim           // in order of arrival; none of them fits
	turn    uint64            // number of claims that Release has served
	served  map[string]uint64 // turn of the last served claim, by caller with claims or served since the last time that nobody waited
}

// claim is a caller that waits for n places.
type claim struct {
	caller string
	n      int64
	turn   chan struct{} // closed when the places are taken
}

// New returns Shares of all places, all of them free. A caller may always hold least places if they are free.
func New(all, least int64) *Shares {
	return &Shares{all: all, least: least, free: all, places: map[string]int64{}, served: map[string]uint64{}}
}

// fits reports whether a caller may take n places. The caller of fits holds mu.
func (s *Shares) fits(caller string, n int64) bool {
	return n <= s.free && s.places[caller]+n <= max(s.least, s.free-n)
}

// move takes n places for a caller. If n is negative, it returns -n places. The caller of move holds mu.
func (s *Shares) move(caller string, n int64) {
	s.free -= n
	if s.places[caller] += n; s.places[caller] == 0 {
		delete(s.places, caller)
	}
}

// Fits reports whether a caller may take n places now.
func (s *Shares) Fits(caller string, n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fits(caller, n)
}

// Room returns the largest number of places that a caller may take now.
func (s *Shares) Room(caller string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	used := s.places[caller]
	return max(0, min(s.free, max(s.least-used, (s.free-used)/2)))
}

// TryAcquire takes n places for a caller if they fit, and reports whether it took them. It does not wait.
func (s *Shares) TryAcquire(caller string, n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.fits(caller, n) {
		return false
	}
	s.move(caller, n)
	return true
}

// Force takes n places for a caller, whether or not they fit.
func (s *Shares) Force(caller string, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.move(caller, n)
}

// Acquire waits until n places fit and takes them for a caller. If ctx ends first, it returns the error of ctx.
func (s *Shares) Acquire(ctx context.Context, caller string, n int64) error {
	s.mu.Lock()
	if s.fits(caller, n) {
		s.move(caller, n)
		s.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	s.waiting = append(s.waiting, claim{caller, n, turn})
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
	if i < 0 { // Release assigned the places while ctx ended
		s.Release(caller, n)
	}
	return ctx.Err()
}

// Release returns n places of a caller. It then serves waiting callers that fit, those with the fewest places first. Among equals it serves
// the caller that was served longest ago, so a caller with many claims does not delay the others.
func (s *Shares) Release(caller string, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.move(caller, -n)
	for {
		next := -1
		for i := range s.waiting {
			if c := &s.waiting[i]; s.fits(c.caller, c.n) && (next < 0 || s.before(c.caller, s.waiting[next].caller)) {
				next = i
			}
		}
		if next < 0 {
			if len(s.waiting) == 0 {
				clear(s.served)
			}
			return
		}
		c := s.waiting[next]
		s.waiting = slices.Delete(s.waiting, next, next+1)
		s.turn++
		s.served[c.caller] = s.turn
		s.move(c.caller, c.n)
		close(c.turn)
	}
}

// before reports whether Release serves caller a before caller b. The caller of before holds mu.
func (s *Shares) before(a, b string) bool {
	if s.places[a] != s.places[b] {
		return s.places[a] < s.places[b]
	}
	return s.served[a] < s.served[b]
}

// Free returns the number of places that nobody holds.
func (s *Shares) Free() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free
}

// InUse returns the number of places that a caller holds.
func (s *Shares) InUse(caller string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.places[caller]
}

// TotalInUse returns the number of places that all callers hold.
func (s *Shares) TotalInUse() int64 { return s.all - s.Free() }
