package kernel

// panel is the number of output columns stored together: one AVX-512 register of
// float32 or int32, two of AVX2.
const panel = 16

// PackedF32 holds the weights of a float32 product in the layout the kernels read.
// It is immutable and safe to share. The layout is the same at every level.
type PackedF32 struct {
	N    int       // output columns
	K    int       // depth: Segs·Seg
	Segs int       // segments per row of a; 1 for a matrix product
	Seg  int       // elements per segment
	Bias []float32 // (N)
	b    []float32 // (⌈N/16⌉, K, 16), zero beyond N
}

// PackF32 packs w (n, k), row-major, for [GemmF32]. bias is (n) or nil for zero.
func PackF32(w, bias []float32, n, k int) *PackedF32 {
	return PackConvF32(w, bias, n, 1, k)
}

// PackConvF32 packs w (n, segs, seg), row-major, for [ConvRowF32]: for a kh×kw
// convolution over c channels that is (n, kh, kw·c). bias is (n) or nil for zero.
func PackConvF32(w, bias []float32, n, segs, seg int) *PackedF32 {
	k := segs * seg
	if len(w) != n*k || (bias != nil && len(bias) != n) {
		panic("kernel: PackF32 shapes")
	}
	p := &PackedF32{N: n, K: k, Segs: segs, Seg: seg, Bias: make([]float32, n)}
	copy(p.Bias, bias)
	panels := (n + panel - 1) / panel
	p.b = make([]float32, panels*k*panel)
	for j := range n {
		col := p.b[j/panel*k*panel+j%panel:]
		for i, v := range w[j*k : (j+1)*k] {
			col[i*panel] = v
		}
	}
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
}

// PackS8 packs w (n, k), row-major, for [GemmU8], [GemmI32] and [GemvU16].
func PackS8(w []int8, n, k int) *PackedS8 {
	return PackConvS8(w, n, 1, k)
}

// PackConvS8 packs w (n, segs, seg), row-major, for [ConvRowU8] and [ConvRowI32]:
// for a kh×kw convolution over c channels that is (n, kh, kw·c).
func PackConvS8(w []int8, n, segs, seg int) *PackedS8 {
	k := segs * seg
	if len(w) != n*k {
		panic("kernel: PackS8 shapes")
	}
	seg4 := (seg + 3) / 4
	p := &PackedS8{N: n, K: k, Segs: segs, Seg: seg, Sum: make([]int32, n), seg4: seg4}
	panels := (n + panel - 1) / panel
	p.b = make([]int8, panels*p.panelBytes())
	for j := range n {
		col := p.b[j/panel*p.panelBytes()+j%panel*4:]
		for s := range segs {
			for t, v := range w[j*k+s*seg : j*k+(s+1)*seg] {
				col[(s*seg4+t/4)*panel*4+t%4] = v
				p.Sum[j] += int32(v)
			}
		}
	}
	return p
}

// panelBytes is the size of one panel of 16 columns.
func (p *PackedS8) panelBytes() int { return p.Segs * p.seg4 * panel * 4 }

// DepthwiseF32 holds depthwise float32 weights. It is immutable and safe to share.
type DepthwiseF32 struct {
	C, KH, KW int
	Bias      []float32 // (C)
	w         []float32 // (KH·KW, C)
}

// PackDepthwiseF32 packs w (c, kh, kw). bias is (c) or nil for zero.
func PackDepthwiseF32(w, bias []float32, c, kh, kw int) *DepthwiseF32 {
	if len(w) != c*kh*kw || (bias != nil && len(bias) != c) {
		panic("kernel: PackDepthwiseF32 shapes")
	}
	p := &DepthwiseF32{C: c, KH: kh, KW: kw, Bias: make([]float32, c), w: make([]float32, len(w))}
	copy(p.Bias, bias)
	taps := kh * kw
	for j := range c {
		for t := range taps {
			p.w[t*c+j] = w[j*taps+t]
		}
	}
	return p
}

// DepthwiseS8 holds depthwise int8 weights. It is immutable and safe to share.
type DepthwiseS8 struct {
	C, KH, KW int
	Sum       []int32 // (C) Σ of the taps, for folding the input's zero point into the bias
	w         []int8  // (KH·KW, C)
}

// PackDepthwiseS8 packs w (c, kh, kw).
func PackDepthwiseS8(w []int8, c, kh, kw int) *DepthwiseS8 {
	if len(w) != c*kh*kw {
		panic("kernel: PackDepthwiseS8 shapes")
	}
	p := &DepthwiseS8{C: c, KH: kh, KW: kw, Sum: make([]int32, c), w: make([]int8, len(w))}
	taps := kh * kw
	for j := range c {
		for t := range taps {
			v := w[j*taps+t]
			p.w[t*c+j] = v
			p.Sum[j] += int32(v)
		}
	}
	return p
}
