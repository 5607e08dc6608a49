package simd

import "github.com/sightline-dev/sightline/wasm/simd/emit"

// The inverse transforms of core/predict/raster/jpg. The first pass computes four rows at a time, and the second pass four columns. The
// coefficients are stored column by column, so that the first pass loads the same coefficient of four rows at once. Between the passes,
// 4x4 blocks are transposed.

// defineInverse defines inverse8(dst, stride, b, quant) and inverse4(dst, stride, b, quant). Both clear b.
func (k *kernels) defineInverse() {
	row, column := k.defineInverseRow(), k.defineInverseColumn()
	f := k.Func("inverse8", ints(4))
	dst, stride, b, quant := f.Param(0), f.Param(1), f.Param(2), f.Param(3)
	f.Call(row, b, quant)
	f.Call(row, b.Add(16), quant.Add(16))
	f.Call(column, dst, stride, b)
	f.Call(column, dst.Add(4), stride, b.Add(128))
	for i := range 16 {
		f.Store(b, 16*i, i32x4.Splat(0))
	}
	k.defineInverse4()
}

// vectors provides the arithmetic of jpg/inverse8.go for registers of four int32.
type vectors struct{ f *emit.Func }

func (v vectors) add(a, b value) value      { return v.f.Let(i32x4.Add(a, b)) }
func (v vectors) sub(a, b value) value      { return v.f.Let(i32x4.Sub(a, b)) }
func (v vectors) mul(a value, c int) value  { return v.f.Let(i32x4.Mul(a, i32x4.Splat(c))) }
func (v vectors) shl(a value, n int) value  { return v.f.Let(i32x4.Shl(a, n)) }
func (v vectors) shrS(a value, n int) value { return v.f.Let(i32x4.ShrS(a, n)) }

// both returns a + b and a - b.
func (v vectors) both(a, b value) (sum, difference value) { return v.add(a, b), v.sub(a, b) }

// rotate returns (x0, x1), rotated and scaled with three multiplications.
func (v vectors) rotate(x0, x1 value, kcos, ksin int) (y0, y1 value) {
	sum := v.mul(v.add(x0, x1), kcos)
	return v.add(sum, v.mul(x1, ksin-kcos)), v.sub(sum, v.mul(x0, kcos+ksin))
}

// defineInverseRow defines (b, quant), which dequantises four rows and transforms them in place.
func (k *kernels) defineInverseRow() *emit.Func {
	f := k.Func("", ints(2))
	v := vectors{f}
	var x [8]value
	for i := range x {
		x[i] = f.Let(i32x4.Mul(f.Param(0).Load(v128, 32*i), f.Param(1).Load(v128, 32*i)))
	}
	x0, x1 := v.both(v.shl(x[0], 17), v.shl(x[4], 17))
	x2, x3 := v.rotate(x[2], x[6], 70936, -171254)
	x1, x2 = v.both(x1, x2)
	x0, x3 = v.both(x0, x3)

	x7, x4 := v.both(v.shl(x[1], 7), v.shl(x[7], 7))
	x5, x6 := v.mul(x[3], 181), v.mul(x[5], 181)
	x7, x5 = v.both(x7, x5)
	x4, x6 = v.both(x4, x6)
	x4, x7 = v.rotate(v.shrS(x4, 2), v.shrS(x7, 2), 3406, -2276)
	x5, x6 = v.rotate(v.shrS(x5, 2), v.shrS(x6, 2), 4017, -799)

	for i, p := range [][2]value{{x0, x7}, {x1, x6}, {x2, x5}, {x3, x4}} {
		sum, difference := v.both(p[0], p[1])
		f.Store(f.Param(0), 32*i, sum)
		f.Store(f.Param(0), 32*(7-i), difference)
	}
	return f
}

// transpose returns the 4x4 matrix in four registers, transposed.
func transpose(f *emit.Func, x [4]value) (y [4]value) {
	a, b := f.Let(emit.Shuffle32(x[0], x[1], 0, 4, 1, 5)), f.Let(emit.Shuffle32(x[2], x[3], 0, 4, 1, 5))
	c, d := f.Let(emit.Shuffle32(x[0], x[1], 2, 6, 3, 7)), f.Let(emit.Shuffle32(x[2], x[3], 2, 6, 3, 7))
	return [4]value{
		f.Let(emit.Shuffle32(a, b, 0, 1, 4, 5)), f.Let(emit.Shuffle32(a, b, 2, 3, 6, 7)),
		f.Let(emit.Shuffle32(c, d, 0, 1, 4, 5)), f.Let(emit.Shuffle32(c, d, 2, 3, 6, 7)),
	}
}

