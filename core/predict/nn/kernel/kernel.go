// Package kernel is the arithmetic under core/predict/nn: matrix products,
// depthwise convolutions, residual adds and pooling sums, in float32 and in
// int8, on one thread, without allocation.
//
// Activations are NHWC: channels are contiguous, so a 1x1 convolution is a
// matrix product read in place, one row per pixel, and a kh×kw convolution is
// the same product with kh segments per row (see [ConvRowU8]):
//
//	         K                     N                    N
//	    ┌─────────┐           ┌──┬──┬──┐          ┌──────────┐
//	  m │ a (lda) │     ×   K │16│16│..│  →     m │ dst (ldd)│ + bias, residual,
//	    └─────────┘           └──┴──┴──┘          └──────────┘   requantise, clamp
//	pixels, in place      weights, packed once      pixels
//
// The levels compute the same contract: generic (plain Go, the definition), avx2 and avx512vnni on amd64, and neon, dotprod and i8mm on
// arm64. The level is chosen once at start by CPU feature.
//
// Integer results are the same bytes at every level and on every target. They
// are defined by kernel_generic.go: exact int32 accumulators (wrapping), then
//
//	q = clamp(Zero + roundToEven(float32(float32(acc) * Scale)), Lo, Hi)
//
// where the conversion and the product each round to nearest even.
//
// Float results: the generic level sums in order of k, starting from the bias,
// each product and each sum rounded to float32. The assembly levels keep the
// order but fuse each multiply-add (one rounding), so for a result with terms tₖ
// they differ from the generic level by at most K·2⁻²³·Σ|tₖ|.
//
// The tile shapes follow Goto and van de Geijn (2008) with the activations left
// unpacked, as in XNNPACK. The requantisation follows ONNX QuantizeLinear.
//
// No destination may overlap an operand, unless a function's comment allows it. If a slice is too short for its shape, a function panics
// at every level and never accesses other memory.
//
// The package handles no graphs, shapes or padding: package nn adds the padding and chooses the order of calls.
package kernel

import "github.com/sightline-dev/sightline/core/cpu"

//go:generate go run ./asm/arm64 -out kernel_arm64.s -stubs stubs_arm64.go -pkg kernel

// Levels holds the instruction-set level that the functions of this package use. Integer results are the same at every level. Float results
// differ by rounding, as the package comment describes.
var Levels = cpu.Choose(cpu.AVX2, cpu.AVX512VNNI, cpu.NEON, cpu.DotProd, cpu.I8MM, cpu.Lent)

// Requant holds the constants that turn an int32 accumulator into a quantised byte, for each output channel. All scales must be finite,
// Zero must be in 0..255, and Lo <= Hi.
type Requant struct {
	Bias  []int32   // (n) added to the accumulator, zero-point term folded in; wraps
	Scale []float32 // (n) in.scale · w.scale / out.scale
	Zero  int32     // zero point of the output
	Lo    uint8     // clamp, in output steps
	Hi    uint8
}

// Add holds the constants of a quantised residual add. For a first operand y and a second operand r the result is q:
//
//	s = float32(float32(y-ZeroY)·ScaleY) + float32(float32(r-ZeroR)·ScaleR)
//	q = clamp(Zero + roundToEven(s), Lo, Hi)
//
// The products and the sum are rounded to float32. Zero points lie in 0..255.
type Add struct {
	ScaleY, ScaleR float32 // y.scale/out.scale and r.scale/out.scale; 255 times each is finite
	ZeroY, ZeroR   int32
	Zero           int32 // zero point of the output
	Lo, Hi         uint8
	R              []uint8 // second operand when fused in ConvRowU8
	LDR            int     // elements between the rows of R when fused
}

// ConvRowF32 sets, for i < m and j < w.N,
//
//	dst[i*ldd+j] = clamp(bias[j] + Σ_k a_i[k]·w[j][k] + res[i*ldr+j], lo, hi)
//
// Row a_i has w.Segs segments of w.Seg elements, one per kernel row:
//
//	a_i[s*w.Seg+t] = src[i*stepX + s*srcStride + t]
//
// For a matrix product, w.Segs is 1 and stepX is the number of elements between rows.
// For a kh×kw convolution over an NHWC input of c channels that contains its padding,
// Segs is kh, Seg is kw·c, stepX is strideX·c, and srcStride is the number of elements between
// input rows. No im2row copy is needed. Segments of neighbours may overlap.
//
// res may be nil. It may be dst itself; no other overlap with dst is allowed.
// Infinite lo and hi clamp nothing.
func ConvRowF32(dst []float32, ldd int, src []float32, stepX, srcStride, m int, w *PackedF32, res []float32, ldr int, lo, hi float32) {
	if m <= 0 || w.N == 0 {
		return
	}
	checkRows("dst", len(dst), m, ldd, w.N)
	checkRows("src", len(src), m, stepX, (w.Segs-1)*srcStride+w.Seg)
	if res != nil {
		checkRows("res", len(res), m, ldr, w.N)
	}
	gemmF32(dst, ldd, src, stepX, srcStride, m, w, res, ldr, lo, hi)
}

