package instance

import (
	"context"
	"fmt"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/wasm/abi"
	"github.com/sightline-dev/sightline/wasm/guest/hostapi"
)

var errNoReplica = fmt.Errorf("%w: the instance has no replica", api.ErrOptions)

// openReplica creates the machine that syncs the application with its origin.
func (i *Instance) openReplica(store kv.Store) error {
	s := i.settings.Replica
	if i.settings.App == "" {
		return fmt.Errorf("%w: a replica needs the ID of its application", api.ErrOptions)
	}
	app, err := catalog.ParseAppID(i.settings.App)
	if err != nil {
		return err
	}
	p, err := i.engine.Replica(i.settings.App)
	if err != nil {
		return err
	}
	o := replica.Options{
		App: app, Partition: p, Store: store, Wants: s.Wants, Live: s.Live, Name: s.Name, Rand: hostapi.Random{From: i.Imports}, Audit: s.Audit,
	}
	if i.pictures == nil {
		o.Blobs, o.AppRecords = hostapi.Blobs{From: i.Imports}, hostapi.AppRecords{From: i.Imports}
		o.NativeSnapshots = s.NativeSnapshots // the host can install them, because the store is the host's
	} else {
		o.Blobs, o.AppRecords = i.pictures.blobs, register.AppRecords{Of: i.engine.Register, App: i.settings.App}
	}
	i.machine, err = replica.New(o)
	return err
}

// register stores the app record of the settings in the instance's own store. It must run before the engine looks up the application there.
func (i *Instance) register(store kv.Store) error {
	ctx := context.Background()
	if err := register.PurgeDeleted(ctx, store); err != nil { // a crash may have interrupted a deletion
		return err
	}
	r := i.settings.Replica
	if len(r.Register) == 0 {
		return nil
	}
	return register.ApplyAppRecord(ctx, store, i.settings.App, r.RegisterSeq, r.Register)
}

// Sync passes an event to the replica's machine. The answer is a SyncResult. After a panic the machine has ended.
func (i *Instance) Sync(data []byte) []byte {
	var done abi.SyncResult
	e, err := abi.ParseEvent(data)
	switch {
	case err != nil:
	case i.machine == nil:
		err = errNoReplica
	default:
		err = api.ErrInternal
		i.guard("event", func() { done, err = i.sync(e) }, func() { i.machine = nil })
	}
	done.Err = err
	i.answer = done.Append(i.answer)
	return i.answer
}

func (i *Instance) sync(e replica.Event) (done abi.SyncResult, err error) {
	if e != nil {
		done.Effects, err = i.machine.Step(time.Unix(0, i.Imports.Now()), e)
	}
	done.Status = i.machine.Status()
	return done, err
}

// digest returns a DigestReply for the state that the replica has folded from the origin's log.
func (i *Instance) digest() ([]byte, error) {
	if i.machine == nil {
		return nil, errNoReplica
	}
	app, err := catalog.ParseAppID(i.settings.App)
	if err != nil {
		return nil, err
	}
	p, err := i.engine.Replica(i.settings.App)
	if err != nil {
		return nil, err
	}
	c := p.Cursor()
	r := abi.DigestReply{Epoch: c.Epoch, Seq: c.Seq}
	err = p.ReadConfirmed(func(state kv.Reader) (err error) {
		r.Digest, err = fold.Digest(state, app)
		return err
	})
	return r.Marshal(), err
}