// defineInverseColumn defines (dst, stride, b), which transforms four columns and writes eight rows of four bytes.
func (k *kernels) defineInverseColumn() *emit.Func {
	f := k.Func("", ints(3))
	v := vectors{f}
	var x [8]value
	for half := range 2 {
		var rows [4]value
		for i := range rows {
			rows[i] = f.Let(f.Param(2).Load(v128, 32*i+16*half))
		}
		four := transpose(f, rows)
		copy(x[4*half:], four[:])
	}
	dc := f.Let(i32x4.Add(x[0], i32x4.Splat(1<<19)))
	x0, x1 := v.shrS(v.add(dc, x[4]), 2), v.shrS(v.sub(dc, x[4]), 2)
	x2, x3 := v.rotate(v.shrS(x[2], 13), v.shrS(x[6], 13), 1108, -2676)
	x1, x2 = v.both(x1, x2)
	x0, x3 = v.both(x0, x3)

	x7, x4 := v.both(x[1], x[7])
	x5, x6 := v.mul(v.shrS(x[3], 13), 11585), v.mul(v.shrS(x[5], 13), 11585)
	x7, x5 = v.both(x7, x5)
	x4, x6 = v.both(x4, x6)
	x4, x7 = v.rotate(v.shrS(x4, 14), v.shrS(x7, 14), 3406, -2276)
	x5, x6 = v.rotate(v.shrS(x5, 14), v.shrS(x6, 14), 4017, -799)

	var rows [8]value
	for i, p := range [][2]value{{x0, x7}, {x1, x6}, {x2, x5}, {x3, x4}} {
		rows[i], rows[7-i] = v.both(p[0], p[1])
	}
	for i := 0; i < 8; i += 4 {
		storeSamples(f, [4]value{rows[i], rows[i+1], rows[i+2], rows[i+3]})
	}
	return f
}

// storeSamples writes four rows of four samples, v>>18 + 128 clamped to a byte. It leaves dst at the row after them.
func storeSamples(f *emit.Func, rows [4]value) {
	dst, stride := f.Param(0), f.Param(1)
	middle := i16x8.Splat(128)
	pair := func(a, b value) value {
		return i16x8.Add(i16x8.NarrowS(i32x4.ShrS(a, 18), i32x4.ShrS(b, 18)), middle)
	}
	out := f.Let(i8x16.NarrowU(pair(rows[0], rows[1]), pair(rows[2], rows[3])))
	for i := range 4 {
		f.StoreLane(dst, 0, out, 4, i)
		f.Inc(dst, stride)
	}
}

// defineInverse4 defines inverse4, which transforms 4x4 coefficients into 4x4 samples: the block at half its size.
func (k *kernels) defineInverse4() {
	f := k.Func("inverse4", ints(4))
	b, quant := f.Param(2), f.Param(3)
	v := vectors{f}
	pass := func(x [4]value) [4]value {
		e0, e1 := v.shl(v.add(x[0], x[2]), 13), v.shl(v.sub(x[0], x[2]), 13)
		o0 := v.add(v.mul(x[1], 10703), v.mul(x[3], 4433))
		o1 := v.sub(v.mul(x[1], 4433), v.mul(x[3], 10703))
		return [4]value{v.add(e0, o0), v.add(e1, o1), v.sub(e1, o1), v.sub(e0, o0)}
	}
	var x [4]value
	for i := range x {
		x[i] = f.Let(i32x4.Mul(b.Load(v128, 16*i), quant.Load(v128, 16*i)))
	}
	x = pass(x)
	for i := range x {
		x[i] = f.Let(i32x4.ShrS(i32x4.Add(x[i], i32x4.Splat(1<<10)), 11))
	}
	x = pass(transpose(f, x))
	for i := range x {
		x[i] = f.Let(i32x4.Add(x[i], i32x4.Splat(1<<17)))
	}
	storeSamples(f, x)
	for i := range 4 {
		f.Store(b, 16*i, i32x4.Splat(0))
	}
}
