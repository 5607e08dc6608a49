// Package account manages user accounts: their sign-in, their number of calls, and the log of their actions.
//
//	sign-up ─▶ ┌──────────────── Registry ────────────────┐
//	sign-in ─▶ │ accounts   name, address, argon2id hash  │──▶ Sender: codes, links
//	reset   ─▶ │ sessions   256 bits, kept hashed         │
//	           │ audit log  each record hashes the last   │
//	/v2 call ─▶│ quota      durable before it is allowed  │
//	           │ usage      day × application × key × …   │
//	sync ─────▶│ devices    last contact of each replica  │
//	           └───────────────────┬──────────────────────┘
//	                               ▼ kv.Store, table u
//
// The registry is a table of the origin and not in the applications' logs. So names, email addresses and passwords reach no edge and can be
// erased. The registry does not list an account's applications: their records in the control log name their owner.
//
// Signing up creates an account. The first account needs a link that the server prints at its start, and no verification. It is the
// operator's account: it also sees the applications that the command line created, whose owner is "". Until it exists nobody else can sign
// up, so no stranger can be first.
//
// [Registry.Spend] counts calls. An account without a verified email address may make [TrialCalls] in total. After that its plan has a
// monthly limit. If few calls are left, the registry stores each call durably before it allows it. If many are left, the registry stores a
// block of calls as used and allows them from memory. So a crash costs the account some calls and never adds any.
//
// [Registry.StorageLimits] limits the storage of all applications of an account. The engine measures the storage from the applications
// themselves. From one client address at most [Options].SignUps accounts sign up in an hour.
//
// Failed passwords slow down further tries by network, and by account and network. So nobody can lock an account's owner out from another
// network.
//
// Neither an answer nor its time shows a stranger whether an email address is registered. Any number of accounts may claim an address, and
// each can sign in. The account that verifies the address first owns it. Its owner gets an email when another account claims the address.
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

// Errors of requests by users. Users read their texts.
var (
	// ErrName is returned for an invalid name.
	ErrName = errors.New("a name must have 1 to 100 characters and no control characters")
	// ErrEmail is returned for an invalid email address.
	ErrEmail = errors.New("not a valid email address")
	// ErrTaken is returned if another account has verified the email address. Only a caller who can read emails to that address gets it.
	ErrTaken = errors.New("an account with this email address already exists: sign in, or reset the password")
	// ErrPassword is returned for a password that is too short, too long or too common.
	ErrPassword = errors.New("password not allowed")
	// ErrWrongPassword is returned if the given old password is wrong.
	ErrWrongPassword = errors.New("wrong password")
	// ErrCode is returned for a code that does not verify the email address.
	ErrCode = errors.New("invalid code: check it, or request a new one")
	// ErrLink is returned for a link's token that is invalid, used or expired.
	ErrLink = errors.New("this link is no longer valid: request a new one")
	// ErrSignUp is returned when nobody can sign up, or when the first sign-up lacks the operator's link.
	ErrSignUp = errors.New("sign-up is closed; you need a link from the operator")
	// ErrUnknown is returned for an account that does not exist.
	ErrUnknown = errors.New("account not found")
)

// Plan holds the limits of an account.
type Plan struct {
	Name  string
	Calls int64 // a month; 0: unlimited
}

// Options are the settings of a [Registry]. Store, Now, Random and Log are required.
type Options struct {
	Store     kv.Store
	Follow    bool // the registry follows until Lead
	Now       func() time.Time
	Random    io.Reader // source of secrets
	Log       *slog.Logger
	Mail      Sender // sends emails; nil: Log gets them
	PublicURL string // start of the links in emails
	Plan      Plan   // plan of every account; without a name: unlimited
	Storage   struct{ Unverified, Verified Storage }
	SignUps   int                                                // sign-ups from one client address in an hour; 0: unlimited
	Closed    bool                                               // only the operator's link allows signing up
	NewKeys   func(a Account, since time.Time) ([]NewKey, error) // returns keys of an account's applications, oldest first; nil: none
	Demo      bool                                               // stores emails for the page, see Mails, and enables the sign-in by Demo
}

// Registry manages all accounts. It is safe for concurrent use.
type Registry struct {
	o        Options
	hashing  gate
	throttle throttles
	meters   meters
	usage    usage
	devices  devices
	post     mailQueue

	mu      sync.Mutex   // held while records are read and written again, until the write is durable
	audit   head         // end of the audit log, as stored
	ended   time.Time    // time when expired sessions were last removed
	seeWait func() error // wait of the newest Commit of a session's last use; nil: none

	seen sync.Map // hash → time.Time: last uses that the store may not show yet. A settle removes them

	follows  atomic.Bool  // another machine writes, see Follow
	erasures atomic.Int64 // number of erased accounts, and of calls of Lead and Follow
	settled  atomic.Int64 // 1 + erasures when the operator's account was last found; 0: it was not found
}

