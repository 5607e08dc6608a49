// Package simd builds a WebAssembly module with the kernels of import module "kernel" in SIMD128 instructions. It writes each instruction
// with package emit. So it needs no compiler, and the bytes are the same on every machine.
//
//	┌──────────── guest ────────────┐
//	│ core, one memory              │──exports memory──┐
//	│ imports kernel.conv_u8, …     │◀─────calls───┐   ▼
//	└───────────────────────────────┘           ┌──┴── simd ──────────┐
//	                                             │ imports env.memory  │
//	                                             │ exports conv_u8, …  │
//	                                             └─────────────────────┘
//
// The module has no memory: a packing and its scratch are in memory that the guest allocated for them, and a handle is an address
// there. ../README.md lists the functions and types. No function reads or writes an address outside the range of its shapes, since
// memory may end there. An address outside the memory traps.
//
// Results have the same bytes as those of kernel_generic.go in each package, including floats: products are rounded before they are
// added, in the same order. [Relaxed] returns the same results with one relaxed instruction, on machines where that is exact.
//
// Guest and module need each other, so one of them must import the other indirectly: a page calls through a JavaScript function, a
// program on wazero through functions of the host, as link_test.go shows.
package simd

import (
	"sync"

	"github.com/sightline-dev/sightline/wasm/simd/emit"
)

// Module returns the module in binary form. All calls return the same slice, and the caller must not change it.
var Module = sync.OnceValue(func() []byte { return build(pairs{}).Bytes() })

// Relaxed returns the module that multiplies bytes with the relaxed dot product. A host uses it only if that is exact there, as
// ../README.md describes. All calls return the same slice, and the caller must not change it.
var Relaxed = sync.OnceValue(func() []byte { return build(quads{emit.RelaxedDot}).Bytes() })

// Short names of the types.
const (
	i32  = emit.I32
	i64  = emit.I64
	f32  = emit.F32
	v128 = emit.V128
)

var (
	i8x16 = emit.I8x16
	i16x8 = emit.I16x8
	i32x4 = emit.I32x4
	i64x2 = emit.I64x2
	f32x4 = emit.F32x4
)

// value is short for emit.Value, the type of expressions.
type value = emit.Value

// kernels is the module that is being built, with the parts that several functions use.
type kernels struct {
	*emit.Module
	copyBytes *emit.Func // (dst, src, n)
	by        multiplier // multiplier of int8 products
}

func build(by multiplier) *emit.Module {
	k := &kernels{Module: new(emit.Module), by: by}
	k.ImportMemory("env", "memory", 0)
	k.defineCopy()
	k.definePacking()
	k.defineConv()
	k.defineDepthwise()
	k.defineElementwise()
	k.defineVectors()
	k.defineTraining()
	k.defineRaster()
	k.defineInverse()
	k.defineText()
	k.defineSum()
	return k.Module
}

// ints returns n parameters of type I32, followed by more, for a signature.
func ints(n int, more ...emit.Type) []emit.Type {
	var out []emit.Type
	for range n {
		out = append(out, i32)
	}
	return append(out, more...)
}

// defineCopy defines copy(dst, src, n), for the few bytes of an edge.
func (k *kernels) defineCopy() {
	f := k.Func("", ints(3))
	dst, src, n := f.Param(0), f.Param(1), f.Param(2)
	f.While(n, func() {
		f.Store8(dst, 0, src.Load8U(0))
		f.Inc(dst, 1)
		f.Inc(src, 1)
		f.Inc(n, -1)
	})
	k.copyBytes = f
}

// each runs body repeatedly and adds step to at after each run, as long as at + step ≤ n. It starts with the present value of at.
func each(f *emit.Func, at, n value, step int, body func()) {
	f.While(at.Add(step).LeS(n), func() {
		body()
		f.Inc(at, step)
	})
}
