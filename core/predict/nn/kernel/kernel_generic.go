package kernel

import "math"

// rounder defines the rounding in Requant and Add.
//
// The clamp comes first: its bounds are whole numbers, so it commutes with the rounding. The clamped value lies within ±255. Adding
// 1.5·2²³ to it rounds to an integer, half to even, and the low bits of the sum are that integer.
type rounder struct {
	lo, hi float32 // bounds minus the zero point
	zero   int32
}

const (
	magic     = 3 << 22
	magicBits = 0x4b400000 // of float32(magic)
)

func rounderOf(zero int32, lo, hi uint8) rounder {
	return rounder{float32(int32(lo) - zero), float32(int32(hi) - zero), zero}
}

// round returns clamp(zero + roundToEven(v), lo, hi).
func (r *rounder) round(v float32) uint8 {
	// The code does not use min and max: on targets without such an instruction they are calls.
	if v > r.hi {
		v = r.hi
	}
	if v < r.lo {
		v = r.lo
	}
	return uint8(int32(math.Float32bits(v+magic)) - magicBits + r.zero)
}

func clamp(v, lo, hi float32) float32 {
	if v < lo {
		v = lo
	}
	if v > hi {
		v = hi
	}
	return v
}

// block4 holds the results of four rows by four columns.
type block4 [4][4]float32

func gemmF32Generic(dst []float32, ldd int, a []float32, lda, segStride, m int, w *PackedF32, res []float32, ldr int, lo, hi float32) {
	var rows [4][]float32
	var acc block4
	for i := 0; i < m; i += 4 {
		for r := range rows {
			rows[r] = a[min(i+r, m-1)*lda:]
		}
		for j := 0; j < w.N; j += 4 {
			cols := min(4, w.N-j)
			var bias [4]float32
			copy(bias[:], w.Bias[j:j+cols])
			w.dot4x4(&rows, segStride, w.b[j/panel*panel*w.K+j%panel:], &bias, &acc)
			for r := range min(4, m-i) {
				out := dst[(i+r)*ldd+j:][:cols]
				sums := acc[r][:cols]
				if res != nil {
					for c, v := range res[(i+r)*ldr+j:][:cols] {
						sums[c] += v
					}
				}
				for c, v := range sums {
					out[c] = clamp(v, lo, hi)
				}
			}
		}
	}
}

// dot4x4 sets out to the sums of up to four rows with four columns of a panel, in
// order of k from the bias. Each row is a slice that starts at its first segment.
func (w *PackedF32) dot4x4(rows *[4][]float32, segStride int, b []float32, bias *[4]float32, out *block4) {
	s00, s01, s02, s03 := bias[0], bias[1], bias[2], bias[3]
	s10, s11, s12, s13 := bias[0], bias[1], bias[2], bias[3]
	s20, s21, s22, s23 := bias[0], bias[1], bias[2], bias[3]
	s30, s31, s32, s33 := bias[0], bias[1], bias[2], bias[3]
	for s := range w.Segs {
		at := s * segStride
		r0, r1 := rows[0][at:][:w.Seg], rows[1][at:][:w.Seg]
		r2, r3 := rows[2][at:][:w.Seg], rows[3][at:][:w.Seg]
		base := b[s*w.Seg*panel:]
		for k := range r0 {
			col := (*[4]float32)(base[k*panel:])
			c0, c1, c2, c3 := col[0], col[1], col[2], col[3]
			v := r0[k]
			s00 += float32(v * c0)
			s01 += float32(v * c1)
			s02 += float32(v * c2)
			s03 += float32(v * c3)
			v = r1[k]
			s10 += float32(v * c0)
			s11 += float32(v * c1)
			s12 += float32(v * c2)
			s13 += float32(v * c3)
			v = r2[k]
			s20 += float32(v * c0)
			s21 += float32(v * c1)
			s22 += float32(v * c2)
			s23 += float32(v * c3)
			v = r3[k]
			s30 += float32(v * c0)
			s31 += float32(v * c1)
			s32 += float32(v * c2)
			s33 += float32(v * c3)
		}
	}
	out[0] = [4]float32{s00, s01, s02, s03}
	out[1] = [4]float32{s10, s11, s12, s13}
	out[2] = [4]float32{s20, s21, s22, s23}
	out[3] = [4]float32{s30, s31, s32, s33}
}

// The plain product keeps the sums of a block of plainRows rows with four columns. It splits the
// depth into parts of plainDepth, and widens the weights of a part once for the whole block.
const (
	plainRows  = 64
	plainDepth = 512
)

// pair holds two columns in one number: a·(w₀ + w₁·2³²) is a·w₀ + a·w₁·2³², so one multiplication
// computes both. upper separates the two halves of a sum exactly.
type pair = int64