var (
	_ api.Accounts = (*Registry)(nil)
	_ api.Calls    = (*Registry)(nil)
	_ api.Storage  = (*Registry)(nil)
)

// Account is the public part of an account.
type Account struct {
	ID       string // 32 hex digits
	Name     string
	Email    string // normalised
	Verified bool   // the account has verified its email address
	Operator bool   // the operator's account, which also has the applications without an owner
	Plan     string
	Created  time.Time
}

// Owns reports whether the account has the applications of an owner. The operator's account also has those without an owner.
func (a *Account) Owns(owner string) bool { return owner == a.ID || owner == "" && a.Operator }

// record is an account as stored.
type record struct {
	Account
	Password string    // argon2id, in the PHC string format
	Code     *code     `json:",omitempty"` // verifies the email address
	Mailed   codesSent // number of codes that were sent
	Reset    []byte    `json:",omitempty"` // hash of the token of the newest reset link
	ResetEnd time.Time // time when that link expires
}

// Open opens the registry in o.Store.
func Open(o Options) (*Registry, error) {
	if o.Store == nil || o.Now == nil || o.Random == nil || o.Log == nil {
		return nil, errors.New("account: Store, Now, Random and Log are required")
	}
	if o.Plan.Name == "" {
		o.Plan.Name = "unlimited"
	}
	r := &Registry{o: o, hashing: newGate(), throttle: newThrottles(o.SignUps)}
	r.meters = meters{r: r, byID: map[string]*meter{}}
	r.usage = usage{store: o.Store, follows: &r.follows, cells: map[cellKey]*cell{}}
	r.devices = devices{store: o.Store, follows: &r.follows, recent: map[deviceAt]*contact{}}
	if o.Mail == nil {
		r.o.Mail = logSender{o.Log}
	}
	r.post = mailQueue{queue: make(chan Mail, maxQueuedMails), sender: r.o.Mail, log: o.Log, now: o.Now, storeRecent: o.Demo}
	if r.follows.Store(true); o.Follow {
		return r, nil
	}
	if err := r.Lead(); err != nil {
		return nil, err
	}
	return r, nil
}

// Close writes data that is only in memory. After Close, Spend fails. If the registry follows, Close writes nothing and returns nil.
func (r *Registry) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settle()
	return errors.Join(r.meters.close(), unlessFollows(r.usage.flush()), unlessFollows(r.devices.flush(0)))
}

// Flush writes usage and contacts of devices, and removes expired sessions, old days of usage and idle meters. A host calls it every few seconds. If the registry
// follows, Flush writes nothing and returns nil.
func (r *Registry) Flush() error {
	now := r.o.Now()
	return errors.Join(unlessFollows(r.usage.flush()), unlessFollows(r.devices.flush(deviceEvery)), unlessFollows(r.usage.prune(now)), r.meters.rest(), unlessFollows(r.endSessions(now)))
}

// change is one change of records, together with its audit records.
type change struct {
	kv.Batch
	store kv.Store
	now   time.Time
	audit head
}

// change runs do and commits its writes durably. One change runs at a time, because the next one must read what this one wrote. If do fails,
// change writes nothing.
func (r *Registry) change(do func(c *change) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.follows.Load() {
		return kv.ErrFollows
	}
	return r.commit(do)
}

// commit is change for a caller that holds mu.
func (r *Registry) commit(do func(c *change) error) error {
	r.settle()
	c := &change{store: r.o.Store, now: r.o.Now(), audit: r.audit}
	if err := do(c); err != nil {
		return err
	}
	if err := kv.CommitAndWait(r.o.Store, &c.Batch); err != nil {
		return err
	}
	r.audit = c.audit
	return nil
}

// Account returns the account with the given id, or ErrUnknown.
func (r *Registry) Account(id string) (Account, error) {
	rec, err := load(r.o.Store, id)
	return rec.Account, err
}

// Allowance returns the number of calls that an account may still make, and its limit. Negative numbers mean unlimited.
func (r *Registry) Allowance(id string) (left, limit int64, err error) {
	err = r.meters.with(id, r.o.Now(), func(m *meter) error {
		left, limit = m.allowance()
		return nil
	})
	return left, limit, err
}

// Rename changes the name of an account.
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

// edit changes the record of one account.
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

// load reads the record of an account.
func load(store kv.Reader, id string) (rec record, err error) {
	if !isID(id) {
		return rec, ErrUnknown
	}
	return rec, get(store, accountKey(id), &rec)
}

// find reads the record of the account that owns an email address, see address.go. It returns the zero record if no account does.
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

// get reads a JSON value into v. It returns ErrUnknown if the key does not exist.
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

// put adds a value as JSON to the change.
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
