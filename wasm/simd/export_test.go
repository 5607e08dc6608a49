package simd

import (
	"sync"

	"github.com/sightline-dev/sightline/wasm/simd/emit"
)

// Build and BuildRelaxed build the modules.
func Build() []byte        { return build(pairs{}).Bytes() }
func BuildRelaxed() []byte { return build(quads{emit.RelaxedDot}).Bytes() }

// Unsigned and Signed return [Relaxed] with other instructions instead of its dot product. Each computes one of the two exact results.
var (
	Unsigned = sync.OnceValue(func() []byte { return build(quads{emulateDot(i16x8.LowU, i16x8.HighU)}).Bytes() })
	Signed   = sync.OnceValue(func() []byte { return build(quads{emulateDot(i16x8.LowS, i16x8.HighS)}).Bytes() })
)

func emulateDot(low, high func(value) value) func(a, b, sum value) value {
	return func(a, b, sum value) value {
		l, h := i32x4.Dot(i16x8.LowS(a), low(b)), i32x4.Dot(i16x8.HighS(a), high(b))
		return i32x4.Add(sum, i32x4.Add(emit.Shuffle32(l, h, 0, 2, 4, 6), emit.Shuffle32(l, h, 1, 3, 5, 7)))
	}
}
