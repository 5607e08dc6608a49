package main

import (
	"fmt"
	"math"

	"github.com/sightline-dev/sightline/core/predict/nn"
)

// top is the largest byte.
const top = 255

// quantiser turns a network of floats into one of integers, node by node.
type quantiser struct {
	from    *nn.Network
	to      *nn.Network
	ranges  map[int]span  // by the number of a value in from
	readers map[int]int   // number of nodes that read a value of from
	numbers map[int]int   // number of each value in to, by its number in from
	sums    map[int]int   // number of the sum, by the number of the Conv whose result it adds to
	largest map[int]int64 // largest stored number of each value of from
}

// quantise returns from with integers, in the form that models/README.md specifies. The result has the named outputs.
func quantise(from *nn.Network, ranges map[int]span, outputs ...string) (*nn.Network, error) {
	in, _ := from.Value(1)
	// Bytes are stored as they are: p means (p - 128) / 127.5. The difference to the float32 network's p/127.5 - 1, a half step, is added
	// to the bias of the convolution that reads the input.
	in.Type, in.Quantisation = nn.Uint8, nn.Quantisation{Scale: 1 / 127.5, Zero: 128}
	to, err := nn.NewNetwork(in)
	if err != nil {
		return nil, err
	}
	z := &quantiser{from, to, ranges, map[int]int{}, map[int]int{1: 1}, map[int]int{}, map[int]int64{1: top}}
	for _, n := range from.Nodes() {
		z.readers[n.Of]++
		z.readers[n.With]++
	}
	z.pair()
	for i, n := range from.Nodes() {
		if err := z.node(i+2, n); err != nil {
			return nil, fmt.Errorf("%v %d: %w", n.Kind, i+2, err)
		}
	}
	for _, name := range outputs {
		if err := z.give(name); err != nil {
			return nil, err
		}
	}
	return to, nil
}

// give makes the value that from gives under a name an output of to.
func (z *quantiser) give(name string) error {
	for _, o := range z.from.Outputs() {
		if o.Name == name {
			return z.to.AddOutput(name, z.numbers[o.Of])
		}
	}
	return fmt.Errorf("the network has outputs %v, want %q", z.from.Outputs(), name)
}

// halfStep is the amount by which the float32 network's input exceeds ours: (p - 127.5)/127.5 - (p - 128)/127.5.
const halfStep = 0.5 / 127.5

// pair finds the sums that a convolution can add itself: no other node reads its result, and it is not depthwise.
func (z *quantiser) pair() {
	nodes := z.from.Nodes()
	for i, n := range nodes {
		if n.Kind != nn.Add {
			continue
		}
		for _, number := range []int{n.Of, n.With} {
			if number < 2 || z.readers[number] != 1 {
				continue
			}
			if p := nodes[number-2]; p.Kind == nn.Conv && (p.Group == 1 || p.Shape[1] > 1) {
				z.sums[number] = i + 2
				break
			}
		}
	}
}

// node adds the integer form of the value with a number in from, which the node n computes.
func (z *quantiser) node(number int, n nn.Node) (err error) {
	node := nn.Node{Kind: n.Kind, Of: z.numbers[n.Of]}
	z.largest[number] = top
	switch n.Kind {
	case nn.Conv:
		if n.With != 0 {
			return fmt.Errorf("its sum with a residual is not measured apart")
		}
		if z.sums[number] != 0 {
			return nil // the convolution is added with its sum
		}
		if node, err = z.conv(n); err == nil {
			node.To, err = z.levels(number, n)
		}
	case nn.Add:
		node, err = z.add(number, n)
	case nn.Pool:
		x, _ := z.from.Value(n.Of)
		z.largest[number] = int64(top * x.Shape[2] * x.Shape[3])
	case nn.Flatten:
		z.largest[number] = z.largest[n.Of]
	case nn.Gemm:
		if !math.IsInf(float64(n.Lo), -1) || !math.IsInf(float64(n.Hi), 1) {
			return fmt.Errorf("clipped products are not supported")
		}
		node, err = z.quantiseWeights(n, nil)
	}
	if err == nil {
		z.numbers[number], err = z.to.Append(node)
	}
	return err
}

// levels returns the levels with which a value is stored, by its number in from. The node n computes it.
func (z *quantiser) levels(number int, n nn.Node) (nn.Quantisation, error) {
	r, ok := z.ranges[number]
	if !ok {
		return nn.Quantisation{}, fmt.Errorf("no range for value %d", number)
	}
	if n.Kind == nn.Conv && (r.lo < n.Lo || r.hi > n.Hi) {
		return nn.Quantisation{}, fmt.Errorf("value %d is clipped to %v…%v but ranges over %v", number, n.Lo, n.Hi, r)
	}
	scale := float32((float64(r.hi) - float64(r.lo)) / top)
	return nn.Quantisation{Scale: scale, Zero: int32(math.RoundToEven(min(top, max(0, -float64(r.lo)/float64(scale)))))}, nil
}

// conv returns the convolution n with integers, without the levels of its result.
func (z *quantiser) conv(n nn.Node) (nn.Node, error) {
	bias := make([]float64, len(n.Bias))
	for i, b := range n.Bias {
		bias[i] = float64(b)
	}
	if n.Of == 1 {
		addHalfStep(bias, n.Weights)
	}
	node, err := z.quantiseWeights(n, bias)
	node.Group, node.Stride, node.Dilation, node.Pad = n.Group, n.Stride, n.Dilation, n.Pad
	return node, err
}

// addHalfStep adds, to each output's bias, the sum of the output's weights times the half step of the input.
func addHalfStep(bias []float64, w []float32) {
	each := len(w) / len(bias)
	for j := range bias {
		sum := 0.0
		for _, x := range w[j*each : (j+1)*each] {
			sum += float64(x)
		}
		bias[j] += float64(sum * halfStep)
	}
}

// add returns the sum n with integers. If the convolution of one of its operands waits for it, it is the sum of that convolution.
func (z *quantiser) add(number int, n nn.Node) (nn.Node, error) {
	to, err := z.levels(number, n)
	if err != nil {
		return n, err
	}
	for _, side := range [][2]int{{n.Of, n.With}, {n.With, n.Of}} {
		if z.sums[side[0]] != number {
			continue
		}
		p := z.from.Nodes()[side[0]-2]
		node, err := z.conv(p)
		if err != nil {
			return node, err
		}
		node.With, node.To = z.numbers[side[1]], to
		node.Before, err = z.levels(side[0], p)
		return node, err
	}
	return nn.Node{Kind: nn.Add, Of: z.numbers[n.Of], With: z.numbers[n.With], To: to}, nil
}
