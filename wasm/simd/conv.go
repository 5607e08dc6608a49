package simd

import "github.com/sightline-dev/sightline/wasm/simd/emit"

// The int8 product. It widens a block of rows to int16 in scratch. Then, panel by panel, tiles of rows by eight columns sum pairs of k
// with the instruction that multiplies eight numbers at once. [quads] uses an instruction that multiplies sixteen bytes at once.
//
//	        k k'                                   8 columns, two registers
//	row 0  ▐a a'▌ spread over all lanes   ×   k k' │w w'│w w'│w w'│w w'│ …   →   32-bit sums
//	row 1  ▐a a'▌
//
// The sum of two products of a u8 and an s8 fits int32. Longer sums may overflow; they wrap, as in Go.

// Constants of a call, at offsets from hConsts: a float32 or int32 each. A load copies a constant to all lanes.
const (
	cHi    = hConsts + 4*iota // upper bound of a result, less the zero point
	cLo                       // lower bound of a result, less the zero point
	cBits                     // number to subtract from the bits of clampAndRound; the difference is the byte
	cMode                     // modeU8, …
	cBitsY                    // likewise; the difference is y - ZeroY
	cZeroR
	cScaleY
	cScaleR
	cHiAdd
	cLoAdd
	cBitsAdd
	cLdr // bytes between the rows of r
)

// tileRows is the number of rows of most tiles.
const tileRows = 4

// The modes select the use of a tile's sums.
const (
	modeU8  = 0
	modeAdd = 1 // requantised, then added to the residual r
	modeI32 = 2
)

// magic is 1.5·2²³, and magicBits has its bits as an integer. Adding magic to a float rounds the float to a whole number, half to even,
// and leaves that number in the low bits of the sum.
const (
	magic     = float32(3 << 22)
	magicBits = 0x4b400000
)

// clampAndRound returns v, clamped to the range from lo to hi, plus magic. Its bits are magicBits plus the rounded v.
func clampAndRound(v, hi, lo value) value {
	v = f32x4.PMax(f32x4.PMin(v, hi), lo)
	return f32x4.Add(v, f32x4.Splat(magic))
}

// tile holds the arguments of a tile. A tile reads and writes eight columns. For the last columns, if they are fewer, it uses the tail
// of the packing.
type tile struct {
	a, pitch    value // address of the first widened row, bytes from one row to the next
	w, rounds   value // address of a panel, its number of rounds
	dst, ldd    value // address of the result, bytes from one row to the next
	bias, scale value
	r, ldr      value // address of the residual, bytes from one row to the next
	h           value
}

func (t *tile) args() []value {
	return []value{t.a, t.pitch, t.w, t.rounds, t.dst, t.ldd, t.bias, t.scale, t.r, t.ldr, t.h}
}

// defineTile defines a tile of a number of rows by eight columns, for some of the modes. The engines of browsers keep values in memory if
// several paths or calls may need them. So the mode of most products has a separate tile, and no tile calls another function. The engines
// also read all operands of a round before they compute. So a round is one pair of k, whose operands and sums just fit sixteen registers.
func (k *kernels) defineTile(rows int, modes ...int) *emit.Func {
	f := k.Func("", ints(11))
	p := f.Args()
	t := &tile{p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9], p[10]}
	a, acc := make([]value, rows), make([][2]value, rows)
	for r := range a {
		if a[r] = t.a; r > 0 {
			a[r] = f.Let(a[r-1].Add(t.pitch))
		}
		acc[r] = [2]value{f.Local(v128), f.Local(v128)}
	}
	k.by.begin(f, t, acc)
	w0, w1, x := f.Local(v128), f.Local(v128), f.Local(v128)
	f.While(t.rounds, func() {
		f.Set(w0, t.w.Load(v128, 0))
		f.Set(w1, t.w.Load(v128, 16))
		for r := range a {
			f.Set(x, a[r].Load32Splat(0))
			f.Set(acc[r][0], k.by.add(acc[r][0], x, w0))
			f.Set(acc[r][1], k.by.add(acc[r][1], x, w1))
		}
		for r := range a {
			f.Inc(a[r], roundBytes)
		}
		f.Inc(t.w, roundBytes*tileCols)
		f.Inc(t.rounds, -1)
	})
	for i, mode := range modes {
		finish := func() {
			switch mode {
			case modeI32:
				t.storeSums(f, acc)
			case modeAdd:
				t.requantise(f, acc, cBitsY)
				t.addResidual(f, acc)
				t.storeBytes(f, acc)
			case modeU8:
				t.requantise(f, acc, cBits)
				t.storeBytes(f, acc)
			}
			f.Return()
		}
		if i == len(modes)-1 {
			finish()
		} else {
			f.If(t.h.Load(i32, cMode).Eq(mode), finish)
		}
	}
	return f
}

