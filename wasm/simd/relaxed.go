package simd

import "github.com/sightline-dev/sightline/wasm/simd/emit"

// quads multiplies four bytes in a round with the relaxed dot product. Its second operand has seven bits. The specification lets an engine
// choose what an eighth bit means, once for all calls. Processors have two exact choices:
//
//	128 (VPDPBUSD)      an operand is a byte of the row
//	the sign (SDOT)     an operand is a byte minus 128, and each sum lacks 128·Σw
//
// definePanels tests the engine's choice and stores it in hFlip. A panel begins with 128·Σw for each of its columns, or with zeros for the
// first choice.
//
// A tile of six rows needs fifteen registers: twelve of sums, two of weights and one of operands. The processors begin two such products
// in each cycle, and each product takes five cycles. With fewer than ten sums, products would wait for each other.
type quads struct {
	dot func(a, b, sum value) value // [emit.RelaxedDot]; in tests, the same function in other instructions
}

const (
	quadStep = 4           // elements of k in each round
	quadFlip = -0x7f7f7f80 // mask 0x80808080: XOR with it subtracts 128 from each byte, with a signed result
)

func (quads) rounds(depth value) value { return depth.Add(quadStep - 1).DivU(quadStep) }

func (quads) panelBytes(rounds value) value { return rounds.Add(1).Mul(roundBytes * tileCols) }

// definePanels defines a function that packs the weights column by column.
func (m quads) definePanels(k *kernels) *emit.Func {
	f := k.Func("", ints(2))
	h, w := f.Param(0), f.Param(1)
	n, depth, rounds, out := f.Let(h.Load(i32, hN)), f.Let(h.Load(i32, hK)), f.Let(h.Load(i32, hRounds)), f.Let(h.Load(i32, hWeights))
	one := m.dot(i8x16.Splat(1), i8x16.Splat(255), i32x4.Splat(0))
	f.Store(h, hFlip, emit.Select(i32x4.Lane(one, 0).LtS(0), emit.C(quadFlip), emit.C(0)))
	missing := f.Let(h.Load(i32, hFlip).And(128))
	size := f.Let(m.panelBytes(rounds))
	j, i, first, to, sum := f.Local(i32), f.Local(i32), f.Local(i32), f.Local(i32), f.Local(i32)
	each(f, j, n.Add(tileCols-1).And(-tileCols), 1, func() {
		f.Set(first, out.Add(j.ShrU(3).Mul(size)).Add(j.And(tileCols-1).Mul(roundBytes)))
		f.Set(to, first)
		f.Set(sum, 0)
		f.Set(i, 0)
		each(f, i, rounds.Mul(quadStep), 1, func() {
			f.If(i.And(quadStep-1).Eq(0), func() {
				f.Inc(to, roundBytes*tileCols)
				f.Store(to, 0, emit.C(0))
			})
			f.If(j.LtS(n).And(i.LtS(depth)), func() {
				f.Inc(sum, w.Load8S(0))
				f.Store8(to.Add(i.And(quadStep-1)), 0, w.Load8U(0))
				f.Inc(w, 1)
			})
		})
		f.Store(first, 0, sum.Mul(missing))
	})
	f.Store(h, hScratch, out.Add(n.Add(tileCols-1).ShrU(3).Mul(size)))
	return f
}

func (quads) storeOperand(f *emit.Func, h, row, i, v value) {
	f.Store8(row.Add(i), 0, v.Xor(h.Load(i32, hFlip)))
}

// ifTiles runs body for VPDPBUSD only. A tile of 4×4 outputs needs 144 products directly, 9 instructions with SDOT. The transform needs 36
// products, but these have 16 bits and take 18 instructions.
func (quads) ifTiles(f *emit.Func, h value, body func()) {
	f.If(h.Load(i32, hFlip).Eq(0), body)
}

func (quads) ifWiden(f *emit.Func, h value, widen, or func()) {
	f.If(h.Load(i32, hSegs).Sub(1).Or(h.Load(i32, hK).And(quadStep-1)).Or(h.Load(i32, hFlip)), widen, or)
}

func (quads) begin(f *emit.Func, t *tile, acc [][2]value) {
	f.Set(acc[0][0], i32x4.Add(t.bias.Load(v128, 0), t.w.Load(v128, 0)))
	f.Set(acc[0][1], i32x4.Add(t.bias.Load(v128, 16), t.w.Load(v128, 16)))
	for _, sums := range acc[1:] {
		f.Set(sums[0], acc[0][0])
		f.Set(sums[1], acc[0][1])
	}
	f.Inc(t.w, roundBytes*tileCols)
}

func (m quads) add(sum, operands, weights value) value { return m.dot(weights, operands, sum) }

func (quads) block() int { return 24 }

func (quads) tiles() []int { return []int{6, 4, 3} }

func (quads) eachTile(f *emit.Func, i, n value, body func(rows int)) {
	left := f.Local(i32)
	tile := func(rows int) {
		body(rows)
		f.Inc(i, rows)
	}
	f.While(n.Sub(i).GeS(3), func() {
		f.Set(left, n.Sub(i))
		six := left.GeS(12).Or(left.Eq(6)).Or(left.Eq(9)).Or(left.Eq(10))
		f.If(six, func() { tile(6) }, func() {
			f.If(left.Eq(3), func() { tile(3) }, func() { tile(4) })
		})
	})
}

// defineWiden defines a function that does not clear the bytes behind a row. Their weights are zero.
func (quads) defineWiden(k *kernels) *emit.Func {
	f := k.Func("", ints(4))
	dst, src, h, stride := f.Param(0), f.Param(1), f.Param(2), f.Param(3)
	segs, seg, at := f.Let(h.Load(i32, hSegs)), f.Let(h.Load(i32, hSeg)), f.Local(i32)
	flip := f.Let(h.Load32Splat(hFlip))
	f.While(segs, func() {
		f.Set(at, 0)
		each(f, at, seg, 16, func() {
			f.Store(dst.Add(at), 0, emit.BitXor(src.Add(at).Load(v128, 0), flip))
		})
		f.If(at.LtS(seg), func() {
			f.If(seg.GeS(16), func() { // the last sixteen, some for the second time
				f.Store(dst.Add(seg).Sub(16), 0, emit.BitXor(src.Add(seg).Sub(16).Load(v128, 0), flip))
			}, func() {
				each(f, at, seg, 8, func() { f.StoreLane(dst.Add(at), 0, emit.BitXor(src.Add(at).Load64Zero(0), flip), 8, 0) })
				each(f, at, seg, 1, func() { f.Store8(dst.Add(at), 0, src.Add(at).Load8U(0).Xor(h.Load(i32, hFlip))) })
			})
		})
		f.Inc(dst, seg)
		f.Inc(src, stride)
		f.Inc(segs, -1)
	})
	return f
}
