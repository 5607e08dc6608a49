package account

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/kv"
)

const (
	// SessionLife is the time for which a session stays valid after its last use.
	SessionLife = 30 * 24 * time.Hour

	seenEvery   = time.Hour // interval at which a session's last use is recorded
	maxSessions = 64        // maximum number of an account's sessions; a new one replaces the least recently used
	secretBytes = 32        // size of the secrets of sessions and links
	idBytes     = 8         // size of the id of a session
)

// Session is an open session as stored.
type Session struct {
	Account string
	Created time.Time
	Seen    time.Time // last use, to the hour
	Remote  string    // network of the sign-in
	hash    hash      // of its token
}

// ID returns the start of the token's hash, 16 hex digits.
func (s *Session) ID() string { return idOf(s.hash) }

// SessionID returns the id of the session with a token.
func SessionID(token string) string { return idOf(hashOf(token)) }

func idOf(h hash) string { return hex.EncodeToString(h[:idBytes]) }

// HasToken reports whether token belongs to the session.
func (s *Session) HasToken(token string) bool { return s.hash == hashOf(token) }

func (s *Session) over(now time.Time) bool { return now.Sub(s.Seen) > SessionLife }

// NewToken returns a secret of 256 bits in hex, for example for a cookie before a sign-in.
func (r *Registry) NewToken() (string, error) { return r.random(secretBytes) }

// SignIn opens a session and returns its token. The errors are auth.ErrLogin, *auth.RateError, api.ErrBusy and the store's. An unknown
// email address takes as much time as a known one.
func (r *Registry) SignIn(ctx context.Context, email, password, remote string) (token string, a Account, err error) {
	now := r.o.Now()
	normal, err := checkEmail(email)
	both := remote + "\x00" + normal
	if err != nil { // normal is empty and matches no account
		both = remote + "\x00" + email
	}
	if err := r.throttle.network.take(remote, now); err != nil {
		return "", a, err
	}
	if err := r.throttle.account.take(both, now); err != nil {
		return "", a, err
	}
	rec, owner, err := r.match(ctx, normal, password)
	if err != nil {
		return "", a, err
	}
	same := rec.ID != ""
	if token, err = r.NewToken(); err != nil {
		return "", a, err
	}
	err = r.change(func(c *change) error {
		if same {
			current, err := load(c.store, rec.ID)
			if err != nil && !errors.Is(err, ErrUnknown) {
				return err
			}
			same = err == nil && current.Password == rec.Password // false if the password was changed meanwhile
		}
		if !same { // an account that only claims the address must not see whether it is registered
			return c.event(Event{Action: SignInFailed, Target: owner, Remote: remote})
		}
		if err := c.open(rec.ID, token, remote); err != nil {
			return err
		}
		return c.event(Event{Actor: rec.ID, Action: SignIn, Target: rec.ID, Remote: remote})
	})
	if err != nil {
		return "", a, err
	}
	if !same {
		return "", a, auth.ErrLogin
	}
	r.throttle.network.back(remote)
	r.throttle.account.back(both)
	return token, rec.Account, nil
}

// Login implements [github.com/sightline-dev/sightline/core/api.Accounts].
func (r *Registry) Login(ctx context.Context, email, password, remote string) (session, account string, err error) {
	token, a, err := r.SignIn(ctx, email, password, remote)
	return token, a.ID, err
}

// OpenSession opens a session without a password. The host must have made sure that the caller is the account's owner.
func (r *Registry) OpenSession(id, remote string) (token string, err error) {
	if token, err = r.NewToken(); err != nil {
		return "", err
	}
	return token, r.change(func(c *change) error {
		if _, err := load(c.store, id); err != nil {
			return err
		}
		if err := c.open(id, token, remote); err != nil {
			return err
		}
		return c.event(Event{Actor: id, Action: SignIn, Target: id, Remote: remote})
	})
}

// open adds a session.
func (c *change) open(id, token, remote string) error {
	if err := c.makeRoom(id); err != nil {
		return err
	}
	h := hashOf(token)
	c.Put(sessionsKey(id, h), nil)
	return c.put(sessionKey(h), Session{Account: id, Created: c.now, Seen: c.now, Remote: remote})
}

// makeRoom removes the least recently used sessions of an account, to make room for one more.
func (c *change) makeRoom(id string) error {
	open, err := sessions(c.store, id)
	if err != nil || len(open) < maxSessions {
		return err
	}
	slices.SortFunc(open, func(a, b Session) int { return a.Seen.Compare(b.Seen) })
	for _, s := range open[:len(open)-maxSessions+1] {
		c.end(id, s.hash)
	}
	return nil
}

func (c *change) end(id string, h hash) {
	c.Delete(sessionKey(h))
	c.Delete(sessionsKey(id, h))
}

// endAll ends all sessions of an account except but. The zero hash matches no session.
func (c *change) endAll(id string, but hash) error {
	open, err := sessions(c.store, id)
	for _, s := range open {
		if s.hash != but {
			c.end(id, s.hash)
		}
	}
	return err
}

// sessions returns the sessions of an account.
func sessions(store kv.Reader, id string) (open []Session, err error) {
	prefix := key(tableSessions, bytesOf(id))
	for k := range kv.WithPrefix(store, prefix, &err) {
		open = append(open, Session{hash: hash(k[len(prefix):])})
	}
	for i := range open {
		if err := get(store, sessionKey(open[i].hash), &open[i]); err != nil && !errors.Is(err, ErrUnknown) {
			return nil, err
		}
	}
	return open, err
}

