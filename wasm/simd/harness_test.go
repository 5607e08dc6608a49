package simd_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/sightline-dev/sightline/core/proof"
	"github.com/sightline-dev/sightline/wasm/simd"
)

// memoryModule exports a memory of 128 pages.
var memoryModule = []byte("\x00asm\x01\x00\x00\x00\x05\x04\x01\x00\x80\x01\x07\x0a\x01\x06memory\x02\x00")

// engine is one runtime with the module compiled, shared by all tests.
var engine = sync.OnceValues(func() (func() (api.Module, api.Module), error) {
	ctx := context.Background()
	rt := wazero.NewRuntime(ctx)
	kernels, err := rt.CompileModule(ctx, simd.Module())
	if err != nil {
		return nil, err
	}
	memory, err := rt.CompileModule(ctx, memoryModule)
	if err != nil {
		return nil, err
	}
	return func() (api.Module, api.Module) {
		mem, err := rt.InstantiateModule(ctx, memory, wazero.NewModuleConfig().WithName(""))
		if err != nil {
			panic(err)
		}
		linked := experimental.WithImportResolver(ctx, func(string) api.Module { return mem })
		k, err := rt.InstantiateModule(linked, kernels, wazero.NewModuleConfig().WithName(""))
		if err != nil {
			panic(err)
		}
		return mem, k
	}, nil
})

// arena is a memory that is filled from its beginning, and the kernels over it. Every call is
// checked for writes outside of what it may write.
type arena struct {
	t      testing.TB
	mem, k api.Module
	at     uint32
	rooms  []span // of packings
	writes []span // what the next call may write
	rng    *rand.Rand
	calls  []operation // what happened, for node's test
	record bool
}

// span is addresses, from and up to.
type span [2]uint32

// operation is bytes written or a kernel called.
type operation struct {
	At     uint32   `json:"at,omitempty"`
	Bytes  []byte   `json:"bytes,omitempty"`
	Call   string   `json:"call,omitempty"`
	Args   []string `json:"args,omitempty"`
	Result string   `json:"result,omitempty"`
}

func newArena(t testing.TB, rng *rand.Rand) *arena {
	t.Helper()
	open, err := engine()
	if err != nil {
		t.Fatal(err)
	}
	mem, k := open()
	t.Cleanup(func() {
		_ = k.Close(context.Background())
		_ = mem.Close(context.Background())
	})
	return &arena{t: t, mem: mem, k: k, at: 64, rng: rng}
}

// reset forgets what was placed.
func (a *arena) reset() { a.at, a.rooms = 64, nil }

func (a *arena) view() []byte {
	b, _ := a.mem.Memory().Read(0, a.mem.Memory().Size())
	return b
}

// place finds n bytes, at any alignment.
func (a *arena) place(n int) uint32 {
	at := a.at + uint32(a.rng.IntN(16))
	if a.at = at + uint32(n) + 32; a.at > a.mem.Memory().Size()/2 {
		a.t.Fatal("the test's memory is full")
	}
	return at
}

// put places numbers, little-endian.
func put[T uint8 | int8 | uint16 | int16 | uint32 | int32 | int64 | float32](a *arena, v []T) uint32 {
	b, err := binary.Append(nil, binary.LittleEndian, v)
	if err != nil {
		a.t.Fatal(err)
	}
	at := a.place(len(b))
	a.write(at, b)
	return at
}

// last is put where memory ends, so that a read beyond is a trap.
func last[T uint8 | int8 | uint16 | int16 | uint32 | int32 | int64 | float32](a *arena, v []T) uint32 {
	b, _ := binary.Append(nil, binary.LittleEndian, v)
	at := a.mem.Memory().Size() - uint32(len(b))
	a.write(at, b)
	return at
}

func (a *arena) write(at uint32, b []byte) {
	a.mem.Memory().Write(at, b)
	if a.record {
		a.calls = append(a.calls, operation{At: at, Bytes: b})
	}
}

// get reads n numbers.
func get[T uint8 | int8 | uint16 | int16 | uint32 | int32 | int64 | float32](a *arena, at uint32, n int) []T {
	v := make([]T, n)
	b, _ := a.mem.Memory().Read(at, uint32(binary.Size(v)))
	if _, err := binary.Decode(b, binary.LittleEndian, v); err != nil {
		a.t.Fatal(err)
	}
	return v
}

// out places room for rows of width bytes, ld apart, which the next call may write.
func (a *arena) out(rows, ld, width int) uint32 {
	at := a.place((rows-1)*ld + width)
	a.may(at, rows, ld, width)
	return at
}

// may lets the next call write rows of width bytes at dst, ld apart.
func (a *arena) may(dst uint32, rows, ld, width int) {
	for r := range rows {
		from := dst + uint32(r*ld)
		a.writes = append(a.writes, span{from, from + uint32(width)})
	}
}

// call calls a kernel. It fails the test where the call writes elsewhere than it may.
func (a *arena) call(name string, args ...any) uint64 {
	a.t.Helper()
	stack := make([]uint64, len(args))
	for i, v := range args {
		switch v := v.(type) {
		case int:
			stack[i] = uint64(uint32(v))
		case int32:
			stack[i] = uint64(uint32(v))
		case uint32:
			stack[i] = uint64(v)
		case uint64:
			stack[i] = v
		case float32:
			stack[i] = uint64(math.Float32bits(v))
		default:
			a.t.Fatalf("an argument of type %T", v)
		}
	}
	before := bytes.Clone(a.view()[:a.at+64])
	out, err := a.k.ExportedFunction(name).Call(context.Background(), stack...)
	if err != nil {
		a.t.Fatalf("%s: %v", name, err)
	}
	after := bytes.Clone(a.view()[:len(before)])
	for _, s := range slices.Concat(a.writes, a.rooms) {
		copy(after[s[0]:s[1]], before[s[0]:])
	}
	if !bytes.Equal(before, after) {
		a.t.Fatalf("%s%v wrote outside of what it may write", name, args)
	}
	a.writes = nil
	var result uint64
	if len(out) > 0 {
		result = out[0]
	}
	if a.record {
		op := operation{Call: name, Result: fmt.Sprint(result)}
		for i, v := range stack {
			if f, ok := args[i].(float32); ok {
				op.Args = append(op.Args, fmt.Sprintf("%x", math.Float32bits(f)))
				continue
			}
			op.Args = append(op.Args, fmt.Sprint(v))
		}
		a.calls = append(a.calls, op)
	}
	return result
}

// pack packs weights into room of the arena.
func (a *arena) pack(kind int, w, bias uint32, n, k, segs int) uint32 {
	a.t.Helper()
	size := int(a.call("pack_room", kind, n, k, segs))
	at := a.place(size)
	a.rooms = append(a.rooms, span{at, at + uint32(size)})
	h := uint32(a.call("pack", kind, w, bias, n, k, segs, at))
	if h == 0 {
		a.t.Fatalf("pack of kind %d: no handle", kind)
	}
	return h
}

// rounds runs f with seeded random sources: n of them, or more in a soak.
func rounds(t *testing.T, n int, f func(t *testing.T, rng *rand.Rand)) {
	for seed := range proof.Seeds(t, n, 20*n) {
		f(t, rand.New(rand.NewPCG(seed, 7)))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
