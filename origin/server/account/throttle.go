package account

import (
	"sync"
	"time"

	"github.com/sightline-dev/sightline/core/auth"
)

// throttles limit the requests of anonymous callers. Keys are hashed, and each limit stores a bounded number of keys.
type throttles struct {
	network limit  // sign-ins by network
	account limit  // sign-ins by email address and network
	signUp  limit  // attempts to sign up, by network
	signUps window // successful sign-ups in an hour, by network
	mails   limit  // reset emails by network
	address limit  // reset emails by email address
	codes   limit  // emails about further accounts that claim an owned email address, by email address
	guess   limit  // attempts with links and codes, by network
}

func newThrottles(signUps int) throttles {
	return throttles{
		signUps: window{span: time.Hour, limit: signUps},

		network: limit{every: 3 * time.Second, burst: 30},
		account: limit{every: time.Minute, burst: 8},
		signUp:  limit{every: 2 * time.Minute, burst: 20},
		mails:   limit{every: time.Minute, burst: 10},
		address: limit{every: 10 * time.Minute, burst: 3},
		codes:   limit{every: mailsPerTime / mailsPerDay, burst: mailsPerDay},
		guess:   limit{every: 3 * time.Second, burst: 30},
	}
}

// remembered is the maximum number of keys in each limit. A key takes 40 bytes plus the map's overhead.
const remembered = 1 << 14

// limit is a token bucket for each key: burst tries at once, then one per interval every. full is the time when a key's bucket is full
// again.
type limit struct {
	every time.Duration
	burst int

	mu   sync.Mutex
	full map[hash]time.Time
}

// take takes a token. If the bucket is empty, it returns *auth.RateError.
func (l *limit) take(key string, now time.Time) error {
	h := hashOf(key)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.full == nil {
		l.full = map[hash]time.Time{}
	}
	at, known := l.full[h]
	capacity := time.Duration(l.burst) * l.every
	switch {
	case !known || at.Before(now):
		at = now
	case at.Sub(now) > capacity: // the clock went back
		at = now.Add(capacity)
		l.full[h] = at
	}
	if over := at.Add(l.every).Sub(now) - capacity; over > 0 {
		return &auth.RateError{Wait: over}
	}
	if !known && len(l.full) >= remembered {
		l.forget(now)
	}
	l.full[h] = at.Add(l.every)
	return nil
}

// back returns a token to the bucket of a key.
func (l *limit) back(key string) {
	h := hashOf(key)
	l.mu.Lock()
	defer l.mu.Unlock()
	if at, ok := l.full[h]; ok {
		l.full[h] = at.Add(-l.every)
	}
}

// forget makes room for a key. It looks at a few keys in the map's order and deletes those whose buckets are full. If none is full, it
// deletes the fullest.
func (l *limit) forget(now time.Time) {
	const looked = 16
	var (
		fullest hash
		at      time.Time
		n       int
	)
	for h, full := range l.full {
		if n == 0 || full.Before(at) {
			fullest, at = h, full
		}
		if !full.After(now) {
			delete(l.full, h)
		}
		if n++; n == looked {
			break
		}
	}
	delete(l.full, fullest)
}

// window allows at most limit uses of each key in any period of length span. It stores a bounded number of keys.
type window struct {
	span  time.Duration
	limit int // 0: any number

	mu   sync.Mutex
	uses map[hash][]time.Time // oldest first
}

// take records a use. If the key has no use left, it returns *auth.RateError.
func (w *window) take(key string, now time.Time) error {
	if w.limit == 0 {
		return nil
	}
	h := hashOf(key)
	w.mu.Lock()
	defer w.mu.Unlock()
	uses := w.recent(h, now)
	if len(uses) >= w.limit {
		return &auth.RateError{Wait: w.span - now.Sub(uses[0])}
	}
	if w.uses == nil {
		w.uses = map[hash][]time.Time{}
	}
	if len(uses) == 0 && len(w.uses) >= remembered {
		w.forget(now)
	}
	w.uses[h] = append(uses, now)
	return nil
}

// back removes the newest use of a key.
func (w *window) back(key string) {
	h := hashOf(key)
	w.mu.Lock()
	defer w.mu.Unlock()
	if uses := w.uses[h]; len(uses) > 0 {
		w.uses[h] = uses[:len(uses)-1]
	}
}

// recent returns the uses of the last span. If the clock went back, uses in the future count as made now.
func (w *window) recent(h hash, now time.Time) []time.Time {
	uses := w.uses[h]
	for i := range uses {
		if uses[i].After(now) {
			uses[i] = now
		}
	}
	for len(uses) > 0 && now.Sub(uses[0]) >= w.span {
		uses = uses[1:]
	}
	return uses
}

// forget makes room for a key. It looks at a few keys in the map's order and deletes those without recent uses. If none qualifies and the
// map is full, it deletes one of them.
func (w *window) forget(now time.Time) {
	const looked = 16
	var last hash
	n := 0
	for h := range w.uses {
		if last = h; len(w.recent(h, now)) == 0 {
			delete(w.uses, h)
		}
		if n++; n == looked {
			break
		}
	}
	if len(w.uses) >= remembered {
		delete(w.uses, last)
	}
}
