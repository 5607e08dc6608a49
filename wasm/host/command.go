package host

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/tetratelabs/wazero"
	wapi "github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"
)

// ErrMemory is returned for a command that failed after it asked for more memory than it may have.
var ErrMemory = errors.New("the module needs more memory than it may have")

// Command is a compiled WASI module of other authors: a program, such as a decoder of videos, or a reactor, such as a decoder of pictures.
// A program reads its arguments and the files that a run gives it, and writes to two writers. A module has no environment, no network, and
// neither clock nor random source of the machine. A run cannot be interrupted: only the end of the process stops it.
type Command struct {
	*compiledModule
	memory uint64
}

// NewCommand compiles a module, or loads the compiled module from the cache. Each instance may use at most memory bytes. The module may use
// exception handling, extended constants and tail calls. If cache is nil, each call compiles the module.
func NewCommand(ctx context.Context, module []byte, cache *Cache, memory uint64) (*Command, error) {
	config := wazero.NewRuntimeConfig().WithDebugInfoEnabled(false).WithCoreFeatures(wapi.CoreFeaturesV2 |
		experimental.CoreFeaturesExceptionHandling | experimental.CoreFeaturesExtendedConst | experimental.CoreFeaturesTailCall)
	c, err := compile(ctx, config, module, cache, CacheName(sha256.Sum256(module)))
	if err != nil {
		return nil, err
	}
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, c.runtime); err != nil {
		return nil, errors.Join(err, c.close(ctx))
	}
	return &Command{c, memory}, nil
}

// WasCompiled reports whether NewCommand compiled the program. If not, it loaded the program from the cache.
func (c *Command) WasCompiled() bool { return c.isNew }

// Run runs the program and returns its exit code. args begins with the program's name, and files is its root folder. A
// program that traps ends with an error; one that fails for lack of memory returns ErrMemory.
func (c *Command) Run(ctx context.Context, args []string, files fs.FS, stdout, stderr io.Writer) (code uint32, err error) {
	config := wazero.NewModuleConfig().WithName("").WithArgs(args...).WithStdout(stdout).WithStderr(stderr).
		WithFSConfig(wazero.NewFSConfig().WithFSMount(files, "/"))
	err = c.instantiate(ctx, config, func(wapi.Module) error { return nil })
	var exit *sys.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
		if code == 0 || !errors.Is(err, ErrMemory) {
			err = nil
		}
	}
	return code, err
}

// React creates an instance of a reactor: a module without a main function, whose functions use calls. The instance ends with use. It has
// no arguments and no files. If a function traps or use returns an error after the instance asked for more memory than it may have, the
// error is ErrMemory.
func (c *Command) React(ctx context.Context, use func(Reactor) error) error {
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize")
	return c.instantiate(ctx, config, func(m wapi.Module) error { return use(Reactor{ctx, m}) })
}

// instantiate calls use with a new instance. The error is that of the instance's start or of use, with ErrMemory if the instance has asked
// for too much memory.
func (c *Command) instantiate(ctx context.Context, config wazero.ModuleConfig, use func(wapi.Module) error) (err error) {
	inner, free := newMemory()
	memory := &limitedAllocator{inner: inner, limit: c.memory}
	defer free()
	defer func() {
		if v := recover(); v != nil { // wazero panics if the system has no memory left
			err = fmt.Errorf("%w: %v", ErrMemory, v)
		}
	}()
	m, err := c.runtime.InstantiateModule(experimental.WithMemoryAllocator(ctx, memory), c.module, config)
	if err == nil {
		err = use(m)
	}
	if m != nil {
		err = errors.Join(err, m.Close(ctx))
	}
	if memory.refused && err != nil {
		err = errors.Join(ErrMemory, err)
	}
	return err
}

// Reactor is an instance of a module whose functions the host calls. It must not be used after the function that got it has returned.
type Reactor struct {
	ctx context.Context
	m   wapi.Module
}

// Call calls an exported function with one result. It returns an error if the function traps.
func (r Reactor) Call(name string, args ...uint64) (uint32, error) {
	f := r.m.ExportedFunction(name)
	if f == nil || len(f.Definition().ResultTypes()) != 1 {
		return 0, fmt.Errorf("%w: no function %s with a result", ErrModule, name)
	}
	results, err := f.Call(r.ctx, args...)
	if err != nil {
		return 0, err
	}
	return uint32(results[0]), nil
}

// Reserve allocates n bytes in the instance's memory with its function malloc and returns their address. n must not be 0.
func (r Reactor) Reserve(n uint32) (at uint32, err error) {
	at, err = r.Call("malloc", uint64(n))
	if err == nil && at == 0 {
		err = fmt.Errorf("%w: %d bytes", ErrMemory, n)
	}
	return at, err
}

// Bytes returns n bytes of the instance's memory, for reading and writing. They are valid until the next call of a function.
func (r Reactor) Bytes(at, n uint32) ([]byte, error) {
	b, ok := r.m.Memory().Read(at, n)
	if !ok {
		return nil, fmt.Errorf("%w: no %d bytes at %d", ErrModule, n, at)
	}
	return b, nil
}

// limitedAllocator allocates memories of at most limit bytes each, and records whether one asked for more.
type limitedAllocator struct {
	inner   experimental.MemoryAllocator // nil: a memory is a Go slice
	limit   uint64
	refused bool
}

// Allocate implements [experimental.MemoryAllocator].
func (l *limitedAllocator) Allocate(capacity, maxBytes uint64) experimental.LinearMemory {
	maxBytes = min(maxBytes, l.limit)
	m := limitedMemory{limitedAllocator: l, maxBytes: maxBytes}
	if l.inner != nil {
		m.LinearMemory = l.inner.Allocate(min(capacity, maxBytes), maxBytes)
	} else {
		m.LinearMemory = &slice{}
	}
	return m
}

type limitedMemory struct {
	experimental.LinearMemory
	*limitedAllocator
	maxBytes uint64
}

// Reallocate implements [experimental.LinearMemory].
func (m limitedMemory) Reallocate(size uint64) []byte {
	if size > m.maxBytes {
		m.refused = true
		return nil
	}
	return m.LinearMemory.Reallocate(size)
}

// slice is a memory in a Go slice. It copies its content when it grows.
type slice struct{ all []byte }

// Reallocate implements [experimental.LinearMemory].
func (s *slice) Reallocate(size uint64) []byte {
	if grown := int(size) - len(s.all); grown > 0 {
		s.all = append(s.all, make([]byte, grown)...)
	}
	return s.all[:size]
}

// Free implements [experimental.LinearMemory].
func (s *slice) Free() {}
