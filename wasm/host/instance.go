package host

import (
	"context"
	"errors"
	"fmt"

	wapi "github.com/tetratelabs/wazero/api"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/wasm/abi"
	"github.com/sightline-dev/sightline/wasm/host/hostcalls"
	"github.com/sightline-dev/sightline/wasm/host/kernels"
)

// ErrCrashed is returned by an instance whose guest has trapped or broken the contract. All
// acknowledged writes are in the store.
var ErrCrashed = errors.New("module instance has failed")

// Services are the services of an instance. Clock and Rand are required; a nil service is unavailable.
type Services = hostcalls.Services

// Instance is a guest with its host's services. It has the methods of *core.Engine. The caller calls one method at a time, except Crashed
// and Bytes, which may be called at any time.
type Instance struct {
	rt      *Runtime
	host    *hostcalls.Host
	app     catalog.AppID // application of the instance; zero: all
	module  wapi.Module
	free    func()
	kernels *kernels.Instance
	exports map[string]wapi.Function
	writes  int    // attempts to write to the store
	commits int    // attempts that were synced
	printed []byte // the end of the guest's output
	head    []byte // buffer for the argument of a call, or for the part before its body
	crash   error
	closed  bool
}

// types are the parameters and results of an export.
type types struct{ params, results []wapi.ValueType }

// exports are the required exports of a module.
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

// Open creates an instance and opens it with s. It sets the Bundles, Tokens and Counted of s from services. Errors: ErrModule and
// abi.ErrVersion for a module of another ABI, ErrCrashed, and errors of the guest about its settings, such as register.ErrApplication.
func (rt *Runtime) Open(ctx context.Context, services Services, s abi.Settings) (_ *Instance, err error) {
	if services.Clock == nil || services.Rand == nil {
		return nil, fmt.Errorf("%w: Clock and Rand are required", api.ErrOptions)
	}
	in := &Instance{rt: rt}
	if in.host, err = hostcalls.New(services, s.App); err != nil {
		return nil, err
	}
	if s.App != "" {
		if in.app, err = catalog.ParseAppID(s.App); err != nil {
			return nil, err
		}
	}
	if s.Bundles, err = hostcalls.Names(services.Bundles); err != nil {
		return nil, err
	}
	s.Tokens, s.Counted = services.Tokens != nil, services.Count != nil
	if s.Memory == 0 {
		s.Memory = uint64(rt.o.MemoryPages) << 16 / 4 * 3
	}
	if err := in.start(ctx); err != nil {
		return nil, errors.Join(err, in.Close())
	}
	answer, err := in.call(ctx, "open", s.Marshal())
	if err == nil {
		var guestErr error
		guestErr, err = abi.ParseDone(answer)
		err = errors.Join(err, guestErr)
	}
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	return in, nil
}

// start creates the instance of the module and initialises it.
func (in *Instance) start(ctx context.Context) (err error) {
	in.rt.open.Add(1)
	in.kernels = in.rt.kernels.Open()
	in.kernels.ShareNetworks(func(base [32]byte) *predict.Set { return in.rt.network(&in.host.Services, base) })
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
		return in.markCrashed(fmt.Errorf("%w: %d, want %d", abi.ErrVersion, version, abi.Version))
	}
	return nil
}

// bind returns a context in which imports find the instance and its kernels.
func (in *Instance) bind(ctx context.Context) context.Context {
	in.host.Context = in.kernels.Bind(context.WithValue(ctx, instanceKey{}, in))
	return in.host.Context
}

// run calls an export. stack has the parameters before the call and the result after it.
func (in *Instance) run(ctx context.Context, name string, stack []uint64) error {
	if in.crash != nil {
		return in.crash
	}
	in.rt.running.enter(in, in.rt.o.Now())
	err := in.exports[name].CallWithStack(ctx, stack)
	in.rt.running.leave(in)
	if err != nil {
		return in.markCrashed(fmt.Errorf("%s: %w", name, err))
	}
	return nil
}

// markCrashed records the reason why the guest has failed, and returns it.
func (in *Instance) markCrashed(cause error) error {
	in.crash = fmt.Errorf("%w: %w", ErrCrashed, cause)
	in.rt.o.Log.Error("module call failed", "error", cause, "printed", string(in.printed))
	return in.crash
}

// call writes an argument, in one part or several, into the guest's memory, calls an export with it and returns a copy of the answer.
func (in *Instance) call(ctx context.Context, name string, parts ...[]byte) ([]byte, error) {
	if in.crash != nil {
		return nil, in.crash
	}
	ctx = in.bind(ctx)
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	if uint64(n) > uint64(in.rt.o.MemoryPages)<<16 {
		return nil, fmt.Errorf("%w: %d bytes", hostcalls.ErrTooLong, n)
	}
	stack := [1]uint64{uint64(n)}
	if err := in.run(ctx, "reserve", stack[:]); err != nil {
		return nil, err
	}
	room, ok := in.module.Memory().Read(uint32(stack[0]), uint32(n))
	if !ok {
		return nil, in.markCrashed(fmt.Errorf("reserve: %w: %d bytes at %d", abi.ErrRange, n, uint32(stack[0])))
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
		return nil, in.markCrashed(fmt.Errorf("%s: %w: %d bytes at %d", name, abi.ErrRange, size, address))
	}
	return append(make([]byte, 0, size), answer...), nil
}

// invalidAnswer marks the guest as failed if err is not nil, because its answer was invalid.
func (in *Instance) invalidAnswer(err error) error {
	if err != nil {
		return in.markCrashed(err)
	}
	return nil
}

// Crashed returns the error that ended the guest, or nil if the guest works. A guest fails only during a call.
func (in *Instance) Crashed() error { return in.crash }

// Bytes returns the size of the guest's memory.
func (in *Instance) Bytes() int64 {
	if in.module == nil || in.crash != nil || in.closed {
		return 0
	}
	return int64(in.module.Memory().Size())
}

// Close ends the instance. If the guest works, it is notified first. The host's services stay open.
func (in *Instance) Close() error {
	var err error
	if in.module != nil && in.crash == nil && in.exports != nil {
		_, err = in.Ask(context.Background(), abi.Query{What: abi.AskClose})
	}
	return errors.Join(err, in.Kill())
}

// Kill ends the instance without notifying the guest, as in a crash.
func (in *Instance) Kill() error {
	if in.closed {
		return nil
	}
	in.closed = true
	if in.crash == nil {
		in.crash = fmt.Errorf("%w: the instance is closed", ErrCrashed)
	}
	err := in.host.Close()
	in.kernels.Close()
	if in.module != nil {
		err = errors.Join(err, in.module.Close(context.Background()))
		in.free()
	}
	in.rt.open.Add(-1)
	return err
}