// requantise replaces the sums by rounded results. It subtracts the constant at offset minus from their bits: cBits or cBitsY.
func (t *tile) requantise(f *emit.Func, acc [][2]value, minus int) {
	hi, lo, bits := f.Let(t.h.Load32Splat(cHi)), f.Let(t.h.Load32Splat(cLo)), f.Let(t.h.Load32Splat(minus))
	for v := range 2 {
		s := f.Let(t.scale.Load(v128, 16*v))
		for r := range acc {
			f.Set(acc[r][v], i32x4.Sub(clampAndRound(f32x4.Mul(f32x4.Convert(acc[r][v]), s), hi, lo), bits))
		}
	}
}

// addResidual adds the bytes of r to requantised results, from which ZeroY was already subtracted.
func (t *tile) addResidual(f *emit.Func, acc [][2]value) {
	zeroR, bits := f.Let(t.h.Load32Splat(cZeroR)), f.Let(t.h.Load32Splat(cBitsAdd))
	scaleY, scaleR := f.Let(t.h.Load32Splat(cScaleY)), f.Let(t.h.Load32Splat(cScaleR))
	hi, lo, words := f.Let(t.h.Load32Splat(cHiAdd)), f.Let(t.h.Load32Splat(cLoAdd)), f.Local(v128)
	for i := range acc {
		f.Set(words, t.r.Load8x8U(0))
		for v, widen := range []func(value) value{i32x4.LowU, i32x4.HighU} {
			y := f32x4.Mul(f32x4.Convert(acc[i][v]), scaleY)
			x := f32x4.Mul(f32x4.Convert(i32x4.Sub(widen(words), zeroR)), scaleR)
			f.Set(acc[i][v], i32x4.Sub(clampAndRound(f32x4.Add(y, x), hi, lo), bits))
		}
		f.Inc(t.r, t.ldr)
	}
}

// storeBytes writes the results as bytes. In acc each takes 32 bits.
func (t *tile) storeBytes(f *emit.Func, acc [][2]value) {
	out := f.Local(v128)
	for i := 0; i < len(acc); i += 2 {
		this, other := acc[i], acc[min(i+1, len(acc)-1)]
		f.Set(out, i8x16.NarrowU(i16x8.NarrowS(this[0], this[1]), i16x8.NarrowS(other[0], other[1])))
		for lane := range min(2, len(acc)-i) {
			f.StoreLane(t.dst, 0, out, 8, lane)
			f.Inc(t.dst, t.ldd)
		}
	}
}

// storeSums writes the sums as int32.
func (t *tile) storeSums(f *emit.Func, acc [][2]value) {
	for _, sums := range acc {
		f.Store(t.dst, 0, sums[0])
		f.Store(t.dst, 16, sums[1])
		f.Inc(t.dst, t.ldd)
	}
}

// defineConv defines conv_u8, conv_rows_u8 and gemv_u16.
func (k *kernels) defineConv() {
	rows := k.defineRows()

	f := k.Func("conv_u8", ints(9))
	h, dst, ldd, q, add := f.Param(0), f.Param(1), f.Param(2), f.Param(7), f.Param(8)
	setConstants(f, h, q, 8, cHi, cLo, cBits)
	f.Store(h, cMode, emit.C(modeU8))
	f.Store(h, cLdr, emit.C(0))
	r := f.Local(i32)
	f.If(add, func() {
		f.Store(h, cMode, emit.C(modeAdd))
		f.Store(h, cScaleY, add.Load(i32, 0))
		f.Store(h, cScaleR, add.Load(i32, 4))
		f.Store(h, cBitsY, h.Load(i32, cBits).Add(add.Load(i32, 8)))
		f.Store(h, cZeroR, add.Load(i32, 12))
		setConstants(f, h, add, 16, cHiAdd, cLoAdd, cBitsAdd)
		f.Set(r, add.Load(i32, 28))
		f.Store(h, cLdr, add.Load(i32, 32))
	})
	f.Call(rows, h, dst, ldd, f.Param(3), f.Param(4), f.Param(5), f.Param(6), q.Load(i32, 0), q.Load(i32, 4), r)

	k.defineConvRows(f)

	k.defineGemv()
}

