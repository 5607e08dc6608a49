package nn

import (
	"fmt"
	"slices"
)

// value is a value of the network being compiled, and later a place in memory.
type value struct {
	typ   Type
	shape []int // (N, C, H, W) for rank four
	Levels

	// Where it lies, decided by place and lower.
	nhwc bool   // rank four, stored (N, H, W, C)
	halo [4]int // pixels around it: top, left, bottom, right; nhwc only
	same *value // shares this value's memory, nil: has its own
	id   int    // index into Session.mem, set once it has memory
}

// node is a node of the network being compiled.
type node struct {
	Node
	in    *value
	add   *value // what is added, nil: nothing
	out   *value
	slide window  // of a Conv
	parts []*node // of a block: convolutions in order
}

// graph is the network while it is compiled. Nodes stay in order.
type graph struct {
	nodes   []*node
	input   *value
	outputs []*value
}

// errorf names n in an error that wraps ErrUnsupported.
func (n *node) errorf(format string, args ...any) error {
	return fmt.Errorf("%s: %s: %w", n, fmt.Sprintf(format, args...), ErrUnsupported)
}

// String returns how errors and profiles call the node.
func (n *node) String() string { return fmt.Sprintf("%v to %v", n.Kind, n.out.shape) }

// load makes the graph of n.
func load(n *Network) *graph {
	values := make([]*value, len(n.values))
	for i, v := range n.values {
		values[i] = &value{typ: v.Type, shape: v.Shape, Levels: v.Levels, nhwc: len(v.Shape) == 4}
	}
	g := &graph{input: values[0]}
	for i, step := range n.nodes {
		made := &node{Node: step, in: values[step.Of-1], out: values[i+1]}
		if step.With != 0 {
			made.add = values[step.With-1]
		}
		if step.Kind == Conv {
			made.slide, _ = made.window() // Append checked it
		}
		g.nodes = append(g.nodes, made)
	}
	for _, o := range n.outputs {
		g.outputs = append(g.outputs, values[o.Of-1])
	}
	return g
}

// reads returns the values n needs.
func (n *node) reads() []*value {
	if n.add == nil {
		return []*value{n.in}
	}
	return []*value{n.in, n.add}
}

// sweep drops nodes that no output depends on.
func (g *graph) sweep() {
	needed := make(map[*value]bool)
	for _, v := range g.outputs {
		needed[v] = true
	}
	var keep []*node
	for _, n := range slices.Backward(g.nodes) {
		if !needed[n.out] {
			continue
		}
		for _, v := range n.reads() {
			needed[v] = true
		}
		keep = append(keep, n)
	}
	slices.Reverse(keep)
	g.nodes = keep
}

// readers counts the nodes that read each value; an output counts as one.
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
