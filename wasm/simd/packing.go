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
//	depthwise     (⌈n/8⌉, ⌈k/2⌉, 8, 2) int16: blocks of eight channels, pairs of taps; a last tap alone is an int32
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
	hTail    = 36  // of 128 bytes: an edge's bias, scales, bytes
	hConsts  = 64  // what a call spreads over lanes, see constants
	hSize    = 192 // bytes
)

const (
	depthStep = 4  // elements of k that one round of a tile takes
	tileCols  = 8  // columns of a panel
	blockRows = 16 // rows that are widened together
)

// definePacking defines pack_room, pack and unpack.
func (k *kernels) definePacking() {
	k.definePackRoom()
	product, depthwise := k.definePackProduct(), k.definePackDepthwise()
	floats, windows := k.definePackFloats(tileCols), k.definePackFloatTaps()

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
	f.Store(h, hWeights, h.Add(hSize+128))
	for i, pack := range []*emit.Func{product, depthwise, floats, windows} {
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
	head := func(v value) value { return v.Add(16 + hSize + 128) }
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

// definePackProduct widens int8 weights into panels.
func (k *kernels) definePackProduct() *emit.Func {
	f := k.Func("", ints(3))
	h, w := f.Param(0), f.Param(1)
	n, depth, padded := f.Let(h.Load(i32, hN)), f.Let(h.Load(i32, hK)), f.Let(h.Load(i32, hDepth))
	out := f.Let(h.Load(i32, hWeights))
	panel, i, c, j := f.Local(i32), f.Local(i32), f.Local(i32), f.Local(i32)
	each(f, panel, n.Add(tileCols-1).And(-tileCols), tileCols, func() {
		f.Set(i, 0)
		each(f, i, padded, 2, func() {
			f.Set(c, 0)
			each(f, c, emit.C(tileCols), 1, func() {
				f.Set(j, panel.Add(c))
				for b := range 2 {
					f.Store16(out, 2*b, emit.C(0))
					f.If(j.LtS(n).And(i.Add(b).LtS(depth)), func() {
						f.Store16(out, 2*b, w.Add(j.Mul(depth)).Add(i).Load8S(b))
					})
				}
				f.Inc(out, 4)
			})
		})
	})
	f.Store(h, hScratch, out)
	return f
}

// definePackDepthwise pairs taps, block by block.
func (k *kernels) definePackDepthwise() *emit.Func {
	f := k.Func("", ints(3))
	h, w := f.Param(0), f.Param(1)
	n, taps := f.Let(h.Load(i32, hN)), f.Let(h.Load(i32, hK))
	out := f.Let(h.Load(i32, hWeights))
	block, i, c, j := f.Local(i32), f.Local(i32), f.Local(i32), f.Local(i32)
	each(f, block, n.Add(7).And(-8), 8, func() {
		f.Set(i, 0)
		each(f, i, taps.Add(1).And(-2), 2, func() {
			f.Set(c, 0)
			each(f, c, emit.C(8), 1, func() {
				f.Set(j, channel(block, c, n, 8))
				f.Store(out, 0, emit.C(0))
				f.If(j.LtS(n), func() {
					f.Store(out, 0, w.Add(j.Mul(taps)).Add(i).Load8S(0))
					f.If(i.Add(1).LtS(taps), func() { f.Store16(out, 2, w.Add(j.Mul(taps)).Add(i).Load8S(1)) })
				})
				f.Inc(out, 4)
			})
		})
	})
	f.Store(h, hScratch, out)
	return f
}

// channel is channel c of the block that begins at block, or earlier where the channels end.
func channel(block, c, n value, wide int) value {
	return c.Add(blockStart(block, n, wide))
}

// blockStart is the first channel of the block at block: the last one of n ≥ wide begins earlier.
func blockStart(block, n value, wide int) value {
	last := n.Sub(wide)
	return emit.Select(last.LtS(0).Or(block.LtS(last)), block, last)
}

// definePackFloats lays float32 weights out in panels of wide columns, and the biases behind them.
func (k *kernels) definePackFloats(wide int) *emit.Func {
	f := k.Func("", ints(3))
	h, w, bias := f.Param(0), f.Param(1), f.Param(2)
	n, depth := f.Let(h.Load(i32, hN)), f.Let(h.Load(i32, hK))
	out := f.Let(h.Load(i32, hWeights))
	panel, i, c, j, v := f.Local(i32), f.Local(i32), f.Local(i32), f.Local(i32), f.Local(f32)
	end := n.Add(wide - 1).And(-wide)
	each(f, panel, end, wide, func() {
		f.Set(i, 0)
		each(f, i, depth, 1, func() {
			f.Set(c, 0)
			each(f, c, emit.C(wide), 1, func() {
				f.Set(j, panel.Add(c))
				f.Set(v, float32(0))
				f.If(j.LtS(n), func() { f.Set(v, w.Add(j.Mul(depth).Add(i).Shl(2)).Load(f32, 0)) })
				f.Store(out, 0, v)
				f.Inc(out, 4)
			})
		})
	})
	f.Store(h, hBias, out)
	f.Set(j, 0)
	each(f, j, end, 1, func() {
		f.Set(v, float32(0))
		f.If(j.LtS(n).And(bias.Ne(0)), func() { f.Set(v, bias.Add(j.Shl(2)).Load(f32, 0)) })
		f.Store(out, 0, v)
		f.Inc(out, 4)
	})
	return f
}

// definePackFloatTaps lays depthwise float32 weights out in blocks of four channels.
func (k *kernels) definePackFloatTaps() *emit.Func {
	const wide = 4
	f := k.Func("", ints(3))
	h, w, bias := f.Param(0), f.Param(1), f.Param(2)
	n, taps := f.Let(h.Load(i32, hN)), f.Let(h.Load(i32, hK))
	out := f.Let(h.Load(i32, hWeights))
	block, i, c, j, v := f.Local(i32), f.Local(i32), f.Local(i32), f.Local(i32), f.Local(f32)
	end := n.Add(wide - 1).And(-wide)
	each(f, block, end, wide, func() {
		f.Set(i, 0)
		each(f, i, taps, 1, func() {
			f.Set(c, 0)
			each(f, c, emit.C(wide), 1, func() {
				f.Set(j, channel(block, c, n, wide))
				f.Set(v, float32(0))
				f.If(j.LtS(n), func() { f.Set(v, w.Add(j.Mul(taps).Add(i).Shl(2)).Load(f32, 0)) })
				f.Store(out, 0, v)
				f.Inc(out, 4)
			})
		})
	})
	f.Store(h, hBias, out)
	f.Set(block, 0)
	each(f, block, end, wide, func() {
		f.Set(c, 0)
		each(f, c, emit.C(wide), 1, func() {
			f.Set(j, channel(block, c, n, wide))
			f.Set(v, float32(0))
			f.If(j.LtS(n).And(bias.Ne(0)), func() { f.Set(v, bias.Add(j.Shl(2)).Load(f32, 0)) })
			f.Store(out, 0, v)
			f.Inc(out, 4)
		})
	})
	f.Store(h, hScratch, out)
	return f
}
