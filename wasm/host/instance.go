package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"time"

	wapi "github.com/tetratelabs/wazero/api"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/wasm/abi"
	"github.com/sightline-dev/sightline/wasm/host/kernels"
)

// ErrDead is returned by an instance whose guest has trapped or broken the contract. All
// acknowledged writes are in the store.
var ErrDead = errors.New("module instance has failed")

// Pictures keep the pictures that calls bring; *blob.Hosted is one.
type Pictures interface {
	Add(ctx context.Context, data []byte, contentType string, expires time.Time) (name string, h blob.Hash, err error)
	Release(ctx context.Context, h blob.Hash) error
	Drop(ctx context.Context, h blob.Hash) error
	Lookup(name string, now time.Time) (blob.Picture, error)
}

var _ Pictures = (*blob.Hosted)(nil)

// Lent is what a host lends to an instance. Clock and Rand are needed; what is nil is not there.
type Lent struct {
	Store    kv.Store
	Hosted   Pictures
	Bundles  fs.FS                              // the files of Settings.Bundles
	Older    func(base [32]byte) (fs.FS, error) // those of an older network
	Tokens   api.Tokens
	Count    func(app string) (refused string) // counts a call of an application, or returns why it is refused; nil: calls are not counted
	Blobs    replica.Blobs                     // of copies, by hash; nil: pictures of copies are neither sent nor fetched
	Register Register                          // of copies; nil: there are none
	Files    Files
	Clock    func() time.Time
	Rand     io.Reader    // ids are made from it; fit for secrets
	Log      *slog.Logger // what the guest has to say; nil: nobody listens
}

// Instance is a guest with what it was lent. It has the shapes of *core.Engine, and one of its
// methods is called at a time; Dead and Bytes may be called at any time.
type Instance struct {
	rt      *Runtime
	lent    Lent
	log     *slog.Logger
	bounds  bounds
	module  wapi.Module
	free    func()
	kernels *kernels.Instance
	exports map[string]wapi.Function
	reading reading
	writes  int    // to the lent store, tried
	commits int    // of these, synced ones
	printed []byte // the end of what the guest printed
	head    []byte // of what is being written to it
	dead    error
	closed  bool
}

// types are those of an export.
type types struct{ params, results []wapi.ValueType }

// exports are what a module must export.
var exports = map[string]types{
	"_initialize": {},
	"abi":         {nil, kernels.Types("i")},
	"reserve":     {kernels.Types("i"), kernels.Types("i")},
	"open":        {kernels.Types("i"), kernels.Types("I")},
	"serve":       {kernels.Types("i"), kernels.Types("I")},
	"resume":      {kernels.Types("i"), kernels.Types("I")},
	"step":        {kernels.Types("i"), kernels.Types("I")},
	"analyse":     {kernels.Types("i"), kernels.Types("I")},
	"ask":         {kernels.Types("i"), kernels.Types("I")},
	"sync":        {kernels.Types("i"), kernels.Types("I")},
}

// Open makes an instance and opens it with s. It sets the Bundles, Tokens and Counted of s from
// lent. Errors: ErrModule and abi.ErrVersion for a module of another ABI, ErrDead, and
// errors of the guest about its settings, such as register.ErrApplication.
func (rt *Runtime) Open(ctx context.Context, lent Lent, s abi.Settings) (_ *Instance, err error) {
	if lent.Clock == nil || lent.Rand == nil {
		return nil, fmt.Errorf("%w: Clock and Rand are required", api.ErrOptions)
	}
	in := &Instance{rt: rt, lent: lent, log: lent.Log, reading: reading{snapshots: map[uint32]kv.Snapshot{}, scans: map[uint32]*scan{}}}
	if in.log == nil {
		in.log = slog.New(slog.DiscardHandler)
	}
	if in.bounds, err = boundsOf(s.App); err != nil {
		return nil, err
	}
	if s.Bundles, err = names(lent.Bundles); err != nil {
		return nil, err
	}
	s.Tokens, s.Counted = lent.Tokens != nil, lent.Count != nil
	if s.Memory == 0 {
		s.Memory = uint64(rt.o.MemoryPages) << 16 / 4 * 3
	}
	if err := in.start(ctx); err != nil {
		return nil, errors.Join(err, in.Close())
	}
	answer, err := in.call(ctx, "open", s.Marshal())
	if err == nil {
		var told error
		told, err = abi.ParseDone(answer)
		err = errors.Join(err, told)
	}
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	return in, nil
}

// names are those of all files of bundles.
func names(bundles fs.FS) (names []string, err error) {
	if bundles == nil {
		return nil, nil
	}
	err = fs.WalkDir(bundles, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			names = append(names, name)
		}
		return err
	})
	return names, err
}