// upper returns the sum in the upper half of v: it subtracts the lower half, a signed number.
func upper(v pair) int32 { return int32((v - int64(int32(v))) >> 32) }

func gemmU8Generic(dst []uint8, ldd int, a []uint8, lda, segStride, m int, w *PackedS8, q *Requant) {
	round := rounderOf(q.Zero, q.Lo, q.Hi)
	var sums [plainRows][2]pair
	var wide [plainDepth][2]pair
	for i := 0; i < m; i += plainRows {
		now := sums[:min(plainRows, m-i)]
		for j := 0; j < w.N; j += 4 {
			clear(now)
			w.dot(now, wide[:], a[i*lda:], lda, segStride, w.columns(j))
			cols := min(4, w.N-j)
			bias, scale := q.Bias[j:][:cols], q.Scale[j:][:cols]
			for r, s := range now {
				out := dst[(i+r)*ldd+j:][:cols]
				parts := [4]int32{int32(s[0]), upper(s[0]), int32(s[1]), upper(s[1])}
				for c, v := range parts[:cols] {
					out[c] = round.round(float32(float32(v+bias[c]) * scale[c]))
				}
			}
		}
	}
}

// dot adds the products of rows of a with four columns of a panel to sums. The rows are lda apart.
// The four weights of a group of column c are at b[c*4].
func (w *PackedS8) dot(sums, wide [][2]pair, a []uint8, lda, segStride int, b []int8) {
	for s := range w.Segs {
		for k := 0; k < w.Seg; k += len(wide) {
			part := wide[:min(len(wide), w.Seg-k)]
			base := b[(s*w.seg4+k/4)*panel*4:]
			for t := range part {
				col := (*[13]int8)(base[t>>2*panel*4+t&3:])
				part[t] = [2]pair{int64(col[0]) + int64(col[4])<<32, int64(col[8]) + int64(col[12])<<32}
			}
			at, r := s*segStride+k, 0
			for ; r+2 <= len(sums); r += 2 {
				dot2(&sums[r], &sums[r+1], a[r*lda+at:], a[(r+1)*lda+at:], part)
			}
			if r < len(sums) {
				dot2(&sums[r], &[2]pair{}, a[r*lda+at:], a[r*lda+at:], part)
			}
		}
	}
}

// dot2 adds the products of two rows with four columns to s and t.
func dot2(s, t *[2]pair, a, b []uint8, w [][2]pair) {
	a, b = a[:len(w)], b[:len(w)]
	s0, s1, t0, t1 := s[0], s[1], t[0], t[1]
	for k := range w {
		w0, w1 := w[k][0], w[k][1]
		v := int64(a[k])
		s0 += v * w0
		s1 += v * w1
		v = int64(b[k])
		t0 += v * w0
		t1 += v * w1
	}
	*s, *t = [2]pair{s0, s1}, [2]pair{t0, t1}
}

// columns returns the packed weights starting at column j, a multiple of four.
func (w *PackedS8) columns(j int) []int8 { return w.b[j/panel*w.panelBytes()+j%panel*4:] }

func gemvU16Generic(dst []int64, a []uint16, w *PackedS8, bias []int32) {
	for j := range w.N {
		col := w.b[j/panel*w.panelBytes()+j%panel*4:]
		var acc int64
		for k, v := range a {
			acc += int64(v) * int64(col[k>>2*panel*4+k&3])
		}
		if bias != nil {
			acc += int64(bias[j])
		}
		dst[j] = acc
	}
}

// depthwiseF32Generic computes the channels from to w.C-1.
func depthwiseF32Generic(dst, src []float32, d *Depthwise, w *DepthwiseF32, from int, lo, hi float32) {
	c := w.C
	for y := range d.Rows {
		for x := range d.Width {
			out := dst[y*d.DstStep+x*c+from : y*d.DstStep+x*c+c]
			copy(out, w.Bias[from:])
			for ky := range w.KH {
				for kx := range w.KW {
					in := src[y*d.SrcStep+ky*d.SrcStride+(x*d.StrideX+kx*d.DilationX)*c+from:][:len(out)]
					tap := w.w[(ky*w.KW+kx)*c+from:][:len(out)]
					for j := range out {
						out[j] += float32(in[j] * tap[j])
					}
				}
			}
			for j, v := range out {
				out[j] = clamp(v, lo, hi)
			}
		}
	}
}

// depthwiseU8Generic computes the channels from to w.C-1.
func depthwiseU8Generic(dst, src []uint8, d *Depthwise, w *DepthwiseS8, from int, q *Requant) {
	c := w.C
	round := rounderOf(q.Zero, q.Lo, q.Hi)
	var acc [64]int32
	for y := range d.Rows {
		for x := range d.Width {
			for j := from; j < c; j += len(acc) {
				sums := acc[:min(len(acc), c-j)]
				copy(sums, q.Bias[j:])
				in := src[y*d.SrcStep+x*d.StrideX*c+j:]
				for ky := range w.KH {
					w.addRow(sums, in[ky*d.SrcStride:], d.DilationX*c, w.w[ky*w.KW*c+j:])
				}
				out, scale := dst[y*d.DstStep+x*c+j:][:len(sums)], q.Scale[j:][:len(sums)]
				for i, v := range sums {
					out[i] = round.round(float32(float32(v) * scale[i]))
				}
			}
		}
	}
}

