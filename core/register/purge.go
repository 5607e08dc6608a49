package register

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// DeleteApp deletes an application permanently. When it returns, its keys and tokens are invalid,
// its pictures are unavailable, and nothing writes to it any longer. The next calls of Step delete its data,
// also after a restart. Errors: ErrApplication and the store's.
//
//	DeleteApp   one batch: deletes record, keys and client; adds the ID's tombstone and a pending purge
//	            then: the partition accepts no more writes; calls in progress are notified
//	Step        key range and public names, in parts ─▶ names out of the log ─▶ pending purge removed
//	            ─▶ names of its predicted pictures ─▶ blobs that no record claims any longer
func (r *Register) DeleteApp(ctx context.Context, by Caller, id string) error {
	if _, err := r.App(id); err != nil {
		return err
	}
	if err := r.audit(by, ActionDeleteApp, id); err != nil {
		return err
	}
	err := r.submit(ctx, by.Account, fmt.Errorf("%w: %q", ErrApplication, id), &log.AppDelete{ID: id})
	if err == nil {
		r.detach(id)
	}
	// After other errors the operation may still be in the log.
	r.relist()
	r.tidy.purge.Store(true)
	return err
}

// detach ends the replicas and streams of a deleted application.
func (r *Register) detach(app string) {
	if r.o.Detach != nil {
		r.o.Detach(app)
	}
}

// purgedOnce is the number of public names that a step of a purge reads.
const purgedOnce = 4096

// stepPurge deletes some data of deleted applications.
func (r *Register) stepPurge(ctx context.Context, now time.Time) (more bool, err error) {
	if !r.tidy.purge.Swap(false) {
		return false, nil
	}
	defer func() {
		if more || err != nil {
			r.tidy.purge.Store(true)
		}
	}()
	if _, err := r.partition.Step(ctx, now); err != nil { // the log may be ahead of the state
		return false, err
	}
	r.watchers.notify()
	purges, err := r.Reader().Purges()
	if err != nil || len(purges) == 0 {
		return false, err
	}
	r.relist()
	p := purges[0]
	r.detach(p.App.String())
	if err := r.partition.Tidy(func(tx *kv.Overlay) error {
		more, err = p.Step(tx, purgedOnce)
		return err
	}); err != nil || more {
		return more, err
	}
	if err := r.redact(&p); err != nil {
		return false, err
	}
	if err := compact(ctx, r.o.Store, p.App); err != nil {
		return false, err
	}
	err = r.partition.Tidy(func(tx *kv.Overlay) error {
		p.Done(tx)
		return nil
	})
	r.tidy.pictures.Restart()
	return len(purges) > 1, err
}

// compacter is a store that keeps deleted data until it compacts.
type compacter interface {
	Compact(ctx context.Context, lo, hi []byte) error
}

// compact compacts the deleted parts of an application in a store: its keys, the public names, and the control log. A store without space
// compacts them later.
func compact(ctx context.Context, s kv.Store, app catalog.AppID) error {
	store, ok := s.(compacter)
	if !ok {
		return nil
	}
	for _, bounds := range []func() (lo, hi []byte){app.Range, catalog.Control.Range, catalog.HostedRange} {
		lo, hi := bounds()
		if err := store.Compact(ctx, lo, hi); err != nil && !errors.Is(err, kv.ErrFull) {
			return err
		}
	}
	return nil
}

// Purge deletes all data of deleted applications at once. It is for a host that does not call Step.
func (r *Register) Purge(ctx context.Context, now time.Time) error {
	if err := r.usable(); err != nil {
		return err
	}
	t := &r.tidy
	t.mu.Lock()
	defer t.mu.Unlock()
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		purging, err := r.stepPurge(ctx, now)
		if err != nil {
			return err
		}
		collecting, err := t.pictures.Step(ctx, now)
		if err != nil {
			return err
		}
		more = purging || collecting
	}
	return nil
}

// redact removes the texts of a deleted application from the control log: its name, its owner, the descriptions of its keys, and the
// holders of its sites. Ids and hashes, which reveal nothing, stay.
func (r *Register) redact(p *catalog.Purge) error {
	id := p.App.String()
	return r.partition.Redact(p.Seq, func(body log.Body) bool {
		switch b := body.(type) {
		case *log.AppCreate:
			if b.ID == id {
				b.Name, b.DefaultModel, b.Owner = "", "", ""
				return true
			}
		case *log.AppChange:
			if b.ID == id {
				b.Name, b.DefaultModel = nil, nil
				return true
			}
		case *log.KeyCreate:
			if b.App == id {
				b.Description = ""
				return true
			}
		case *log.SiteLease:
			if b.App == id {
				b.Holder = ""
				return true
			}
		}
		return false
	})
}
