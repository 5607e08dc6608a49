package main

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/sightline-dev/sightline/core/predict/onnx"
)

const maxInt8 = 127

// linear stores weights of shape (out, …) as int8 with one scale for each output, and the bias as int32
// of the products' scale. It returns the names of both, dequantised. It is an error when some input
// could bring a sum over 32 bits.
func (z *quantiser) linear(name string, w []float32, shape []int, bias []float64, in levels) (weights, offsets string, err error) {
	out := len(bias)
	each := len(w) / out
	scales, products := make([]float32, out), make([]float32, out)
	q, b := make([]int8, len(w)), make([]int32, out)
	for j := range out {
		row := w[j*each : (j+1)*each]
		s := weightScale(row, bias[j], float64(in.scale))
		scales[j], products[j] = s, float32(in.scale*s)
		for i, x := range row {
			q[j*each+i] = int8(math.RoundToEven(float64(x) / float64(s)))
		}
		b[j] = int32(math.RoundToEven(bias[j] / float64(products[j])))
		if err := fits32(q[j*each:(j+1)*each], b[j], in); err != nil {
			return "", "", err
		}
	}
	z.constant(onnx.FromInt8s(name+"_w", shape, q))
	z.constant(onnx.FromFloat32s(name+"_w_scale", []int{out}, scales))
	z.constant(onnx.FromInt32s(name+"_b", []int{out}, b))
	z.constant(onnx.FromFloat32s(name+"_b_scale", []int{out}, products))
	axis := map[string]onnx.Attr{"axis": {Kind: onnx.AttrInt, I: 0}}
	for _, part := range []string{name + "_w", name + "_b"} {
		z.to.Nodes = append(z.to.Nodes, &onnx.Node{
			Name: part + "_dq", Op: "DequantizeLinear", In: []string{part, part + "_scale"}, Out: []string{part + "_f"}, Attr: axis,
		})
	}
	return name + "_w_f", name + "_b_f", nil
}

// fits32 holds the largest sum that any input can give within an int32.
func fits32(w []int8, bias int32, in levels) error {
	low, high := int64(bias), int64(bias)
	for _, x := range w {
		a, b := int64(x)*-int64(in.zero), int64(x)*(in.top-int64(in.zero))
		low, high = low+min(a, b), high+max(a, b)
	}
	if low < math.MinInt32 || high > math.MaxInt32 {
		return fmt.Errorf("sums from %d to %d need more than 32 bits", low, high)
	}
	return nil
}

// weightScale is max |w| / 127, but large enough that the bias keeps within 2^30 steps of the products'
// scale: some channels have next to no weights.
func weightScale(row []float32, bias, in float64) float32 {
	top := 0.0
	for _, x := range row {
		top = max(top, math.Abs(float64(x)))
	}
	s := max(top/maxInt8, math.Abs(bias)/in/(1<<30))
	if s == 0 {
		s = 1
	}
	return float32(s)
}

func (z *quantiser) constant(t *onnx.Tensor) { z.to.Init[t.Name] = t }

// store appends the QuantizeLinear of the value raw.
func (z *quantiser) store(raw string, l levels) {
	scale, zero := z.params(l)
	z.to.Nodes = append(z.to.Nodes, &onnx.Node{
		Name: l.name, Op: "QuantizeLinear", In: []string{raw, scale, zero}, Out: []string{l.name},
	})
}

// float returns the name of the stored value, dequantised.
func (z *quantiser) float(l levels) string {
	if name, ok := z.floated[l.name]; ok {
		return name
	}
	name := l.name + "_dq"
	scale, zero := z.params(l)
	z.to.Nodes = append(z.to.Nodes, &onnx.Node{
		Name: name, Op: "DequantizeLinear", In: []string{l.name, scale, zero}, Out: []string{name},
	})
	z.floated[l.name] = name
	return name
}

// params returns the names of scale and zero point.
func (z *quantiser) params(l levels) (scale, zero string) {
	scale, zero = l.name+"_scale", l.name+"_zero"
	if _, ok := z.to.Init[scale]; ok {
		return scale, zero
	}
	z.constant(onnx.FromFloat32s(scale, nil, []float32{l.scale}))
	data := binary.LittleEndian.AppendUint16(nil, uint16(l.zero))[:l.typ.Size()]
	z.constant(&onnx.Tensor{Name: zero, Type: l.typ, Shape: []int{}, Data: data})
	return scale, zero
}
