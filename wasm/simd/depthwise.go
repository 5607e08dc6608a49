package simd

import "github.com/sightline-dev/sightline/wasm/simd/emit"

// The depthwise convolution of bytes computes eight channels at a time, and two taps at a time. It interleaves the bytes of the two taps,
// widens them, and multiplies them by pairs of weights, as a product does. A separate loop for 3x3 windows multiplies the ninth tap in 16
// bits, which hold the product of a u8 and an s8.

// geometry holds the parameters of a depthwise call as locals: the fields of d, a kernel.Depthwise, in their order, and the number of
// channels.
type geometry struct {
	h, dst, src                                                      value
	rows, width, dstStep, srcStep, srcStride, strideX, dilationX, ch value
}

func geometryOf(f *emit.Func, d value) geometry {
	at := func(i int) value { return f.Let(d.Load(i32, 4*i)) }
	h := f.Param(0)
	return geometry{h, f.Param(1), f.Param(2), at(0), at(1), at(2), at(3), at(4), at(5), at(6), f.Let(h.Load(i32, hN))}
}

// eachOutput runs body for every output pixel of every row. out and in are the addresses of the first channel of the output pixel and of
// the first pixel of its window.
func (g *geometry) eachOutput(f *emit.Func, body func(out, in value)) {
	out, in, x := f.Local(i32), f.Local(i32), f.Local(i32)
	step := f.Let(g.ch.Mul(g.strideX))
	f.While(g.rows.GtS(0), func() {
		f.Set(out, g.dst)
		f.Set(in, g.src)
		f.Set(x, g.width)
		f.While(x.GtS(0), func() {
			body(out, in)
			f.Inc(out, g.ch)
			f.Inc(in, step)
			f.Inc(x, -1)
		})
		f.Inc(g.dst, g.dstStep)
		f.Inc(g.src, g.srcStep)
		f.Inc(g.rows, -1)
	})
}

// eachBlock runs body for every block of eight channels, starting at channel c. The last block overlaps its neighbour. w is the address of
// the block's weights. eachBlock adds blockBytes to w after each block; with 0, body moves w.
func (g *geometry) eachBlock(f *emit.Func, w value, blockBytes int, body func(c value)) {
	block, c := f.Local(i32), f.Local(i32)
	f.Set(block, 0)
	f.Set(w, g.h.Load(i32, hWeights))
	f.While(block.LtS(g.ch), func() {
		f.Set(c, emit.Min(block, g.ch.Sub(tileCols)))
		body(c)
		f.Inc(w, blockBytes)
		f.Inc(block, tileCols)
	})
}

// setOffsets writes the distance of each tap from the first tap, in bytes, to scratch. It returns the address of this table.
func (g *geometry) setOffsets(f *emit.Func) value {
	at := f.Let(g.h.Load(i32, hScratch))
	table := f.Let(at)
	y, x, rows, cols := f.Local(i32), f.Local(i32), f.Let(g.h.Load(i32, hSegs)), f.Let(g.h.Load(i32, hSeg))
	each(f, y, rows, 1, func() {
		f.Set(x, 0)
		each(f, x, cols, 1, func() {
			f.Store(at, 0, y.Mul(g.srcStride).Add(x.Mul(g.dilationX).Mul(g.ch)))
			f.Inc(at, 4)
		})
	})
	return table
}

func interleave(a, b value) value {
	var lanes [16]byte
	for i := range byte(8) {
		lanes[2*i], lanes[2*i+1] = i, 16+i
	}
	return emit.Shuffle(a, b, lanes)
}

// defineDepthwise defines depthwise_u8(h, dst, src, d, q).
func (k *kernels) defineDepthwise() {
	three, any, few := k.defineThree(), k.defineTaps(), k.defineFewChannels()
	f := k.Func("depthwise_u8", ints(5))
	h := f.Param(0)
	setConstants(f, h, f.Param(4), 8, cHi, cLo, cBits)
	args := f.Args()
	f.If(h.Load(i32, hN).LtS(8), func() {
		f.Call(few, args...)
		f.Return()
	})
	f.If(h.Load(i32, hSegs).Eq(3).And(h.Load(i32, hK).Eq(9)), func() { f.Call(three, args...) }, func() { f.Call(any, args...) })
}

// beginWindow begins a function with the parameters of depthwise_u8. It returns the addresses of the bias and the scales, too.
func (k *kernels) beginWindow() (f *emit.Func, g geometry, bias, scale value) {
	f = k.Func("", ints(5))
	q := f.Param(4)
	return f, geometryOf(f, f.Param(3)), f.Let(q.Load(i32, 0)), f.Let(q.Load(i32, 4))
}

// sums holds the accumulators of eight channels, and the constants that turn them into bytes.
type sums struct {
	lo, hi         value // int32, of channels 0 to 3 and 4 to 7
	clampHi, clamp value
	bits           value
}

func newSums(f *emit.Func, h value) *sums {
	return &sums{f.Local(v128), f.Local(v128), f.Let(h.Load32Splat(cHi)), f.Let(h.Load32Splat(cLo)), f.Let(h.Load32Splat(cBits))}
}

func (s *sums) begin(f *emit.Func, bias value) {
	f.Set(s.lo, bias.Load(v128, 0))
	f.Set(s.hi, bias.Load(v128, 16))
}

func (s *sums) add(f *emit.Func, lo, hi value) {
	f.Set(s.lo, i32x4.Add(s.lo, lo))
	f.Set(s.hi, i32x4.Add(s.hi, hi))
}