// setConstants writes the constants hi, lo and bits of a rounding to h. It reads the zero point and the bounds at from + offset.
func setConstants(f *emit.Func, h, from value, offset, hi, lo, bits int) {
	zero := f.Let(from.Load(i32, offset))
	f.Store(h, lo, from.Load(i32, offset+4).Sub(zero).ToFloat())
	f.Store(h, hi, from.Load(i32, offset+8).Sub(zero).ToFloat())
	f.Store(h, bits, emit.C(magicBits).Sub(zero))
}

// defineTiles defines the tiles of all sizes for modeU8 and modeAdd, the modes of most products.
func (k *kernels) defineTiles() map[int][2]*emit.Func {
	tiles := make(map[int][2]*emit.Func)
	for _, rows := range k.by.tiles() {
		tiles[rows] = [2]*emit.Func{modeU8: k.defineTile(rows, modeU8), modeAdd: k.defineTile(rows, modeAdd)}
	}
	return tiles
}

// defineRows defines the loop over all tiles of a product: (h, dst, ldd, src, stepX, srcStride, m, bias, scale, r). The constant cMode
// in h selects the mode.
func (k *kernels) defineRows() *emit.Func {
	widen, tiles, single := k.by.defineWiden(k), k.defineTiles(), k.defineTile(1, modeAdd, modeU8)
	f := k.Func("", ints(10))
	h, dst, ldd, src, stepX := f.Param(0), f.Param(1), f.Param(2), f.Param(3), f.Param(4)
	stride, m, bias, scale, r := f.Param(5), f.Param(6), f.Param(7), f.Param(8), f.Param(9)
	mode := f.Let(h.Load(i32, cMode))
	n, rounds, ldr := f.Let(h.Load(i32, hN)), f.Let(h.Load(i32, hRounds)), f.Let(h.Load(i32, cLdr))
	scratch, tail := f.Let(h.Load(i32, hScratch)), f.Let(h.Load(i32, hTail))
	pitch, panel := f.Let(rounds.Mul(roundBytes)), f.Let(k.by.panelBytes(rounds))
	operands := f.Local(i32)
	now, i, j, cols, w := f.Local(i32), f.Local(i32), f.Local(i32), f.Local(i32), f.Local(i32)
	b, s := f.Local(i32), f.Local(i32)
	at := func() *tile {
		return &tile{
			a: operands.Add(i.Mul(pitch)), pitch: pitch, w: w, rounds: rounds,
			dst: dst.Add(i.Mul(ldd)).Add(j), ldd: ldd, bias: b, scale: s,
			r: r.Add(i.Mul(ldr)).Add(j), ldr: ldr, h: h,
		}
	}
	f.While(m.GtS(0), func() {
		f.Set(now, emit.Min(m, emit.C(k.by.block())))
		k.by.ifWiden(f, h, func() {
			f.Set(operands, scratch)
			f.Set(i, 0)
			each(f, i, now, 1, func() {
				f.Call(widen, operands.Add(i.Mul(pitch)), src, h, stride)
				f.Inc(src, stepX)
			})
		}, func() {
			f.Set(operands, src)
			f.Set(pitch, stepX)
			f.Inc(src, now.Mul(stepX))
		})
		f.Set(w, h.Load(i32, hWeights))
		f.Set(j, 0)
		f.While(j.LtS(n), func() {
			f.Set(cols, emit.Min(n.Sub(j), emit.C(tileCols)))
			f.Set(b, bias.Add(j.Shl(2)))
			f.Set(s, scale.Add(j.Shl(2)))
			f.Set(i, 0)
			f.If(cols.LtS(tileCols), func() { k.edge(f, tail, b, s, cols) })
			f.If(cols.Eq(tileCols), func() {
				k.by.eachTile(f, i, now, func(rows int) {
					both := tiles[rows]
					f.If(mode, func() { f.Call(both[modeAdd], at().args()...) }, func() { f.Call(both[modeU8], at().args()...) })
				})
				each(f, i, now, 1, func() { f.Call(single, at().args()...) })
			}, func() {
				each(f, i, now, 1, func() { k.edgeTile(f, at(), single, mode, tail.Add(tailSums), cols) })
			})
			f.Inc(w, panel)
			f.Inc(j, tileCols)
		})
		f.Inc(dst, now.Mul(ldd))
		f.Inc(r, now.Mul(ldr))
		f.Set(m, m.Sub(now))
	})
	return f
}