// start makes the instance and initialises it.
func (in *Instance) start(ctx context.Context) (err error) {
	in.rt.open.Add(1)
	in.kernels = in.rt.kernels.Open()
	in.kernels.LendNetworks(func(base [32]byte) *predict.Set { return in.rt.network(&in.lent, base) })
	ctx = in.bind(ctx)
	if in.module, in.free, err = in.rt.instantiate(ctx); err != nil {
		return err
	}
	in.exports = make(map[string]wapi.Function, len(exports))
	for name := range exports {
		in.exports[name] = in.module.ExportedFunction(name)
	}
	var stack [1]uint64
	if err := in.run(ctx, "_initialize", stack[:]); err != nil {
		return err
	}
	if err := in.run(ctx, "abi", stack[:]); err != nil {
		return err
	}
	if version := uint32(stack[0]); version != abi.Version {
		return in.die(fmt.Errorf("%w: %d, want %d", abi.ErrVersion, version, abi.Version))
	}
	return nil
}

// bind returns a context in which imports find the instance and its kernels.
func (in *Instance) bind(ctx context.Context) context.Context {
	return in.kernels.Bind(context.WithValue(ctx, instanceKey{}, in))
}

// run calls an export, with its parameters and then its result in stack.
func (in *Instance) run(ctx context.Context, name string, stack []uint64) error {
	if in.dead != nil {
		return in.dead
	}
	in.rt.running.enter(in, in.rt.o.Now())
	err := in.exports[name].CallWithStack(ctx, stack)
	in.rt.running.leave(in)
	if err != nil {
		return in.die(fmt.Errorf("%s: %w", name, err))
	}
	return nil
}

// die marks the guest dead, and tells why.
func (in *Instance) die(cause error) error {
	in.dead = fmt.Errorf("%w: %w", ErrDead, cause)
	in.rt.o.Log.Error("module call failed", "error", cause, "printed", string(in.printed))
	return in.dead
}

// call writes an argument, which may come in parts, to the guest, calls an export with it and
// returns a copy of the answer.
func (in *Instance) call(ctx context.Context, name string, parts ...[]byte) ([]byte, error) {
	if in.dead != nil {
		return nil, in.dead
	}
	ctx = in.bind(ctx)
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	if uint64(n) > uint64(in.rt.o.MemoryPages)<<16 {
		return nil, fmt.Errorf("%w: %d bytes", errTooLong, n)
	}
	stack := [1]uint64{uint64(n)}
	if err := in.run(ctx, "reserve", stack[:]); err != nil {
		return nil, err
	}
	room, ok := in.module.Memory().Read(uint32(stack[0]), uint32(n))
	if !ok {
		return nil, in.die(fmt.Errorf("reserve: %w: %d bytes at %d", abi.ErrWild, n, uint32(stack[0])))
	}
	for _, p := range parts {
		room = room[copy(room, p):]
	}
	stack[0] = uint64(n)
	if err := in.run(ctx, name, stack[:]); err != nil {
		return nil, err
	}
	address, size := abi.AnswerAt(stack[0])
	answer, ok := in.module.Memory().Read(address, size)
	if !ok {
		return nil, in.die(fmt.Errorf("%s: %w: %d bytes at %d", name, abi.ErrWild, size, address))
	}
	return append(make([]byte, 0, size), answer...), nil
}

// broken is the error of an answer that is none: the guest is dead.
func (in *Instance) broken(err error) error {
	if err != nil {
		return in.die(err)
	}
	return nil
}

// Dead is why the instance answers nothing any more; nil: it does. An instance that dies does so
// inside a call.
func (in *Instance) Dead() error { return in.dead }

// Bytes is how much memory the guest has.
func (in *Instance) Bytes() int64 {
	if in.module == nil || in.dead != nil || in.closed {
		return 0
	}
	return int64(in.module.Memory().Size())
}

// Close ends the instance: the guest, if it lives, is told first. What was lent stays open.
func (in *Instance) Close() error {
	var err error
	if in.module != nil && in.dead == nil && in.exports != nil {
		_, err = in.Ask(context.Background(), abi.Question{What: abi.AskClose})
	}
	return errors.Join(err, in.Drop())
}

// Drop ends the instance without a word to the guest, as a crash does.
func (in *Instance) Drop() error {
	if in.closed {
		return nil
	}
	in.closed = true
	if in.dead == nil {
		in.dead = fmt.Errorf("%w: the instance is closed", ErrDead)
	}
	err := in.reading.close()
	in.kernels.Close()
	if in.module != nil {
		err = errors.Join(err, in.module.Close(context.Background()))
		in.free()
	}
	in.rt.open.Add(-1)
	return err
}
