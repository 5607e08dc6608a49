package nn

import (
	"fmt"
	"math"
	"slices"
)

// The limits of a network. [Options] limit its values and weights further.
const (
	maxNodes    = 1 << 12
	maxOutputs  = 1 << 8
	maxName     = 1 << 8  // bytes
	maxElements = 1 << 28 // of one value, so that products of dimensions do not overflow
)

// Quantisation describes how integers are stored: a stored number means (stored - Zero) · Scale. Floats have the zero value.
type Quantisation struct {
	Scale float32
	Zero  int32
}

// Value is an input, an intermediate result or an output of a network.
type Value struct {
	Name  string // set for inputs and outputs
	Type  Type
	Shape []int // (N, C, H, W), or (N, C) after Flatten
	Quantisation
}

// Kind is the operation of a node.
type Kind uint8

// Kinds of nodes. The operand's type selects the float or the integer form.
const (
	// Conv is a convolution, perhaps with a residual: floats to floats, or bytes to bytes.
	Conv Kind = 1 + iota
	// Add is the sum of two values of one shape: of floats, or of bytes.
	Add
	// Pool is the mean over the pixels, (N, C, H, W) to (N, C, 1, 1). For bytes it is their exact sum, in uint16.
	Pool
	// Flatten changes the shape (N, C, H, W) to (N, C·H·W).
	Flatten
	// Gemm is the product of rows with weights: floats to floats, or the sums of Pool to floats.
	Gemm
	tiled // convolutions that run together: see block.go
)

var kinds = [...]string{Conv: "Conv", Add: "Add", Pool: "Pool", Flatten: "Flatten", Gemm: "Gemm", tiled: "Block"}

