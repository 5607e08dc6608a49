package nn

import (
	"math"

	"github.com/sightline-dev/sightline/core/predict/nn/kernel"
	"github.com/sightline-dev/sightline/core/predict/onnx"
)

// affine is a per-tensor quantisation: real = (stored - zero)·scale. For int8 stored and zero
// are shifted by 128, as the bytes are.
type affine struct {
	scale float32
	zero  int32
	typ   onnx.DType
}

// limits returns the smallest and largest stored value.
func (a affine) limits() (lo, hi int32) {
	switch a.typ {
	case onnx.Uint16:
		return 0, math.MaxUint16
	case onnx.Int16:
		return math.MinInt16, math.MaxInt16
	case onnx.Int32:
		return math.MinInt32, math.MaxInt32
	default:
		return 0, math.MaxUint8
	}
}

// quantise returns the stored value of x: saturate(zero + roundToEven(x/scale)), as ONNX's
// QuantizeLinear, with the quotient rounded to float32.
func (a affine) quantise(x float32) int32 {
	return a.saturate(math.RoundToEven(float64(x / a.scale)))
}

// saturate returns zero + x within the limits, for x already an integer. NaN becomes the zero point.
func (a affine) saturate(x float64) int32 {
	lo, hi := a.limits()
	x += float64(a.zero)
	switch {
	case x != x:
		return a.zero
	case x <= float64(lo):
		return lo
	case x >= float64(hi):
		return hi
	}
	return int32(x)
}

// real returns what stored means.
func (a affine) real(stored int32) float32 { return float32(stored-a.zero) * a.scale }

// quantised is what makes a node an integer one.
type quantised struct {
	in affine
	// Weights of Conv and Gemm.
	shape   []int     // (out, in, kh, kw)
	weights []int8    // shape
	wscale  []float32 // (out)
	bias    []int32   // (out) in steps of in·w, or nil

	out    *affine // nil: the result is float32
	lo, hi uint8   // clamp on the stored result
	add    *kernel.Add
	table  []uint8 // (256) of Table
}

// group returns the weights' scales and bias of group g alone.
func (q *quantised) group(g, outs int) *quantised {
	r := *q
	r.wscale, r.bias = slab(q.wscale, g, outs), slab(q.bias, g, outs)
	return &r
}

// scales returns in·w per output channel.
func (q *quantised) scales() []float32 {
	s := make([]float32, len(q.wscale))
	for j, w := range q.wscale {
		s[j] = q.in.scale * w
	}
	return s
}

// folded returns the bias with the share of the input's zero point, sum being Σw per channel.
func (q *quantised) folded(sum []int32) []int32 {
	b := make([]int32, len(sum))
	copy(b, q.bias)
	for j := range b {
		b[j] -= q.in.zero * sum[j]
	}
	return b
}

// requant returns how accumulators become the stored result. The scale is rounded twice, as ONNX
// Runtime does, so that its bytes are ours.
func (q *quantised) requant(sum []int32) *kernel.Requant {
	r := &kernel.Requant{Bias: q.folded(sum), Scale: make([]float32, len(q.wscale)), Zero: q.out.zero, Lo: q.lo, Hi: q.hi}
	for j, w := range q.wscale {
		r.Scale[j] = float32(q.in.scale*w) / q.out.scale
	}
	return r
}

// finite reports whether every channel's scale into out is a finite number.
func (q *quantised) finite(out affine) bool {
	for _, w := range q.wscale {
		if !finite(float32(q.in.scale*w) / out.scale) {
			return false
		}
	}
	return true
}

func finite(x float32) bool { return x-x == 0 }

// residual returns the add of two quantised tensors into a third.
func residual(y, r, out affine, lo, hi uint8) *kernel.Add {
	return &kernel.Add{
		ScaleY: float32(float64(y.scale) / float64(out.scale)), ZeroY: y.zero,
		ScaleR: float32(float64(r.scale) / float64(out.scale)), ZeroR: r.zero,
		Zero: out.zero, Lo: lo, Hi: hi,
	}
}

// affineOf returns the per-tensor parameters of a QuantizeLinear or DequantizeLinear whose
// quantised side is v. Others (per axis, in blocks, computed) have no integer form.
func (n *node) affineOf(v *value) (affine, bool) {
	scale, ok := scalarF32(n.input(1), 0)
	if !ok || !(scale > 0) || math.IsInf(float64(scale), 0) || n.attrInt("block_size", 0) != 0 {
		return affine{}, false
	}
	a := affine{scale: scale, typ: v.typ}
	if z := n.input(2); z != nil {
		zero, ok := ints(z)
		if !ok || len(zero) != 1 {
			return affine{}, false
		}
		a.zero = int32(zero[0])
	}
	if a.typ == onnx.Int8 {
		a.zero += 128
	}
	return a, true
}

// bytes reports whether a is stored as one byte.
func (a affine) bytes() bool { return a.typ == onnx.Uint8 || a.typ == onnx.Int8 }
