package kernel

import "github.com/sightline-dev/sightline/core/cpu"

// panel is the number of output columns stored together: one AVX-512 register of
// float32 or int32, two of AVX2.
const panel = 16

// packing is a kind of weights. Its number is part of the interface with a host. Hosts pack integers; this package packs floats.
type packing int32

const (
	productS8    packing = 1
	depthwisesS8 packing = 2
	windowsS8    packing = 3
)

// PackedF32 holds the weights of a float32 product in the layout the kernels read.
// It is immutable and safe to share. The layout is the same at every level.
type PackedF32 struct {
	N    int       // output columns
	K    int       // depth: Segs·Seg
	Segs int       // segments per row of a; 1 for a matrix product
	Seg  int       // elements per segment
	Bias []float32 // (N), with capacity for ⌈N/16⌉·16
	b    []float32 // (⌈N/16⌉, K, 16), zero beyond N

	winograd []winogradF32 // the same weights by blocks of columns; nil: none
}

// winogradF32 holds the 16 places of the transformed weights of a 3×3 convolution. Each place is a product over the channels.
type winogradF32 [16]PackedF32

// PackConvF32 packs w (n, segs, seg), row-major, for [ConvRowF32]. For a kh×kw convolution over c channels the shape is (n, kh, kw·c), for
// a matrix product (n, 1, k). bias is (n), or nil for zero.
func PackConvF32(w, bias []float32, n, segs, seg int) *PackedF32 {
	k := segs * seg
	if len(w) != n*k || (bias != nil && len(bias) != n) {
		panic("kernel: PackConvF32 shapes")
	}
	panels := (n + panel - 1) / panel
	p := &PackedF32{N: n, K: k, Segs: segs, Seg: seg, Bias: make([]float32, panels*panel)[:n], b: make([]float32, panels*k*panel)}
	copy(p.Bias, bias)
	for j := range n {
		col := p.b[j/panel*k*panel+j%panel:]
		for i, v := range w[j*k : (j+1)*k] {
			col[i*panel] = v
		}
	}
	return p
}

// PackConvF32Squares is PackConvF32 for a 3×3 convolution over c channels with stride and dilation 1. It takes 2.8 times the memory
// at levels that are faster with it.
func PackConvF32Squares(w, bias []float32, n, c int) *PackedF32 {
	p := PackConvF32(w, bias, n, 3, 3*c)
	p.winograd = packWinogradF32(w, n, c)
	return p
}

// PackedS8 holds the weights of an int8 product in the layout the kernels read.
// It is immutable and safe to share. The layout is the same at every level.
type PackedS8 struct {
	N    int     // output columns
	K    int     // depth: Segs·Seg
	Segs int     // segments per row of a; 1 for a matrix product
	Seg  int     // elements per segment
	Sum  []int32 // (N) Σ_k w[j][k], for folding the input's zero point into the bias
	seg4 int     // groups of four per segment, the last one filled up with zero
	b    []int8  // (⌈N/16⌉, Segs·seg4, 16, 4), zero beyond N and Seg

	winograd []int16 // transformed weights, see packWinograd; nil: none
	neonProduct
	lease
}

// PackS8 packs w (n, k), row-major, for [GemvU16], and for [ConvRowU8] as a matrix product.
func PackS8(w []int8, n, k int) *PackedS8 {
	return PackConvS8(w, n, 1, k)
}

// PackConvS8 packs w (n, segs, seg), row-major, for [ConvRowU8].
// For a kh×kw convolution over c channels the shape is (n, kh, kw·c).
func PackConvS8(w []int8, n, segs, seg int) *PackedS8 { return packProduct(productS8, w, n, segs, seg) }

// PackConv3x3S8 is PackConvS8 of w (n, 3, 3, c) for adjacent windows in adjacent rows: in [ConvRowsU8] stepX is c, and srcStride is
// SrcStep.
// At levels that save multiplications with it, it takes up to nine times the memory.
func PackConv3x3S8(w []int8, n, c int) *PackedS8 { return packProduct(windowsS8, w, n, 3, 3*c) }

func packProduct(kind packing, w []int8, n, segs, seg int) *PackedS8 {
	k := segs * seg
	if len(w) != n*k {
		panic("kernel: PackS8 shapes")
	}
	seg4 := (seg + 3) / 4
	p := &PackedS8{N: n, K: k, Segs: segs, Seg: seg, Sum: make([]int32, n), seg4: seg4}
	for j := range n {
		sum := int32(0)
		for _, v := range w[j*k : (j+1)*k] {
			sum += int32(v)
		}
		p.Sum[j] = sum
	}
	if packAtHost(p, &p.lease, kind, w, n, k, segs); p.alone() {
		p.pack(w)
		if kind == windowsS8 {
			p.packWinograd(w, seg/3)
		}
	}
	return p
}

func (w *PackedS8) pack(from []int8) {
	panels := (w.N + panel - 1) / panel
	w.b = make([]int8, panels*w.panelBytes())
	for j := range w.N {
		col := w.b[j/panel*w.panelBytes()+j%panel*4:]
		for s := range w.Segs {
			for t, v := range from[j*w.K+s*w.Seg:][:w.Seg] {
				col[(s*w.seg4+t/4)*panel*4+t%4] = v
			}
		}
	}
	w.packNEON(w, from)
}

// panelBytes returns the size of one panel of 16 columns.
func (w *PackedS8) panelBytes() int { return w.Segs * w.seg4 * panel * 4 }

// DepthwiseF32 holds depthwise float32 weights. It is immutable and safe to share.
type DepthwiseF32 struct {
	C, KH, KW int
	Bias      []float32 // (C)
	w         []float32 // (KH·KW, C)
}

