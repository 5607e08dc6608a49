// Package kerneltest draws random operands for the kernels and computes the results one output at a time, as the contract defines them. The
// tests of package kernel and of the SIMD module check against it.
package kerneltest

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"

	"github.com/sightline-dev/sightline/core/predict/nn/kernel"
)

// Product holds the operands of a byte product, or of one row of a convolution.
type Product struct {
	M, N, Segs, Seg       int
	StepX, SrcStride, LDD int
	Src                   []uint8
	W                     []int8
	Q                     *kernel.Requant
	Add                   *kernel.Add // nil: none
}

// NewProduct draws a random product without an add.
func NewProduct(rng *rand.Rand, m, n, segs, seg int) *Product {
	p := &Product{M: m, N: n, Segs: segs, Seg: seg, StepX: rng.IntN(seg + 9), LDD: n + rng.IntN(7)}
	p.SrcStride = (m-1)*p.StepX + seg + rng.IntN(5)
	p.Src = Bytes(rng, (m-1)*p.StepX+(segs-1)*p.SrcStride+seg)
	p.W, p.Q = Int8s(rng, n*segs*seg), NewRequant(rng, n)
	if rng.IntN(2) == 0 {
		shrink(rng, p.W, segs*seg)
	}
	return p
}

// shrink makes the weights of columns of length k smaller, some so small that a level adds four products in a word.
func shrink(rng *rand.Rand, w []int8, k int) {
	for ; len(w) > 0; w = w[k:] {
		by := int8(1 + rng.IntN(3))
		for i, v := range w[:k] {
			w[i] = max(v, -127) / by
		}
	}
}

// Sums yields products whose groups of four weights, 8 apart, have sums of about 256 in absolute value in one lane of a column. A level
// that adds four products in a word must not overflow it. All results are 128: the bytes of Src are equal, and Bias subtracts their
// contribution.
func Sums(rng *rand.Rand) iter.Seq[*Product] {
	groups := [][4]int8{{127, 127, 0, 0}, {64, 64, 64, 63}, {127, 127, 1, 0}, {64, 64, 64, 64}, {127, 1, 127, 1}, {1, 127, 127, 2}, {127, 127, 127, 127}}
	return func(yield func(*Product) bool) {
		const n, k = 17, 32*2 + 16 + 8 + 3
		for i := range 4 * n * len(groups) {
			p := NewProduct(rng, 3, n, 1+rng.IntN(2), k)
			group, sign, column := groups[i/4%len(groups)], int8(1-i&2), i/4/len(groups)
			for at := range p.Src {
				p.Src[at] = uint8(i & 1 * 255)
			}
			for j := range n {
				p.Q.Bias[j], p.Q.Scale[j] = 0, 1.0/512
			}
			p.Q.Zero, p.Q.Lo, p.Q.Hi = 128, 0, 255
			lane := rng.IntN(8)
			for at := range p.W {
				p.W[at] = 0
				if t := at % k; at/(p.Segs*k) == column && t%8 == lane {
					p.W[at] = sign * group[t/8%4]
				}
			}
			p.Q.Bias[column] = -p.acc(0, column)
			if !yield(p) {
				return
			}
		}
	}
}

func (p *Product) String() string { return shape(p.M, p.N, p.Segs, p.Seg) }

func shape(m, n, segs, seg int) string {
	return fmt.Sprintf("product of m=%d n=%d segs=%d seg=%d", m, n, segs, seg)
}

// DrawAdd draws an add for p with a second operand, often with the same levels as p.
func (p *Product) DrawAdd(rng *rand.Rand) {
	p.Add = NewAdd(rng)
	if rng.IntN(2) == 0 {
		p.Add.ZeroY = p.Q.Zero
	}
	p.Add.LDR = p.N + rng.IntN(5)
	p.Add.R = Bytes(rng, (p.M-1)*p.Add.LDR+p.N)
}

// DstLen returns the number of elements from the first result to the last.
func (p *Product) DstLen() int { return (p.M-1)*p.LDD + p.N }

// Fill writes the results to dst and does not change the elements between rows.
func (p *Product) Fill(dst []uint8) {
	for i := range p.M {
		for j := range p.N {
			b := requantise(p.Q, p.acc(i, j), j)
			if p.Add != nil {
				b = AddResidual(p.Add, b, p.Add.R[i*p.Add.LDR+j])
			}
			dst[i*p.LDD+j] = b
		}
	}
}

func (p *Product) acc(i, j int) int32 {
	s := p.Q.Bias[j]
	for g := range p.Segs {
		for t := range p.Seg {
			s += int32(p.Src[i*p.StepX+g*p.SrcStride+t]) * int32(p.W[(j*p.Segs+g)*p.Seg+t])
		}
	}
	return s
}

