package simd

import "github.com/sightline-dev/sightline/wasm/simd/emit"

// Kinds of packings.
const (
	kindProduct   = 1 // int8 (n, segs, seg)
	kindDepthwise = 2 // int8 (n, kh, kw)
	kindWindows   = 3 // int8 (n, 3, seg)
)

// A packing is a header, the weights, and scratch that the running call uses:
//
//	product   (⌈n/8⌉, ⌈k/2⌉, 8, 2) int16: panels of eight columns, pairs of k; zero beyond n and k
//	of quads  (⌈n/8⌉, 1 + ⌈k/4⌉, 8, 4) int8: panels of eight columns, an int32 for each column, then groups of four k
//	depthwise (⌈n/8⌉, ⌈k/2⌉, 8, 2) int16: blocks of eight channels, pairs of taps
//
// If n ≥ 8, the last block of a depthwise packing begins at channel n-8 and overlaps its neighbour, so that every block has eight
// channels.
const (
	hKind    = 0
	hN       = 4   // number of columns or channels
	hK       = 8   // depth, or number of taps
	hSegs    = 12  // segments of a row, rows of a window
	hSeg     = 16  // k / segs
	hRounds  = 20  // rounds of a tile for all of k
	hWeights = 24  // address of the weights
	hScratch = 28  // address of the scratch
	hTail    = 32  // address of tailSize bytes for the last columns: bias, scales and, starting at tailSums, results
	hTiles   = 36  // address of the transformed weights for winograd.go; 0 if there are none
	hFlip    = 40  // 0 or quadFlip, for quads
	hConsts  = 64  // constants of a call, see cHi
	hSize    = 192 // size of the header in bytes

	tailSums = 64
	tailSize = tailSums + 4*tileCols*tileRows
)

const (
	tileCols   = 8 // columns of a panel, channels of a block
	roundBytes = 4 // bytes of each row and each column that a tile reads in a round
)

// definePacking defines pack_room, pack and unpack.
func (k *kernels) definePacking() {
	k.definePackRoom()
	product, depthwise, transform := k.by.definePanels(k), k.definePanels(overlapping), k.defineTransform()

	f := k.Func("pack", ints(6), i32)
	kind, w, n, depth, segs := f.Param(0), f.Param(1), f.Param(2), f.Param(3), f.Param(4)
	h := f.Let(f.Param(5).Add(15).And(-16))
	f.If(kind.Sub(1).GeU(3), func() { f.Return(emit.C(0)) })
	f.Store(h, hKind, kind)
	f.Store(h, hN, n)
	f.Store(h, hK, depth)
	f.Store(h, hSegs, segs)
	f.Store(h, hSeg, emit.C(0))
	f.If(segs, func() { f.Store(h, hSeg, depth.DivU(segs)) })
	f.Store(h, hTail, h.Add(hSize))
	f.Store(h, hWeights, h.Add(hSize+tailSize))
	f.If(kind.Eq(kindDepthwise), func() {
		f.Store(h, hRounds, depth.Add(1).ShrU(1))
		f.Call(depthwise, h, w)
	}, func() {
		f.Store(h, hRounds, k.by.rounds(depth))
		f.Call(product, h, w)
	})
	f.Store(h, hTiles, emit.C(0))
	f.If(kind.Eq(kindWindows), func() {
		k.by.ifTiles(f, h, func() { f.Call(transform, h, w) })
	})
	f.Return(h)

	k.Func("unpack", ints(1))
}

// definePackRoom defines pack_room(kind, n, k, segs), which returns the size of a packing in bytes, including 16 for its alignment. For an
// unknown kind it returns 0.
func (k *kernels) definePackRoom() {
	f := k.Func("pack_room", ints(4), i32)
	kind, n, depth := f.Param(0), f.Param(1), f.Param(2)
	blocks := n.Add(7).ShrU(3)
	pairs := depth.Add(1).ShrU(1)
	head := func(v value) value { return v.Add(16 + hSize + tailSize) }
	row := k.by.rounds(depth).Mul(roundBytes)
	product := f.Let(head(blocks.Mul(k.by.panelBytes(k.by.rounds(depth))).Add(row.Mul(k.by.block()))))
	f.If(kind.Eq(kindProduct), func() { f.Return(product) })
	f.If(kind.Eq(kindWindows), func() { f.Return(product.Add(n.Mul(depth).Mul(8)).Add(winogradBytes)) })
	f.If(kind.Eq(kindDepthwise), func() {
		f.Return(head(blocks.Mul(pairs).Mul(32).Add(pairs.Mul(8))))
	})
	f.Return(emit.C(0))
}

// column returns the column of the weights that is at place c of the panel beginning at column panel. n is the number of columns.
type column func(panel, c, n value) value

// inOrder is the [column] of products. It returns n or more for the places of the last panel that have no column.
func inOrder(panel, c, _ value) value { return panel.Add(c) }

// overlapping is the [column] of depthwise packings. If n ≥ 8, the last block begins at channel n-8.
func overlapping(block, c, n value) value {
	last := n.Sub(tileCols)
	return c.Add(emit.Select(last.LtS(0).Or(block.LtS(last)), block, last))
}

// definePanels defines (h, w), which widens the int8 weights and writes them as pairs of k, in the order of the packing. If the second of
// a pair is missing, its place has the sign bits of the first. They do no harm, because the operand there is zero.
func (k *kernels) definePanels(at column) *emit.Func {
	f := k.Func("", ints(2))
	h, w := f.Param(0), f.Param(1)
	n, depth, out := f.Let(h.Load(i32, hN)), f.Let(h.Load(i32, hK)), f.Let(h.Load(i32, hWeights))
	panel, i, c, j := f.Local(i32), f.Local(i32), f.Local(i32), f.Local(i32)
	each(f, panel, n.Add(tileCols-1).And(-tileCols), tileCols, func() {
		f.Set(i, 0)
		each(f, i, h.Load(i32, hRounds).Shl(1), 2, func() {
			f.Set(c, 0)
			each(f, c, emit.C(tileCols), 1, func() {
				f.Set(j, at(panel, c, n))
				f.Store(out, 0, emit.C(0))
				f.If(j.LtS(n).And(i.LtS(depth)), func() {
					f.Store(out, 0, w.Add(j.Mul(depth)).Add(i).Load8S(0))
					f.If(i.Add(1).LtS(depth), func() { f.Store16(out, 2, w.Add(j.Mul(depth)).Add(i).Load8S(1)) })
				})
				f.Inc(out, 4)
			})
		})
	})
	f.Store(h, hScratch, out)
	return f
}
