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

// Command is a compiled WASI program of other authors, such as a decoder of videos. It reads its arguments and the files
// that a run gives it, and writes to two writers. It has no environment, no network, and neither clock nor random
// source of the machine. A run cannot be interrupted: only the end of the process stops it.
type Command struct {
	*compiledModule
	memory uint64
}

// NewCommand compiles a program, or loads the compiled program from the cache. Each run may use at most memory bytes. The program may use
// exception handling, extended constants and tail calls. If cache is nil, each call compiles the program.
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
	inner, free := newMemory()
	memory := &limitedAllocator{inner: inner, limit: c.memory}
	defer free()
	defer func() {
		if v := recover(); v != nil { // wazero panics if the system has no memory left
			err = fmt.Errorf("%w: %v", ErrMemory, v)
		}
	}()
	config := wazero.NewModuleConfig().WithName("").WithArgs(args...).WithStdout(stdout).WithStderr(stderr).
		WithFSConfig(wazero.NewFSConfig().WithFSMount(files, "/"))
	m, err := c.runtime.InstantiateModule(experimental.WithMemoryAllocator(ctx, memory), c.module, config)
	if m != nil {
		err = errors.Join(err, m.Close(ctx))
	}
	var exit *sys.ExitError
	if errors.As(err, &exit) {
		code, err = exit.ExitCode(), nil
	}
	if memory.refused && (code != 0 || err != nil) {
		err = errors.Join(ErrMemory, err)
	}
	return code, err
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
