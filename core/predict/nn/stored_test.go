package nn_test

import (
	"fmt"
	"math"
	"slices"

	"github.com/sightline-dev/sightline/core/predict/nn"
	"github.com/sightline-dev/sightline/core/predict/onnx"
)

// stored is a quantised tensor: integers as the file has them, real = (q - zero)·scale.
type stored struct {
	name  string
	shape []int
	q     []int
	scale float32
	zero  int
	typ   onnx.DType
}

func (x stored) limits() (lo, hi int) {
	switch x.typ {
	case onnx.Int8:
		return -128, 127
	case onnx.Uint16:
		return 0, 65535
	}
	return 0, 255
}

// offsets returns q - zero as an array, exactly.
func (x stored) offsets() array {
	a := newArray(x.shape...)
	for i, q := range x.q {
		a.v[i] = float64(q - x.zero)
	}
	return a
}

// put returns zero + roundToEven(steps) within the limits of x.
func (x stored) put(steps float32) int {
	lo, hi := x.limits()
	return int(min(max(float64(x.zero)+math.RoundToEven(float64(steps)), float64(lo)), float64(hi)))
}

// quantise is ONNX's QuantizeLinear.
func (x stored) quantise(real float32) int { return x.put(real / x.scale) }

// tensor returns x as an input of the network.
func (x stored) tensor() nn.Tensor {
	in := nn.Tensor{Type: x.typ, Shape: x.shape}
	for _, q := range x.q {
		if x.typ == onnx.Int8 {
			in.I8 = append(in.I8, int8(q))
		} else {
			in.U8 = append(in.U8, uint8(q))
		}
	}
	return in
}

// same says where got is not exactly the integers of x, or "".
func (x stored) same(got nn.Tensor) string {
	at := func(i int) int { return int(got.U8[i]) }
	switch got.Type {
	case onnx.Int8:
		at = func(i int) int { return int(got.I8[i]) }
	case onnx.Uint16:
		at = func(i int) int { return int(got.U16[i]) }
	}
	if got.Type != x.typ || !slices.Equal(got.Shape, x.shape) {
		return fmt.Sprintf("%v %v, want %v %v", got.Type, got.Shape, x.typ, x.shape)
	}
	for i, want := range x.q {
		if at(i) != want {
			return fmt.Sprintf("element %d of %v is %d, want %d", i, x.shape, at(i), want)
		}
	}
	return ""
}
