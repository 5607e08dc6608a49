package simd

import "github.com/sightline-dev/sightline/wasm/simd/emit"

// Constants of core/index/hnsw/kernel.
const (
	chunkShift = 12
	farAway    = 1 << 30
	maxCosine  = float32(1.5 * (1 << 29))
)

// defineVectors defines distances and dots.
func (k *kernels) defineVectors() {
	k.defineDistances()
	k.defineDots()
}

// rowAddress returns the address of a row of stride bytes. chunks is a table of eight bytes for each chunk.
func rowAddress(chunks, row, stride value) value {
	chunk := chunks.Add(row.ShrU(chunkShift).Shl(3)).Load(i32, 0)
	return chunk.Add(row.And(1<<chunkShift - 1).Mul(stride))
}

// sumLanes returns the sum of four 32-bit lanes.
func sumLanes(f *emit.Func, acc value) value {
	f.Set(acc, i32x4.Add(acc, emit.Shuffle32(acc, acc, 2, 3, 0, 1)))
	f.Set(acc, i32x4.Add(acc, emit.Shuffle32(acc, acc, 1, 0, 3, 2)))
	return i32x4.Lane(acc, 0)
}

// defineDistances defines distances(dst, codes, stride, offset, weight f32, rows, n, chunks, meta, total).
//
// It computes four rows at a time, which share the loads of the query's codes. If fewer than four are left, it repeats the last row. A
// row's sum is Σ (a+128)·b, as in kernel_generic.go.
func (k *kernels) defineDistances() {
	const together = 4
	f := k.Func("distances", append(append(ints(4), f32), ints(5)...))
	dst, codes, stride, offset, weight := f.Param(0), f.Param(1), f.Param(2), f.Param(3), f.Param(4)
	rows, n, chunks, meta := f.Param(5), f.Param(6), f.Param(7), f.Param(8)
	half := f.Let(i16x8.Splat(128))
	lo, hi, x, c := f.Local(v128), f.Local(v128), f.Local(v128), f.Local(i32)
	m, s := f.Local(i32), f.Local(f32)
	var row, at, acc [together]value
	for r := range at {
		row[r], at[r], acc[r] = f.Local(i32), f.Local(i32), f.Local(v128)
	}
	f.While(n.GtS(0), func() {
		for r := range together {
			f.Set(row[r], rows.Add(emit.Min(emit.C(r), n.Sub(1)).Shl(2)).Load(i32, 0))
			f.Set(at[r], rowAddress(chunks, row[r], stride))
			f.Set(acc[r], i32x4.Splat(0))
		}
		f.Set(c, 0)
		each(f, c, stride, 16, func() {
			f.Set(lo, i16x8.Add(codes.Add(c).Load8x8S(0), half))
			f.Set(hi, i16x8.Add(codes.Add(c).Load8x8S(8), half))
			for r := range together {
				f.Set(x, at[r].Add(c).Load(v128, 0))
				f.Set(acc[r], i32x4.Add(acc[r], i32x4.Dot(lo, i16x8.LowS(x))))
				f.Set(acc[r], i32x4.Add(acc[r], i32x4.Dot(hi, i16x8.HighS(x))))
			}
		})
		for r := range together {
			f.If(n.GtS(r), func() {
				f.Set(m, meta.Add(row[r].Shl(3)))
				f.Set(s, sumLanes(f, acc[r]).Shl(2).Add(m.Load(i32, 0)).Add(offset).ToFloat().Mul(m.Load(f32, 4)).Mul(weight))
				f.Set(s, emit.Select(s.Lt(-maxCosine), emit.Float(-maxCosine), s))
				f.Set(s, emit.Select(s.Gt(maxCosine), emit.Float(maxCosine), s))
				f.Store(dst, 4*r, emit.C(farAway).Sub(s.Nearest().Truncate()))
			})
		}
		f.Inc(dst, 4*together)
		f.Inc(rows, 4*together)
		f.Inc(n, -together)
	})
}

// defineDots defines dots(dst, full, stride, rows, n, high, low, total), which writes exact sums of 64 bits.
//
// The sum of two products of 16 bits is in (−2³¹, 2³¹]. It fits an int32 after a subtraction of 1, which the end adds again.
func (k *kernels) defineDots() {
	f := k.Func("dots", ints(8))
	dst, full, stride, rows, n := f.Param(0), f.Param(1), f.Param(2), f.Param(3), f.Param(4)
	high, low := f.Param(5), f.Param(6)
	one := f.Let(i32x4.Splat(1))
	h, l, c, x, acc := f.Local(i32), f.Local(i32), f.Local(i32), f.Local(v128), f.Local(v128)
	f.While(n.GtS(0), func() {
		f.Set(h, rowAddress(high, rows.Load(i32, 0), stride))
		f.Set(l, rowAddress(low, rows.Load(i32, 0), stride))
		f.Set(acc, i32x4.Splat(0))
		f.Set(c, 0)
		each(f, c, stride, 8, func() {
			f.Set(x, interleave(l.Add(c).Load64Zero(0), h.Add(c).Load64Zero(0)))
			f.Set(x, i32x4.Sub(i32x4.Dot(x, full.Add(c.Shl(1)).Load(v128, 0)), one))
			f.Set(acc, i64x2.Add(acc, i64x2.Add(i64x2.LowS(x), i64x2.HighS(x))))
		})
		f.Store(dst, 0, i64x2.Lane(acc, 0).Add(i64x2.Lane(acc, 1)).Add(stride.ShrU(1).ExtendU()))
		f.Inc(dst, 8)
		f.Inc(rows, 4)
		f.Inc(n, -1)
	})
}