// edgeTile calls a tile for the last columns, which are fewer than eight. The tile works on a copy of the residual in room, and
// edgeTile copies the results from there to dst.
func (k *kernels) edgeTile(f *emit.Func, t *tile, single *emit.Func, mode, room, cols value) {
	dst, r := t.dst, t.r
	t.dst, t.r = room, room
	f.If(mode.Eq(modeAdd), func() { f.Call(k.copyBytes, t.r, r, cols) })
	f.Call(single, t.args()...)
	f.Call(k.copyBytes, dst, t.dst, cols)
}

// edge copies the bias and the scales of the last columns to tail, where a tile can read eight of each.
func (k *kernels) edge(f *emit.Func, tail, b, s, cols value) {
	f.Call(k.copyBytes, tail, b, cols.Shl(2))
	f.Set(b, tail)
	f.Call(k.copyBytes, tail.Add(32), s, cols.Shl(2))
	f.Set(s, tail.Add(32))
}

// defineGemv defines gemv_u16(h, dst, a, bias): the low and the high bytes of a are two rows of a product, each exact. The tile's other
// rows are leftovers in scratch, and nobody reads their sums.
func (k *kernels) defineGemv() {
	tileOfSums := k.defineTile(tileRows, modeI32)
	f := k.Func("gemv_u16", ints(4))
	h, dst, a, bias := f.Param(0), f.Param(1), f.Param(2), f.Param(3)
	n, depth, rounds := f.Let(h.Load(i32, hN)), f.Let(h.Load(i32, hK)), f.Let(h.Load(i32, hRounds))
	low, tail, w := f.Let(h.Load(i32, hScratch)), f.Let(h.Load(i32, hTail)), f.Let(h.Load(i32, hWeights))
	pitch := f.Let(rounds.Mul(roundBytes))
	i, v, sum := f.Local(i32), f.Local(i32), f.Local(i64)
	each(f, i, depth, 1, func() {
		f.Set(v, a.Add(i.Shl(1)).Load16U(0))
		k.by.storeOperand(f, h, low, i, v.And(255))
		k.by.storeOperand(f, h, low.Add(pitch), i, v.ShrU(8))
	})
	f.If(depth.And(1), func() {
		k.by.storeOperand(f, h, low, i, emit.C(0))
		k.by.storeOperand(f, h, low.Add(pitch), i, emit.C(0))
	})
	sums := tail.Add(tailSums)
	f.Store(tail, 0, i32x4.Splat(0))
	f.Store(tail, 16, i32x4.Splat(0))
	f.While(n.GtS(0), func() {
		zero := emit.C(0)
		t := tile{low, pitch, w, rounds, sums, emit.C(4 * tileCols), tail, zero, zero, zero, h}
		f.Call(tileOfSums, t.args()...)
		f.Set(i, 0)
		each(f, i, emit.Min(n, emit.C(tileCols)), 1, func() {
			f.Set(v, sums.Add(i.Shl(2)))
			f.Set(sum, v.Load(i32, 0).ExtendS().Add(v.Load(i32, 4*tileCols).ExtendS().Shl(8)))
			f.If(bias, func() {
				f.Inc(sum, bias.Load(i32, 0).ExtendS())
				f.Inc(bias, 4)
			})
			f.Store(dst, 0, sum)
			f.Inc(dst, 8)
		})
		f.Inc(w, k.by.panelBytes(rounds))
		f.Inc(n, -tileCols)
	})
}
