package nn

import (
	"math"
	"slices"

	"github.com/sightline-dev/sightline/core/predict/onnx"
)

// roundToEven rounds steps to an integer, halves to even.
func roundToEven(x float32) float64 { return math.RoundToEven(float64(x)) }

// channels are the parameters of a QuantizeLinear or DequantizeLinear that stands alone: one
// affine per index along axis, or one for all.
type channels struct {
	each []affine
	axis int
}

// channels reads n's parameters for quantised side v.
func (n *node) channels(v *value) (channels, error) {
	none := channels{}
	scale := n.in[1].con
	if scale == nil || scale.Type != onnx.Float32 || n.attrInt("block_size", 0) != 0 {
		return none, n.errorf("scale is computed, in blocks, or not float32")
	}
	zeros := make([]int64, scale.Len())
	if z := n.input(2); z != nil {
		var ok bool
		if zeros, ok = ints(z); !ok || len(zeros) != scale.Len() {
			return none, n.errorf("zero point is computed or of another length")
		}
	}
	switch v.typ {
	case onnx.Uint8, onnx.Int8, onnx.Uint16, onnx.Int16, onnx.Int32:
	default:
		return none, n.errorf("type %v", v.typ)
	}
	ch := channels{axis: n.axis(n.attrInt("axis", 1), len(v.shape))}
	for j, s := range scale.Float32s() {
		a := affine{scale: s, zero: int32(zeros[j]), typ: v.typ}
		if v.typ == onnx.Int8 {
			a.zero += 128
		}
		ch.each = append(ch.each, a)
	}
	if len(ch.each) > 1 && (ch.axis >= len(v.shape) || v.shape[ch.axis] != len(ch.each)) {
		return none, n.errorf("%d scales along axis %d of %v", len(ch.each), ch.axis, v.shape)
	}
	return ch, nil
}

// eachChannel emits one step per index along the axis: few, as only constants, already folded
// away, have many.
func (c *compiler) eachChannel(n *node, ch channels, out, x *value, run func(s *Session, a affine, t *nest, dst, src int)) {
	shape := slices.Clone(out.shape)
	var stOut, stIn int
	if len(ch.each) > 1 {
		shape[ch.axis] = 1
		stOut, stIn = out.strides()[ch.axis], x.strides()[ch.axis]
	}
	t := newNest(shape, out.strides(), x.strides())
	c.emit(step{name: n.String(), out: []*value{out}, in: []*value{x}, run: func(s *Session) {
		for j, a := range ch.each {
			run(s, a, t, out.base()+j*stOut, x.base()+j*stIn)
		}
	}})
}

// dequantizeLinear lowers a DequantizeLinear that no integer operator took in.
func (c *compiler) dequantizeLinear(n *node) error {
	x, out := n.in[0], n.out[0]
	ch, err := n.channels(x)
	if err != nil {
		return err
	}
	if out.typ != onnx.Float32 {
		return n.errorf("result of type %v", out.typ)
	}
	c.eachChannel(n, ch, out, x, func(s *Session, a affine, t *nest, d, i int) {
		dst := data[float32](s, out)
		switch a.typ {
		case onnx.Uint16:
			dequantise(a, t, dst, data[uint16](s, x), d, i)
		case onnx.Int16:
			dequantise(a, t, dst, data[int16](s, x), d, i)
		case onnx.Int32:
			dequantise(a, t, dst, data[int32](s, x), d, i)
		default:
			dequantise(a, t, dst, data[uint8](s, x), d, i)
		}
	})
	return nil
}

func dequantise[T uint8 | uint16 | int16 | int32](a affine, t *nest, dst []float32, src []T, d, i int) {
	n, st := t.inner()
	for k := t.start(d, i); !k.done; t.next(&k) {
		d, i := k.off[0], k.off[1]
		for range n {
			dst[d] = float32(int32(src[i])-a.zero) * a.scale
			d += st[0]
			i += st[1]
		}
	}
}

// quantizeLinear lowers a QuantizeLinear that no integer operator took in.
func (c *compiler) quantizeLinear(n *node) error {
	x, out := n.in[0], n.out[0]
	ch, err := n.channels(out)
	if err != nil {
		return err
	}
	if !floats(x) || out.typ == onnx.Int32 {
		return n.errorf("from %v to %v", x.typ, out.typ)
	}
	c.eachChannel(n, ch, out, x, func(s *Session, a affine, t *nest, d, i int) {
		src := data[float32](s, x)
		switch a.typ {
		case onnx.Uint16:
			quantise(a, t, data[uint16](s, out), src, d, i)
		case onnx.Int16:
			quantise(a, t, data[int16](s, out), src, d, i)
		default:
			quantise(a, t, data[uint8](s, out), src, d, i)
		}
	})
	return nil
}

func quantise[T uint8 | uint16 | int16](a affine, t *nest, dst []T, src []float32, d, i int) {
	n, st := t.inner()
	for k := t.start(d, i); !k.done; t.next(&k) {
		d, i := k.off[0], k.off[1]
		for range n {
			dst[d] = T(a.quantise(src[i]))
			d += st[0]
			i += st[1]
		}
	}
}
