package simd

import "github.com/sightline-dev/sightline/wasm/simd/emit"

// Kinds of packings.
const (
	kindProduct      = 1 // int8 (n, segs, seg)
	kindDepthwise    = 2 // int8 (n, kh, kw)
	kindProductF32   = 3
	kindDepthwiseF32 = 4
)

// A packing is a header, the weights, and scratch that belongs to whoever uses it now:
//
//	product       (⌈n/8⌉, depth/2, 8, 2) int16: panels of eight columns, pairs of k; zero beyond n and k
//	depthwise     (⌈n/8⌉, ⌈k/2⌉, 8, 2) int16: blocks of eight channels, pairs of taps
//	product f32   (⌈n/8⌉, k, 8) float32 and the bias of each panel, (⌈n/8⌉, 8), behind them
//	depthwise f32 (⌈n/4⌉, k, 4) float32, biases likewise
//
// The last block of a depthwise packing with n ≥ 8 (or 4) begins at channel n-8 (n-4): it overlaps its
// neighbour, so that no edge is left.
const (
	hKind    = 0
	hN       = 4  // columns, channels
	hK       = 8  // depth, taps
	hSegs    = 12 // segments of a row, rows of a window
	hSeg     = 16 // k / segs
	hDepth   = 20 // k up to a multiple of depthStep
	hWeights = 24 // addresses
	hScratch = 28
	hBias    = 32
	hTail    = 36  // of tailSize bytes: an edge's bias, its scales, and from tailSums on results
	hConsts  = 64  // what a call spreads over lanes, see constants
	hSize    = 192 // bytes

	tailSums = 64
	tailSize = tailSums + 4*tileCols*tileRows
)

const (
	depthStep = 2  // elements of k that one round of a tile takes
	tileCols  = 8  // columns of a panel
	blockRows = 16 // rows that are widened together
)

// definePacking defines pack_room, pack and unpack.
func (k *kernels) definePacking() {
	k.definePackRoom()
	packs := []*emit.Func{
		k.definePackBytes(depthStep, inOrder), k.definePackBytes(2, overlapping(8)),
		k.definePackFloats(tileCols, inOrder), k.definePackFloats(4, overlapping(4)),
	}

	f := k.Func("pack", ints(7), i32)
	kind, w, bias, n, depth, segs := f.Param(0), f.Param(1), f.Param(2), f.Param(3), f.Param(4), f.Param(5)
	h := f.Let(f.Param(6).Add(15).And(-16))
	f.If(kind.Sub(1).GeU(4), func() { f.Return(emit.C(0)) })
	f.Store(h, hKind, kind)
	f.Store(h, hN, n)
	f.Store(h, hK, depth)
	f.Store(h, hSegs, segs)
	f.Store(h, hSeg, emit.C(0))
	f.If(segs, func() { f.Store(h, hSeg, depth.DivU(segs)) })
	f.Store(h, hDepth, depth.Add(depthStep-1).And(-depthStep))
	f.Store(h, hTail, h.Add(hSize))
	f.Store(h, hWeights, h.Add(hSize+tailSize))
	for i, pack := range packs {
		f.If(kind.Eq(i+1), func() { f.Call(pack, h, w, bias) })
	}
	f.Return(h)

	k.Func("unpack", ints(1))
}

// definePackRoom defines the bytes of a packing, with what its alignment may cost.
func (k *kernels) definePackRoom() {
	f := k.Func("pack_room", ints(4), i32)
	kind, n, depth := f.Param(0), f.Param(1), f.Param(2)
	blocks := n.Add(7).ShrU(3)
	padded := depth.Add(depthStep - 1).And(-depthStep)
	pairs := depth.Add(1).ShrU(1)
	head := func(v value) value { return v.Add(16 + hSize + tailSize) }
	f.If(kind.Eq(kindProduct), func() {
		f.Return(head(blocks.Mul(padded).Mul(16).Add(padded.Mul(2 * blockRows))))
	})
	f.If(kind.Eq(kindDepthwise), func() {
		f.Return(head(blocks.Mul(pairs).Mul(32).Add(pairs.Mul(8))))
	})
	f.If(kind.Eq(kindProductF32), func() {
		f.Return(head(blocks.Mul(depth.Add(1)).Mul(32)))
	})
	f.If(kind.Eq(kindDepthwiseF32), func() {
		f.Return(head(n.Add(3).ShrU(2).Mul(depth.Add(1)).Mul(16).Add(depth.Mul(4))))
	})
	f.Return(emit.C(0))
}