// Sessions lists an account's open sessions, newest first.
func (r *Registry) Sessions(id string) ([]Session, error) {
	open, err := sessions(r.o.Store, id)
	now := r.o.Now()
	for i := range open {
		r.refresh(&open[i])
	}
	open = slices.DeleteFunc(open, func(s Session) bool { return s.Account != id || s.over(now) })
	slices.SortFunc(open, func(a, b Session) int { return b.Created.Compare(a.Created) })
	return open, err
}

// Session implements [github.com/sightline-dev/sightline/core/api.Accounts].
func (r *Registry) Session(_ context.Context, token string) (account string, err error) {
	if len(token) != 2*secretBytes {
		return "", auth.ErrSession
	}
	var (
		s   = Session{hash: hashOf(token)}
		now = r.o.Now()
	)
	err = get(r.o.Store, sessionKey(s.hash), &s)
	r.refresh(&s)
	if errors.Is(err, ErrUnknown) || err == nil && s.over(now) {
		return "", auth.ErrSession
	}
	if err != nil {
		return "", err
	}
	if now.Sub(s.Seen) > seenEvery {
		r.recordUse(s.hash, now)
	}
	return s.Account, nil
}

// CheckSession implements [github.com/sightline-dev/sightline/core/api.Accounts].
func (r *Registry) CheckSession(_ context.Context, id string) error {
	start, err := hex.DecodeString(id)
	if err != nil || len(start) != idBytes {
		return auth.ErrSession
	}
	now := r.o.Now()
	for k, v := range kv.WithPrefix(r.o.Store, key(tableSession, start), &err) {
		s := Session{hash: hash(k[len(k)-len(hash{}):])}
		if json.Unmarshal(v, &s) != nil {
			continue
		}
		if r.refresh(&s); !s.over(now) {
			return nil
		}
	}
	if err != nil {
		return err
	}
	return auth.ErrSession
}

// recordUse records that a session was used, and does not wait until that is durable: a read must not wait for a write. So it also leaves
// the record to the next use while a change runs, or to the machine that writes. It ignores errors of the store.
func (r *Registry) recordUse(h hash, now time.Time) {
	if !r.mu.TryLock() {
		return
	}
	defer r.mu.Unlock()
	if r.follows.Load() {
		return
	}
	var s Session
	if err := get(r.o.Store, sessionKey(h), &s); err != nil {
		return // the session ended meanwhile
	}
	s.Seen = now
	var b kv.Batch
	if text, err := json.Marshal(s); err == nil {
		b.Put(sessionKey(h), text)
	}
	wait, err := r.o.Store.Commit(&b)
	if err != nil {
		r.o.Log.Debug("cannot update session", "error", err)
		return
	}
	r.seen.Store(h, now)
	r.seeWait = wait
}

// refresh adds the last use that the store may not show yet to a session.
func (r *Registry) refresh(s *Session) {
	if at, ok := r.seen.Load(s.hash); ok {
		s.Seen = at.(time.Time)
	}
}

// settle waits until the store shows the last uses of all sessions. The caller holds mu.
func (r *Registry) settle() {
	if r.seeWait == nil {
		return
	}
	if err := r.seeWait(); err != nil {
		r.o.Log.Debug("cannot update sessions", "error", err)
	}
	r.seeWait = nil
	r.seen.Clear()
}

// SignOut ends a session. If the session is not open, SignOut returns nil.
func (r *Registry) SignOut(token, remote string) error {
	h := hashOf(token)
	return r.change(func(c *change) error {
		var s Session
		if err := get(c.store, sessionKey(h), &s); err != nil {
			if errors.Is(err, ErrUnknown) {
				return nil
			}
			return err
		}
		c.end(s.Account, h)
		return c.event(Event{Actor: s.Account, Action: SignOut, Target: s.Account, Remote: remote})
	})
}

// EndSession ends the session of an account with the given id. It returns ErrUnknown if the account has no such session.
func (r *Registry) EndSession(account, id, remote string) error {
	return r.change(func(c *change) error {
		open, err := sessions(c.store, account)
		if err != nil {
			return err
		}
		for _, s := range open {
			if s.ID() == id {
				c.end(account, s.hash)
				return c.event(Event{Actor: account, Action: SignOut, Target: account, Remote: remote})
			}
		}
		return fmt.Errorf("session: %w", ErrUnknown)
	})
}

// endEvery is the minimum time between two removals of expired sessions.
const endEvery = time.Hour

// endSessions removes the expired sessions.
func (r *Registry) endSessions(now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.follows.Load() || now.Sub(r.ended) < endEvery {
		return nil
	}
	r.ended = now
	r.settle()
	var b kv.Batch
	prefix := key(tableSession)
	var err error
	for k, v := range kv.WithPrefix(r.o.Store, prefix, &err) {
		var s Session
		if json.Unmarshal(v, &s) == nil && s.over(now) {
			b.Delete(k)
			b.Delete(sessionsKey(s.Account, hash(k[len(prefix):])))
		}
	}
	if err != nil || b.Len() == 0 {
		return err
	}
	return kv.CommitAndWait(r.o.Store, &b)
}