// Block holds the operands of several rows of a byte product: the first row's, and the steps to the others. Src holds the inputs of all
// rows.
type Block struct {
	*Product
	R kernel.Rows
}

// LongSeg is a segment length at which a level computes only a few rows at a time.
const LongSeg = 4999

// NewBlock draws up to five rows of a product.
func NewBlock(rng *rand.Rand) *Block {
	p := NewProduct(rng, 1+rng.IntN(20), 1+rng.IntN(70), 1+rng.IntN(3), 1+rng.IntN(40))
	if rng.IntN(20) == 0 {
		p = NewProduct(rng, 7, 17, 1, LongSeg)
	}
	b := &Block{p, kernel.Rows{Rows: 1 + rng.IntN(5), DstStep: p.M*p.LDD + rng.IntN(9), SrcStep: rng.IntN(len(p.Src) + 9)}}
	p.Src = Bytes(rng, (b.R.Rows-1)*b.R.SrcStep+len(p.Src))
	return b
}

// NewConv3x3 draws rows of a 3×3 convolution at stride 1. Most of them have whole groups of channels.
func NewConv3x3(rng *rand.Rand) *Block {
	m, c, n := 1+rng.IntN(20), 16*(1+rng.IntN(3)), 16*(1+rng.IntN(3))
	switch rng.IntN(8) {
	case 0:
		n = 1 + rng.IntN(70)
	case 1:
		c = 1 + rng.IntN(40)
	case 2:
		m, c = 1+rng.IntN(12), 16*(4+rng.IntN(6))
	case 3:
		m, c = 100+rng.IntN(60), 16
	}
	return newConv3x3(rng, m, c, n, 1+rng.IntN(10))
}

func newConv3x3(rng *rand.Rand, m, c, n, rows int) *Block {
	p := &Product{M: m, N: n, Segs: 3, Seg: 3 * c, StepX: c, LDD: n + rng.IntN(7), SrcStride: (m+2)*c + rng.IntN(9)}
	p.Src = Bytes(rng, (rows+1)*p.SrcStride+(m+2)*c)
	p.W, p.Q = Int8s(rng, n*9*c), NewRequant(rng, n)
	return &Block{p, kernel.Rows{Rows: rows, DstStep: m*p.LDD + rng.IntN(9), SrcStep: p.SrcStride}}
}

// extremes are the signs of the factors that Winograd's transforms F(4×4, 3×3) apply to bytes and weights.
var extremes = [6]struct {
	window  [6]int
	weights [3]int
}{
	{[6]int{1, 0, -1, 0, 1, 0}, [3]int{1, 0, 0}},
	{[6]int{0, -1, -1, 1, 1, 0}, [3]int{-1, -1, -1}},
	{[6]int{0, 1, -1, -1, 1, 0}, [3]int{-1, 1, -1}},
	{[6]int{0, -1, -1, 1, 1, 0}, [3]int{1, 1, 1}},
	{[6]int{0, 1, -1, -1, 1, 0}, [3]int{1, -1, 1}},
	{[6]int{0, 1, 0, -1, 0, 1}, [3]int{0, 0, 1}},
}

// Extremes yields 4×4 outputs of 3×3 convolutions of c channels that drive Winograd's algorithm to its largest or smallest numbers: after
// each transform, and in the sum itself.
func Extremes(rng *rand.Rand, c int) iter.Seq[*Block] {
	return func(yield func(*Block) bool) {
		sum := newConv3x3(rng, 4, c, 16, 4)
		for at := range sum.Src {
			sum.Src[at] = 255
		}
		for at := range sum.W {
			sum.W[at] = int8(at/(9*c)%2*255 - 128)
		}
		if !yield(sum) {
			return
		}
		for i := range 4 * 36 {
			b := newConv3x3(rng, 4, c, 16, 4)
			row, col := extremes[i/4/6], extremes[i/4%6]
			for at := range b.Src {
				y, x := at/b.SrcStride, at%b.SrcStride/c
				b.Src[at] = 0
				if x < 6 && row.window[y]*col.window[x]*(i%2*2-1) > 0 {
					b.Src[at] = 255
				}
			}
			for at := range b.W {
				b.W[at] = -128
				if row.weights[at/c/3%3]*col.weights[at/c%3]*(i&2-1) > 0 {
					b.W[at] = 127
				}
			}
			if !yield(b) {
				return
			}
		}
	}
}

