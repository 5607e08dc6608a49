package httpd

import "sync"

// shares is a number of bytes that callers share. A caller may hold as many as are free: one alone gets half of all, and each of n
// callers an (n+1)th, so that one that comes later finds room. It never waits: a queue of bodies or answers would be the memory that
// the bound saves.
type shares struct {
	least int64 // bytes that a caller may hold whenever they are free

	mu   sync.Mutex
	free int64
	held map[string]int64 // by caller
}

func newShares(all, least int64) *shares {
	return &shares{free: all, least: least, held: map[string]int64{}}
}

// has reports whether a caller may take n bytes now. The caller of has holds mu.
func (s *shares) has(caller string, n int64) bool {
	return n <= s.free && s.held[caller]+n <= max(s.least, s.free-n)
}

// fits reports whether a caller may take n bytes now.
func (s *shares) fits(caller string, n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.has(caller, n)
}

// take takes n bytes for a caller, or none.
func (s *shares) take(caller string, n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.has(caller, n) {
		return false
	}
	s.free -= n
	s.held[caller] += n
	return true
}

func (s *shares) give(caller string, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free += n
	if s.held[caller] -= n; s.held[caller] == 0 {
		delete(s.held, caller)
	}
}

// left returns the free bytes.
func (s *shares) left() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free
}

// smallAnswer is the number of bytes of each answer that no share counts: the bound on connections bounds them.
const smallAnswer = 64 << 10

// share is the memory of one answer, until it is sent. It is used by the goroutine of its connection.
type share struct {
	of     *shares
	caller func() string // the answer's; called for the first large one
	name   string        // what it returned
	taken  int64
}

// reserve makes the share total bytes, if it is smaller.
func (a *share) reserve(total int64) bool {
	n := total - smallAnswer - a.taken
	if n <= 0 {
		return true
	}
	if a.caller != nil {
		a.name, a.caller = a.caller(), nil
	}
	if !a.of.take(a.name, n) {
		return false
	}
	a.taken += n
	return true
}

// settle makes the share total bytes, if it is larger.
func (a *share) settle(total int64) {
	if n := a.taken - max(total-smallAnswer, 0); n > 0 {
		a.of.give(a.name, n)
		a.taken -= n
	}
}
