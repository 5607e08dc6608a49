package nn_test

import (
	"fmt"
	"math"
	"slices"

	"github.com/sightline-dev/sightline/core/predict/nn"
)

// quantisedArray is a value of integers.
type quantisedArray struct {
	typ   nn.Type
	shape []int
	q     []int
	nn.Quantisation
}

// offsets returns q - zero as an array, exactly.
func (x quantisedArray) offsets() array {
	a := newArray(x.shape...)
	for i, q := range x.q {
		a.v[i] = float64(q - int(x.Zero))
	}
	return a
}

// put returns zero + roundToEven(steps) as a byte of levels l, limited to 0…255.
func put(l nn.Quantisation, steps float32) int {
	return int(min(max(float64(l.Zero)+math.RoundToEven(float64(steps)), 0), 255))
}

// same describes where got differs from the integers of x, or returns "".
func (x quantisedArray) same(got nn.Tensor) string {
	if got.Type != x.typ || !slices.Equal(got.Shape, x.shape) {
		return fmt.Sprintf("%v %v, want %v %v", got.Type, got.Shape, x.typ, x.shape)
	}
	for i, want := range x.q {
		at := 0
		if x.typ == nn.Uint16 {
			at = int(got.U16[i])
		} else {
			at = int(got.U8[i])
		}
		if at != want {
			return fmt.Sprintf("element %d of %v is %d, want %d", i, x.shape, at, want)
		}
	}
	return ""
}
