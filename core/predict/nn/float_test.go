package nn_test

import (
	"math"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/predict/nn"
	"github.com/sightline-dev/sightline/core/predict/nn/kernel"
	"pgregory.net/rapid"
)

// floatNet grows a random float32 network. values[i] is the reference's result for value i+1 of the network.
type floatNet struct {
	*nn.Network
	t      *rapid.T
	values []array
}

func (f *floatNet) last() (int, array) { return len(f.values), f.values[len(f.values)-1] }

// operand draws the value that a convolution reads: the last one or any earlier one.
func (f *floatNet) operand() int {
	if f.int(0, 2, "branch") == 0 {
		return f.int(1, len(f.values), "operand")
	}
	return len(f.values)
}

func (f *floatNet) push(node nn.Node, v array) {
	add(f.t, f.Network, node)
	f.values = append(f.values, v)
}

func (f *floatNet) int(lo, hi int, label string) int { return rapid.IntRange(lo, hi).Draw(f.t, label) }

// bounds draws the bounds of a result.
func (f *floatNet) bounds() (lo, hi float64) {
	switch f.int(0, 3, "activation") {
	case 0:
		return 0, math.Inf(1)
	case 1:
		return -0.25, 1.5
	}
	return math.Inf(-1), math.Inf(1)
}

func (f *floatNet) conv() {
	of := f.operand()
	x := f.values[of-1]
	w := drawSlide(f.t, x.shape[2], x.shape[3], 4)
	var outs int
	w.group, outs = drawGroups(f.t, x.shape[1])
	lo, hi := f.bounds()
	f.convolution(of, w, outs, lo, hi, rapid.Bool().Draw(f.t, "residual"))
}

// convolution adds a Conv of a value. With a residual it adds the last value of its result's shape.
func (f *floatNet) convolution(of int, w slide, outs int, lo, hi float64, residual bool) {
	x := f.values[of-1]
	node := w.conv(of, outs, x.shape[1])
	weights := newArray(node.Shape[:]...)
	// Weights of this size keep results near one, so that a tolerance is meaningful.
	weights.v = drawFloats(f.t, len(weights.v), "weights")
	for i := range weights.v {
		weights.v[i] *= 4 / float64(len(weights.v)/outs+3)
	}
	bias := drawFloats(f.t, outs, "biases")
	y := convolve(x, weights, bias, w)
	for i, v := range slices.Backward(f.values) {
		if residual && slices.Equal(v.shape, y.shape) {
			node.With = i + 1
			for j := range y.v {
				y.v[j] += v.v[j]
			}
			break
		}
	}
	node.Weights, node.Bias = weights.float32s(), array{v: bias}.float32s()
	node.Lo, node.Hi = float32(lo), float32(hi)
	f.push(node, y.each(func(v float64) float64 { return min(max(v, lo), hi) }))
}

// invertedResidual adds an inverted residual: expand, depthwise, project, and the sum if the shapes allow it.
func (f *floatNet) invertedResidual() {
	of := f.operand()
	x := f.values[of-1]
	first := point
	if f.int(0, 2, "dense") == 0 {
		first = drawSlide(f.t, x.shape[2], x.shape[3], 3)
	}
	f.convolution(of, first, f.int(2, 20, "wide"), 0, 6, false)
	number, wide := f.last()
	w := drawSlide(f.t, wide.shape[2], wide.shape[3], 3)
	w.group = wide.shape[1]
	f.convolution(number, w, w.group, 0, 6, false)
	lo, hi := f.bounds()
	f.convolution(number+1, point, x.shape[1], lo, hi, rapid.Bool().Draw(f.t, "residual"))
}

// full adds a full convolution that expands, a projection, and the sum if the shapes allow it.
func (f *floatNet) full() {
	of := f.operand()
	x := f.values[of-1]
	f.convolution(of, drawSlide(f.t, x.shape[2], x.shape[3], 3), f.int(2, 20, "wide"), 0, 6, false)
	lo, hi := f.bounds()
	f.convolution(len(f.values), point, x.shape[1], lo, hi, rapid.Bool().Draw(f.t, "residual"))
}

