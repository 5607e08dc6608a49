package account

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"time"

	"github.com/sightline-dev/sightline/core/kv"
)

// SetupLife is the time for which the link for the first account is valid.
const SetupLife = 24 * time.Hour

// link is the stored link for the first account.
type link struct {
	Hash []byte
	End  time.Time
}

// SetupLink creates the link for the first account and returns its URL. The host shows the URL to the person who started the server. The
// previous link becomes invalid. SetupLink returns "" if the operator has an account, or in a demo.
func (r *Registry) SetupLink() (string, error) {
	if r.o.Demo {
		return "", nil
	}
	empty, err := r.empty()
	if err != nil || !empty {
		return "", err
	}
	token, err := r.NewToken()
	if err != nil {
		return "", err
	}
	h := hashOf(token)
	err = r.change(func(c *change) error {
		return c.put(setupKey(), link{h[:], c.now.Add(SetupLife)})
	})
	return r.o.PublicURL + "/sign-up?setup=" + token, err
}

// empty reports whether no operator's account exists. The demo's account does not count, because nobody can sign in to it with a password.
// A folder may first serve a demo and then be used normally.
func (r *Registry) empty() (bool, error) {
	now := r.erasures.Load() + 1
	if r.settled.Load() == now && !r.follows.Load() {
		return false, nil
	}
	var err error
	for _, v := range kv.WithPrefix(r.o.Store, key(tableAccount), &err) {
		var rec record
		if json.Unmarshal(v, &rec) == nil && rec.Operator && rec.Password != "" {
			r.settled.Store(now) // erasing an account invalidates this
			return false, nil
		}
	}
	return true, err
}

// SignUpPolicy returns who may sign up: "first" (only with the printed link), "open" (everyone) or "closed" (nobody).
func (r *Registry) SignUpPolicy() (string, error) {
	empty, err := r.empty()
	switch {
	case err != nil:
		return "", err
	case empty && !r.o.Demo:
		return "first", nil
	case r.o.Closed:
		return "closed", nil
	}
	return "open", nil
}

// SignUpForm is the sign-up form.
type SignUpForm struct {
	Name, Email, Password string
	Setup                 string // token of the setup link, or empty
}

// Create creates an account and opens a session for it. It sends an email with a code to verify the address. The first account needs no
// code: it is verified and the operator's. Neither the answer nor its time shows whether another account has verified the address: the
// owner of that account gets an email instead of the code. The errors are ErrName, ErrEmail, ErrPassword, ErrSignUp, *auth.RateError,
// api.ErrBusy, the store's, and for the first account ErrTaken.
func (r *Registry) Create(ctx context.Context, n SignUpForm, remote string) (token string, a Account, err error) {
	if err := r.throttle.signUp.take(remote, r.o.Now()); err != nil {
		return "", a, err
	}
	if n.Name, err = checkName(n.Name); err != nil {
		return "", a, err
	}
	if n.Email, err = checkEmail(n.Email); err != nil {
		return "", a, err
	}
	if n.Password, err = checkPassword(n.Password, n.Name, n.Email); err != nil {
		return "", a, err
	}
	if err := r.throttle.signUps.take(remote, r.o.Now()); err != nil {
		return "", a, err
	}
	if err := r.mayCreate(n); err != nil { // before the expensive hash
		return "", a, err
	}
	rec := record{Account: Account{Name: n.Name, Email: n.Email, Plan: r.o.Plan.Name}}
	if rec.ID, err = r.random(16); err != nil {
		return "", a, err
	}
	if token, err = r.NewToken(); err != nil {
		return "", a, err
	}
	var mail Mail
	err = r.changeClaim(ctx, n.Email, n.Password, func(c *change, hashed string) error {
		if err := r.mayCreate(n); err != nil {
			return err
		}
		rec.Password = hashed
		if first, err := r.empty(); err != nil {
			return err
		} else if first && !r.o.Demo {
			rec.Operator, rec.Verified = true, true
			c.Delete(setupKey())
		} else if mail, err = r.code(c, &rec); err != nil {
			return err
		}
		return c.create(&rec, token, remote)
	})
	if err != nil {
		r.throttle.signUps.back(remote)
		return "", a, err
	}
	r.post.send(mail)
	return token, rec.Account, nil
}