// PackDepthwiseF32 packs w (c, kh, kw). bias is (c), or nil for zero.
func PackDepthwiseF32(w, bias []float32, c, kh, kw int) *DepthwiseF32 {
	if len(w) != c*kh*kw || (bias != nil && len(bias) != c) {
		panic("kernel: PackDepthwiseF32 shapes")
	}
	p := &DepthwiseF32{C: c, KH: kh, KW: kw, Bias: make([]float32, c), w: byTap(w, c)}
	copy(p.Bias, bias)
	return p
}

// byTap transposes w (c, taps) to (taps, c).
func byTap[T any](w []T, c int) []T {
	r, taps := make([]T, len(w)), len(w)/max(1, c)
	for j := range c {
		for t := range taps {
			r[t*c+j] = w[j*taps+t]
		}
	}
	return r
}

// DepthwiseS8 holds depthwise int8 weights. It is immutable and safe to share.
//
// It holds the taps three times: plain, in pairs for the word products of AVX2, and interleaved four by four for the byte dot products of
// AVX-512. The interleaved form has blocks of 64, 32 and 16 channels. A block of 16·lanes channels has the layout (groups, 4, lanes, 4
// channels, 4 taps); register v, lane l, dword d belong to channel 16l+4v+d.
type DepthwiseS8 struct {
	C, KH, KW int
	Sum       []int32  // (C) Σ of the taps, for folding the input's zero point into the bias
	w         []int8   // (KH·KW, C)
	couples   [][2]int // taps of each pair; -1: none
	pairs     []int16  // (⌈C/16⌉, couples, 16, 2): channels 0–3, 8–11, 4–7, 12–15; two taps
	groups    [][4]int // taps of each group; -1: none
	quads     []int8   // (⌈C/16⌉·16, groups, 4), blocked as above
	neonDepthwise
	lease
}

// PackDepthwiseS8 packs w (c, kh, kw).
func PackDepthwiseS8(w []int8, c, kh, kw int) *DepthwiseS8 {
	if len(w) != c*kh*kw {
		panic("kernel: PackDepthwiseS8 shapes")
	}
	p := &DepthwiseS8{C: c, KH: kh, KW: kw, Sum: make([]int32, c), couples: tapPairs(kh, kw), groups: tapGroups(kh, kw)}
	taps := kh * kw
	for j := range c {
		for _, v := range w[j*taps : (j+1)*taps] {
			p.Sum[j] += int32(v)
		}
	}
	if packAtHost(p, &p.lease, depthwisesS8, w, c, taps, kh); !p.alone() {
		return p
	}
	p.w = byTap(w, c)
	p.packPairs()
	p.packQuads()
	p.packNEON(p)
	return p
}

func (w *DepthwiseS8) packPairs() {
	n := len(w.couples)
	w.pairs = make([]int16, (w.C+15)/16*n*32)
	for c := range w.C {
		at := [4]int{0, 2, 1, 3}[c%16/4]*4 + c%4
		for i, pair := range w.couples {
			for half, t := range pair {
				if t >= 0 {
					w.pairs[((c/16*n+i)*16+at)*2+half] = int16(w.w[t*w.C+c])
				}
			}
		}
	}
}

func (w *DepthwiseS8) packQuads() {
	c := w.C
	w.quads = make([]int8, (c+15)/16*16*len(w.groups)*4)
	for c0, lanes := 0, 0; c0 < c; c0 += 16 * lanes {
		lanes = blockLanes(c - c0)
		block := w.quads[c0*len(w.groups)*4:]
		for j := range min(16*lanes, c-c0) {
			l, v, d := j/16, j%16/4, j%4
			for g, group := range w.groups {
				for i, t := range group {
					if t >= 0 {
						block[((g*4+v)*lanes+l)*16+d*4+i] = w.w[t*c+c0+j]
					}
				}
			}
		}
	}
}

// hasColumns reports whether AVX2 computes a kernel of this size by columns.
func hasColumns(kh, kw int) bool { return kh == kw && (kh == 3 || kh == 5) }

// tapPairs groups the taps of a kernel in pairs: one above the other if hasColumns, otherwise in order.
func tapPairs(kh, kw int) [][2]int {
	var pairs [][2]int
	if !hasColumns(kh, kw) {
		for t := 0; t < kh*kw; t += 2 {
			pairs = append(pairs, [2]int{t, t + 1})
		}
		if kh*kw%2 == 1 {
			pairs[len(pairs)-1][1] = -1
		}
		return pairs
	}
	for x := range kw {
		for y := 0; y < kh; y += 2 {
			pairs = append(pairs, [2]int{y*kw + x, (y+1)*kw + x})
		}
		pairs[len(pairs)-1][1] = -1
	}
	return pairs
}

// tapGroups groups the taps of a kernel by four. A 3x3 kernel has one group per column, because
// neighbouring outputs share columns. Others are in order.
func tapGroups(kh, kw int) [][4]int {
	if kh == 3 && kw == 3 {
		return [][4]int{{0, 3, 6, -1}, {1, 4, 7, -1}, {2, 5, 8, -1}}
	}
	groups := make([][4]int, (kh*kw+3)/4)
	for i := range groups {
		for j := range groups[i] {
			if groups[i][j] = i*4 + j; i*4+j >= kh*kw {
				groups[i][j] = -1
			}
		}
	}
	return groups
}

// blockLanes returns the width, in units of 16 channels, of the block that begins c channels
// before the end.
func blockLanes(c int) int {
	switch {
	case cpu.Has(cpu.NEON):
		return 1
	case c >= 64:
		return 4
	case c >= 32:
		return 2
	}
	return 1
}