// ConvRowU8 sets, for i < m and j < w.N, with the rows a_i of [ConvRowF32] and
// acc = Σ_k a_i[k]·w[j][k] in int32,
//
//	dst[i*ldd+j] = q(acc + q.Bias[j])          // see Requant
//
// If add is not nil, dst[i*ldd+j] is instead the residual add of that byte and
// add.R[i*add.LDR+j]. add.R may be dst itself only if add.LDR == ldd.
//
// ConvRowU8 reads nothing beyond the last element of src's last segment, even if w.Seg is not a multiple of 4.
func ConvRowU8(dst []uint8, ldd int, src []uint8, stepX, srcStride, m int, w *PackedS8, q *Requant, add *Add) {
	if m <= 0 || w.N == 0 {
		return
	}
	checkRows("dst", len(dst), m, ldd, w.N)
	checkRows("src", len(src), m, stepX, (w.Segs-1)*srcStride+w.Seg)
	q.check(w.N)
	if add == nil {
		gemmU8(dst, ldd, src, stepX, srcStride, m, w, q)
		return
	}
	add.check()
	checkRows("add.R", len(add.R), m, add.LDR, w.N)
	gemmAddU8(dst, ldd, src, stepX, srcStride, m, w, q, add)
}

// Rows describes the output rows of one call.
type Rows struct {
	Rows    int // output rows
	DstStep int // elements between output rows
	SrcStep int // elements between the first inputs of output rows
}

// ConvRowsU8 computes [ConvRowU8] without an add for r.Rows rows of outputs. The outputs of row y begin at dst[y*r.DstStep] and its inputs
// at src[y*r.SrcStep].
func ConvRowsU8(dst []uint8, ldd int, src []uint8, stepX, srcStride, m int, r Rows, w *PackedS8, q *Requant) {
	if m <= 0 || w.N == 0 || r.Rows <= 0 {
		return
	}
	checkBlock("dst", len(dst), r.Rows, r.DstStep, m, ldd, w.N)
	checkBlock("src", len(src), r.Rows, r.SrcStep, m, stepX, (w.Segs-1)*srcStride+w.Seg)
	q.check(w.N)
	gemmRowsU8(dst, ldd, src, stepX, srcStride, m, &r, w, q)
}

// ConvRowsF32 computes [ConvRowF32] without a residual for r.Rows rows of outputs, placed as in [ConvRowsU8].
//
// The assembly levels compute a 3×3 convolution whose windows are one pixel apart by F(2×2, 3×3) of Lavin and Gray (2015), with 4 products
// instead of 9 for each result and channel. They need weights from [PackConvF32Squares] and w.Scratch(m) elements of scratch. The bound on
// the difference from the generic level then uses the terms of the transformed product.
func ConvRowsF32(dst []float32, ldd int, src []float32, stepX, srcStride, m int, r Rows, w *PackedF32, lo, hi float32, scratch []float32) {
	if m <= 0 || w.N == 0 || r.Rows <= 0 {
		return
	}
	checkBlock("dst", len(dst), r.Rows, r.DstStep, m, ldd, w.N)
	checkBlock("src", len(src), r.Rows, r.SrcStep, m, stepX, (w.Segs-1)*srcStride+w.Seg)
	convRowsF32(dst, ldd, src, stepX, srcStride, m, &r, w, lo, hi, scratch)
}

// GemvU16 sets dst[j] = bias[j] + Σ_k a[k]·w[j][k] exactly, in int64. a holds pooled
// features (sums of bytes), w int8 weights. bias may be nil. len(a) must be
// w.K, w.Segs must be 1, and w.K at most 65,536.
func GemvU16(dst []int64, a []uint16, w *PackedS8, bias []int32) {
	if w.Segs != 1 || len(a) != w.K || len(dst) < w.N || w.K > 1<<16 {
		panic("kernel: GemvU16 shapes")
	}
	if bias != nil && len(bias) < w.N {
		panic("kernel: bias shorter than N")
	}
	gemvU16(dst, a, w, bias)
}

// Depthwise describes where the rows and pixels of a depthwise convolution lie. Output y, x, c
// is at dst[y*DstStep + x*C + c]. Its window, which contains the padding, reads
//
//	src[y*SrcStep + ky*SrcStride + (x*StrideX + kx*DilationX)*C + c]
//
// All steps are in elements; negative steps panic.
type Depthwise struct {
	Rows      int // output rows
	Width     int // outputs in a row
	DstStep   int // between output rows
	SrcStep   int // between the windows of output rows: strideY input rows
	SrcStride int // between the input rows of a window: dilationY input rows
	StrideX   int // between the windows of neighbouring outputs, in pixels
	DilationX int // between the columns of a window, in pixels
}