// DstLen returns the number of elements from the first result to the last.
func (b *Block) DstLen() int { return (b.R.Rows-1)*b.R.DstStep + b.Product.DstLen() }

// Fill writes the results to dst and does not change the elements between them.
func (b *Block) Fill(dst []uint8) {
	for y := range b.R.Rows {
		row := *b.Product
		row.Src = b.Src[y*b.R.SrcStep:]
		row.Fill(dst[y*b.R.DstStep:])
	}
}

// ProductF32 holds the operands of a product in float32.
type ProductF32 struct {
	M, N, Segs, Seg       int
	StepX, SrcStride, LDD int
	Src, W, Bias          []float32
	Res                   []float32 // nil: none
	LDR                   int
	Lo, Hi                float32
}

// NewProductF32 draws a product with or without a residual.
func NewProductF32(rng *rand.Rand, m, n, segs, seg int) *ProductF32 {
	p := &ProductF32{M: m, N: n, Segs: segs, Seg: seg, StepX: rng.IntN(seg + 9), LDD: n + rng.IntN(7), LDR: n + rng.IntN(7), Lo: -1, Hi: 1.5}
	p.SrcStride = (m-1)*p.StepX + seg + rng.IntN(5)
	p.Src = Floats(rng, (m-1)*p.StepX+(segs-1)*p.SrcStride+seg)
	p.W, p.Bias = Floats(rng, n*segs*seg), Floats(rng, n)
	if rng.IntN(2) == 0 {
		p.Lo, p.Hi = float32(math.Inf(-1)), float32(math.Inf(1))
	}
	if rng.IntN(2) == 0 {
		p.Res = Floats(rng, (m-1)*p.LDR+n)
	}
	return p
}

func (p *ProductF32) String() string { return shape(p.M, p.N, p.Segs, p.Seg) }

// Want returns result i, j and its tolerance: the largest difference that float32 arithmetic may cause.
func (p *ProductF32) Want(i, j int) (want, tolerance float64) {
	var s sum
	s.add(float64(p.Bias[j]))
	for g := range p.Segs {
		for t := range p.Seg {
			s.add(float64(p.Src[i*p.StepX+g*p.SrcStride+t]) * float64(p.W[(j*p.Segs+g)*p.Seg+t]))
		}
	}
	if p.Res != nil {
		s.add(float64(p.Res[i*p.LDR+j]))
	}
	return s.clamp(p.Lo, p.Hi), s.tolerance(p.Segs * p.Seg)
}

// SquaresF32 holds the operands of rows of a 3×3 convolution in float32 whose windows are one pixel apart.
type SquaresF32 struct {
	Rows, M, N, C     int
	Row, LDD, DstStep int // elements between rows of Src, between results, between rows of results
	Src, W, Bias      []float32
	Lo, Hi            float32
}

// NewSquaresF32 draws rows of m results.
func NewSquaresF32(rng *rand.Rand, rows, m, n, c int) *SquaresF32 {
	p := &SquaresF32{Rows: rows, M: m, N: n, C: c, Row: (m+2)*c + rng.IntN(9), LDD: n + rng.IntN(7), Lo: -1, Hi: 1.5}
	p.DstStep = m*p.LDD + rng.IntN(9)
	p.Src, p.W, p.Bias = Floats(rng, (rows+1)*p.Row+(m+2)*c), Floats(rng, n*9*c), Floats(rng, n)
	if rng.IntN(2) == 0 {
		p.Lo, p.Hi = float32(math.Inf(-1)), float32(math.Inf(1))
	}
	return p
}

func (p *SquaresF32) String() string { return shape(p.Rows*p.M, p.N, 3, 3*p.C) }

// DstLen returns the number of elements from the first result to the last.
func (p *SquaresF32) DstLen() int { return (p.Rows-1)*p.DstStep + (p.M-1)*p.LDD + p.N }

// Near reports whether got is result j of output y, x within the error of float32 arithmetic. It allows the error of 2×2 tiles too.
func (p *SquaresF32) Near(y, x, j int, got float32) bool {
	var s sum
	s.add(float64(p.Bias[j]))
	for t := range 9 {
		for c := range p.C {
			s.add(float64(p.Src[(y+t/3)*p.Row+(x+t%3)*p.C+c]) * float64(p.W[(j*9+t)*p.C+c]))
		}
	}
	off := math.Abs(float64(got) - s.clamp(p.Lo, p.Hi))
	near := off <= s.tolerance(9*p.C)
	for oy := max(0, y+2-p.Rows); !near && oy <= min(1, y); oy++ {
		for ox := max(0, x+2-p.M); !near && ox <= min(1, x); ox++ {
			s.mass = p.mass(y-oy, x-ox, oy, ox, j)
			near = off <= s.tolerance(p.C+16)
		}
	}
	return near
}

