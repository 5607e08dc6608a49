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

// ChangePassword changes an account's password. It ends all its sessions and returns the token of a new one. The errors are
// ErrWrongPassword, ErrPassword, ErrUnknown, *auth.RateError, api.ErrBusy and the store's.
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

// confirm loads an account and checks the password that its owner has typed. The errors are ErrWrongPassword, ErrUnknown, *auth.RateError,
// api.ErrBusy and the store's.
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

// setPassword changes a password. It fails if the password, or the used reset link, has changed meanwhile.
func (r *Registry) setPassword(ctx context.Context, was *record, password, remote string, action Action) (token string, a Account, err error) {
	like := "" // all claims to an address share a salt
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
		if action == PasswordReset || rec.Verified { // the user received the link at this address
			place = c.setHolder
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
	r.post.send(passwordMail(&to, r.newKeys(&to)))
	return token, a, nil
}

// newKeys returns the keys that were created in the last day. If they cannot be read, the email names none.
func (r *Registry) newKeys(rec *record) []NewKey {
	if r.o.NewKeys == nil {
		return nil
	}
	keys, err := r.o.NewKeys(rec.Account, r.o.Now().Add(-newKeyAge))
	if err != nil {
		r.o.Log.Warn("cannot list new keys for an email", "account", rec.ID, "error", err)
	}
	return keys
}

// resets reports whether h is the hash of the account's valid reset link.
func (rec *record) resets(h []byte, now time.Time) bool {
	return h != nil && bytes.Equal(rec.Reset, h) && now.Before(rec.ResetEnd)
}

// SendResetLink sends a link by email with which the owner of an email address sets a new password. If no account has verified the address,
// the link is for the first account that claims it. Neither the error nor its time shows whether such an account exists. The errors are
// *auth.RateError and the store's.
func (r *Registry) SendResetLink(_ context.Context, email, remote string) error {
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
		if rec.Password == "" { // no account, or the demo's
			return c.event(Event{Action: PasswordMail, Remote: remote})
		}
		c.dropReset(&rec)
		rec.Reset, rec.ResetEnd = h[:], c.now.Add(resetLife)
		target := ""
		if rec.Verified { // an account that only claims the address must not see that it is registered
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

// Reset sets a new password with the token of a link. It verifies the email address, ends all sessions and returns the token of a new one.
// The errors are ErrLink, ErrPassword, *auth.RateError, api.ErrBusy, the store's and revoke's. If another account has verified the address
// since the link was sent, the error is ErrTaken.
//
// If nobody had verified the address, a stranger may have created the account. Reset then calls revoke to end the account's other
// credentials. It calls revoke before the password changes, so that none outlives a crash. It calls revoke again after the sessions have
// ended, for credentials created in between. revoke may be nil.
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
