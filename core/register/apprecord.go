package register

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// A replica of an application has an app record: the part of the register that belongs to the application.
//
//	origin: AppRecord ──▶ bytes, place in the control log ──▶ ApplyAppRecord: an edge's store
//	        Watch: ask again                                    └── gone ──▶ emptied

// AppRecord returns the app record of an application for a replica, and its place in the control log. With an edge's ID it is the record
// for that edge. Without one it is the record for a browser, which gets no keys. The bytes do not contain the place, so they are equal as
// long as the record is unchanged. If the application was deleted, or the edge may not have it, the record has the reason. Errors:
// ErrApplication for an application that never existed, ErrNotOrigin and the store's.
func (r *Register) AppRecord(app, edge string) (data []byte, seq uint64, err error) {
	if r.partition == nil {
		return nil, 0, ErrNotOrigin
	}
	v := r.partition.View()
	x, err := v.AppRecord(app, edge)
	if err = errors.Join(err, v.Close()); err != nil {
		if errors.Is(err, catalog.ErrNotFound) {
			err = fmt.Errorf("%w: %q", ErrApplication, app)
		}
		return nil, 0, err
	}
	x.Epoch = r.partition.Opening()
	return x.Encode(), v.Seq(), nil
}

// Watch calls moved after each change of the register, and sometimes without one, until stop is
// called. moved must return at once and must not use the register itself.
func (r *Register) Watch(moved func()) (stop func()) { return r.watchers.add(moved) }

// watchers are notified of changes of the register.
type watchers struct {
	mu        sync.Mutex
	next      int
	callbacks map[int]func()
}

func (w *watchers) add(moved func()) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.callbacks == nil {
		w.callbacks = map[int]func(){}
	}
	id := w.next
	w.next++
	w.callbacks[id] = moved
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.callbacks, id)
	}
}

func (w *watchers) notify() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, moved := range w.callbacks {
		moved()
	}
}

// AppRecordSeq returns the place of an application's app record in the origin's control log, and that log's epoch. It returns
// zeros if this replica has no record.
func (r *Register) AppRecordSeq(app string) (epoch log.Epoch, seq uint64, err error) {
	return r.Reader().AppRecordSeq(app)
}

// ApplyAppRecord is [ApplyAppRecord] for the store of a register that is in use.
func (r *Register) ApplyAppRecord(ctx context.Context, app string, seq uint64, data []byte) error {
	return applyAppRecord(ctx, r.o.Store, app, seq, data, func(revoked bool) {
		r.relist()
		if revoked {
			r.detach(app)
		} else {
			r.notifyChange(app)
		}
	})
}

// AppRecords gives the state machine that synchronizes a replica access to the application's app record.
type AppRecords struct {
	Of  *Register
	App string
}

// Seq returns the place of the app record in the origin's control log. It returns 0 if the place cannot be read: the origin then sends
// the record again, and Apply returns the error.
func (c AppRecords) Seq() uint64 {
	_, seq, err := c.Of.AppRecordSeq(c.App)
	if err != nil {
		return 0
	}
	return seq
}

// Apply applies a newer app record. reason explains why the replica lost the application; empty: it still has it.
func (c AppRecords) Apply(seq uint64, data []byte) (reason string, err error) {
	x, err := catalog.DecodeAppRecord(data)
	if err != nil {
		return "", err
	}
	return x.Revoked, c.Of.ApplyAppRecord(context.Background(), c.App, seq, data)
}

// ApplyAppRecord stores an origin's app record, with its place in the control log, in the store of a replica, in one synced
// batch. An older record changes nothing. If the record reports that the application was deleted, only the record stays: ApplyAppRecord
// deletes the application's records, log, pending operations, index and notes, so that nothing claims its pictures any longer. Errors:
// field.ErrFormat for an invalid record, ErrApplication for another application's, and the store's.
func ApplyAppRecord(ctx context.Context, store kv.Store, app string, seq uint64, data []byte) error {
	return applyAppRecord(ctx, store, app, seq, data, func(bool) {})
}

func applyAppRecord(ctx context.Context, store kv.Store, app string, seq uint64, data []byte, applied func(revoked bool)) error {
	x, err := catalog.DecodeAppRecord(data)
	if err == nil && x.App != app {
		err = fmt.Errorf("app record belongs to application %q: %w", x.App, ErrApplication)
	}
	if err != nil {
		return err
	}
	tx := kv.NewOverlay(store)
	newer, err := catalog.Write(tx, catalog.Control).ApplyAppRecord(&x, seq)
	if err == nil && newer { // a key that was deleted must not come back with a power cut
		var wait func() error
		if wait, err = store.Commit(tx.Batch()); err == nil {
			err = wait()
		}
	}
	if err != nil {
		return fmt.Errorf("app record of %s: %w", app, err)
	}
	if newer {
		applied(x.Revoked != "")
	}
	return PurgeDeleted(ctx, store)
}

// PurgeDeleted deletes the remaining data of deleted applications in the store of a replica, and compacts the store. A crash may have
// interrupted ApplyAppRecord. Nothing may write to these applications any longer. Errors: those of the store.
func PurgeDeleted(ctx context.Context, store kv.Store) error {
	purges, err := catalog.Read(store, catalog.Control).Purges()
	for i := 0; err == nil && i < len(purges); i++ {
		err = empty(ctx, store, &purges[i])
	}
	return err
}

func empty(ctx context.Context, store kv.Store, p *catalog.Purge) error {
	tx := kv.NewOverlay(store)
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		tx.Reset(store)
		var err error
		if more, err = p.Step(tx, purgedOnce); err != nil {
			return err
		}
		if err := store.Apply(tx.Batch()); err != nil {
			return err
		}
	}
	if err := compact(ctx, store, p.App); err != nil {
		return err
	}
	var b kv.Batch
	p.Done(&b)
	return store.Apply(&b)
}
