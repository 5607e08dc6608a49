package account

import (
	"context"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sightline-dev/sightline/core/auth"
)

const (
	codeLife  = 30 * time.Minute
	codeTries = 5

	// Mails with codes to one account: each gives five guesses at a million, so fifty a day.
	mailEvery    = time.Minute
	mailsPerDay  = 10
	mailsPerTime = 24 * time.Hour
)

// code is one that verifies an address.
type code struct {
	Hash  []byte // with the account's id before it
	End   time.Time
	Tries int // wrong ones
}

// mailed is how many codes an account was sent.
type mailed struct {
	Last, Since time.Time
	Count       int // since Since
}

// newCode makes six digits.
func (r *Registry) newCode() (string, error) {
	const digits = 1_000_000
	for {
		var b [4]byte
		if _, err := io.ReadFull(r.o.Random, b[:]); err != nil {
			return "", fmt.Errorf("random source: %w", err)
		}
		if n := binary.BigEndian.Uint32(b[:]); n < 1<<32/digits*digits { // each digit is as likely as another
			return fmt.Sprintf("%06d", n%digits), nil
		}
	}
}

// code gives an account a code, for a mail that goes out now.
func (c *change) code(rec *record, secret string) *code {
	if c.now.Sub(rec.Mailed.Since) >= mailsPerTime {
		rec.Mailed = mailed{Since: c.now}
	}
	rec.Mailed.Last = c.now
	rec.Mailed.Count++
	h := hashOf(rec.ID + secret)
	return &code{Hash: h[:], End: c.now.Add(codeLife)}
}

// wait reports whether an account has to wait for another mail. The error is *auth.RateError.
func (m *mailed) wait(now time.Time) error {
	if after := mailEvery - now.Sub(m.Last); after > 0 {
		return &auth.RateError{Wait: min(after, mailEvery)}
	}
	if after := mailsPerTime - now.Sub(m.Since); m.Count >= mailsPerDay && after > 0 {
		return &auth.RateError{Wait: min(after, mailsPerTime)}
	}
	return nil
}

// SendCode mails another code; the one before ends. An account that is verified gets none, and no error.
// The errors are ErrUnknown, *auth.RateError and the store's.
func (r *Registry) SendCode(_ context.Context, id string) error {
	secret, err := r.newCode()
	if err != nil {
		return err
	}
	var to record
	a, err := r.edit(id, func(c *change, rec *record) error {
		if rec.Verified {
			return nil
		}
		if err := rec.Mailed.wait(c.now); err != nil {
			return err
		}
		rec.Code = c.code(rec, secret)
		to = *rec
		return nil
	})
	if err == nil && !a.Verified {
		r.post.send(codeMail(&to, secret))
	}
	return err
}

// Verify takes the code that was mailed. The errors are ErrCode, ErrUnknown, *auth.RateError and the store's.
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
		rec.Verified, rec.Code = true, nil
		return c.event(Event{Actor: id, Action: AccountVerify, Target: id, Remote: remote})
	})
	if err != nil {
		return a, err
	}
	if wrong {
		return a, ErrCode
	}
	r.meters.changed(id)
	return a, nil
}

// ChangeEmail gives an account another address, which is to be verified again. The old address is told. Links
// that were mailed to it end. An address that was verified is left with the password alone. The errors
// are ErrEmail, ErrTaken, ErrWrongPassword, ErrUnknown, *auth.RateError, api.ErrBusy and the store's.
func (r *Registry) ChangeEmail(ctx context.Context, id, email, password, remote string) (Account, error) {
	email, err := checkEmail(email)
	if err != nil {
		return Account{}, err
	}
	if rec, err := load(r.o.Store, id); err != nil {
		return Account{}, err
	} else if rec.Verified {
		if _, err := r.confirm(ctx, id, password, remote); err != nil {
			return Account{}, err
		}
	}
	if err := r.throttle.signUp.take(remote, r.o.Now()); err != nil {
		return Account{}, err
	}
	secret, err := r.newCode()
	if err != nil {
		return Account{}, err
	}
	var before, now record
	a, err := r.edit(id, func(c *change, rec *record) error {
		if before = *rec; rec.Email == email {
			return nil
		}
		if _, err := find(c.store, email); !errors.Is(err, ErrUnknown) {
			if err == nil {
				err = ErrTaken
			}
			return err
		}
		if err := rec.Mailed.wait(c.now); err != nil {
			return err
		}
		c.Delete(emailKey(rec.Email))
		c.Put(emailKey(email), []byte(id))
		c.dropReset(rec)
		rec.Email, rec.Verified, rec.Code = email, false, c.code(rec, secret)
		now = *rec
		return c.event(Event{Actor: id, Action: AccountEmail, Target: id, Remote: remote})
	})
	if err != nil || before.Email == email {
		return a, err
	}
	r.meters.changed(id)
	if before.Verified {
		r.post.send(movedMail(&before))
	}
	r.post.send(codeMail(&now, secret))
	return a, nil
}

// dropReset ends an account's reset link.
func (c *change) dropReset(rec *record) {
	if rec.Reset != nil {
		c.Delete(resetKey(rec.Reset))
	}
	rec.Reset, rec.ResetEnd = nil, time.Time{}
}
