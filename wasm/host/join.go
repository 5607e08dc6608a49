package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/wasm/host/hostcalls"
)

// The host installs the snapshot of a joining replica natively, because the module takes four times as long. It stores each chunk when it
// arrives, and installs the state once all chunks are stored.

// Place stores the records of a snapshot chunk under their final keys, between two calls of the application's instance. If it returns
// false, the caller must pass the chunk to the instance. See [replica.Place].
func (f *Fleet) Place(ctx context.Context, app string, hash blob.Hash, piece []byte) (bool, error) {
	id, err := catalog.ParseAppID(app)
	if err != nil {
		return false, err
	}
	w, err := f.writer(app)
	if err != nil {
		return false, err
	}
	if err := w.take(ctx); err != nil {
		return false, err
	}
	defer w.give()
	if w.in == nil || ctx.Err() != nil {
		return false, ctx.Err()
	}
	return replica.Place(f.o.Services.Store, id, hash, piece)
}

// ApplySnapshot installs a snapshot after the machine in the application's instance has asked for that. It closes the instance, and the
// next call opens another. If the installation fails, ApplySnapshot logs the error, and the next instance installs the snapshot itself. So
// an error of ApplySnapshot means that ctx has ended, the application was deleted, or the fleet is closed.
func (f *Fleet) ApplySnapshot(ctx context.Context, app string, manifest []byte) error {
	w, err := f.writer(app)
	if err != nil {
		return err
	}
	if err := w.take(ctx); err != nil {
		return err
	}
	defer w.give()
	in := w.in
	w.drain(ctx)
	if w.retired {
		return errStopping
	}
	if in == nil || w.in != in {
		return nil // the instance was replaced meanwhile, and with it the machine
	}
	begun := f.now()
	err = w.shut()
	if err == nil {
		err = f.takeSnapshot(ctx, app, manifest)
	}
	if err != nil {
		w.guestSnapshots = true
		f.o.Services.Log.Error("cannot install a snapshot directly; the instance installs it", "app", app, "error", err)
		return ctx.Err()
	}
	f.o.Services.Log.Info("snapshot installed", "app", app, "took", f.now().Sub(begun))
	return nil
}

// takeSnapshot installs a snapshot with a separate engine on the fleet's store.
func (f *Fleet) takeSnapshot(ctx context.Context, app string, manifest []byte) error {
	id, err := catalog.ParseAppID(app)
	if err != nil {
		return err
	}
	o := &f.o.Services
	e, err := core.Open(core.Options{
		App: app, Store: o.Store, Models: f.o.Models, Hosted: o.Hosted, Clock: o.Clock, Rand: o.Rand,
		Older: func(base [32]byte) (*predict.Set, error) {
			if o.Older == nil {
				return nil, fmt.Errorf("network %x: %w", base[:4], hostcalls.ErrNotProvided)
			}
			files, err := o.Older(base)
			if err != nil {
				return nil, err
			}
			return predict.LoadTables(files)
		},
	})
	if err != nil {
		return err
	}
	p, err := e.Replica(app)
	if err == nil {
		err = replica.ApplySnapshot(ctx, replica.Options{App: id, Partition: p, Store: o.Store}, manifest)
	}
	return errors.Join(err, e.Close())
}
