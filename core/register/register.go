// Package register manages the applications, keys, clients and edges of a store: the permissions, and the other writers.
//
//	control log ──fold──▶ App, Key, Client, Edge records ◀── read by engines, at each request
//	     ▲                       │
//	  Register ◀─────────────────┘
//	     └── DeleteApp ──▶ Detach ──▶ Step: deletes the application's keys, names, pictures
//
// A register opens no application. An engine that serves all applications contains a register. A host that runs one engine per
// application opens its own register on the same store.
package register

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict"
)

// ErrApplication is returned for an application that does not exist.
var ErrApplication = errors.New("no such application")

// ErrClosed is returned by a register, or an engine, that is closed.
var ErrClosed = errors.New("engine closed")

// ErrNotOrigin is returned by a read-only register for changes of applications, keys and clients, which another register on the same
// store writes.
var ErrNotOrigin = errors.New("applications and keys are managed elsewhere")

// Pictures stores pictures of records under URLs that nobody can guess.
// *blob.HostedNames implements it.
type Pictures interface {
	api.Hosting
	// Lookup returns the picture with a name; the error is blob.ErrNotFound.
	Lookup(name string, now time.Time) (blob.Picture, error)
	// Drop deletes a picture whose record may have been deleted, unless another record or a name needs it.
	Drop(ctx context.Context, h blob.Hash) error
}

var _ Pictures = (*blob.HostedNames)(nil)

// Options are the services of a host for a [Register]. Fields without "nil means" are required.
type Options struct {
	Store  kv.Store
	Models *predict.Set // public models, by which default models are checked; their tables suffice
	Hosted Pictures     // Step sweeps and collects it if it supports that
	Clock  func() time.Time
	Rand   io.Reader // source of IDs, keys and secrets
	Seals  io.Reader // source of the keys of log seals, see [partition.Origin.Seal]; nil means that logs have no seals

	// Follow opens a register that follows: another machine writes. See [Register.Advance].
	Follow bool

	// Detach ends the writes to a deleted application. It returns when nothing writes to it any longer, and Step then deletes its data.
	// Step may call it more than once. nil means that nothing writes to applications.
	Detach func(app string)

	// Changed is called for an application whose record has changed. nil means no notification.
	Changed func(app string)

	// Audit records an action: a deletion before it happens, a creation or change before the caller gets the answer. target is the ID
	// of the application. For a key, a '/' and the start of the key's hash follow; for an edge, a '/' and its ID. If Audit returns an
	// error, the register refuses the action. nil means no audit log.
	Audit func(by Caller, a Action, target string) error
}

// Caller is the identity of a caller.
type Caller struct {
	Account string // id; empty: the operator
	Remote  string // network that the request came from; empty: this machine
}

// Action is the name of an action in an audit log.
type Action string

// The actions of a register.
const (
	ActionCreateApp     Action = "app.create"
	ActionChangeApp     Action = "app.change"
	ActionDeleteApp     Action = "app.delete"
	ActionCreateKey     Action = "key.create"
	ActionReplaceKey    Action = "key.replace"
	ActionDeleteKey     Action = "key.delete"
	ActionReplaceSecret Action = "client.secret"
	ActionRevokeTokens  Action = "tokens.revoke"
	ActionCreateEdge    Action = "edge.create"
	ActionRevokeEdge    Action = "edge.revoke"
)

// audit records an action in the audit log.
func (r *Register) audit(by Caller, a Action, target string) error {
	if r.o.Audit == nil {
		return nil
	}
	return r.o.Audit(by, a, target)
}

// auditDone is audit for an action that is in the control log already. If another machine writes now, the error wraps api.ErrBusy instead of
// kv.ErrFollows, which means that a call wrote nothing.
func (r *Register) auditDone(by Caller, a Action, target string) error {
	return done(r.audit(by, a, target))
}

// done returns err as an error of a call that has written.
func done(err error) error {
	if errors.Is(err, kv.ErrFollows) {
		return fmt.Errorf("%w: the change is done, but not in the audit log: another machine writes now", api.ErrBusy)
	}
	return err
}

// Register holds the applications, keys, clients and edges of a store. It is safe for concurrent use.
type Register struct {
	o           Options
	partition   *partition.Origin // nil if another register on the same store writes the records
	gallery     api.PublicPictures
	listed      appList
	tidy        cleanup
	watchers    watchers
	revocations revocations
	closed      atomic.Bool
	follows     atomic.Bool               // another machine writes
	opening     atomic.Pointer[log.Epoch] // of all logs of the process; nil: no partition was opened
}

// appList caches the applications' IDs, which background work reads many times a second. The register reads them
// again after each change.
type appList struct {
	mu    sync.Mutex
	known bool
	ids   []string
}

// Open opens the register of a store. Errors: api.ErrOptions and the store's.
func Open(o Options) (*Register, error) {
	if o.Store == nil || o.Models == nil || o.Hosted == nil || o.Clock == nil || o.Rand == nil {
		return nil, fmt.Errorf("%w: Store, Models, Hosted, Clock and Rand are required", api.ErrOptions)
	}
	r := ReadOnly(o)
	settings, err := r.PartitionOptions(catalog.Control)
	if err != nil {
		return nil, err
	}
	if r.partition, err = partition.OpenOrigin(settings); err != nil {
		return nil, fmt.Errorf("control partition: %w", err)
	}
	// A crash may have left pictures that no record claims, and deleted applications half removed.
	if of, ok := o.Hosted.(blob.Sweeper); ok { // the host of a guest sweeps its pictures itself
		r.tidy.pictures = blob.NewCleaner(of)
	}
	r.tidy.purge.Store(true)
	return r, nil
}

