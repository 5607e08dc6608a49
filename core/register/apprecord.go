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

// A copy of an application has the register's part of it: an app record.
//
//	origin: AppRecord ──▶ bytes, place in the control log ──▶ ApplyAppRecord: an edge's store
//	        Watch: ask again                                    └── gone ──▶ emptied

// AppRecord returns the register of an application for a copy, and its place in the control log. With an edge's id it is the register of
// that edge; without one it is that of a browser, which gets no keys. The bytes do not contain the place: they are equal as long as the
// register is unchanged. The register of an application that was deleted, or that the edge may not have, has the reason. Errors:
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
	x.Epoch = r.partition.Log().Epoch()
	return x.Encode(), v.Seq(), nil
}

// Watch calls moved after each change of the register, and now and then without one, until
// stop. moved returns at once and does not use the register: it has somebody else do so.
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

// AppRecordSeq is the place in the control log, and that log's epoch, of the register of an
// application that this copy has; zeros without any.
func (r *Register) AppRecordSeq(app string) (epoch log.Epoch, seq uint64, err error) {
	return r.Read().AppRecordSeq(app)
}

// ApplyAppRecord is [ApplyAppRecord] for the store of a register that is used meanwhile.
func (r *Register) ApplyAppRecord(ctx context.Context, app string, seq uint64, data []byte) error {
	return applyAppRecord(ctx, r.o.Store, app, seq, data, func(gone bool) {
		r.relist()
		if gone {
			r.detach(app)
		} else {
			r.notifyChange(app)
		}
	})
}

// AppRecords is the register of an application that is a replica, for the machine that keeps it in step.
type AppRecords struct {
	Of  *Register
	App string
}

// Seq is the place of the register in the origin's control log. If it cannot be read it is 0: the register is asked for again, and taking
// it returns the error.
func (c AppRecords) Seq() uint64 {
	_, seq, err := c.Of.AppRecordSeq(c.App)
	if err != nil {
		return 0
	}
	return seq
}

// Take takes a newer register. gone is the reason why the replica has lost the application; empty: it has it.
func (c AppRecords) Take(seq uint64, data []byte) (gone string, err error) {
	x, err := catalog.DecodeRegister(data)
	if err != nil {
		return "", err
	}
	return x.Revoked, c.Of.ApplyAppRecord(context.Background(), c.App, seq, data)
}

// ApplyAppRecord stores an origin's register of an application, with its place in the control log, in the store of a copy, in one synced
// batch. An older one changes nothing. If the register reports that the application was deleted, ApplyAppRecord keeps only that note. It
// deletes the application's records, log, pending operations, index and notes, so that nothing claims its pictures any longer. Errors:
// field.ErrFormat for an invalid register of app, and the store's.
func ApplyAppRecord(ctx context.Context, store kv.Store, app string, seq uint64, data []byte) error {
	return applyAppRecord(ctx, store, app, seq, data, func(bool) {})
}

func applyAppRecord(ctx context.Context, store kv.Store, app string, seq uint64, data []byte, applied func(gone bool)) error {
	x, err := catalog.DecodeRegister(data)
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

// PurgeDeleted deletes the remaining data of deleted applications in the store of a copy, and compacts the store. A crash may have
// interrupted ApplyAppRecord. Nothing may write to these applications any longer. Errors: those of the store.
func PurgeDeleted(ctx context.Context, store kv.Store) error {
	owed, err := catalog.Read(store, catalog.Control).Purges()
	for i := 0; err == nil && i < len(owed); i++ {
		err = empty(ctx, store, &owed[i])
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
		if more, err = p.Pay(tx, purgedOnce); err != nil {
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
