// Package compile turns the graph of an ONNX file into a network of package nn.
//
//	onnx.Graph ──▶ steps that the outputs need, with activations and residuals fused ──▶ nn.Network, in float32
//
// It supports the operators of the networks that we bake and compare with: Conv, Clip, Relu, Add, GlobalAveragePool, Flatten, Gemm. An
// unknown attribute is an error, since it could change the meaning of the operator.
package compile

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/sightline-dev/sightline/core/predict/nn"
	"github.com/sightline-dev/sightline/models/onnx"
)

// ErrOperator is returned for an operator, or a use of one, that is not supported. The message names it.
var ErrOperator = errors.New("unsupported ONNX operator")

// attributes are the attributes that each operator may have.
var attributes = map[string][]string{
	"Conv":              {"kernel_shape", "strides", "dilations", "pads", "group"},
	"Clip":              {"min", "max"},
	"Relu":              {},
	"Add":               {},
	"GlobalAveragePool": {},
	"Flatten":           {"axis"},
	"Gemm":              {"alpha", "beta", "transA", "transB"},
}

// step is an operator with the operators that are fused into it.
type step struct {
	*onnx.Node
	out    string
	add    string // name of the residual of a Conv; "": none
	lo, hi float32
	clamps bool
}

// Network returns a network that computes the named outputs from the input of g.
func Network(g *onnx.Graph, outputs ...string) (*nn.Network, error) {
	c := &compiler{graph: g, numbers: map[string]int{g.Input: 1}}
	steps, err := c.fuse(outputs)
	if err != nil {
		return nil, err
	}
	if c.network, err = nn.NewNetwork(nn.Value{Name: g.Input, Type: nn.Float32, Shape: g.Shape}); err != nil {
		return nil, err
	}
	for _, s := range steps {
		node, err := c.node(s)
		if err == nil {
			c.numbers[s.out], err = c.network.Append(node)
		}
		if err != nil {
			return nil, fmt.Errorf("%v: %w", s.Node, err)
		}
	}
	for _, name := range outputs {
		if c.numbers[name] == 0 {
			return nil, fmt.Errorf("no output %q: %w", name, ErrOperator)
		}
		if err := c.network.AddOutput(name, c.numbers[name]); err != nil {
			return nil, err
		}
	}
	return c.network, nil
}

type compiler struct {
	graph   *onnx.Graph
	network *nn.Network
	numbers map[string]int // of values
}

// needed returns the nodes that the outputs depend on, and the number of readers of each value. An output counts as one reader.
func (c *compiler) needed(outputs []string) (nodes []*onnx.Node, readers map[string]int) {
	readers = map[string]int{}
	for _, name := range outputs {
		readers[name]++
	}
	for _, n := range slices.Backward(c.graph.Nodes) {
		if readers[n.Out] == 0 {
			continue
		}
		for _, name := range n.In {
			readers[name]++
		}
		nodes = append(nodes, n)
	}
	slices.Reverse(nodes)
	return nodes, readers
}

// fuse returns the steps that compute the outputs. A Conv or Gemm clamps its result itself, and a Conv adds a residual itself, if no
// other step reads its result.
func (c *compiler) fuse(outputs []string) ([]*step, error) {
	nodes, readers := c.needed(outputs)
	by := map[string]*step{}
	var steps []*step
	for _, n := range nodes {
		if err := checkOperator(n); err != nil {
			return nil, err
		}
		s := &step{Node: n, out: n.Out, lo: float32(math.Inf(-1)), hi: float32(math.Inf(1))}
		// absorbed returns the step that computes the named value if n can be fused into that step.
		absorbed := func(name string) *step {
			if p := by[name]; p != nil && readers[name] == 1 {
				return p
			}
			return nil
		}
		switch n.Op {
		case "Clip", "Relu":
			lo, hi, err := c.bounds(n)
			p := absorbed(n.Input(0))
			if err != nil || p == nil || p.Op != "Conv" && p.Op != "Gemm" {
				return nil, fmt.Errorf("%v: want constant bounds, behind a Conv or Gemm that nothing else reads: %w", n, ErrOperator)
			}
			if p.clamps {
				lo, hi = min(max(p.lo, lo), hi), max(min(p.hi, hi), lo)
			}
			p.clamps, p.lo, p.hi = true, lo, hi
			s = p
		case "Add":
			for k := range 2 {
				if p := absorbed(n.Input(k)); p != nil && c.residual(p) {
					p.add = n.Input(1 - k)
					s = p
					break
				}
			}
		}
		// The step now computes n's result, at n's place: its residual may be computed after its own operands.
		if s.out != n.Out {
			steps = slices.DeleteFunc(steps, func(o *step) bool { return o == s })
			s.out = n.Out
		}
		steps = append(steps, s)
		by[n.Out] = s
	}
	return steps, nil
}

