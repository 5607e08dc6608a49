package account

import (
	"bytes"
	"context"
	"crypto/subtle"
	"errors"

	"github.com/sightline-dev/sightline/core/kv"
)

// An email address has one holder: the account that has verified it, or else the first account that claims it. Further accounts may claim
// it too, so that an answer to a stranger is the same for every address. They stay unverified while the holder is verified.
//
// The password hashes of all unverified accounts with an address have the same salt. So a sign-in hashes a password only twice: once for
// the holder and once for all further claims.

// claim is an account that claims an email address that another account holds.
type claim struct {
	key      []byte
	id       string
	password string // the account's password hash
}

// firstClaim returns the oldest account that claims an email address in addition to its holder. If none does, it returns the zero claim.
func firstClaim(store kv.Reader, email string) (first claim, err error) {
	for k, v := range kv.WithPrefix(store, claimsKey(email), &err) {
		return claim{bytes.Clone(k), claimID(k), string(v)}, nil
	}
	return first, err
}

// claimHash returns the password hash of an unverified account with an email address, or "" if no unverified account has it.
func claimHash(store kv.Reader, email string) (string, error) {
	holder, err := find(store, email)
	if err != nil || holder.ID != "" && !holder.Verified {
		return holder.Password, err
	}
	first, err := firstClaim(store, email)
	return first.password, err
}

// claim makes an unverified account a holder or claimant of its email address, or updates its stored password.
func (c *change) claim(rec *record) error {
	holder, err := find(c.store, rec.Email)
	switch {
	case err != nil:
		return err
	case holder.ID == "" || holder.ID == rec.ID:
		c.Put(emailKey(rec.Email), []byte(rec.ID))
	default:
		c.Put(claimKey(rec), []byte(rec.Password))
	}
	return nil
}

// setHolder makes an account the verified holder of its email address. The errors are ErrTaken and the store's.
func (c *change) setHolder(rec *record) error {
	holder, err := find(c.store, rec.Email)
	switch {
	case err != nil:
		return err
	case holder.ID == "" || holder.ID == rec.ID:
	case holder.Verified:
		return ErrTaken
	default:
		c.Put(claimKey(&holder), []byte(holder.Password))
	}
	c.Delete(claimKey(rec))
	c.Put(emailKey(rec.Email), []byte(rec.ID))
	rec.Verified, rec.Code = true, nil
	return nil
}

// removeClaim removes an account from its email address. If it is the holder, the first claim becomes the holder.
func (c *change) removeClaim(rec *record) error {
	holder, err := find(c.store, rec.Email)
	if err != nil {
		return err
	}
	if holder.ID != "" && holder.ID != rec.ID {
		c.Delete(claimKey(rec))
		return nil
	}
	next, err := firstClaim(c.store, rec.Email)
	switch {
	case err != nil:
		return err
	case next.id == "":
		c.Delete(emailKey(rec.Email))
	default:
		c.Delete(next.key)
		c.Put(emailKey(rec.Email), []byte(next.id))
	}
	return nil
}

// errSalt is returned when an account with another salt has claimed the address since a password was hashed.
var errSalt = errors.New("another account claimed the address")

// changeClaim hashes the password of a claim to an email address and runs do like change.
func (r *Registry) changeClaim(ctx context.Context, email, password string, do func(c *change, hashed string) error) error {
	for {
		like, err := claimHash(r.o.Store, email)
		if err != nil {
			return err
		}
		hashed, err := r.hashing.hash(ctx, password, like)
		if err != nil {
			return err
		}
		err = r.change(func(c *change) error {
			like, err := claimHash(c.store, email)
			if err == nil && like != "" && saltOf(like) != saltOf(hashed) {
				err = errSalt
			}
			if err != nil {
				return err
			}
			return do(c, hashed)
		})
		if !errors.Is(err, errSalt) {
			return err
		}
	}
}

// match returns the account with an email address and a password. If none matches, its ID is empty. owner is the id of the account that has
// verified the address, or "". The work is the same for every address and password. If several accounts match, match returns the verified
// one, or else the newest.
func (r *Registry) match(ctx context.Context, email, password string) (rec record, owner string, err error) {
	s := r.o.Store.Snapshot()
	defer func() { err = errors.Join(err, s.Close()) }()
	holder, err := find(s, email)
	if err != nil {
		return rec, "", err
	}
	if holder.Verified {
		owner = holder.ID
	}
	first, err := firstClaim(s, email)
	if err != nil {
		return rec, "", err
	}
	password = formPassword(password)
	same, err := r.hashing.same(ctx, password, holder.Password)
	if err != nil {
		return rec, "", err
	}
	hashed, err := r.hashing.hash(ctx, password, first.password)
	if err != nil {
		return rec, "", err
	}
	id := ""
	for k, v := range kv.WithPrefix(s, claimsKey(email), &err) {
		if subtle.ConstantTimeCompare(v, []byte(hashed)) == 1 {
			id = claimID(k)
		}
	}
	switch {
	case err != nil:
		return rec, "", err
	case same && (holder.Verified || id == ""):
		return holder, owner, nil
	case id == "":
		return rec, owner, nil
	}
	rec, err = load(s, id)
	return rec, owner, err
}
