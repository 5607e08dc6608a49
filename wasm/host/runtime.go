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

// ErrModule is returned for bytes that are no module, or one that imports or exports something
// else than the ABI says.
var ErrModule = errors.New("not a module of this ABI")

// DefaultMemoryPages is how much memory an instance may have unless Options say otherwise, in
// pages of 64 KiB: 1 GiB.
const DefaultMemoryPages = 1 << 14

// DefaultCallTime is how long a call of a module that is not trusted may take.
const DefaultCallTime = 30 * time.Second

// Options are the settings of a [Runtime]. Module, Now and Rand are needed.
type Options struct {
	Module      []byte          // borrowed until NewRuntime returns
	Cache       *Cache          // keeps compiled modules; nil: each start compiles
	Kernels     *kernels.Native // shared between runtimes, with the weights that they have in common; nil means one of its own
	MemoryPages uint32          // of each instance, 64 KiB each; 0 means DefaultMemoryPages

	// Trusted are the SHA-256 of modules that run without deadlines, since they are the program's
	// own: their calls are bounded by what they are given, and watched by Oldest.
	Trusted [][sha256.Size]byte

	// Own is the SHA-256 of the module that is made of the same source as this program, and gives the same
	// answers: a fleet's pictures are then analysed without it. Zero: there is none.
	Own [sha256.Size]byte

	CallTime time.Duration    // of a call of any other module; 0 means DefaultCallTime
	Now      func() time.Time // a clock that runs, for the guests' own runtime and for Oldest
	Rand     io.Reader        // seeds the guests' own runtime; nothing of an answer comes from it
	Log      *slog.Logger     // deaths of guests, and what they print; nil: nobody is told
}

// Runtime is a compiled module. It is safe for concurrent use.
type Runtime struct {
	o Options
	*compiled
	hash    [sha256.Size]byte
	trusted bool
	own     bool
	begun   time.Time
	open    atomic.Int64 // instances
	running running
	networks
}

// NewRuntime compiles a module, or reads what it was compiled to from the cache. ctx bounds
// the compiling. It returns ErrModule for what cannot be one.
func NewRuntime(ctx context.Context, o Options) (_ *Runtime, err error) {
	if len(o.Module) == 0 || o.Now == nil || o.Rand == nil {
		return nil, fmt.Errorf("%w: Module, Now and Rand are needed", ErrModule)
	}
	if o.MemoryPages == 0 {
		o.MemoryPages = DefaultMemoryPages
	}
	if o.CallTime <= 0 {
		o.CallTime = DefaultCallTime
	}
	if o.Kernels == nil {
		o.Kernels = kernels.New(kernels.Options{})
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	rt := &Runtime{o: o, hash: sha256.Sum256(o.Module), begun: o.Now()}
	rt.own = rt.hash == o.Own
	for _, h := range o.Trusted {
		rt.trusted = rt.trusted || h == rt.hash
	}
	rt.o.Module = nil
	config := wazero.NewRuntimeConfig().WithMemoryLimitPages(o.MemoryPages).WithCloseOnContextDone(!rt.trusted).WithDebugInfoEnabled(false)
	if rt.compiled, err = compile(ctx, config, o.Module, o.Cache, rt.sealName()); err != nil {
		return nil, err
	}
	hugeCode()
	if err := rt.link(ctx); err != nil {
		return nil, errors.Join(err, rt.close(ctx))
	}
	return rt, nil
}

// sealName tells apart what may not be read as the other in the cache.
func (rt *Runtime) sealName() string {
	kind := "deadlines"
	if rt.trusted {
		kind = "trusted"
	}
	return fmt.Sprintf("%x-%s", rt.hash, kind)
}

// link gives the module what it may import, and nothing else: one that asks for more is refused.
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
	if err := rt.o.Kernels.Instantiate(ctx, rt.runtime); err != nil {
		return fmt.Errorf("kernels: %w", err)
	}
	exported := rt.module.ExportedFunctions()
	for name, want := range exports {
		f, ok := exported[name]
		if !ok || !sameTypes(f.ParamTypes(), want.params) || !sameTypes(f.ResultTypes(), want.results) {
			return fmt.Errorf("%w: no export %s of its type", ErrModule, name)
		}
	}
	if _, ok := rt.module.ExportedMemories()["memory"]; !ok {
		return fmt.Errorf("%w: no memory", ErrModule)
	}
	return nil
}

// Hash is the SHA-256 of the module.
func (rt *Runtime) Hash() [sha256.Size]byte { return rt.hash }

// Trusted reports whether calls run without deadlines.
func (rt *Runtime) Trusted() bool { return rt.trusted }

// Compiled reports whether the module was compiled at this start, and not read from the cache.
func (rt *Runtime) Compiled() bool { return rt.made }

// Instances is how many are open.
func (rt *Runtime) Instances() int { return int(rt.open.Load()) }

// Oldest is for how long the longest call under way has been running, of all instances, without writing anything. A trusted module
// is not interrupted: whoever watches it ends the process.
func (rt *Runtime) Oldest() time.Duration { return rt.running.oldest(rt.o.Now()) }

// Close ends the runtime and what is left of its instances. None may be in a call.
func (rt *Runtime) Close(ctx context.Context) error { return rt.close(ctx) }

// instantiate makes an instance of the module; free is called once it is closed.
func (rt *Runtime) instantiate(ctx context.Context) (m wapi.Module, free func(), err error) {
	memory, unmap := newMemory()
	defer func() {
		if v := recover(); v != nil { // wazero's, where the system has no memory left
			err = fmt.Errorf("instance: %v", v)
		}
		if err != nil {
			unmap()
		}
	}()
	// Without a name, or many could not be open; nothing is called before all is ready.
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	m, err = rt.runtime.InstantiateModule(experimental.WithMemoryAllocator(ctx, memory), rt.module, config)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrModule, err)
	}
	return m, unmap, nil
}

func sameTypes(a, b []wapi.ValueType) bool { return string(a) == string(b) }
