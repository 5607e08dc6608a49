package main

import (
	"fmt"
	"math"

	"github.com/sightline-dev/sightline/core/predict/nn"
)

const maxInt8 = 127

// quantiseWeights returns the Conv or Gemm n with int8 weights, one scale for each output, and the bias as int32 in units of the products'
// scale. If bias is nil, it is the node's own. If some input could make a sum exceed 32 bits, it returns an error.
func (z *quantiser) quantiseWeights(n nn.Node, bias []float64) (nn.Node, error) {
	in, _ := z.to.Value(z.numbers[n.Of])
	outs := n.Shape[0]
	each := len(n.Weights) / outs
	node := nn.Node{
		Kind: n.Kind, Of: z.numbers[n.Of], Shape: n.Shape,
		Bytes: make([]int8, len(n.Weights)), Scales: make([]float32, outs), Offsets: make([]int32, outs),
	}
	for j := range outs {
		row, q := n.Weights[j*each:(j+1)*each], node.Bytes[j*each:(j+1)*each]
		b := float64(n.Bias[j])
		if bias != nil {
			b = bias[j]
		}
		s := weightScale(row, b, float64(in.Scale))
		for i, x := range row {
			q[i] = int8(math.RoundToEven(float64(x) / float64(s)))
		}
		node.Scales[j] = s
		node.Offsets[j] = int32(math.RoundToEven(b / float64(float32(in.Scale*s))))
		if err := fits32(q, node.Offsets[j], in.Zero, z.largest[n.Of]); err != nil {
			return node, err
		}
	}
	return node, nil
}

// fits32 returns an error unless the sum of every input up to largest fits an int32.
func fits32(w []int8, bias, zero int32, largest int64) error {
	low, high := int64(bias), int64(bias)
	for _, x := range w {
		a, b := int64(x)*-int64(zero), int64(x)*(largest-int64(zero))
		low, high = low+min(a, b), high+max(a, b)
	}
	if low < math.MinInt32 || high > math.MaxInt32 {
		return fmt.Errorf("sums from %d to %d need more than 32 bits", low, high)
	}
	return nil
}

// weightScale returns max |w| / 127, or more if the bias would exceed 2^30 steps of the products'
// scale: the weights of some channels are nearly zero.
func weightScale(row []float32, bias, in float64) float32 {
	largest := 0.0
	for _, x := range row {
		largest = max(largest, math.Abs(float64(x)))
	}
	s := max(largest/maxInt8, math.Abs(bias)/in/(1<<30))
	if s == 0 {
		s = 1
	}
	return float32(s)
}