// squares adds a 3×3 convolution that moves pixel by pixel. Its numbers of channels are multiples of 8, which kernels process completely.
func (f *floatNet) squares() {
	f.convolution(f.operand(), point, 8*f.int(1, 2, "channels"), 0, 6, false)
	number, _ := f.last()
	f.convolution(number, slide{3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 8*f.int(1, 2, "outs"), 0, 6, false)
}

// sum adds an earlier value to the last one.
func (f *floatNet) sum() {
	number, x := f.last()
	var fits []int
	for i, v := range f.values {
		if slices.Equal(v.shape, x.shape) {
			fits = append(fits, i)
		}
	}
	k := rapid.SampledFrom(fits).Draw(f.t, "operand")
	r := newArray(x.shape...)
	for i := range r.v {
		r.v[i] = f.values[k].v[i] + x.v[i]
	}
	f.push(nn.Node{Kind: nn.Add, Of: number, With: k + 1}, r)
}

// finish adds a head over the pixels, and makes some values outputs.
func (f *floatNet) finish() {
	number, x := f.last()
	b, c, plane := x.shape[0], x.shape[1], x.shape[2]*x.shape[3]
	mean := newArray(b, c, 1, 1)
	for i, v := range x.v {
		mean.v[i/plane] += v / float64(plane)
	}
	f.push(nn.Node{Kind: nn.Pool, Of: number}, mean)
	f.push(nn.Node{Kind: nn.Flatten, Of: number + 1}, array{[]int{b, c}, mean.v})
	outs := f.int(1, 30, "head")
	w, bias := drawFloats(f.t, outs*c, "head weights"), drawFloats(f.t, outs, "head bias")
	lo, hi := f.bounds()
	logits := newArray(b, outs)
	for i := range b {
		for j := range outs {
			sum := bias[j]
			for k := range c {
				sum += mean.v[i*c+k] * w[j*c+k]
			}
			logits.v[i*outs+j] = min(max(sum, lo), hi)
		}
	}
	f.push(nn.Node{
		Kind: nn.Gemm, Of: number + 2, Shape: [4]int{outs, c, 1, 1},
		Weights: array{v: w}.float32s(), Bias: array{v: bias}.float32s(), Lo: float32(lo), Hi: float32(hi),
	}, logits)
	// Some inner values are outputs too: later steps must not overwrite them.
	for i := range f.values {
		if i == len(f.values)-1 || rapid.Bool().Draw(f.t, "output") {
			give(f.t, f.Network, i+1)
		}
	}
}

func growFloatNet(t *rapid.T) *floatNet {
	x := newArray(drawShape(t)...)
	x.v = drawFloats(t, len(x.v), "picture")
	f := &floatNet{network(t, nn.Float32, nn.Quantisation{}, x.shape...), t, []array{x}}
	layers := []func(){f.invertedResidual, f.invertedResidual, f.full, f.full, f.conv, f.conv, f.conv, f.squares, f.sum}
	for range f.int(1, 8, "layers") {
		rapid.SampledFrom(layers).Draw(t, "layer")()
	}
	f.finish()
	return f
}

// TestRandomFloatNetworks compares whole random networks with direct loops over the nodes' definitions, at every kernel level of this
// machine.
func TestRandomFloatNetworks(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := growFloatNet(rt)
		read, options := again(rt, f.Network), drawOptions(rt)
		for level := range kernel.Levels.Each() {
			out, err := plan(rt, read, options).NewSession().Run(f.values[0].picture())
			if err != nil {
				rt.Fatal(err)
			}
			for i, o := range f.Outputs() {
				if d := differs(out[i], f.values[o.Of-1]); d != "" {
					rt.Fatalf("%s: %s: %s", level, o.Name, d)
				}
			}
		}
	})
}