// mayCreate returns ErrSignUp if the account may not be created.
func (r *Registry) mayCreate(n SignUpForm) error {
	state, err := r.SignUpPolicy()
	if err != nil {
		return err
	}
	if state == "closed" || state == "first" && !r.opens(n.Setup) {
		return ErrSignUp
	}
	return nil
}

// opens reports whether token is the token of the valid setup link.
func (r *Registry) opens(token string) bool {
	var l link
	if token == "" || get(r.o.Store, setupKey(), &l) != nil {
		return false
	}
	h := hashOf(token)
	return subtle.ConstantTimeCompare(h[:], l.Hash) == 1 && r.o.Now().Before(l.End)
}

// create writes a new account and its first session. Without a token it opens no session. The errors are the store's and, for a verified
// account, ErrTaken.
func (c *change) create(rec *record, token, remote string) error {
	rec.Created = c.now.UTC()
	place := c.claim
	if rec.Verified {
		place = c.setHolder
	}
	if err := place(rec); err != nil {
		return err
	}
	if err := c.put(accountKey(rec.ID), rec); err != nil {
		return err
	}
	err := c.event(Event{Actor: rec.ID, Action: AccountCreate, Target: rec.ID, Remote: remote})
	if err != nil || token == "" {
		return err
	}
	return c.open(rec.ID, token, remote)
}

// DemoEmail is the email address of the demo's account. The server sends no email to it.
const DemoEmail = "demo@sightline.example"

// Demo returns the account of a demo. If it is missing, Demo creates it: verified, the operator's, and without a password.
func (r *Registry) Demo() (Account, error) {
	rec, err := find(r.o.Store, DemoEmail)
	if err != nil || rec.Verified {
		return rec.Account, err
	}
	id, err := r.random(16)
	if err != nil {
		return Account{}, err
	}
	err = r.change(func(c *change) error {
		if rec, err = find(c.store, DemoEmail); err != nil || rec.Verified {
			return err
		}
		rec = record{Account: Account{ID: id, Name: "Demo", Email: DemoEmail, Verified: true, Operator: true, Plan: r.o.Plan.Name}}
		return c.create(&rec, "", "")
	})
	return rec.Account, err
}

// endDemo ends the sessions of the demo's account, which the operator's rights belong to, unless the server is a demo. Otherwise a browser that
// has opened the demo would be the operator of the server that the folder serves later. The caller holds mu.
func (r *Registry) endDemo() error {
	if r.o.Demo {
		return nil
	}
	rec, err := find(r.o.Store, DemoEmail)
	if err != nil || !rec.Verified || rec.Password != "" {
		return err
	}
	open, err := sessions(r.o.Store, rec.ID)
	if err != nil || len(open) == 0 {
		return err
	}
	return r.commit(func(c *change) error { return c.endAll(rec.ID, hash{}) })
}

// EraseWithPassword erases an account after its owner has confirmed the password. The errors are ErrWrongPassword, ErrUnknown,
// *auth.RateError, api.ErrBusy and the store's.
func (r *Registry) EraseWithPassword(ctx context.Context, id, password, remote string) error {
	if _, err := r.confirm(ctx, id, password, remote); err != nil {
		return err
	}
	return r.Erase(id, id, remote)
}

// Erase deletes an account and its data. Its records in the audit log stay, but contain only its id. The caller must delete its
// applications first. It returns ErrUnknown if the account does not exist.
func (r *Registry) Erase(actor, id, remote string) error {
	err := r.change(func(c *change) error {
		rec, err := load(c.store, id)
		if err != nil {
			return err
		}
		if err := c.endAll(id, hash{}); err != nil {
			return err
		}
		c.Delete(accountKey(id))
		if err := c.removeClaim(&rec); err != nil {
			return err
		}
		c.Delete(quotaKey(id))
		c.dropReset(&rec)
		return c.event(Event{Actor: actor, Action: AccountErase, Target: id, Remote: remote})
	})
	r.erasures.Add(1)
	r.meters.invalidate(id)
	return err
}
