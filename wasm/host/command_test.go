package host

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/fstest"

	"github.com/sightline-dev/sightline/wasm/host/kernels"
)

// greeter is a WASI program: it prints a text and exits with its number of arguments. With three it first asks for 100 pages more, and
// traps if it does not get them. With four it traps at once.
func greeter(text string) []byte {
	const argc, unreachable = 32, opUnreachable
	wasi := []byte("wasi_snapshot_preview1")
	imported := func(name string, kind int) []byte {
		return code(prefixLength(wasi), prefixLength([]byte(name)), 0x00, kind)
	}
	loadArgc := code(i32(argc), opI32Load, 0x02, 0x00)
	body := code(
		i32(argc), i32(argc+4), opCall, 2, opDrop,
		loadArgc, i32(3), opI32Eq, opIf, blockVoid,
		i32(100), opMemoryGrow, 0x00, i32(-1), opI32Eq, opIf, blockVoid, unreachable, opEnd,
		opEnd,
		loadArgc, i32(4), opI32Eq, opIf, blockVoid, unreachable, opEnd,
		i32(1), i32(0), i32(1), i32(argc+8), opCall, 0, opDrop,
		loadArgc, opCall, 1,
		opEnd,
	)
	return code(
		[]byte("\x00asm\x01\x00\x00\x00"),
		section(1, vec(
			typeOf(kernels.Types("iiii"), kernels.Types("i")), typeOf(kernels.Types("i"), nil),
			typeOf(kernels.Types("ii"), kernels.Types("i")), typeOf(nil, nil),
		)),
		section(2, vec(imported("fd_write", 0), imported("proc_exit", 1), imported("args_sizes_get", 2))),
		section(3, vec([]byte{3})),
		section(5, code(0x01, 0x00, uleb(1))),
		section(7, vec(code(prefixLength([]byte("memory")), 0x02, 0x00), code(prefixLength([]byte("_start")), 0x00, 3))),
		section(10, vec(prefixLength(code(0x00, body)))),
		section(11, vec(
			code(0x00, i32(0), opEnd, prefixLength([]byte{64, 0, 0, 0, byte(len(text)), 0, 0, 0})),
			code(0x00, i32(64), opEnd, prefixLength([]byte(text))),
		)),
	)
}

// TestCommand runs a WASI program: its output and its exit code, a trap, and more memory than it may have. The second time its compiled
// form comes from the cache.
func TestCommand(t *testing.T) {
	cache := newCache(t)
	for _, compiled := range []bool{true, false} {
		for _, tt := range []struct {
			name   string
			args   []string
			memory uint64
			code   uint32
			output string
			fails  bool
			err    error
		}{
			{"exit code", []string{"greeter", "x"}, 1 << 20, 2, "hello", false, nil},
			{"memory that it may have", []string{"greeter", "x", "y"}, 1 << 24, 3, "hello", false, nil},
			{"more memory than it may have", []string{"greeter", "x", "y"}, 1 << 20, 0, "", true, ErrMemory},
			{"trap", []string{"greeter", "x", "y", "z"}, 1 << 20, 0, "", true, nil},
		} {
			c, err := NewCommand(t.Context(), greeter("hello"), cache, tt.memory)
			if err != nil {
				t.Fatal(err)
			}
			if c.WasCompiled() != compiled {
				t.Errorf("%s: compiled now: %t, want %t", tt.name, c.WasCompiled(), compiled)
			}
			compiled = false
			var out bytes.Buffer
			n, err := c.Run(t.Context(), tt.args, fstest.MapFS{}, &out, io.Discard)
			if n != tt.code || out.String() != tt.output || (err != nil) != tt.fails || tt.err != nil && !errors.Is(err, tt.err) ||
				tt.err == nil && errors.Is(err, ErrMemory) {
				t.Errorf("%s: exit code %d, output %q, error %v", tt.name, n, &out, err)
			}
			if err := c.close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestCommandDamaged gives a command an invalid module.
func TestCommandDamaged(t *testing.T) {
	if _, err := NewCommand(t.Context(), []byte("no module"), nil, 1<<20); err == nil {
		t.Error("a text is compiled")
	}
}