// DepthwiseRowsF32 computes rows of a depthwise convolution: for each output,
//
//	clamp(bias[c] + Σ_{ky,kx} window(ky,kx)·w[c][ky][kx], lo, hi)
//
// One call for several rows reads each input row from the second-level cache only once.
func DepthwiseRowsF32(dst, src []float32, d Depthwise, w *DepthwiseF32, lo, hi float32) {
	if d.Rows <= 0 || d.Width <= 0 || w.C == 0 {
		return
	}
	d.check(len(dst), len(src), w.C, w.KH, w.KW)
	depthwiseF32(dst, src, &d, w, lo, hi)
}

// DepthwiseRowsU8 is DepthwiseRowsF32 in integers: it sums products of u8 inputs and s8
// weights in int32, then applies q. Padding holds the input's zero point, whose contribution is
// part of q.Bias.
func DepthwiseRowsU8(dst, src []uint8, d Depthwise, w *DepthwiseS8, q *Requant) {
	if d.Rows <= 0 || d.Width <= 0 || w.C == 0 {
		return
	}
	d.check(len(dst), len(src), w.C, w.KH, w.KW)
	q.check(w.C)
	depthwiseU8(dst, src, &d, w, q)
}

// AddU8 sets dst[i] to the residual add of y[i] and r[i] for every i < len(dst);
// p.R and p.LDR are ignored. dst may be y or r.
func AddU8(dst, y, r []uint8, p *Add) {
	p.check()
	addU8(dst, y[:len(dst)], r[:len(dst)], p)
}

// AddF32 sets dst[i] = a[i]+b[i] for every i < len(dst). dst may be a or b.
func AddF32(dst, a, b []float32) { addF32(dst, a[:len(dst)], b[:len(dst)]) }

// SumRowsU8 sets dst[c] = Σ_{i<rows} src[i*lds+c] for every c < len(dst), exactly
// (rows at most 2²⁴): the sums of a global average pool.
func SumRowsU8(dst []uint32, src []uint8, lds, rows int) {
	clear(dst)
	if rows <= 0 || len(dst) == 0 {
		return
	}
	checkRows("src", len(src), rows, lds, len(dst))
	sumRowsU8(dst, src, lds, rows)
}

// SumRowsF32 sets dst[c] = Σ_{i<rows} src[i*lds+c], summed in order of i from 0. The result has
// the same bits at every level.
func SumRowsF32(dst, src []float32, lds, rows int) {
	clear(dst)
	if rows <= 0 || len(dst) == 0 {
		return
	}
	checkRows("src", len(src), rows, lds, len(dst))
	sumRowsF32(dst, src, lds, rows)
}

// checkRows panics unless m rows of width elements, ld apart, lie within n elements.
func checkRows(name string, n, m, ld, width int) {
	if ld < 0 || width < 0 || width > n || (m > 1 && ld > 0 && m-1 > (n-width)/ld) {
		panic("kernel: " + name + " is too short for its shape")
	}
}

// checkBlock panics unless the given number of blocks lies within n elements. The blocks are step apart, and each has m rows as in
// checkRows.
func checkBlock(name string, n, rows, step, m, ld, width int) {
	if step < 0 || rows > 1 && step > 0 && rows-1 > n/step {
		panic("kernel: " + name + " is too short for its shape")
	}
	checkRows(name, n-(rows-1)*step, m, ld, width)
}

func (d *Depthwise) check(dst, src, c, kh, kw int) {
	if d.StrideX < 0 || d.DilationX < 0 || d.SrcStride < 0 {
		panic("kernel: Depthwise with a negative step")
	}
	checkRows("dst", dst, d.Rows, d.DstStep, d.Width*c)
	checkRows("src", src, d.Rows, d.SrcStep, (kh-1)*d.SrcStride+((d.Width-1)*d.StrideX+(kw-1)*d.DilationX+1)*c)
}

func (q *Requant) check(n int) {
	if len(q.Bias) < n || len(q.Scale) < n {
		panic("kernel: Requant has fewer channels than the weights")
	}
	if q.Zero < 0 || q.Zero > 255 || q.Lo > q.Hi {
		panic("kernel: Requant zero point or clamp out of range")
	}
}

func (p *Add) check() {
	if (p.ZeroY|p.ZeroR|p.Zero)&^255 != 0 || p.Lo > p.Hi {
		panic("kernel: Add zero point or clamp out of range")
	}
}
