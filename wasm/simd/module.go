// Package simd is the kernels of import module "kernel" as a WebAssembly module of SIMD128
// instructions, written instruction by instruction with package emit: no compiler is needed and the bytes
// are the same on every machine.
//
//	┌──────────── guest ────────────┐
//	│ core, one memory              │──exports memory──┐
//	│ imports kernel.conv_u8, …     │◀─────calls───┐   ▼
//	└───────────────────────────────┘           ┌──┴── simd ──────────┐
//	                                             │ imports env.memory  │
//	                                             │ exports conv_u8, …  │
//	                                             └─────────────────────┘
//
// The module stores nothing itself: a packing and its scratch lie in memory that the guest allocated for them, and a handle is an address
// there. Functions and types are those of ../README.md. No function reads or writes an address beyond the range of its shapes, since
// memory may end there; wild addresses trap.
//
// Results are the bytes of the kernel_generic.go of each package, floats included: products are
// rounded before they are added, in the same order. [Relaxed] has the same results with one relaxed
// instruction, where that is exact.
//
// Guest and module need each other, so one of them must import the other indirectly: a page calls through a JavaScript function, a
// program on wazero through [Link].
package simd

import (
	"sync"

	"github.com/sightline-dev/sightline/wasm/simd/emit"
)

// Module returns the module in binary form, the same each time. The bytes are shared: they must
// not be changed.
var Module = sync.OnceValue(func() []byte { return build(pairs{}).Bytes() })

// Relaxed returns the module that multiplies bytes with the relaxed dot product. A host uses it only
// if that is exact there, as ../README.md describes. The bytes are shared, too.
var Relaxed = sync.OnceValue(func() []byte { return build(quads{emit.RelaxedDot}).Bytes() })

// The types, shorter.
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

// kernels is the module in the making and the functions that others call.
type kernels struct {
	*emit.Module
	copyBytes *emit.Func // (dst, src, n)
	by        multiplier // of int8 products
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

// ints is n parameters of type I32, for signatures.
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

// each runs body with at advancing by step from its present value to n, as long as a whole step is left.
func each(f *emit.Func, at, n value, step int, body func()) {
	f.While(at.Add(step).LeS(n), func() {
		body()
		f.Inc(at, step)
	})
}