// addRow adds the products of one kernel row, three taps at a time if possible.
// The inputs of neighbouring taps are step apart, their weights w.C.
func (w *DepthwiseS8) addRow(sums []int32, in []uint8, step int, taps []int8) {
	n := len(sums)
	kx := 0
	for ; kx+3 <= w.KW; kx += 3 {
		a0, a1, a2 := in[kx*step:][:n], in[(kx+1)*step:][:n], in[(kx+2)*step:][:n]
		t0, t1, t2 := taps[kx*w.C:][:n], taps[(kx+1)*w.C:][:n], taps[(kx+2)*w.C:][:n]
		for i := range sums {
			sums[i] += int32(a0[i])*int32(t0[i]) + int32(a1[i])*int32(t1[i]) + int32(a2[i])*int32(t2[i])
		}
	}
	for ; kx < w.KW; kx++ {
		a, t := in[kx*step:][:n], taps[kx*w.C:][:n]
		for i := range sums {
			sums[i] += int32(a[i]) * int32(t[i])
		}
	}
}

func addU8Generic(dst, y, r []uint8, p *Add) {
	round := rounderOf(p.Zero, p.Lo, p.Hi)
	y, r = y[:len(dst)], r[:len(dst)]
	for i := range dst {
		s := float32(float32(int32(y[i])-p.ZeroY)*p.ScaleY) + float32(float32(int32(r[i])-p.ZeroR)*p.ScaleR)
		dst[i] = round.round(s)
	}
}

func addF32Generic(dst, a, b []float32) {
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}

func sumRowsU8Generic(dst []uint32, src []uint8, lds, rows int) {
	for i := range rows {
		for c, v := range src[i*lds:][:len(dst)] {
			dst[c] += uint32(v)
		}
	}
}

func sumRowsF32Generic(dst, src []float32, lds, rows int) {
	for i := range rows {
		for c, v := range src[i*lds:][:len(dst)] {
			dst[c] += v
		}
	}
}

// convRowsF32Direct computes the convolution row by row, without a transform.
func convRowsF32Direct(dst []float32, ldd int, src []float32, stepX, srcStride, m int, r *Rows, w *PackedF32, lo, hi float32) {
	for y := range r.Rows {
		gemmF32(dst[y*r.DstStep:], ldd, src[y*r.SrcStep:], stepX, srcStride, m, w, nil, 0, lo, hi)
	}
}

func gemmRowsGeneric(dst []uint8, ldd int, a []uint8, lda, segStride, m int, r *Rows, w *PackedS8, q *Requant) {
	for y := range r.Rows {
		gemmU8(dst[y*r.DstStep:], ldd, a[y*r.SrcStep:], lda, segStride, m, w, q)
	}
}

// gemmAddGeneric runs the product in blocks of rows and the add after each block, while the
// block is still in the first-level cache. The result is the same as of one fused pass. If a block
// would overwrite an operand not yet read (R is dst), its product goes through buf.
func gemmAddGeneric(dst []uint8, ldd int, a []uint8, lda, segStride, m int, w *PackedS8, q *Requant, add *Add) {
	var buf [4096]uint8
	rows := len(buf) / w.N
	if rows == 0 {
		gemmAddWideU8(dst, ldd, a, lda, segStride, m, w, q, add)
		return
	}
	for i := 0; i < m; i += rows {
		n := min(rows, m-i)
		gemmU8(buf[:], w.N, a[i*lda:], lda, segStride, n, w, q)
		if ldd == w.N && add.LDR == w.N {
			addU8(dst[i*ldd:][:n*w.N], buf[:n*w.N], add.R[i*w.N:][:n*w.N], add)
			continue
		}
		for r := range n {
			y := buf[r*w.N:][:w.N]
			addU8(dst[(i+r)*ldd:][:w.N], y, add.R[(i+r)*add.LDR:][:w.N], add)
		}
	}
}

// gemmAddWideU8 is gemmAddGeneric for rows longer than its buffer.
func gemmAddWideU8(dst []uint8, ldd int, a []uint8, lda, segStride, m int, w *PackedS8, q *Requant, add *Add) {
	buf := make([]uint8, w.N)
	for i := range m {
		gemmU8(buf, w.N, a[i*lda:], lda, segStride, 1, w, q)
		addU8(dst[i*ldd:][:w.N], buf, add.R[i*add.LDR:][:w.N], add)
	}
}
