package simd

import "github.com/sightline-dev/sightline/wasm/simd/emit"

// multiplier emits the instructions with which tiles multiply and sum: [pairs] or [quads]. In each round a tile reads roundBytes of each
// row and of each column.
type multiplier interface {
	// rounds returns the number of rounds for a depth.
	rounds(depth value) value
	// panelBytes returns the size in bytes of a panel with this number of rounds.
	panelBytes(rounds value) value
	// definePanels defines (h, w), which writes the weights in the order of a packing and sets hScratch to the address behind them.
	definePanels(k *kernels) *emit.Func
	// defineWiden defines (dst, src, h, srcStride), which gathers one row of bytes from its segments and stores it as operands.
	defineWiden(k *kernels) *emit.Func
	// ifWiden runs widen if rows must be widened. If the source's rows are operands already, it runs or.
	ifWiden(f *emit.Func, h value, widen, or func())
	// ifTiles runs body if 3×3 convolutions are faster with tiles (winograd.go) than as products.
	ifTiles(f *emit.Func, h value, body func())
	// storeOperand stores v, from 0 to 255, as operand i of the row at address row.
	storeOperand(f *emit.Func, h, row, i, v value)
	// begin sets the sums of a tile to their values before the first round, and its w to the first round's weights.
	begin(f *emit.Func, t *tile, acc [][2]value)
	// add returns sum plus the products of a round's operands, which all lanes repeat, with the weights of four columns.
	add(sum, operands, weights value) value
	// block returns the number of rows that are widened together. tiles returns the sizes of tiles, in rows.
	block() int
	tiles() []int
	// eachTile runs body for tiles of the rows from i to n. It leaves i at the first row that fits in no tile.
	eachTile(f *emit.Func, i, n value, body func(rows int))
}

// pairs multiplies two numbers of 16 bits in each round. A tile of four rows needs twelve registers: eight of sums, two of weights, one of
// operands and one for a product.
type pairs struct{}

func (pairs) rounds(depth value) value { return depth.Add(1).ShrU(1) }

func (pairs) panelBytes(rounds value) value { return rounds.Mul(roundBytes * tileCols) }

func (pairs) definePanels(k *kernels) *emit.Func { return k.definePanels(inOrder) }

func (pairs) storeOperand(f *emit.Func, _, row, i, v value) { f.Store16(row.Add(i.Shl(1)), 0, v) }

func (pairs) ifTiles(_ *emit.Func, _ value, body func()) { body() }

func (pairs) ifWiden(_ *emit.Func, _ value, widen, _ func()) { widen() }

func (pairs) begin(f *emit.Func, t *tile, acc [][2]value) {
	for _, sums := range acc {
		f.Set(sums[0], t.bias.Load(v128, 0))
		f.Set(sums[1], t.bias.Load(v128, 16))
	}
}

func (pairs) add(sum, operands, weights value) value {
	return i32x4.Add(sum, i32x4.Dot(operands, weights))
}

func (pairs) block() int { return 16 }

func (pairs) tiles() []int { return []int{tileRows} }

func (pairs) eachTile(f *emit.Func, i, n value, body func(rows int)) {
	each(f, i, n, tileRows, func() { body(tileRows) })
}

// defineWiden also stores a zero after a row of odd length, to fill the last pair.
func (pairs) defineWiden(k *kernels) *emit.Func {
	f := k.Func("", ints(4))
	dst, src, h, stride := f.Param(0), f.Param(1), f.Param(2), f.Param(3)
	segs, seg := f.Let(h.Load(i32, hSegs)), f.Let(h.Load(i32, hSeg))
	at := f.Local(i32)
	f.While(segs, func() {
		f.Set(at, 0)
		each(f, at, seg, 8, func() {
			f.Store(dst.Add(at.Shl(1)), 0, src.Add(at).Load8x8U(0))
		})
		f.If(seg.GeS(8), func() {
			f.If(at.LtS(seg), func() { // the last eight, some for the second time
				f.Store(dst.Add(seg.Shl(1)).Sub(16), 0, src.Add(seg).Sub(8).Load8x8U(0))
			})
		}, func() {
			each(f, at, seg, 1, func() { f.Store16(dst.Add(at.Shl(1)), 0, src.Add(at).Load8U(0)) })
		})
		f.Inc(dst, seg.Shl(1))
		f.Inc(src, stride)
		f.Inc(segs, -1)
	})
	f.If(h.Load(i32, hK).And(1), func() { f.Store16(dst, 0, emit.C(0)) })
	return f
}
