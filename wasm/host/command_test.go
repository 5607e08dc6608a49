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

// reactor is a module with the functions malloc, which grows the memory by whole pages, first, which returns the byte at an address, and
// trap. Its _initialize stores 7 at the address 0.
func reactor() []byte {
	iToI := typeOf(kernels.Types("i"), kernels.Types("i"))
	export := func(name string, kind, at int) []byte { return code(prefixLength([]byte(name)), kind, at) }
	body := func(parts ...any) []byte { return prefixLength(code(append(append([]any{0x00}, parts...), opEnd)...)) }
	const shiftRight, shiftLeft, add = 0x76, 0x74, 0x6a
	return code(
		[]byte("\x00asm\x01\x00\x00\x00"),
		section(1, vec(iToI, typeOf(nil, nil))),
		section(3, vec([]byte{0}, []byte{0}, []byte{0}, []byte{1})),
		section(5, code(0x01, 0x00, uleb(1))),
		section(7, vec(export("memory", 2, 0), export("malloc", 0, 0), export("first", 0, 1), export("trap", 0, 2), export("_initialize", 0, 3))),
		section(10, vec(
			body(
				opLocalGet, 0, i32(65535), add, i32(16), shiftRight, opMemoryGrow, 0x00, i32(16), shiftLeft,
				// grow returns -1 if there is no memory, so the address is then -65536
			),
			body(opLocalGet, 0, opI32Load8U, 0x00, 0x00),
			body(opUnreachable),
			body(i32(0), i32(7), opI32Store, 0x02, 0x00),
		)),
	)
}

// TestReact calls the functions of a reactor. Each instance is new.
func TestReact(t *testing.T) {
	c, err := NewCommand(t.Context(), reactor(), nil, 3<<16)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		err := c.React(t.Context(), func(r Reactor) error {
			if v, err := r.Call("first", 0); v != 7 || err != nil {
				t.Errorf("first(0) = %d, %v, want 7", v, err)
			}
			at, err := r.Reserve(10)
			if err != nil || at != 1<<16 {
				t.Fatalf("Reserve = %d, %v", at, err)
			}
			b, err := r.Bytes(at, 10)
			if err != nil || len(b) != 10 {
				t.Fatalf("%d bytes, %v", len(b), err)
			}
			b[9] = 5
			if v, err := r.Call("first", uint64(at+9)); v != 5 || err != nil {
				t.Errorf("first = %d, %v, want 5", v, err)
			}
			if b, err := r.Bytes(0, 7); err != nil || b[0] != 7 {
				t.Errorf("%v, %v", b, err)
			}
			if _, err := r.Bytes(2<<16-3, 4); !errors.Is(err, ErrModule) {
				t.Errorf("bytes beyond the memory: %v", err)
			}
			if _, err := r.Call("second"); !errors.Is(err, ErrModule) {
				t.Errorf("a missing function: %v", err)
			}
			_, err = r.Call("trap", 0)
			return err
		})
		if err == nil || errors.Is(err, ErrMemory) {
			t.Errorf("trap: %v", err)
		}
	}
	failed := errors.New("failed")
	err = c.React(t.Context(), func(r Reactor) error {
		at, err := r.Reserve(3 << 16)
		if err != nil {
			return err
		}
		if _, err = r.Bytes(at, 1); err == nil {
			return nil
		}
		return failed
	})
	if !errors.Is(err, ErrMemory) || !errors.Is(err, failed) {
		t.Errorf("too much memory: %v, want %v", err, ErrMemory)
	}
}

// TestCommandDamaged gives a command an invalid module.
func TestCommandDamaged(t *testing.T) {
	if _, err := NewCommand(t.Context(), []byte("no module"), nil, 1<<20); err == nil {
		t.Error("a text is compiled")
	}
}
