// Package account manages people: their sign-in, their number of calls, and the log of their actions.
//
//	sign-up ─▶ ┌──────────────── Registry ────────────────┐
//	sign-in ─▶ │ accounts   name, address, argon2id hash  │──▶ Sender: codes, links
//	reset   ─▶ │ sessions   256 bits, kept hashed         │
//	           │ audit log  each record hashes the last   │
//	/v2 call ─▶│ quota      durable before it is allowed  │
//	           │ usage      day × application × key × …   │
//	           └───────────────────┬──────────────────────┘
//	                               ▼ kv.Store, table u
//
// It is a table of the origin and not in the applications' logs, so that names, addresses and passwords reach no edge and can be erased.
// It does not list an account's applications: their records in the control log name their owner.
//
// Signing up makes an account. The first one is made with a link that the server prints at its start, needs no verification, and is the
// operator's: it also sees the applications that the command line made, whose owner is "". Until it is made nobody else can sign up, so
// no stranger can be first.
//
// [Registry.Spend] counts calls. An account that has not verified its address may make [TrialCalls] in total; after that its plan has a
// monthly number. If few calls are left, each is made durable before it is allowed. If many are left, a block of them is made durable and
// handed out from memory, so that a crash costs calls and never gives any.
//
// [Registry.StorageLimits] limits the storage of all applications of an account. The engine counts it from the applications themselves. A
// client address signs up at most [Options].SignUps times in any hour.
//
// Failed passwords slow down further tries by network, and by account and network, so that nobody can lock an account's owner out from
// another network.
//
// No answer and no amount of work shows a stranger whether an address is registered. Any number of accounts may claim an address, and
// each can sign in. The one that verifies it first owns it; its owner gets a mail when another account claims the address.
package account

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/kv"
)

// Errors of people's requests. Their texts are for people.
var (
	// ErrName is returned for a name that cannot be one.
	ErrName = errors.New("a name must have 1 to 100 characters and no control characters")
	// ErrEmail is returned for an invalid e-mail address.
	ErrEmail = errors.New("not a valid email address")
	// ErrTaken is returned to a caller who can read the mails to an address that another account has verified.
	ErrTaken = errors.New("an account with this email address already exists: sign in, or reset the password")
	// ErrPassword is returned for a password that is too short, too long or too well known.
	ErrPassword = errors.New("password not allowed")
	// ErrWrongPassword is returned when the old password is not the account's.
	ErrWrongPassword = errors.New("wrong password")
	// ErrCode is returned for a code that does not verify an address.
	ErrCode = errors.New("invalid code: check it, or request a new one")
	// ErrLink is returned for a token of a link that is not open any more.
	ErrLink = errors.New("this link is no longer valid: request a new one")
	// ErrSignUp is returned when nobody can sign up, or the first account lacks its link.
	ErrSignUp = errors.New("sign-up is closed; you need a link from the operator")
	// ErrUnknown is returned for an account that does not exist.
	ErrUnknown = errors.New("account not found")
)

// Plan has the limits of an account.
type Plan struct {
	Name  string
	Calls int64 // a month; 0: any number
}

// Options are the settings of a [Registry]. Store, Now, Random and Log are required.
type Options struct {
	Store     kv.Store
	Now       func() time.Time
	Random    io.Reader // fit for secrets
	Log       *slog.Logger
	Mail      Sender // sends mails; nil: Log gets them
	PublicURL string // start of the links in mails
	Plan      Plan   // of every account; without a name: one without limits
	Storage   struct{ Unverified, Verified Storage }
	SignUps   int  // an hour of one client address; 0: any number
	Closed    bool // nobody signs up but with the operator's link
	Demo      bool // mails are kept for the page, see Mails, and Demo signs in
}

// Registry is everything that is known of accounts. It is safe for concurrent use.
type Registry struct {
	o        Options
	hashing  gate
	throttle throttles
	meters   meters
	usage    usage
	post     mailQueue

	mu    sync.Mutex // of everything that reads records and writes them again
	audit head       // of the audit log, as the store has it
	ended time.Time  // when sessions that are over were removed last

	erasures atomic.Int64 // number of erased accounts
	settled  atomic.Int64 // 1 + erasures before the operator's account was found last; 0: it was not
}

var (
	_ api.Accounts = (*Registry)(nil)
	_ api.Calls    = (*Registry)(nil)
	_ api.Storage  = (*Registry)(nil)
)

// Account is one account, as others see it.
type Account struct {
	ID       string // 32 hex digits
	Name     string
	Email    string // normalised
	Verified bool   // the address is the account's
	Operator bool   // the operator's: applications without an owner are this account's too
	Plan     string
	Created  time.Time
}

// record is an account as it is kept.
type record struct {
	Account
	Password string    // argon2id, in the PHC string format
	Code     *code     `json:",omitempty"` // that verifies the address
	Mailed   codesSent // how many codes were sent
	Reset    []byte    `json:",omitempty"` // hash of the token of the newest reset link
	ResetEnd time.Time // when that link ends
}