// winogradTerms counts how often weight g and input d occur together in the terms of output o of F(2, 3), at [o][d][g].
var winogradTerms = [2][4][3]float64{{{1, 0, 0}, {1, 1, 1}, {2, 1, 1}}, {1: {1, 1, 2}, 2: {1, 1, 1}, 3: {0, 0, 1}}}

// mass returns the sum of the magnitudes of the terms of output oy, ox of the tile at y, x.
func (p *SquaresF32) mass(y, x, oy, ox, j int) float64 {
	mass := math.Abs(float64(p.Bias[j]))
	for d := range 16 {
		for g := range 9 {
			if n := winogradTerms[oy][d/4][g/3] * winogradTerms[ox][d%4][g%3]; n > 0 {
				for c := range p.C {
					mass += n * math.Abs(float64(p.Src[(y+d/4)*p.Row+(x+d%4)*p.C+c])*float64(p.W[(j*9+g)*p.C+c]))
				}
			}
		}
	}
	return mass
}

// sum accumulates terms of a product and their magnitudes.
type sum struct{ total, mass float64 }

func (s *sum) add(term float64) { s.total, s.mass = s.total+term, s.mass+math.Abs(term) }

func (s *sum) clamp(lo, hi float32) float64 {
	return math.Min(math.Max(s.total, float64(lo)), float64(hi))
}

// tolerance returns the error that the package allows for this number of terms.
func (s *sum) tolerance(terms int) float64 { return float64(terms+2) * s.mass * 0x1p-23 }

// Window describes rows of a depthwise convolution.
type Window struct {
	kernel.Depthwise
	C, KH, KW int
}

// NewWindow draws a window over c channels.
func NewWindow(rng *rand.Rand, c int) Window {
	s := Window{kernel.Depthwise{Rows: 1 + rng.IntN(3), Width: 1 + rng.IntN(9), StrideX: 1 + rng.IntN(3), DilationX: 1}, c, 3, 3}
	switch rng.IntN(6) {
	case 0:
		s.KH, s.KW = 5, 5
	case 1, 2:
		s.KH, s.KW, s.DilationX = 1+rng.IntN(6), 1+rng.IntN(6), 1+rng.IntN(2)
	}
	if rng.IntN(40) == 0 {
		s.KH, s.KW = 12, 12 // more taps than the assembly supports
	}
	s.SrcStride = ((s.Width-1)*s.StrideX+(s.KW-1)*s.DilationX+1)*s.C + rng.IntN(9)
	s.SrcStep = rng.IntN(3) * s.SrcStride
	s.DstStep = s.Width*s.C + rng.IntN(9)
	return s
}

// DstLen returns the number of elements from the first result to the last.
func (s Window) DstLen() int { return (s.Rows-1)*s.DstStep + s.Width*s.C }

// SrcLen returns the number of elements from the start of the first window to the end of the last.
func (s Window) SrcLen() int {
	return (s.Rows-1)*s.SrcStep + (s.KH-1)*s.SrcStride + ((s.Width-1)*s.StrideX+(s.KW-1)*s.DilationX+1)*s.C
}

// Taps returns the number of weights.
func (s Window) Taps() int { return s.C * s.KH * s.KW }

// eachTap calls f with the source offset and the weight offset of output y, x, c.
func (s Window) eachTap(y, x, c int, f func(src, w int)) {
	for ky := range s.KH {
		for kx := range s.KW {
			f(y*s.SrcStep+ky*s.SrcStride+(x*s.StrideX+kx*s.DilationX)*s.C+c, (c*s.KH+ky)*s.KW+kx)
		}
	}
}

// Fill writes the results for bytes to dst and does not change the elements between rows.
func (s Window) Fill(dst, src []uint8, w []int8, q *kernel.Requant) {
	for y := range s.Rows {
		for i := range s.Width * s.C {
			c := i % s.C
			acc := q.Bias[c]
			s.eachTap(y, i/s.C, c, func(a, b int) { acc += int32(src[a]) * int32(w[b]) })
			dst[y*s.DstStep+i] = requantise(q, acc, c)
		}
	}
}

// Want returns the float32 result i of output row y, where i counts channels, then pixels. tolerance is the largest difference that float32
// arithmetic may cause.
func (s Window) Want(y, i int, src, w, bias []float32, lo, hi float32) (want, tolerance float64) {
	c := i % s.C
	var t sum
	t.add(float64(bias[c]))
	s.eachTap(y, i/s.C, c, func(a, b int) { t.add(float64(src[a]) * float64(w[b])) })
	return t.clamp(lo, hi), t.tolerance(s.KH * s.KW)
}