// column is which column of the weights stands at place c of the panel that begins at column panel.
type column func(panel, c, n value) value

// inOrder is the panels of products: the last may have fewer columns than room.
func inOrder(panel, c, _ value) value { return panel.Add(c) }

// overlapping is the blocks of wide channels: the last of n ≥ wide begins at n-wide.
func overlapping(wide int) column {
	return func(block, c, n value) value { return c.Add(blockStart(block, n, wide)) }
}

// blockStart is the first channel of the block at block.
func blockStart(block, n value, wide int) value {
	last := n.Sub(wide)
	return emit.Select(last.LtS(0).Or(block.LtS(last)), block, last)
}

// panels is a walk over a packing, in the order in which it lies in memory: body sets what stands at
// out for element i of column j, and is given whether there is such a column.
func panels(f *emit.Func, n, depth value, wide, step, size int, at column, body func(out, i, j, exists value)) value {
	out := f.Let(f.Param(0).Load(i32, hWeights))
	panel, i, c, j := f.Local(i32), f.Local(i32), f.Local(i32), f.Local(i32)
	each(f, panel, n.Add(wide-1).And(-wide), wide, func() {
		f.Set(i, 0)
		each(f, i, depth, step, func() {
			f.Set(c, 0)
			each(f, c, emit.C(wide), 1, func() {
				f.Set(j, at(panel, c, n))
				body(out, i, j, j.LtS(n))
				f.Inc(out, size)
			})
		})
	})
	return out
}

// definePackBytes widens int8 weights in pairs, for a depth that is a multiple of round. Where the
// second of a pair is missing, the first fills its place with its sign, and meets zeros there.
func (k *kernels) definePackBytes(round int, at column) *emit.Func {
	f := k.Func("", ints(3))
	h, w := f.Param(0), f.Param(1)
	n, depth := f.Let(h.Load(i32, hN)), f.Let(h.Load(i32, hK))
	out := panels(f, n, depth.Add(round-1).And(-round), 8, 2, 4, at, func(out, i, j, exists value) {
		f.Store(out, 0, emit.C(0))
		f.If(exists.And(i.LtS(depth)), func() {
			f.Store(out, 0, w.Add(j.Mul(depth)).Add(i).Load8S(0))
			f.If(i.Add(1).LtS(depth), func() { f.Store16(out, 2, w.Add(j.Mul(depth)).Add(i).Load8S(1)) })
		})
	})
	f.Store(h, hScratch, out)
	return f
}

// definePackFloats lays float32 weights out, and the biases behind them as one more element of each column.
func (k *kernels) definePackFloats(wide int, at column) *emit.Func {
	f := k.Func("", ints(3))
	h, w, bias := f.Param(0), f.Param(1), f.Param(2)
	n, depth, v := f.Let(h.Load(i32, hN)), f.Let(h.Load(i32, hK)), f.Local(f32)
	out := panels(f, n, depth, wide, 1, 4, at, func(out, i, j, exists value) {
		f.Set(v, float32(0))
		f.If(exists, func() { f.Set(v, w.Add(j.Mul(depth).Add(i).Shl(2)).Load(f32, 0)) })
		f.Store(out, 0, v)
	})
	weights := f.Let(h.Load(i32, hWeights))
	f.Store(h, hBias, out)
	f.Store(h, hWeights, out)
	out = panels(f, n, emit.C(1), wide, 1, 4, at, func(out, _, j, exists value) {
		f.Set(v, float32(0))
		f.If(exists.And(bias.Ne(0)), func() { f.Set(v, bias.Add(j.Shl(2)).Load(f32, 0)) })
		f.Store(out, 0, v)
	})
	f.Store(h, hWeights, weights)
	f.Store(h, hScratch, out)
	return f
}
