package nn

import (
	"fmt"
	"slices"
)

// value is a value of the network that is compiled. place and lower determine its memory.
type value struct {
	typ   Type
	shape []int // (N, C, H, W) for rank four
	Quantisation

	// The value's place in memory, set by place and lower.
	nhwc bool   // rank four, stored (N, H, W, C)
	halo [4]int // pixels around the value: top, left, bottom, right; nhwc only
	same *value // value whose memory this one shares; nil: it has its own memory
	id   int    // index in Session.mem, valid once the value has memory
}

// node is a node of the network that is compiled.
type node struct {
	Node
	in    *value
	add   *value // second operand of an Add, or residual of a Conv; nil: none
	out   *value
	slide window  // window of a Conv
	parts []*node // convolutions of a block, in order
}

// graph is the network while it is compiled. The nodes keep the order of the network.
type graph struct {
	nodes   []*node
	input   *value
	outputs []*value
}

// errorf returns an error that names n and wraps ErrUnsupported.
func (n *node) errorf(format string, args ...any) error {
	return fmt.Errorf("%s: %s: %w", n, fmt.Sprintf(format, args...), ErrUnsupported)
}

// String returns the name of the node in errors and profiles.
func (n *node) String() string { return fmt.Sprintf("%v to %v", n.Kind, n.out.shape) }

// load returns a new graph of n.
func load(n *Network) *graph {
	values := make([]*value, len(n.values))
	for i, v := range n.values {
		values[i] = &value{typ: v.Type, shape: v.Shape, Quantisation: v.Quantisation, nhwc: len(v.Shape) == 4}
	}
	g := &graph{input: values[0]}
	for i, step := range n.nodes {
		graphNode := &node{Node: step, in: values[step.Of-1], out: values[i+1]}
		if step.With != 0 {
			graphNode.add = values[step.With-1]
		}
		if step.Kind == Conv {
			graphNode.slide, _ = graphNode.window() // Append checked it
		}
		g.nodes = append(g.nodes, graphNode)
	}
	for _, o := range n.outputs {
		g.outputs = append(g.outputs, values[o.Of-1])
	}
	return g
}

// reads returns the operands of n.
func (n *node) reads() []*value {
	if n.add == nil {
		return []*value{n.in}
	}
	return []*value{n.in, n.add}
}

// sweep removes the nodes on which no output depends.
func (g *graph) sweep() {
	needed := make(map[*value]bool)
	for _, v := range g.outputs {
		needed[v] = true
	}
	var nodes []*node
	for _, n := range slices.Backward(g.nodes) {
		if !needed[n.out] {
			continue
		}
		for _, v := range n.reads() {
			needed[v] = true
		}
		nodes = append(nodes, n)
	}
	slices.Reverse(nodes)
	g.nodes = nodes
}

// readers returns the number of readers of each value. A node that reads the value counts as one, and so does an output of the network.
func (g *graph) readers() map[*value]int {
	count := make(map[*value]int)
	for _, n := range g.nodes {
		for _, v := range n.reads() {
			count[v]++
		}
	}
	for _, v := range g.outputs {
		count[v]++
	}
	return count
}
