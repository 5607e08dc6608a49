package account

import (
	"context"
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/sightline-dev/sightline/core/auth"
)

const (
	codeLife  = 30 * time.Minute
	codeTries = 5

	// Limits of emails with codes to one account: a code allows five guesses in a million, so an account has fifty guesses a day.
	mailEvery    = time.Minute
	mailsPerDay  = 10
	mailsPerTime = 24 * time.Hour
)

// code is a code that verifies an email address.
type code struct {
	Hash  []byte // hash of the account's id and the digits
	End   time.Time
	Tries int // number of wrong guesses
}

// codesSent counts the codes that were sent to an account.
type codesSent struct {
	Last, Since time.Time
	Count       int // number of codes since Since
}

// newCode returns six random digits.
func (r *Registry) newCode() (string, error) {
	const digits = 1_000_000
	for {
		var b [4]byte
		if _, err := io.ReadFull(r.o.Random, b[:]); err != nil {
			return "", fmt.Errorf("random source: %w", err)
		}
		if n := binary.BigEndian.Uint32(b[:]); n < 1<<32/digits*digits { // makes all codes equally likely
			return fmt.Sprintf("%06d", n%digits), nil
		}
	}
}

// code sets a new code for an account and returns the email with it. If another account has verified the address, the email goes to that
// account's owner instead, and no digits match the code. All accounts that claim an owned address share a limit of emails; beyond it the
// email is zero. The account sees neither, since a stranger may have created it.
func (r *Registry) code(c *change, rec *record) (mail Mail, err error) {
	secret, err := r.newCode()
	if err != nil {
		return mail, err
	}
	holder, err := find(c.store, rec.Email)
	if err != nil {
		return mail, err
	}
	available := holder.ID == "" || holder.ID == rec.ID
	sent := available || r.throttle.codes.take(rec.Email, c.now) == nil
	switch {
	case !sent:
		r.o.Log.Info("email not sent: too many accounts claim the address", "to", rec.Email)
	case available || !holder.Verified:
		mail = codeMail(rec, secret)
	case holder.Password != "": // the demo's account has none
		mail = addressInUseMail(&holder, r.o.PublicURL+"/forgot")
	}
	if !sent || !available && holder.Verified {
		if secret, err = r.NewToken(); err != nil {
			return mail, err
		}
	}
	rec.Code = c.code(rec, secret)
	return mail, nil
}

// code returns the stored form of the code secret, and counts an email that is sent now.
func (c *change) code(rec *record, secret string) *code {
	if c.now.Sub(rec.Mailed.Since) >= mailsPerTime {
		rec.Mailed = codesSent{Since: c.now}
	}
	rec.Mailed.Last = c.now
	rec.Mailed.Count++
	h := hashOf(rec.ID + secret)
	return &code{Hash: h[:], End: c.now.Add(codeLife)}
}

// wait returns *auth.RateError if the account must wait before the next email.
func (m *codesSent) wait(now time.Time) error {
	if after := mailEvery - now.Sub(m.Last); after > 0 {
		return &auth.RateError{Wait: min(after, mailEvery)}
	}
	if after := mailsPerTime - now.Sub(m.Since); m.Count >= mailsPerDay && after > 0 {
		return &auth.RateError{Wait: min(after, mailsPerTime)}
	}
	return nil
}

// SendCode sends another code by email. The previous code becomes invalid. For a verified account SendCode does nothing and returns nil.
// The errors are ErrUnknown, *auth.RateError and the store's.
func (r *Registry) SendCode(_ context.Context, id string) error {
	var mail Mail
	_, err := r.edit(id, func(c *change, rec *record) (err error) {
		if rec.Verified {
			return nil
		}
		if err := rec.Mailed.wait(c.now); err != nil {
			return err
		}
		mail, err = r.code(c, rec)
		return err
	})
	if err == nil {
		r.post.send(mail)
	}
	return err
}

// Verify verifies the account's email address if digits is the code from the email. The errors are ErrCode, ErrUnknown, *auth.RateError and
// the store's. If another account has verified the address meanwhile, the error for the right code is ErrTaken.
func (r *Registry) Verify(_ context.Context, id, digits, remote string) (Account, error) {
	if err := r.throttle.guess.take(remote, r.o.Now()); err != nil {
		return Account{}, err
	}
	wrong := false
	a, err := r.edit(id, func(c *change, rec *record) error {
		if rec.Verified {
			return nil
		}
		if rec.Code == nil || rec.Code.Tries >= codeTries || !c.now.Before(rec.Code.End) {
			return ErrCode
		}
		h := hashOf(id + digits)
		if wrong = subtle.ConstantTimeCompare(h[:], rec.Code.Hash) != 1; wrong {
			rec.Code.Tries++
			return c.event(Event{Actor: id, Action: AccountUnverify, Target: id, Remote: remote})
		}
		if err := c.setHolder(rec); err != nil {
			return err
		}
		return c.event(Event{Actor: id, Action: AccountVerify, Target: id, Remote: remote})
	})
	if err != nil {
		return a, err
	}
	if wrong {
		return a, ErrCode
	}
	r.meters.invalidate(id)
	return a, nil
}

// ChangeEmail changes an account's email address, which the user must verify again. If the old address was verified, it gets an email.
// Links that were sent to the old address become invalid. Neither the answer nor its time shows whether another account has the new
// address. The errors are ErrEmail, ErrWrongPassword, ErrUnknown, *auth.RateError, api.ErrBusy and the store's.
func (r *Registry) ChangeEmail(ctx context.Context, id, email, password, remote string) (Account, error) {
	email, err := checkEmail(email)
	if err != nil {
		return Account{}, err
	}
	before, err := r.confirm(ctx, id, password, remote)
	if err != nil || before.Email == email {
		return before.Account, err
	}
	if err := r.throttle.signUp.take(remote, r.o.Now()); err != nil {
		return Account{}, err
	}
	var (
		rec  record
		mail Mail
	)
	err = r.changeClaim(ctx, email, formPassword(password), func(c *change, hashed string) (err error) {
		if rec, err = load(c.store, id); err != nil {
			return err
		}
		if rec.Password != before.Password || rec.Email != before.Email {
			return ErrWrongPassword // the account was changed meanwhile
		}
		if err := rec.Mailed.wait(c.now); err != nil {
			return err
		}
		before = rec
		if err := c.removeClaim(&rec); err != nil {
			return err
		}
		c.dropReset(&rec)
		rec.Email, rec.Verified, rec.Password = email, false, hashed
		if err := c.claim(&rec); err != nil {
			return err
		}
		if mail, err = r.code(c, &rec); err != nil {
			return err
		}
		if err := c.put(accountKey(id), &rec); err != nil {
			return err
		}
		return c.event(Event{Actor: id, Action: AccountEmail, Target: id, Remote: remote})
	})
	if err != nil {
		return Account{}, err
	}
	r.meters.invalidate(id)
	if before.Verified {
		r.post.send(movedMail(&before))
	}
	r.post.send(mail)
	return rec.Account, nil
}

// dropReset deletes an account's reset link.
func (c *change) dropReset(rec *record) {
	if rec.Reset != nil {
		c.Delete(resetKey(rec.Reset))
	}
	rec.Reset, rec.ResetEnd = nil, time.Time{}
}
