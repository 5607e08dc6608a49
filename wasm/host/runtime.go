package host

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"
	wapi "github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/sightline-dev/sightline/wasm/host/kernels"
)

// ErrModule is the error for an invalid module, or a module with other imports or exports than the ABI defines.
var ErrModule = errors.New("not a module with this ABI")

// DefaultMemoryPages is the default maximum of an instance's memory, in pages of 64 KiB: 1 GiB.
const DefaultMemoryPages = 1 << 14

// Options are the settings of a [Runtime]. Module, Now and Rand are required.
type Options struct {
	Module      []byte           // built from the same source as this program; the caller must not change it until NewRuntime returns
	Cache       *Cache           // stores compiled modules; nil: every start compiles
	MemoryPages uint32           // maximum memory of each instance, in pages of 64 KiB; 0 means DefaultMemoryPages
	Now         func() time.Time // clock of the Go runtime in the guests, and of Oldest
	Rand        io.Reader        // seeds the Go runtime in the guests; answers do not depend on it
	Log         *slog.Logger     // log of crashed guests and their output; nil: nothing is logged
}

// Runtime is a compiled module. Its calls have no deadlines, because deadlines would make them several times slower. The caller
// watches them with [Runtime.Oldest]. A Runtime is safe for concurrent use.
type Runtime struct {
	o Options
	*compiledModule
	kernels *kernels.Native
	hash    [sha256.Size]byte
	begun   time.Time
	open    atomic.Int64 // number of open instances
	running running
	networks
}

// NewRuntime compiles a module, or reads its compiled form from the cache. ctx bounds the compilation. It returns ErrModule for an
// invalid module.
func NewRuntime(ctx context.Context, o Options) (_ *Runtime, err error) {
	if len(o.Module) == 0 || o.Now == nil || o.Rand == nil {
		return nil, fmt.Errorf("%w: Module, Now and Rand are required", ErrModule)
	}
	if o.MemoryPages == 0 {
		o.MemoryPages = DefaultMemoryPages
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	rt := &Runtime{o: o, kernels: kernels.New(kernels.Options{}), hash: sha256.Sum256(o.Module), begun: o.Now()}
	rt.o.Module = nil
	config := wazero.NewRuntimeConfig().WithMemoryLimitPages(o.MemoryPages).WithDebugInfoEnabled(false)
	if rt.compiledModule, err = compile(ctx, config, o.Module, o.Cache, CacheName(rt.hash)); err != nil {
		return nil, err
	}
	hugeCode()
	if err := rt.link(ctx); err != nil {
		return nil, errors.Join(err, rt.close(ctx))
	}
	return rt, nil
}

// link defines the functions that the module may import, and checks its exports. It returns an error if an export is missing or has
// another type.
func (rt *Runtime) link(ctx context.Context) error {
	if err := linkWASI(ctx, rt.runtime, rt.module); err != nil {
		return err
	}
	b := rt.runtime.NewHostModuleBuilder("sightline")
	for _, im := range imports {
		b.NewFunctionBuilder().WithGoModuleFunction(im, im.params, im.results).Export(im.name)
	}
	if _, err := b.Instantiate(ctx); err != nil {
		return fmt.Errorf("imports: %w", err)
	}
	if err := rt.kernels.Instantiate(ctx, rt.runtime); err != nil {
		return fmt.Errorf("kernels: %w", err)
	}
	exported := rt.module.ExportedFunctions()
	for name, want := range exports {
		f, ok := exported[name]
		if !ok || !sameTypes(f.ParamTypes(), want.params) || !sameTypes(f.ResultTypes(), want.results) {
			return fmt.Errorf("%w: export %s is missing or has another type", ErrModule, name)
		}
	}
	if _, ok := rt.module.ExportedMemories()["memory"]; !ok {
		return fmt.Errorf("%w: memory is missing", ErrModule)
	}
	return nil
}

// Hash returns the SHA-256 of the module.
func (rt *Runtime) Hash() [sha256.Size]byte { return rt.hash }

// WasCompiled reports whether the module was compiled at this start, and not read from the cache.
func (rt *Runtime) WasCompiled() bool { return rt.isNew }

// Instances returns the number of open instances.
func (rt *Runtime) Instances() int { return int(rt.open.Load()) }

// Oldest returns the longest time, over the running calls of all instances, since the call began or last wrote with kv_apply. A call
// cannot be interrupted. If a call hangs, the process must end.
func (rt *Runtime) Oldest() time.Duration { return rt.running.oldest(rt.o.Now()) }

// Close closes the runtime and its open instances. No instance may be in a call.
func (rt *Runtime) Close(ctx context.Context) error { return rt.close(ctx) }

// instantiate creates an instance of the module. The caller calls free once it has closed m.
func (rt *Runtime) instantiate(ctx context.Context) (m wapi.Module, free func(), err error) {
	memory, unmap := newMemory()
	defer func() {
		if v := recover(); v != nil { // wazero panics if the system has no memory left
			err = fmt.Errorf("instance: %v", v)
		}
		if err != nil {
			unmap()
		}
	}()
	// Instances have no name, because two instances with one name cannot be open. No export runs before the instance is ready.
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	m, err = rt.runtime.InstantiateModule(experimental.WithMemoryAllocator(ctx, memory), rt.module, config)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrModule, err)
	}
	return m, unmap, nil
}

func sameTypes(a, b []wapi.ValueType) bool { return string(a) == string(b) }
