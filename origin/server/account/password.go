package account

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/sightline-dev/sightline/core/kv"
)

// resetLife is the time for which a reset link is valid.
const resetLife = time.Hour

// ChangePassword gives an account another password. All its sessions end; the token of a new one is
// returned. The errors are ErrWrongPassword, ErrPassword, ErrUnknown, *auth.RateError, api.ErrBusy and the store's.
func (r *Registry) ChangePassword(ctx context.Context, id, old, password, remote string) (token string, a Account, err error) {
	rec, err := r.confirm(ctx, id, old, remote)
	if err != nil {
		return "", a, err
	}
	if password, err = checkPassword(password, rec.Name, rec.Email); err != nil {
		return "", a, err
	}
	return r.setPassword(ctx, &rec, password, remote, AccountPassword)
}

// confirm loads an account whose owner has typed the password again. The errors are ErrWrongPassword, ErrUnknown,
// *auth.RateError, api.ErrBusy and the store's.
func (r *Registry) confirm(ctx context.Context, id, password, remote string) (record, error) {
	both := remote + "\x00" + id
	if err := r.throttle.account.take(both, r.o.Now()); err != nil {
		return record{}, err
	}
	rec, err := load(r.o.Store, id)
	if err != nil {
		return record{}, err
	}
	same, err := r.hashing.same(ctx, formPassword(password), rec.Password)
	if err != nil {
		return record{}, err
	}
	if !same {
		return record{}, ErrWrongPassword
	}
	r.throttle.account.back(both)
	return rec, nil
}

// setPassword changes a password, unless the record was changed meanwhile.
func (r *Registry) setPassword(ctx context.Context, was *record, password, remote string, action Action) (token string, a Account, err error) {
	like := "" // claims to an address share their salt
	if action == AccountPassword && !was.Verified {
		like = was.Password
	}
	hashed, err := r.hashing.hash(ctx, password, like)
	if err != nil {
		return "", a, err
	}
	if token, err = r.NewToken(); err != nil {
		return "", a, err
	}
	var to record
	a, err = r.edit(was.ID, func(c *change, rec *record) error {
		if rec.Password != was.Password || action == PasswordReset && !rec.resets(was.Reset, c.now) {
			return ErrLink
		}
		rec.Password = hashed
		place := c.claim
		if action == PasswordReset || rec.Verified { // the link came to the address
			place = c.own
		}
		if err := place(rec); err != nil {
			return err
		}
		c.dropReset(rec)
		to = *rec
		if err := c.endAll(rec.ID, hash{}); err != nil {
			return err
		}
		if err := c.open(rec.ID, token, remote); err != nil {
			return err
		}
		return c.event(Event{Actor: rec.ID, Action: action, Target: rec.ID, Remote: remote})
	})
	if err != nil {
		return "", a, err
	}
	r.meters.invalidate(a.ID)
	r.post.send(passwordMail(&to))
	return token, a, nil
}

// resets reports whether a hash is that of the account's reset link.
func (rec *record) resets(h []byte, now time.Time) bool {
	return h != nil && bytes.Equal(rec.Reset, h) && now.Before(rec.ResetEnd)
}

// MailReset mails a link with which the owner of an address sets another password. If no account has verified the address, the link is
// for the first that claims it. Whether there is such an account
// shows neither in the error nor in the work. The errors are *auth.RateError and the store's.
func (r *Registry) MailReset(_ context.Context, email, remote string) error {
	now := r.o.Now()
	if err := r.throttle.mails.take(remote, now); err != nil {
		return err
	}
	email, err := checkEmail(email)
	if err != nil || r.throttle.address.take(email, now) != nil {
		return nil
	}
	token, err := r.NewToken()
	if err != nil {
		return err
	}
	h := hashOf(token)
	var to record
	err = r.change(func(c *change) error {
		rec, err := find(c.store, email)
		if err != nil {
			return err
		}
		if rec.Password == "" { // of nobody, or of the demo's account
			return c.event(Event{Action: PasswordMail, Remote: remote})
		}
		c.dropReset(&rec)
		rec.Reset, rec.ResetEnd = h[:], c.now.Add(resetLife)
		target := ""
		if rec.Verified { // another's claim must not see that the address is its own
			target = rec.ID
		}
		c.Put(resetKey(h[:]), []byte(rec.ID))
		to = rec
		if err := c.put(accountKey(rec.ID), &rec); err != nil {
			return err
		}
		return c.event(Event{Action: PasswordMail, Target: target, Remote: remote})
	})
	if err == nil && to.ID != "" {
		r.post.send(resetMail(&to, r.o.PublicURL+"/reset?token="+token))
	}
	return err
}

// Reset takes the token of a link and sets a password. The address is verified by it, all sessions end, and the token
// of a new one is returned. The errors are ErrLink, ErrPassword, *auth.RateError, api.ErrBusy, the store's, revoke's, and ErrTaken if
// another account has verified the address since the link was mailed.
//
// If nobody had verified the address, a stranger may have made the account. revoke then ends the account's other credentials: before the
// password changes, so that none outlives a crash, and after the sessions ended, for those made in between. revoke may be nil.
func (r *Registry) Reset(
	ctx context.Context, token, password, remote string, revoke func(ctx context.Context, id string) error,
) (session string, a Account, err error) {
	if err := r.throttle.guess.take(remote, r.o.Now()); err != nil {
		return "", a, err
	}
	h := hashOf(token)
	id, err := kv.Find(r.o.Store, resetKey(h[:]))
	if err != nil {
		return "", a, err
	}
	rec, err := load(r.o.Store, string(id))
	if errors.Is(err, ErrUnknown) || err == nil && !rec.resets(h[:], r.o.Now()) {
		return "", a, ErrLink
	}
	if err != nil {
		return "", a, err
	}
	if password, err = checkPassword(password, rec.Name, rec.Email); err != nil {
		return "", a, err
	}
	if rec.Verified || revoke == nil {
		return r.setPassword(ctx, &rec, password, remote, PasswordReset)
	}
	if err := revoke(ctx, rec.ID); err != nil {
		return "", a, err
	}
	if session, a, err = r.setPassword(ctx, &rec, password, remote, PasswordReset); err != nil {
		return "", a, err
	}
	return session, a, revoke(ctx, rec.ID)
}