// ReadOnly returns a register that only reads. Another register on the same store writes the records.
func ReadOnly(o Options) *Register {
	r := &Register{o: o, gallery: api.PublicPictures{Names: o.Hosted, Store: o.Store, Clock: o.Clock}}
	r.follows.Store(o.Follow)
	return r
}

// PartitionOptions returns the options that open an application's partition on the register's store.
func (r *Register) PartitionOptions(app catalog.AppID) (partition.Options, error) {
	p := partition.Options{Store: r.o.Store, App: app, Clock: r.o.Clock, Follow: r.follows.Load()}
	drawn, err := r.draw()
	if err != nil {
		return p, err
	}
	p.Random = drawn
	sum := sha256.Sum256(drawn[:]) // replicas know the opening, and may not know the secrets of writers
	drawn = log.Epoch(sum[:])
	r.opening.CompareAndSwap(nil, &drawn)
	p.Epoch = *r.opening.Load()
	if r.o.Seals != nil {
		if _, err := io.ReadFull(r.o.Seals, p.Secret[:]); err != nil {
			return p, fmt.Errorf("random source: %w", err)
		}
	}
	return p, nil
}

// draw returns random bytes.
func (r *Register) draw() (e log.Epoch, err error) {
	if _, err = io.ReadFull(r.o.Rand, e[:]); err != nil {
		err = fmt.Errorf("random source: %w", err)
	}
	return e, err
}

// Reopen draws another opening of the logs, and returns it. The caller passes it to the partitions that are open. Errors: ErrNotOrigin and those of
// the random source.
func (r *Register) Reopen() (log.Epoch, error) {
	if r.partition == nil {
		return log.Epoch{}, ErrNotOrigin
	}
	e, err := r.draw()
	if err == nil {
		r.opening.Store(&e)
		r.partition.SetOpening(e)
	}
	return e, err
}

// Close ends the register. It closes none of the host's services.
func (r *Register) Close() error {
	if r.closed.Swap(true) || r.partition == nil {
		return nil
	}
	return r.partition.Close()
}

// HostedPicture returns the picture with a hosted name, of any application. It also finds pictures of unresolved
// conflicts in replicas. The error is blob.ErrNotFound.
func (r *Register) HostedPicture(name string) (blob.Picture, error) {
	p, err := r.gallery.Picture(name)
	if errors.Is(err, blob.ErrNotFound) {
		if disputed, ok := r.disputedPicture(name); ok {
			return disputed, nil
		}
	}
	return p, err
}

// disputedPicture returns the picture with a hosted name if a conflict in a replica of any application names it.
func (r *Register) disputedPicture(name string) (blob.Picture, bool) {
	var key [16]byte
	if n, err := hex.Decode(key[:], []byte(name[:min(len(name), 2*len(key))])); err != nil || n != len(key) || len(name) != 2*len(key) {
		return blob.Picture{}, false
	}
	ids, err := r.IDs()
	if err != nil {
		return blob.Picture{}, false
	}
	for _, id := range ids {
		if app, err := catalog.ParseAppID(id); err == nil {
			if p, err := partition.ConflictPicture(r.o.Store, app, key); err == nil {
				return p, true
			}
		}
	}
	return blob.Picture{}, false
}

// Thumbnail returns the small JPEG of an input's picture by the picture's hosted name; the error
// is blob.ErrNotFound.
func (r *Register) Thumbnail(name string) ([]byte, error) { return r.gallery.Thumbnail(name) }

// Reader returns a reader of the records.
func (r *Register) Reader() catalog.Reader { return catalog.Read(r.o.Store, catalog.Control) }

// IDs returns the IDs of all applications, in order. The caller must not change the list.
func (r *Register) IDs() ([]string, error) {
	l := &r.listed
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known {
		return l.ids, nil
	}
	var ids []string
	err := r.Reader().Apps(func(app catalog.App) bool {
		ids = append(ids, app.ID)
		return true
	})
	l.ids, l.known = ids, err == nil && r.partition != nil // other registers' changes cause no notification
	return ids, err
}

// relist makes the next call read the list of applications again.
func (r *Register) relist() {
	r.listed.mu.Lock()
	defer r.listed.mu.Unlock()
	r.listed.known, r.listed.ids = false, nil
}

// submit appends operations to the control log, all or none. It returns notFound if one of them names something that does not exist.
func (r *Register) submit(ctx context.Context, by string, notFound error, bodies ...log.Body) error {
	verdicts, err := r.append(ctx, by, bodies...)
	if err != nil {
		return err
	}
	for _, v := range verdicts {
		switch v.Code {
		case fold.OK:
		case fold.Gone:
			return notFound
		default:
			return fmt.Errorf("control log: %v: %s", v.Code, v.Detail)
		}
	}
	return nil
}

// append appends operations to the control log, all or none, and returns their verdicts.
func (r *Register) append(ctx context.Context, by string, bodies ...log.Body) ([]fold.Verdict, error) {
	if r.partition == nil {
		return nil, ErrNotOrigin
	}
	defer r.watchers.notify() // others' operations may have become visible with an error of these
	return r.partition.Submit(ctx, by, bodies, nil)
}
