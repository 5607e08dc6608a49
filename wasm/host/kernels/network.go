package kernels

import "github.com/sightline-dev/sightline/core/predict/nn/kernel"

// productS8 returns the int8 product weights with a handle. If the handle has other weights, it ends the instance.
func (in *Instance) productS8(handle uint64) *kernel.PackedS8 {
	p := in.packing(handle).s8
	if p == nil {
		wild()
	}
	return p
}

// readRequant fills in.requant from q = {bias, scale, zero, lo, hi} in memory, for n channels.
func (in *Instance) readRequant(at uint64, n int) *kernel.Requant {
	q, words := &in.requant, view[int32](in, at, 5)
	q.Bias = view[int32](in, uint64(uint32(words[0])), n)
	q.Scale = view[float32](in, uint64(uint32(words[1])), n)
	q.Zero = zeroPoint(words[2])
	q.Lo, q.Hi = clamp(words[3], words[4])
	return q
}

// readAdd fills in.add from {scaleY, scaleR, zeroY, zeroR, zero, lo, hi, r, ldr} in memory. It clears R and LDR of in.add, and returns r
// and ldr unchecked.
func (in *Instance) readAdd(at uint64) (p *kernel.Add, r uint64, ldr int32) {
	p, words, floats := &in.add, view[int32](in, at, 9), view[float32](in, at, 2)
	p.ScaleY, p.ScaleR = floats[0], floats[1]
	p.ZeroY, p.ZeroR, p.Zero = zeroPoint(words[2]), zeroPoint(words[3]), zeroPoint(words[4])
	p.Lo, p.Hi = clamp(words[5], words[6])
	p.R, p.LDR = nil, 0
	return p, uint64(uint32(words[7])), words[8]
}

// convU8(handle, dst, ldd, src, stepX, srcStride, m, q, add)
func (in *Instance) convU8(s []uint64) {
	w, ldd, stepX, stride, m := in.productS8(s[0]), count(s[2]), count(s[4]), count(s[5]), count(s[6])
	if m == 0 {
		return
	}
	in.work(m, w.N, w.K)
	dst := view[uint8](in, s[1], extent(m, ldd, w.N))
	src := onward[uint8](in, s[3], extent(m, stepX, extent(w.Segs, stride, w.Seg)))
	q := in.readRequant(s[7], w.N)
	if uint32(s[8]) == 0 {
		kernel.ConvRowU8(dst, ldd, src, stepX, stride, m, w, q, nil)
		return
	}
	add, r, ldr := in.readAdd(s[8])
	add.LDR = count(uint64(uint32(ldr)))
	add.R = view[uint8](in, r, extent(m, add.LDR, w.N))
	kernel.ConvRowU8(dst, ldd, src, stepX, stride, m, w, q, add)
}

// convRowsU8(handle, dst, ldd, src, stepX, srcStride, m, q, rows, dstStep, srcStep)
func (in *Instance) convRowsU8(s []uint64) {
	w, ldd, stepX, stride, m := in.productS8(s[0]), count(s[2]), count(s[4]), count(s[5]), count(s[6])
	r := kernel.Rows{Rows: count(s[8]), DstStep: count(s[9]), SrcStep: count(s[10])}
	if m == 0 || r.Rows == 0 {
		return
	}
	in.work(times(m, r.Rows), w.N, w.K)
	dst := view[uint8](in, s[1], extent(r.Rows, r.DstStep, extent(m, ldd, w.N)))
	src := onward[uint8](in, s[3], extent(r.Rows, r.SrcStep, extent(m, stepX, extent(w.Segs, stride, w.Seg))))
	kernel.ConvRowsU8(dst, ldd, src, stepX, stride, m, r, w, in.readRequant(s[7], w.N))
}

// gemvU16(handle, dst, a, bias)
func (in *Instance) gemvU16(s []uint64) {
	w := in.productS8(s[0])
	if w.Segs != 1 || w.K > 1<<16 {
		wild()
	}
	kernel.GemvU16(view[int64](in, s[1], w.N), view[uint16](in, s[2], w.K), w, optional[int32](in, s[3], w.N))
}

// readDepthwise reads {rows, width, dstStep, srcStep, srcStride, strideX, dilationX} from memory. dst and src are the lengths, in elements,
// of the memory with the results and the inputs, for c channels and kh×kw taps.
func (in *Instance) readDepthwise(at uint64, c, kh, kw int) (d kernel.Depthwise, dst, src int) {
	words := view[int32](in, at, 7)
	for i, f := range [...]*int{&d.Rows, &d.Width, &d.DstStep, &d.SrcStep, &d.SrcStride, &d.StrideX, &d.DilationX} {
		*f = count(uint64(uint32(words[i])))
	}
	if d.Rows == 0 || d.Width == 0 {
		return d, 0, 0
	}
	in.work(times(d.Rows, d.Width), c, kh*kw)
	across := times(extent(d.Width, d.StrideX, 1)+times(kw-1, d.DilationX), c)
	return d, extent(d.Rows, d.DstStep, times(d.Width, c)), extent(d.Rows, d.SrcStep, extent(kh, d.SrcStride, across))
}

// depthwiseU8(handle, dst, src, d, q)
func (in *Instance) depthwiseU8(s []uint64) {
	w := in.packing(s[0]).dw8
	if w == nil {
		wild()
	}
	d, dst, src := in.readDepthwise(s[3], w.C, w.KH, w.KW)
	kernel.DepthwiseRowsU8(view[uint8](in, s[1], dst), view[uint8](in, s[2], src), d, w, in.readRequant(s[4], w.C))
}

// addU8(dst, y, r, n, add)
func (in *Instance) addU8(s []uint64) {
	n := count(s[3])
	p, _, _ := in.readAdd(s[4])
	kernel.AddU8(view[uint8](in, s[0], n), view[uint8](in, s[1], n), view[uint8](in, s[2], n), p)
}

// sumRowsU8(dst, src, lds, rows, n)
func (in *Instance) sumRowsU8(s []uint64) {
	lds, rows, n := count(s[2]), count(s[3]), count(s[4])
	in.work(rows, n, 1)
	dst := view[uint32](in, s[0], n)
	if rows == 0 || n == 0 {
		clear(dst)
		return
	}
	kernel.SumRowsU8(dst, view[uint8](in, s[1], extent(rows, lds, n)), lds, rows)
}
