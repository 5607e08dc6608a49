package nn_test

import (
	"math"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/predict/nn"
	"github.com/sightline-dev/sightline/core/predict/nn/kernel"
	"pgregory.net/rapid"
)

// intNet grows a random network of integers. values[i] is what the definition gives for value i+1 of the network.
type intNet struct {
	*nn.Network
	t      *rapid.T
	values []quantisedArray
}

func (f *intNet) int(lo, hi int, label string) int { return rapid.IntRange(lo, hi).Draw(f.t, label) }

func (f *intNet) last() (int, quantisedArray) { return len(f.values), f.values[len(f.values)-1] }

// operand draws the value that a convolution reads: the last one or any earlier one.
func (f *intNet) operand() int {
	if f.int(0, 2, "branch") == 0 {
		return f.int(1, len(f.values), "operand")
	}
	return len(f.values)
}

func (f *intNet) push(node nn.Node, x quantisedArray) {
	add(f.t, f.Network, node)
	f.values = append(f.values, x)
}

// drawLevels draws the levels of bytes that hold reals up to top in absolute value.
func drawLevels(t *rapid.T, top float64) nn.Quantisation {
	return nn.Quantisation{
		Scale: float32(max(top, 1e-3) / float64(rapid.IntRange(60, 250).Draw(t, "range"))),
		Zero:  int32(rapid.IntRange(0, 255).Draw(t, "zero")),
	}
}

func drawInts(t *rapid.T, n, lo, hi int, label string) []int {
	v := make([]int, n)
	for i, x := range drawFloats(t, n, label) {
		v[i] = lo + int((x+1)/2*float64(hi-lo+1))
	}
	return v
}

// weights fills node with weights, scales and offsets, and returns them as numbers.
func (f *intNet) weights(node *nn.Node) (w []float64, offsets []float64) {
	for _, x := range drawInts(f.t, size(node.Shape[:]), -128, 127, "weights") {
		node.Bytes, w = append(node.Bytes, int8(x)), append(w, float64(x))
	}
	for _, x := range drawInts(f.t, node.Shape[0], -9000, 9000, "bias") {
		node.Offsets, offsets = append(node.Offsets, int32(x)), append(offsets, float64(x))
	}
	for _, s := range drawFloats(f.t, node.Shape[0], "scales") {
		node.Scales = append(node.Scales, float32(0.002+0.001*s))
	}
	return w, offsets
}

func (f *intNet) conv() {
	of := f.operand()
	x := f.values[of-1]
	w := drawSlide(f.t, x.shape[2], x.shape[3], 3)
	var outs int
	w.group, outs = drawGroups(f.t, x.shape[1])
	f.convolution(of, w, outs, rapid.Bool().Draw(f.t, "residual"))
}

// convolution adds a Conv of a value. With a residual it adds the last value of its result's shape.
func (f *intNet) convolution(of int, w slide, outs int, residual bool) {
	x := f.values[of-1]
	node := w.conv(of, outs, x.shape[1])
	weights, offsets := f.weights(&node)
	acc := convolve(x.offsets(), array{node.Shape[:], weights}, offsets, w)
	plane := acc.shape[2] * acc.shape[3]
	var top float64
	for i, a := range acc.v {
		top = max(top, math.Abs(a*float64(x.Scale)*float64(node.Scales[i/plane%outs])))
	}
	y := quantisedArray{nn.Uint8, acc.shape, make([]int, len(acc.v)), drawLevels(f.t, top)}
	for i, a := range acc.v {
		m := float32(x.Scale*node.Scales[i/plane%outs]) / y.Scale
		y.q[i] = put(y.Quantisation, float32(float32(a)*m))
	}
	for i, v := range slices.Backward(f.values) {
		if residual && slices.Equal(v.shape, y.shape) {
			node.With, node.Before = i+1, y.Quantisation
			y = f.addValues(y, v)
			break
		}
	}
	node.To = y.Quantisation
	f.push(node, y)
}

// addValues returns the sum of a and b.
func (f *intNet) addValues(a, b quantisedArray) quantisedArray {
	y := quantisedArray{nn.Uint8, a.shape, make([]int, len(a.q)), drawLevels(f.t, 200*float64(max(a.Scale, b.Scale)))}
	ma, mb := float32(float64(a.Scale)/float64(y.Scale)), float32(float64(b.Scale)/float64(y.Scale))
	for i := range y.q {
		sum := float32(float32(a.q[i]-int(a.Zero))*ma) + float32(float32(b.q[i]-int(b.Zero))*mb)
		y.q[i] = put(y.Quantisation, sum)
	}
	return y
}

// invertedResidual adds an inverted residual: expand, depthwise, project, and perhaps the sum.
func (f *intNet) invertedResidual() {
	of := f.operand()
	x := f.values[of-1]
	first := point
	if f.int(0, 2, "dense") == 0 {
		first = drawSlide(f.t, x.shape[2], x.shape[3], 3)
	}
	f.convolution(of, first, f.int(2, 20, "wide"), false)
	number, wide := f.last()
	w := drawSlide(f.t, wide.shape[2], wide.shape[3], 3)
	w.group = wide.shape[1]
	f.convolution(number, w, w.group, false)
	f.convolution(number+1, point, x.shape[1], rapid.Bool().Draw(f.t, "residual"))
}

