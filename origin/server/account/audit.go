package account

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/register"
)

// Action is the action of an audit record.
type Action string

// Actions on accounts. [register.Action] has the actions of a register and [api.AuditEvent] those of calls.
const (
	AccountCreate   Action = "account.create"
	AccountName     Action = "account.name"
	AccountEmail    Action = "account.email"
	AccountVerify   Action = "account.verify"
	AccountUnverify Action = "account.verify.failed"
	AccountPassword Action = "account.password"
	AccountErase    Action = "account.erase"
	PasswordMail    Action = "account.password.mail"
	PasswordReset   Action = "account.password.reset"
	SignIn          Action = "session.create"
	SignInFailed    Action = "session.create.failed"
	SignOut         Action = "session.delete"

	AppExport Action = "app.export"
)

// ByOperator is the actor of commands on the command line.
const ByOperator = "operator"

// Event is an action in the audit log. It contains no secret, no name and no email address: the data of an account can be erased, but not
// the audit log.
type Event struct {
	Seq    uint64    `json:"seq"` // counts from 1
	At     time.Time `json:"at"`
	Actor  string    `json:"actor"` // id of an account, or ByOperator; empty: anonymous
	Action Action    `json:"action"`
	Target string    `json:"target"` // id of an account or application; after a '/', the start of a key's hash or the id of an edge
	Remote string    `json:"remote"` // network of the caller
	Hash   string    `json:"-"`      // SHA-256 of the previous record's hash and this record, in hex
}

// AuditHead is the length of the audit log and its last hash. A copy stored elsewhere shows later whether somebody replaced the log.
type AuditHead struct {
	Count uint64
	Hash  string
}

// ErrAudit is returned for an audit log that was changed.
var ErrAudit = errors.New("the audit log was changed or is damaged")

// head is the length of the log and its last hash.
type head struct {
	count uint64
	hash  hash
}

func readHead(store kv.Reader) (h head, err error) {
	b, err := kv.Find(store, headKey())
	if err != nil || b == nil {
		return h, err
	}
	if len(b) != 8+len(h.hash) {
		return h, fmt.Errorf("%w: its head has %d bytes", ErrAudit, len(b))
	}
	h.count = binary.BigEndian.Uint64(b)
	copy(h.hash[:], b[8:])
	return h, nil
}

// event adds a record to the log.
func (c *change) event(e Event) error {
	e.Seq, e.At = c.audit.count+1, c.now.UTC()
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	c.audit = head{e.Seq, chain(c.audit.hash, text)}
	c.Put(auditKey(e.Seq), append(c.audit.hash[:], text...))
	c.Put(headKey(), append(binary.BigEndian.AppendUint64(nil, e.Seq), c.audit.hash[:]...))
	for i, id := range []string{e.Actor, e.Target} {
		if (isID(id) || id == ByOperator) && (i == 0 || id != e.Actor) {
			c.Put(auditsKey(id, e.Seq), nil)
		}
	}
	return nil
}

// chain returns the hash of a record. before is the hash of the previous record.
func chain(before hash, text []byte) hash {
	h := sha256.New()
	h.Write(before[:])
	h.Write(text)
	return hash(h.Sum(nil))
}

// Record adds an action that a host did, or is about to do, to the audit log. The record is durable when Record returns.
func (r *Registry) Record(e Event) error {
	return r.change(func(c *change) error { return c.event(e) })
}

// Audit records an action of a register, see [register.Options]. An action without an account is the operator's.
func (r *Registry) Audit(by register.Caller, a register.Action, target string) error {
	return r.Record(Event{Actor: cmp.Or(by.Account, ByOperator), Action: Action(a), Target: target, Remote: by.Remote})
}

// Events returns up to n events by or on an account, newest first. It returns only events with a Seq below before; 0 means all. ByOperator
// selects the command line's events.
func (r *Registry) Events(account string, before uint64, n int) ([]Event, error) {
	lo := key(tableAudits, bytesOf(account))
	hi := kv.PrefixEnd(lo)
	if before > 0 {
		hi = auditsKey(account, before)
	}
	var seqs []uint64
	if n < 1 || !isID(account) && account != ByOperator {
		return nil, nil
	}
	var err error
	for k := range kv.Backward(r.o.Store, lo, hi, &err) {
		seqs = append(seqs, binary.BigEndian.Uint64(k[len(k)-8:]))
		if len(seqs) == n {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	events := make([]Event, 0, len(seqs))
	for _, seq := range seqs {
		b, err := r.o.Store.Get(auditKey(seq))
		if err != nil {
			return nil, fmt.Errorf("%w: record %d: %w", ErrAudit, seq, err)
		}
		e, _, err := parseEvent(seq, b)
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

// parseEvent returns the event in a record, and the JSON text of the event.
func parseEvent(seq uint64, b []byte) (e Event, text []byte, err error) {
	if len(b) < sha256.Size {
		return e, nil, fmt.Errorf("%w: record %d has %d bytes", ErrAudit, seq, len(b))
	}
	text = b[sha256.Size:]
	if err := json.Unmarshal(text, &e); err != nil || e.Seq != seq {
		return e, nil, fmt.Errorf("%w: record %d cannot be read", ErrAudit, seq)
	}
	e.Hash = fmt.Sprintf("%x", b[:sha256.Size])
	return e, text, nil
}

// VerifyAudit reads the whole audit log of a store and compares every hash and the length. The error is ErrAudit, or the store's.
func VerifyAudit(store kv.Reader) (AuditHead, error) {
	want, err := readHead(store)
	if err != nil {
		return AuditHead{}, err
	}
	var got head
	lo := key(tableAudit)
	for k, v := range kv.WithPrefix(store, lo, &err) {
		next := got.count + 1
		if len(k) != len(lo)+8 || binary.BigEndian.Uint64(k[len(lo):]) != next {
			return AuditHead{}, fmt.Errorf("%w: record %d is missing", ErrAudit, next)
		}
		_, text, err := parseEvent(next, v)
		if err != nil {
			return AuditHead{}, err
		}
		got = head{next, chain(got.hash, text)}
		if got.hash != hash(v[:sha256.Size]) {
			return AuditHead{}, fmt.Errorf("%w: the hash of record %d does not match the records before it", ErrAudit, next)
		}
	}
	switch {
	case err != nil:
		return AuditHead{}, err
	case got != want:
		return AuditHead{}, fmt.Errorf("%w: it ends at record %d instead of %d", ErrAudit, got.count, want.count)
	}
	return AuditHead{got.count, fmt.Sprintf("%x", got.hash)}, nil
}

// VerifyAudit verifies the audit log in a snapshot of the registry's store.
func (r *Registry) VerifyAudit() (_ AuditHead, err error) {
	s := r.o.Store.Snapshot()
	defer func() { err = errors.Join(err, s.Close()) }()
	return VerifyAudit(s)
}
