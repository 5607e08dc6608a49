package simd_test

import (
	"math/rand/v2"
	"testing"

	"github.com/sightline-dev/sightline/core/index/hnsw/kernel"
)

// TestVectors computes distances from a query to rows of two chunks, in the layout of the index.
func TestVectors(t *testing.T) {
	const chunkRows = 4096
	rounds(t, 30, func(t *testing.T, rng *rand.Rand) {
		a, dim := newArena(t, rng), 32*(1+rng.IntN(9))
		v, err := kernel.NewVectors(dim)
		if err != nil {
			t.Fatal(err)
		}
		stride, total := (dim+63)/64*64, chunkRows+7
		v.Grow(total)
		high, low, meta := make([]int8, total*stride), make([]uint8, total*stride), make([]int32, 2*total)
		scales := make([]float32, total)
		rows := make([]uint32, rng.IntN(12))
		for i := range rows {
			row := uint32(rng.IntN(9))
			if rng.IntN(2) == 0 {
				row = uint32(total - 1 - rng.IntN(9))
			}
			rows[i] = row
			q, sum := int16sOf(rng, dim), int32(0)
			for j, x := range q {
				high[int(row)*stride+j], low[int(row)*stride+j] = int8(x>>8), uint8(x)
				sum += int32(x >> 8)
			}
			scales[row] = rng.Float32()
			v.Set(row, q, scales[row])
			meta[2*row] = -510 * sum
		}
		var z kernel.Query
		q := int16sOf(rng, dim)
		scale := rng.Float32() / 1000
		z.Set(v, q, scale)
		codes, full, offset := make([]int8, stride), make([]int16, stride), int32(dim)
		copy(full, q)
		for i, x := range q {
			codes[i] = int8(x >> 8)
			offset += 2 * int32(x>>8)
		}

		table := func(chunks ...uint32) uint32 {
			var words []uint32
			for _, c := range chunks {
				words = append(words, c, 0) // an address in the table has eight bytes
			}
			return put(a, words)
		}
		part := chunkRows * stride
		highs := table(put(a, high[:part]), put(a, high[part:]))
		lows := table(put(a, low[:part]), last(a, low[part:]))
		metas := put(a, meta)
		for _, row := range rows {
			a.write(metas+8*row+4, f32bytes(scales[row]))
		}

		dst, want := a.out(1, 0, 4*len(rows)), make([]uint32, len(rows))
		at := put(a, rows)
		v.Distances(want, &z, rows)
		a.call("distances", dst, put(a, codes), stride, offset, scale*(1<<43), at, len(rows), highs, metas, total)
		equal(t, "distances", get[uint32](a, dst, len(rows)), want)

		dots, wantDots := a.out(1, 0, 8*len(rows)), make([]int64, len(rows))
		v.Dots(wantDots, &z, rows)
		a.call("dots", dots, put(a, full), stride, at, len(rows), highs, lows, total)
		equal(t, "dots", get[int64](a, dots, len(rows)), wantDots)
	})
}