// full adds the block of MobileNetEdgeTPU: a full convolution that expands, a projection, and perhaps the sum.
func (f *intNet) full() {
	of := f.operand()
	x := f.values[of-1]
	f.convolution(of, drawSlide(f.t, x.shape[2], x.shape[3], 3), f.int(2, 20, "wide"), false)
	f.convolution(len(f.values), point, x.shape[1], rapid.Bool().Draw(f.t, "residual"))
}

// sum adds an earlier value to the last one.
func (f *intNet) sum() {
	number, x := f.last()
	k := f.int(0, len(f.values)-1, "operand")
	if !slices.Equal(f.values[k].shape, x.shape) {
		k = number - 1
	}
	y := f.addValues(x, f.values[k])
	f.push(nn.Node{Kind: nn.Add, Of: number, With: k + 1, To: y.Quantisation}, y)
}

// finish adds a pool with exact sums and a product, and returns the product's floats.
func (f *intNet) finish() []float32 {
	number, x := f.last()
	b, c, plane := x.shape[0], x.shape[1], x.shape[2]*x.shape[3]
	for plane > 257 {
		f.convolution(number, slide{1, 1, 3, 3, 1, 1, 0, 0, 0, 0, 1}, 3, false)
		number, x = f.last()
		c, plane = x.shape[1], x.shape[2]*x.shape[3]
	}
	sums := quantisedArray{nn.Uint16, []int{b, c, 1, 1}, make([]int, b*c), nn.Quantisation{
		Scale: float32(float64(x.Scale) / float64(plane)), Zero: x.Zero * int32(plane),
	}}
	for i, q := range x.q {
		sums.q[i/plane] += q
	}
	f.push(nn.Node{Kind: nn.Pool, Of: number}, sums)
	sums.shape = []int{b, c}
	f.push(nn.Node{Kind: nn.Flatten, Of: number + 1}, sums)
	outs := f.int(1, 20, "head")
	head := nn.Node{Kind: nn.Gemm, Of: number + 2, Shape: [4]int{outs, c, 1, 1}}
	w, offsets := f.weights(&head)
	out := make([]float32, b*outs)
	for i := range b {
		for j := range outs {
			acc := offsets[j]
			for k := range c {
				acc += float64(sums.q[i*c+k]-int(sums.Zero)) * w[j*c+k]
			}
			out[i*outs+j] = float32(acc) * float32(sums.Scale*head.Scales[j])
		}
	}
	give(f.t, f.Network, add(f.t, f.Network, head))
	for i := range f.values {
		if i >= len(f.values)-2 || rapid.Bool().Draw(f.t, "output") {
			give(f.t, f.Network, i+1)
		}
	}
	return out
}

func growIntNet(t *rapid.T) (*intNet, []float32) {
	x := quantisedArray{typ: nn.Uint8, shape: drawShape(t), Quantisation: drawLevels(t, 1)}
	x.q = drawInts(t, size(x.shape), 0, 255, "picture")
	f := &intNet{network(t, x.typ, x.Quantisation, x.shape...), t, []quantisedArray{x}}
	layers := []func(){f.invertedResidual, f.invertedResidual, f.full, f.full, f.conv, f.conv, f.conv, f.sum}
	for range f.int(1, 8, "layers") {
		rapid.SampledFrom(layers).Draw(t, "layer")()
	}
	return f, f.finish()
}

// picture returns x (N, C, H, W) in the layout that Run accepts.
func (x quantisedArray) picture() nn.Tensor {
	bytes := make([]uint8, len(x.q))
	for i, q := range x.q {
		bytes[i] = uint8(q)
	}
	s := x.shape
	return nn.Tensor{Type: nn.Uint8, Shape: []int{s[0], s[2], s[3], s[1]}, U8: toNHWC(bytes, s)}
}

// TestRandomIntegerNetworks compares whole random networks with the definition of each integer operation, byte for byte, at every kernel
// level of this machine.
func TestRandomIntegerNetworks(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f, logits := growIntNet(rt)
		read, options := again(rt, f.Network), drawOptions(rt)
		for level := range kernel.Levels.Each() {
			out, err := plan(rt, read, options).NewSession().Run(f.values[0].picture())
			if err != nil {
				rt.Fatal(err)
			}
			if !slices.Equal(out[0].F32, logits) {
				rt.Fatalf("%s: logits %v, want %v", level, out[0].F32, logits)
			}
			for i, o := range f.Outputs()[1:] {
				if d := f.values[o.Of-1].same(out[i+1]); d != "" {
					rt.Fatalf("%s: %s: %s", level, o.Name, d)
				}
			}
		}
	})
}