// residual reports whether s can add a residual: a depthwise Conv cannot, and the sum must come before the clamp.
func (c *compiler) residual(s *step) bool {
	if s.Op != "Conv" || s.add != "" || s.clamps {
		return false
	}
	w := c.graph.Init[s.Input(1)]
	return w != nil && len(w.Shape) == 4 && (w.Shape[1] > 1 || onnx.Attr[int64](s.Node, "group", 1) == 1)
}

// checkOperator returns an error for an unknown operator or attribute.
func checkOperator(n *onnx.Node) error {
	names, ok := attributes[n.Op]
	if !ok {
		return fmt.Errorf("%v: %w", n, ErrOperator)
	}
	for name := range n.Attr {
		if !slices.Contains(names, name) {
			return fmt.Errorf("%v with attribute %q: %w", n, name, ErrOperator)
		}
	}
	return nil
}

// bounds returns the bounds to which the Relu or Clip n clamps: inputs, or attributes before operator set 11.
func (c *compiler) bounds(n *onnx.Node) (lo, hi float32, err error) {
	inf := float32(math.Inf(1))
	if n.Op == "Relu" {
		return 0, inf, nil
	}
	bound := func(i int, absent float32) float32 {
		if n.Input(i) == "" {
			return absent
		}
		if t := c.graph.Init[n.Input(i)]; t != nil && len(t.Floats) == 1 {
			return t.Floats[0]
		}
		err = ErrOperator
		return absent
	}
	lo, hi = bound(1, onnx.Attr(n, "min", -inf)), bound(2, onnx.Attr(n, "max", inf))
	return min(lo, hi), hi, err
}

// node returns the step s as a node of package nn.
func (c *compiler) node(s *step) (nn.Node, error) {
	n := nn.Node{Of: c.numbers[s.Input(0)], Lo: s.lo, Hi: s.hi}
	switch s.Op {
	case "Conv":
		n.Kind, n.With = nn.Conv, c.numbers[s.add]
		err := c.convolution(s, &n)
		return n, err
	case "Add":
		return nn.Node{Kind: nn.Add, Of: n.Of, With: c.numbers[s.Input(1)]}, nil
	case "GlobalAveragePool":
		return nn.Node{Kind: nn.Pool, Of: n.Of}, nil
	case "Flatten":
		if axis := onnx.Attr[int64](s.Node, "axis", 1); axis != 1 {
			return n, fmt.Errorf("axis %d: %w", axis, ErrOperator)
		}
		return nn.Node{Kind: nn.Flatten, Of: n.Of}, nil
	}
	w, bias, err := c.graph.Product(s.Node)
	if err != nil {
		return n, err
	}
	n.Kind, n.Shape, n.Weights, n.Bias = nn.Gemm, [4]int{w.Shape[0], w.Shape[1], 1, 1}, w.Floats, bias
	return n, nil
}

// convolution fills n from the Conv s.
func (c *compiler) convolution(s *step, n *nn.Node) error {
	w := c.graph.Init[s.Input(1)]
	if w == nil || len(w.Shape) != 4 {
		return fmt.Errorf("the weights are not a float32 constant of rank 4: %w", ErrOperator)
	}
	if s.add != "" && n.With == 0 {
		return fmt.Errorf("the residual %q is not computed: %w", s.add, ErrOperator)
	}
	var err error
	n.Shape, n.Weights = [4]int(w.Shape), w.Floats
	if n.Bias, err = c.graph.Bias(s.Node, w.Shape[0]); err != nil {
		return err
	}
	n.Group = int(onnx.Attr[int64](s.Node, "group", 1))
	for _, f := range []struct {
		name   string
		to     []int
		absent int64
	}{{"strides", n.Stride[:], 1}, {"dilations", n.Dilation[:], 1}, {"pads", n.Pad[:], 0}} {
		list := onnx.Attr(s.Node, f.name, slices.Repeat([]int64{f.absent}, len(f.to)))
		if len(list) != len(f.to) {
			return fmt.Errorf("%s %v: %w", f.name, list, ErrOperator)
		}
		for i, x := range list {
			f.to[i] = int(x)
		}
	}
	return nil
}
