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

// codesSent is the number of codes that an account was sent.
type codesSent struct {
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

// code gives an account a code and returns the mail with it. If another account has verified the address, the mail is to its owner and
// no digits match the code. Beyond the limit of an address, which all accounts share that claim it after its holder, there is no mail.
// The account sees neither, since a stranger may have made it.
func (r *Registry) code(c *change, rec *record) (mail Mail, err error) {
	secret, err := r.newCode()
	if err != nil {
		return mail, err
	}
	holder, err := find(c.store, rec.Email)
	if err != nil {
		return mail, err
	}
	holds := holder.ID == "" || holder.ID == rec.ID
	sent := holds || r.throttle.codes.take(rec.Email, c.now) == nil
	switch {
	case !sent:
		r.o.Log.Info("email not sent: too many accounts claim the address", "to", rec.Email)
	case holds || !holder.Verified:
		mail = codeMail(rec, secret)
	case holder.Password != "": // the demo's account has none
		mail = takenMail(&holder, r.o.PublicURL+"/forgot")
	}
	if !sent || !holds && holder.Verified {
		if secret, err = r.NewToken(); err != nil {
			return mail, err
		}
	}
	rec.Code = c.code(rec, secret)
	return mail, nil
}

// code makes a code of a secret, for a mail that goes out now.
func (c *change) code(rec *record, secret string) *code {
	if c.now.Sub(rec.Mailed.Since) >= mailsPerTime {
		rec.Mailed = codesSent{Since: c.now}
	}
	rec.Mailed.Last = c.now
	rec.Mailed.Count++
	h := hashOf(rec.ID + secret)
	return &code{Hash: h[:], End: c.now.Add(codeLife)}
}

// wait reports whether an account has to wait for another mail. The error is *auth.RateError.
func (m *codesSent) wait(now time.Time) error {
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

// Verify takes the code that was mailed. The errors are ErrCode, ErrUnknown, *auth.RateError, the store's, and ErrTaken for the right
// code of an address that another account has verified meanwhile.
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
		if err := c.own(rec); err != nil {
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

// ChangeEmail gives an account another address, which it must verify again. If the old address was verified, it gets a mail. Links
// that were mailed to it end. Whether another account has the new address shows neither in the answer nor in the work. The errors
// are ErrEmail, ErrWrongPassword, ErrUnknown, *auth.RateError, api.ErrBusy and the store's.
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
			return ErrWrongPassword // it was changed meanwhile
		}
		if err := rec.Mailed.wait(c.now); err != nil {
			return err
		}
		before = rec
		if err := c.leave(&rec); err != nil {
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

// dropReset ends an account's reset link.
func (c *change) dropReset(rec *record) {
	if rec.Reset != nil {
		c.Delete(resetKey(rec.Reset))
	}
	rec.Reset, rec.ResetEnd = nil, time.Time{}
}