func (k Kind) String() string {
	if int(k) < len(kinds) && k > 0 {
		return kinds[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Node is one step of a network. Numbers identify its operands: value 1 is the input, and node i, counted from 0, computes value i+2.
type Node struct {
	Kind Kind
	Of   int // number of the operand
	With int // number of the second operand: of an Add, or the residual of a Conv; 0: none

	// Conv: rows, then columns; the padding is top, left, bottom, right.
	Group            int
	Stride, Dilation [2]int
	Pad              [4]int

	// Conv and Gemm.
	Shape [4]int // of the weights: outputs, inputs of a group, rows, columns; a Gemm has 1 row and 1 column

	// Conv and Gemm of floats. Lo and Hi may be infinite.
	Weights []float32
	Bias    []float32 // one for each output
	Lo, Hi  float32   // bounds of the result, after the residual was added

	// Conv and Gemm of integers.
	Bytes   []int8
	Scales  []float32 // of the weights, one for each output
	Offsets []int32   // the bias of each output in steps of its scale times the operand's

	To     Quantisation // of the result of a Conv or Add of bytes
	Before Quantisation // of a Conv of bytes with a residual: levels of the convolution's result before the sum
}

// Output is a value that a network gives.
type Output struct {
	Name string
	Of   int // number of the value
}

// Network is a list of nodes that fit together. Build one with NewNetwork, Append and AddOutput, or with Read.
type Network struct {
	nodes   []Node
	values  []Value // at index number - 1
	outputs []Output
}

// NewNetwork returns a network without nodes that takes input, which is float32 or uint8.
func NewNetwork(input Value) (*Network, error) {
	n := &Network{values: []Value{input}}
	switch {
	case len(input.Name) > maxName:
		return nil, fmt.Errorf("input name of %d bytes, at most %d: %w", len(input.Name), maxName, ErrFormat)
	case input.Type != Float32 && input.Type != Uint8:
		return nil, fmt.Errorf("input of %v: %w", input.Type, ErrFormat)
	case len(input.Shape) != 4 || !isValidShape(input.Shape):
		return nil, fmt.Errorf("input of shape %v: %w", input.Shape, ErrFormat)
	case !input.fits(input.Type):
		return nil, fmt.Errorf("input of %v with levels %+v: %w", input.Type, input.Quantisation, ErrFormat)
	}
	return n, nil
}

// Nodes returns the nodes. The caller must not change them.
func (n *Network) Nodes() []Node { return n.nodes }

// Outputs returns the network's outputs. The caller must not change them.
func (n *Network) Outputs() []Output { return n.outputs }

// Value returns the value with the given number, and false if there is none.
func (n *Network) Value(number int) (Value, bool) {
	if number < 1 || number > len(n.values) {
		return Value{}, false
	}
	return n.values[number-1], true
}

// Append adds a node and returns the number of its result. The network keeps the node's slices. It returns ErrFormat for a node
// that does not fit its operands.
func (n *Network) Append(node Node) (int, error) {
	if len(n.nodes) == maxNodes {
		return 0, fmt.Errorf("more than %d nodes: %w", maxNodes, ErrFormat)
	}
	v, err := n.result(&node)
	if err != nil {
		return 0, fmt.Errorf("node %d (%v): %w: %w", len(n.nodes), node.Kind, ErrFormat, err)
	}
	n.nodes, n.values = append(n.nodes, node), append(n.values, v)
	return len(n.values), nil
}

// AddOutput makes the value with the given number an output.
func (n *Network) AddOutput(name string, number int) error {
	_, ok := n.Value(number)
	switch {
	case len(n.outputs) == maxOutputs:
		return fmt.Errorf("more than %d outputs: %w", maxOutputs, ErrFormat)
	case len(name) > maxName:
		return fmt.Errorf("output name of %d bytes, at most %d: %w", len(name), maxName, ErrFormat)
	case !ok:
		return fmt.Errorf("output %q is value %d of %d: %w", name, number, len(n.values), ErrFormat)
	}
	n.outputs = append(n.outputs, Output{name, number})
	return nil
}

// isValidShape reports whether a shape has no empty dimension and at most maxElements elements.
func isValidShape(shape []int) bool {
	total := 1
	for _, d := range shape {
		if d < 1 || d > maxElements/total {
			return false
		}
		total *= d
	}
	return true
}

// fits reports whether l are valid levels for values of type t. Floats must have the zero value.
func (l Quantisation) fits(t Type) bool {
	if t == Float32 {
		return l == Quantisation{}
	}
	return positive(l.Scale) && l.Zero >= 0 && l.Zero <= math.MaxUint8
}

func positive(x float32) bool { return x > 0 && x <= math.MaxFloat32 }

// finite does not test x-x == 0: where x is a product, arm64 may compute that as one multiply-subtract, which is not 0.
func finite(x float32) bool { return math.Abs(float64(x)) <= math.MaxFloat32 }

// result checks a node and returns the value that it computes.
func (n *Network) result(node *Node) (Value, error) {
	x, ok := n.Value(node.Of)
	if !ok {
		return Value{}, fmt.Errorf("operand %d of %d", node.Of, len(n.values))
	}
	var with *Value
	if node.With != 0 {
		v, ok := n.Value(node.With)
		if !ok || node.Kind != Conv && node.Kind != Add {
			return Value{}, fmt.Errorf("second operand %d of %d", node.With, len(n.values))
		}
		with = &v
	}
	out := Value{Type: x.Type, Quantisation: node.To}
	var err error
	switch node.Kind {
	case Conv:
		err = node.convolve(x, with, &out)
	case Add:
		err = node.sum(x, with, &out)
	case Pool:
		err = mean(x, &out)
	case Flatten:
		if len(x.Shape) != 4 {
			return Value{}, fmt.Errorf("operand of shape %v", x.Shape)
		}
		out.Shape, out.Quantisation = []int{x.Shape[0], volume(x.Shape[1:])}, x.Quantisation
	case Gemm:
		err = node.multiply(x, &out)
	default:
		return Value{}, fmt.Errorf("unknown kind %d", uint8(node.Kind))
	}
	if err == nil && !isValidShape(out.Shape) {
		err = fmt.Errorf("result of shape %v", out.Shape)
	}
	return out, err
}

// convolve checks a Conv of x and sets its result.
func (n *Node) convolve(x Value, with *Value, out *Value) error {
	if len(x.Shape) != 4 || x.Type != Float32 && x.Type != Uint8 {
		return fmt.Errorf("operand of %v %v", x.Type, x.Shape)
	}
	w, err := n.window()
	if err != nil {
		return err
	}
	if n.Shape[0]%w.group != 0 || int64(n.Shape[1])*int64(w.group) != int64(x.Shape[1]) {
		return fmt.Errorf("weights %v in %d groups for %d channels", n.Shape, w.group, x.Shape[1])
	}
	h := x.Shape[2] + w.pt + w.pb - (w.kh-1)*w.dh - 1
	width := x.Shape[3] + w.pl + w.pr - (w.kw-1)*w.dw - 1
	if h < 0 || width < 0 {
		return fmt.Errorf("window of %v with dilation %v over %v", n.Shape, n.Dilation, x.Shape)
	}
	out.Shape = []int{x.Shape[0], n.Shape[0], h/w.sh + 1, width/w.sw + 1}
	if err := n.checkWeights(x); err != nil {
		return err
	}
	if with != nil && (with.Type != x.Type || !slices.Equal(with.Shape, out.Shape)) {
		return fmt.Errorf("residual of %v %v to %v %v", with.Type, with.Shape, x.Type, out.Shape)
	}
	if x.Type == Float32 {
		return nil
	}
	if !n.To.fits(Uint8) || with != nil && !n.Before.fits(Uint8) {
		return fmt.Errorf("levels %+v, before the sum %+v", n.To, n.Before)
	}
	for _, s := range requantScales(x.Quantisation, n.Scales, n.product()) {
		if !finite(s) {
			return fmt.Errorf("scales %v to %v", x.Scale, n.product().Scale)
		}
	}
	if with != nil {
		return sumFits(n.Before, with.Quantisation, n.To)
	}
	return nil
}

// product returns the levels of a Conv's result before a residual is added.
func (n *Node) product() Quantisation {
	if n.With != 0 {
		return n.Before
	}
	return n.To
}

// sum checks an Add of x and another value and sets its result.
func (n *Node) sum(x Value, with *Value, out *Value) error {
	if with == nil || with.Type != x.Type || x.Type == Uint16 || len(x.Shape) != 4 || !slices.Equal(with.Shape, x.Shape) {
		return fmt.Errorf("operands of %v %v and %v", x.Type, x.Shape, with)
	}
	out.Shape = x.Shape
	if !n.To.fits(x.Type) {
		return fmt.Errorf("levels %+v of %v", n.To, x.Type)
	}
	if x.Type == Float32 {
		return nil
	}
	return sumFits(x.Quantisation, with.Quantisation, n.To)
}

// sumFits checks that a sum of a and b can be stored as to: neither part may be infinite, since ∞ - ∞ has other bytes at each kernel level.
func sumFits(a, b, to Quantisation) error {
	if add := residual(a, b, to); !finite(math.MaxUint8*add.ScaleY) || !finite(math.MaxUint8*add.ScaleR) {
		return fmt.Errorf("scales %v and %v to %v", a.Scale, b.Scale, to.Scale)
	}
	return nil
}

// mean checks a Pool of x and sets its result.
func mean(x Value, out *Value) error {
	if len(x.Shape) != 4 || x.Type == Uint16 {
		return fmt.Errorf("operand of %v %v", x.Type, x.Shape)
	}
	area := x.Shape[2] * x.Shape[3]
	out.Shape, out.Quantisation = []int{x.Shape[0], x.Shape[1], 1, 1}, Quantisation{}
	if x.Type == Float32 {
		return nil
	}
	if area > math.MaxUint16/math.MaxUint8 {
		return fmt.Errorf("a sum of %d bytes needs more than 16 bits", area)
	}
	out.Type = Uint16
	out.Quantisation = Quantisation{float32(float64(x.Scale) / float64(area)), x.Zero * int32(area)}
	return nil
}

// multiply checks a Gemm of x and sets its result.
func (n *Node) multiply(x Value, out *Value) error {
	if len(x.Shape) != 2 || x.Type == Uint8 {
		return fmt.Errorf("operand of %v %v", x.Type, x.Shape)
	}
	if n.Shape[1] != x.Shape[1] || n.Shape[2] != 1 || n.Shape[3] != 1 {
		return fmt.Errorf("weights %v for rows of %d", n.Shape, x.Shape[1])
	}
	out.Type, out.Shape, out.Quantisation = Float32, []int{x.Shape[0], n.Shape[0]}, Quantisation{}
	return n.checkWeights(x)
}

// checkWeights checks the weights of a Conv or Gemm of x.
func (n *Node) checkWeights(x Value) error {
	if !isValidShape(n.Shape[:]) {
		return fmt.Errorf("weights of shape %v", n.Shape)
	}
	total, outs := volume(n.Shape[:]), n.Shape[0]
	if x.Type == Float32 {
		if len(n.Weights) != total || len(n.Bias) != outs || !(n.Lo <= n.Hi) {
			return fmt.Errorf("%d weights of shape %v, %d biases, bounds %v to %v", len(n.Weights), n.Shape, len(n.Bias), n.Lo, n.Hi)
		}
		return nil
	}
	if len(n.Bytes) != total || len(n.Scales) != outs || len(n.Offsets) != outs {
		return fmt.Errorf("%d weights of shape %v, %d scales, %d offsets", len(n.Bytes), n.Shape, len(n.Scales), len(n.Offsets))
	}
	if i := slices.IndexFunc(n.Scales, func(s float32) bool { return !positive(s) }); i >= 0 {
		return fmt.Errorf("scale %v of output %d", n.Scales[i], i)
	}
	return nil
}