// NewRequant draws constants whose results lie below, inside and above the clamp, some
// beyond int32, some exactly halfway. In a third of the draws all scales are below 1, as in a network.
func NewRequant(rng *rand.Rand, n int) *kernel.Requant {
	q := &kernel.Requant{Bias: make([]int32, n), Scale: make([]float32, n), Hi: 255}
	for j := range n {
		q.Bias[j] = int32(rng.IntN(1<<16) - 1<<15)
		q.Scale[j] = float32(math.Exp2(rng.Float64()*24 - 22))
		switch rng.IntN(12) {
		case 0:
			q.Bias[j] = int32(rng.Uint32())
		case 1:
			q.Scale[j] = 1.0 / 1024
		case 2:
			q.Scale[j] = -q.Scale[j]
		case 3:
			q.Scale[j] = 1e30
		}
	}
	if rng.IntN(3) == 0 {
		for j, s := range q.Scale {
			if q.Scale[j] = float32(math.Mod(float64(s), 1)); rng.IntN(8) == 0 {
				q.Scale[j] = math.Nextafter32(1, 0)
			}
		}
		q.Zero = int32(rng.IntN(256))
		return q
	}
	if rng.IntN(2) == 0 {
		q.Zero = int32(rng.IntN(256))
		q.Lo = uint8(rng.IntN(256))
		q.Hi = q.Lo + uint8(rng.IntN(256-int(q.Lo)))
	}
	return q
}

// requantise returns the quantised byte of a complete accumulator.
func requantise(q *kernel.Requant, acc int32, j int) uint8 {
	return roundToByte(float32(acc)*q.Scale[j], q.Zero, q.Lo, q.Hi)
}

func roundToByte(v float32, zero int32, lo, hi uint8) uint8 {
	return uint8(math.Min(math.Max(math.RoundToEven(float64(v))+float64(zero), float64(lo)), float64(hi)))
}

// NewAdd draws an add without a second operand.
func NewAdd(rng *rand.Rand) *kernel.Add {
	a := &kernel.Add{
		ScaleY: float32(math.Exp2(rng.Float64()*8 - 5)), ScaleR: float32(math.Exp2(rng.Float64()*8 - 5)),
		ZeroY: int32(rng.IntN(256)), ZeroR: int32(rng.IntN(256)), Zero: int32(rng.IntN(256)), Hi: 255,
	}
	switch rng.IntN(5) {
	case 0:
		a.Lo = uint8(rng.IntN(256))
		a.Hi = a.Lo + uint8(rng.IntN(256-int(a.Lo)))
	case 1:
		a.ScaleY, a.ScaleR = 0.5, 0.25 // halves
	case 2:
		a.ScaleY = 1e9
	case 3:
		a.ScaleY, a.ScaleR = 1.3e36, -1.3e36 // the largest that the contract allows: the sum may be infinite
	}
	return a
}

// AddResidual returns the byte of a residual add.
func AddResidual(p *kernel.Add, y, r uint8) uint8 {
	s := float32(float32(int32(y)-p.ZeroY)*p.ScaleY) + float32(float32(int32(r)-p.ZeroR)*p.ScaleR)
	return roundToByte(s, p.Zero, p.Lo, p.Hi)
}

// Bytes returns n random bytes at an odd alignment, sometimes only extremes. Their capacity ends with their length, so that a read beyond
// the end is a fault or a wrong result.
func Bytes(rng *rand.Rand, n int) []uint8 {
	off := rng.IntN(64)
	b := make([]uint8, n+off)[off:]
	extreme := rng.IntN(4) == 0
	for i := range b {
		b[i] = uint8(rng.Uint32())
		if extreme {
			b[i] = 255 * uint8(rng.IntN(2)|rng.IntN(2))
		}
	}
	return b
}

// Int8s returns n random weights, sometimes only extremes.
func Int8s(rng *rand.Rand, n int) []int8 {
	w := make([]int8, n)
	extreme := rng.IntN(4) == 0
	for i := range w {
		w[i] = int8(rng.Uint32())
		if extreme {
			w[i] = [...]int8{-128, 127}[rng.IntN(2)]
		}
	}
	return w
}

// Floats returns n random numbers at an odd alignment.
func Floats(rng *rand.Rand, n int) []float32 {
	off := rng.IntN(16)
	f := make([]float32, n+off)[off:]
	for i := range f {
		f[i] = float32(rng.NormFloat64())
	}
	return f
}
