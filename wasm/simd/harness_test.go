package simd_test

import (
	"bytes"
	"context"
	"crypto/sha256"
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

	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/wasm/simd"
)

// memoryModule exports a memory of 128 pages.
var memoryModule = []byte("\x00asm\x01\x00\x00\x00\x05\x04\x01\x00\x80\x01\x07\x0a\x01\x06memory\x02\x00")

// tested is the module that arenas instantiate.
var tested = simd.Module

// engine is a runtime with its compiled modules by their bytes. All tests share one.
type engine struct {
	runtime wazero.Runtime
	modules map[string]wazero.CompiledModule
}

var shared = sync.OnceValue(func() *engine {
	return &engine{wazero.NewRuntime(context.Background()), make(map[string]wazero.CompiledModule)}
})

// open returns an instance of code without a name. from provides its imports; nil if it has none.
func (e *engine) open(t testing.TB, code []byte, from api.Module) api.Module {
	t.Helper()
	ctx := context.Background()
	compiled, ok := e.modules[string(code)]
	if !ok {
		var err error
		if compiled, err = e.runtime.CompileModule(ctx, code); err != nil {
			t.Fatal(err)
		}
		e.modules[string(code)] = compiled
	}
	if from != nil {
		ctx = experimental.WithImportResolver(ctx, func(string) api.Module { return from })
	}
	m, err := e.runtime.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName(""))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	return m
}

// arena is a memory that tests fill from its beginning, with the kernels over it. After each call the arena checks that the kernel wrote
// only in the ranges that it may write.
type arena struct {
	t      testing.TB
	mem, k api.Module
	at     uint32
	rooms  []span // ranges of packings
	writes []span // ranges that the next call may write
	rng    *rand.Rand
}

// span is the range of addresses from span[0] up to, but without, span[1].
type span [2]uint32

// operation is one event of an arena: its creation with Pages, a write of Bytes, a call of a kernel, or the final Sum of its contents.
type operation struct {
	Pages  uint32   `json:"pages,omitempty"`
	At     uint32   `json:"at,omitempty"`
	Bytes  []byte   `json:"bytes,omitempty"`
	Call   string   `json:"call,omitempty"`
	Args   []string `json:"args,omitempty"`  // decimal; a float as its bits
	Types  string   `json:"types,omitempty"` // types of Args: i i32, I i64, f f32
	Result string   `json:"result,omitempty"`
	Sum    string   `json:"sum,omitempty"`
}

// recorder records the operations in all arenas, for another engine to repeat.
type recorder struct {
	operations []operation
	arena      *arena // newest arena; nil after end
}

// record is the recorder of the test that records, or nil if no test does.
var record *recorder

func (r *recorder) add(op operation) {
	if r != nil {
		r.operations = append(r.operations, op)
	}
}

// end records the checksum of the newest arena's contents.
func (r *recorder) end() {
	if r != nil && r.arena != nil {
		r.add(operation{Sum: fmt.Sprintf("%x", sha256.Sum256(r.arena.view()))})
		r.arena = nil
	}
}

func newArena(t testing.TB, rng *rand.Rand) *arena {
	t.Helper()
	mem := shared().open(t, memoryModule, nil)
	k := shared().open(t, tested(), mem)
	a := &arena{t: t, mem: mem, k: k, at: 64, rng: rng}
	if record != nil {
		record.end()
		record.arena = a
		record.add(operation{Pages: mem.Memory().Size() >> 16})
	}
	return a
}

// reset frees the placed data and packings.
func (a *arena) reset() { a.at, a.rooms = 64, nil }

func (a *arena) view() []byte {
	b, _ := a.mem.Memory().Read(0, a.mem.Memory().Size())
	return b
}

// place returns the address of n unused bytes. Its alignment is random.
func (a *arena) place(n int) uint32 {
	at := a.at + uint32(a.rng.IntN(16))
	if a.at = at + uint32(n) + 32; a.at > a.mem.Memory().Size()/2 {
		a.t.Fatal("the test's memory is full")
	}
	return at
}

// put writes numbers, little-endian, and returns their address.
func put[T uint8 | int8 | uint16 | int16 | uint32 | int32 | int64 | float32](a *arena, v []T) uint32 {
	b, err := binary.Append(nil, binary.LittleEndian, v)
	if err != nil {
		a.t.Fatal(err)
	}
	at := a.place(len(b))
	a.write(at, b)
	return at
}

// last does what put does, at the end of the memory: a read beyond the numbers traps.
func last[T uint8 | int8 | uint16 | int16 | uint32 | int32 | int64 | float32](a *arena, v []T) uint32 {
	b, _ := binary.Append(nil, binary.LittleEndian, v)
	at := a.mem.Memory().Size() - uint32(len(b))
	a.write(at, b)
	return at
}

func (a *arena) write(at uint32, b []byte) {
	a.mem.Memory().Write(at, b)
	if len(b) > 0 {
		record.add(operation{At: at, Bytes: b})
	}
}

// get reads n numbers, little-endian.
func get[T uint8 | int8 | uint16 | int16 | uint32 | int32 | int64 | float32](a *arena, at uint32, n int) []T {
	v := make([]T, n)
	b, _ := a.mem.Memory().Read(at, uint32(binary.Size(v)))
	if _, err := binary.Decode(b, binary.LittleEndian, v); err != nil {
		a.t.Fatal(err)
	}
	return v
}

// out reserves room for rows of width bytes, ld bytes apart, which the next call may write.
func (a *arena) out(rows, ld, width int) uint32 {
	at := a.place((rows-1)*ld + width)
	a.may(at, rows, ld, width)
	return at
}

// may lets the next call write rows of width bytes at dst, ld bytes apart.
func (a *arena) may(dst uint32, rows, ld, width int) {
	for r := range rows {
		from := dst + uint32(r*ld)
		a.writes = append(a.writes, span{from, from + uint32(width)})
	}
}

// call calls a kernel. It fails the test if the kernel writes outside of a.writes and a.rooms.
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
	op := operation{Call: name, Result: fmt.Sprint(result)}
	for i, v := range stack {
		op.Args = append(op.Args, fmt.Sprint(v))
		kind := "i"
		switch args[i].(type) {
		case float32:
			kind = "f"
		case uint64:
			kind = "I"
		}
		op.Types += kind
	}
	record.add(op)
	return result
}

// pack packs the weights at w into the arena, and returns their handle.
func (a *arena) pack(kind int, w uint32, n, k, segs int) uint32 {
	a.t.Helper()
	size := int(a.call("pack_room", kind, n, k, segs))
	at := a.place(size)
	a.rooms = append(a.rooms, span{at, at + uint32(size)})
	h := uint32(a.call("pack", kind, w, n, k, segs, at))
	if h == 0 {
		a.t.Fatalf("pack of kind %d: no handle", kind)
	}
	return h
}

// rounds runs f with seeded random sources: n of them, or more in a soak.
func rounds(t *testing.T, n int, f func(t *testing.T, rng *rand.Rand)) {
	testkit.SkipRace(t)
	if record != nil {
		n = min(n, 3)
	}
	for seed := range testkit.Seeds(t, n, 20*n) {
		f(t, rand.New(rand.NewPCG(seed, 7)))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