// Open opens the registry that a store holds.
func Open(o Options) (*Registry, error) {
	if o.Store == nil || o.Now == nil || o.Random == nil || o.Log == nil {
		return nil, errors.New("account: Store, Now, Random and Log are required")
	}
	if o.Plan.Name == "" {
		o.Plan.Name = "unlimited"
	}
	r := &Registry{o: o, hashing: newGate(), throttle: newThrottles(o.SignUps)}
	r.meters = meters{r: r, byID: map[string]*meter{}}
	r.usage = usage{store: o.Store, cells: map[cellKey]*cell{}}
	if o.Mail == nil {
		r.o.Mail = logSender{o.Log}
	}
	r.post = mailQueue{queue: make(chan Mail, mostPosted), sender: r.o.Mail, log: o.Log, now: o.Now, keep: o.Demo}
	var err error
	r.audit, err = readHead(o.Store)
	return r, err
}

// Close writes what is only in memory. Nothing is spent after it.
func (r *Registry) Close() error { return errors.Join(r.meters.close(), r.usage.flush()) }

// Flush writes usage and ends what is over: sessions, days of usage, idle meters. A host calls it
// every few seconds.
func (r *Registry) Flush() error {
	now := r.o.Now()
	return errors.Join(r.usage.flush(), r.usage.prune(now), r.meters.rest(), r.endSessions(now))
}

// change is one change of records, with the audit records that go with it.
type change struct {
	kv.Batch
	store kv.Store
	now   time.Time
	audit head
}

// change runs do alone, and makes durable what it has written. When do fails nothing is.
func (r *Registry) change(do func(c *change) error) error {
	wait, err := r.begin(do)
	if err != nil {
		return err
	}
	return wait()
}

func (r *Registry) begin(do func(c *change) error) (wait func() error, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &change{store: r.o.Store, now: r.o.Now(), audit: r.audit}
	if err := do(c); err != nil {
		return nil, err
	}
	if wait, err = r.o.Store.Commit(&c.Batch); err != nil {
		return nil, err
	}
	r.audit = c.audit
	return wait, nil
}

// Account returns an account by its id. The error is ErrUnknown.
func (r *Registry) Account(id string) (Account, error) {
	rec, err := load(r.o.Store, id)
	return rec.Account, err
}

// Allowance returns the number of calls that an account may still make, and its limit. Negative: unlimited.
func (r *Registry) Allowance(id string) (left, limit int64, err error) {
	err = r.meters.with(id, r.o.Now(), func(m *meter) error {
		left, limit = m.allowance()
		return nil
	})
	return left, limit, err
}

// Rename gives an account another name.
func (r *Registry) Rename(_ context.Context, id, name, remote string) (Account, error) {
	name, err := checkName(name)
	if err != nil {
		return Account{}, err
	}
	return r.edit(id, func(c *change, rec *record) error {
		rec.Name = name
		return c.event(Event{Actor: id, Action: AccountName, Target: id, Remote: remote})
	})
}

// edit changes one account's record.
func (r *Registry) edit(id string, do func(c *change, rec *record) error) (Account, error) {
	var out Account
	err := r.change(func(c *change) error {
		rec, err := load(c.store, id)
		if err != nil {
			return err
		}
		if err := do(c, &rec); err != nil {
			return err
		}
		out = rec.Account
		return c.put(accountKey(id), &rec)
	})
	return out, err
}

// load reads a record.
func load(store kv.Reader, id string) (rec record, err error) {
	if !isID(id) {
		return rec, ErrUnknown
	}
	return rec, get(store, accountKey(id), &rec)
}

// find reads the record of the holder of an address, see address.go; the zero record: it has none.
func find(store kv.Reader, email string) (rec record, err error) {
	id, err := kv.Find(store, emailKey(email))
	if id != nil {
		rec, err = load(store, string(id))
	}
	if errors.Is(err, ErrUnknown) {
		return record{}, nil
	}
	return rec, err
}

// get reads a value in JSON. The error is ErrUnknown where there is none.
func get(store kv.Reader, key []byte, v any) error {
	b, err := kv.Find(store, key)
	if err != nil {
		return err
	}
	if b == nil {
		return ErrUnknown
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%w: unreadable record of table u%c", kv.ErrCorrupt, key[1])
	}
	return nil
}

// put writes a value as JSON.
func (c *change) put(key []byte, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	c.Put(key, b)
	return nil
}

// random returns n random bytes in hex.
func (r *Registry) random(n int) (string, error) {
	b := make([]byte, n)
	if _, err := io.ReadFull(r.o.Random, b); err != nil {
		return "", fmt.Errorf("random source: %w", err)
	}
	return hex.EncodeToString(b), nil
}