// store writes the sums to dst as eight bytes.
func (s *sums) store(f *emit.Func, dst, scale value) {
	byteOf := func(acc value, offset int) value {
		v := f32x4.Mul(f32x4.Convert(acc), scale.Load(v128, offset))
		return i32x4.Sub(clampAndRound(v, s.clampHi, s.clamp), s.bits)
	}
	words := f.Let(i16x8.NarrowS(byteOf(s.lo, 0), byteOf(s.hi, 16)))
	f.StoreLane(dst, 0, i8x16.NarrowU(words, words), 8, 0)
}

// defineThree defines the convolution with 3x3 windows, for at least eight channels.
func (k *kernels) defineThree() *emit.Func {
	f, g, bias, scale := k.beginWindow()
	w, col := f.Local(i32), f.Let(g.dilationX.Mul(g.ch))
	s := newSums(f, g.h)
	x, last := f.Local(v128), f.Local(v128)
	var at [9]value
	for t := range at {
		at[t] = f.Local(i32)
	}
	four := f.Local(i32) // offset of channel c in the bias and the scales, in bytes
	g.eachOutput(f, func(out, in value) {
		g.eachBlock(f, w, 5*32, func(c value) {
			f.Set(at[0], in.Add(c))
			f.Set(at[3], at[0].Add(g.srcStride))
			f.Set(at[6], at[3].Add(g.srcStride))
			for t := 0; t < 9; t += 3 {
				f.Set(at[t+1], at[t].Add(col))
				f.Set(at[t+2], at[t+1].Add(col))
			}
			f.Set(four, c.Shl(2))
			s.begin(f, bias.Add(four))
			for p := range 4 {
				f.Set(x, interleave(at[2*p].Load64Zero(0), at[2*p+1].Load64Zero(0)))
				s.add(f, i32x4.Dot(i16x8.LowU(x), w.Load(v128, 32*p)), i32x4.Dot(i16x8.HighU(x), w.Load(v128, 32*p+16)))
			}
			f.Set(last, i16x8.Mul(at[8].Load8x8U(0), i16x8.NarrowS(w.Load(v128, 128), w.Load(v128, 144))))
			s.add(f, i32x4.LowS(last), i32x4.HighS(last))
			s.store(f, out.Add(c), scale.Add(four))
		})
	})
	return f
}

// defineTaps defines the convolution with windows of any size, for at least eight channels.
func (k *kernels) defineTaps() *emit.Func {
	f, g, bias, scale := k.beginWindow()
	taps, table := f.Let(g.h.Load(i32, hK)), g.setOffsets(f)
	w, p, t := f.Local(i32), f.Local(i32), f.Local(i32)
	s := newSums(f, g.h)
	x, base := f.Local(v128), f.Local(i32)
	g.eachOutput(f, func(out, in value) {
		g.eachBlock(f, w, 0, func(c value) {
			f.Set(base, in.Add(c))
			s.begin(f, bias.Add(c.Shl(2)))
			f.Set(p, table)
			f.Set(t, taps)
			pair := func(second value) {
				f.Set(x, interleave(base.Add(p.Load(i32, 0)).Load64Zero(0), second))
				s.add(f, i32x4.Dot(i16x8.LowU(x), w.Load(v128, 0)), i32x4.Dot(i16x8.HighU(x), w.Load(v128, 16)))
				f.Inc(w, 32)
			}
			f.While(t.GtS(1), func() {
				pair(base.Add(p.Load(i32, 4)).Load64Zero(0))
				f.Inc(p, 8)
				f.Inc(t, -2)
			})
			f.If(t, func() { pair(i32x4.Splat(0)) })
			s.store(f, out.Add(c), scale.Add(c.Shl(2)))
		})
	})
	return f
}

// defineFewChannels defines the convolution for fewer than eight channels. It computes one channel at a time.
func (k *kernels) defineFewChannels() *emit.Func {
	f, g, bias, scale := k.beginWindow()
	taps, table := f.Let(g.h.Load(i32, hK)), g.setOffsets(f)
	c, t, w, sum := f.Local(i32), f.Local(i32), f.Local(i32), f.Local(i32)
	hi, lo, bits := f.Let(g.h.Load32Splat(cHi)), f.Let(g.h.Load32Splat(cLo)), f.Let(g.h.Load32Splat(cBits))
	g.eachOutput(f, func(out, in value) {
		f.Set(c, 0)
		each(f, c, g.ch, 1, func() {
			f.Set(sum, bias.Add(c.Shl(2)).Load(i32, 0))
			f.Set(w, g.h.Load(i32, hWeights).Add(c.Shl(2)))
			f.Set(t, 0)
			each(f, t, taps, 1, func() {
				a := in.Add(c).Add(table.Add(t.Shl(2)).Load(i32, 0)).Load8U(0)
				weight := w.Add(t.ShrU(1).Shl(5)).Add(t.And(1).Shl(1)).Load16U(0)
				f.Inc(sum, a.Mul(weight.Shl(16).ShrS(16)))
			})
			v := f32x4.Mul(f32x4.Convert(i32x4.Splat(sum)), scale.Add(c.Shl(2)).Load32Splat(0))
			f.StoreLane(out.Add(c), 0, i32x4.Sub(clampAndRound(v, hi, lo), bits), 1, 0)
		})
	})
	return f
}
