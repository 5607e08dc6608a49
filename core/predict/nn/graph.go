package nn

import (
	"fmt"
	"slices"

	"github.com/sightline-dev/sightline/core/predict/onnx"
)

// value is an edge of the graph being compiled, and later a place in memory.
type value struct {
	name  string
	typ   onnx.DType
	shape []int // as in ONNX; (N, C, H, W) for rank four

	con *onnx.Tensor // its content, where constant

	// Where it lies, decided by place and lower.
	nhwc bool   // rank four, stored (N, H, W, C)
	halo [4]int // pixels around it: top, left, bottom, right; nhwc only
	fill byte   // what the halo holds, for uint8: the zero point. 0 for floats
	same *value // shares this value's memory, nil: has its own
	id   int    // index into Session.mem, set once it has memory
}

// node is an operator of the graph being compiled. src is nil for one that a rewrite made.
type node struct {
	op    string
	src   *onnx.Node // attributes and name
	in    []*value   // nil: absent
	out   []*value
	fuse  fused
	q     *quantised // set on integer operators
	parts []*node    // of a Block: convolutions in order
}

// fused is what a Conv or Gemm does to its result before it is stored.
type fused struct {
	weights []float32 // replaces in[1]: batch norm folded in, or (out, in) of a Gemm
	shape   []int     // of weights as (out, in, kh, kw), nil: in[1]'s
	bias    []float32 // replaces in[2]
	act     bool      // clamp to lo, hi
	lo, hi  float32
	add     *value // residual, same shape as the result, added before the clamp
}

// graph is the network while passes rewrite it. Nodes stay topologically ordered.
type graph struct {
	opset   int
	nodes   []*node
	inputs  []*value
	outputs []*value
	values  map[string]*value
}

// errorf names n in an error that wraps ErrUnsupported.
func (n *node) errorf(format string, args ...any) error {
	return fmt.Errorf("%s: %s: %w", n, fmt.Sprintf(format, args...), ErrUnsupported)
}

// String returns how errors and profiles call the node.
func (n *node) String() string {
	name := n.out[0].name
	if n.src != nil && n.src.Name != "" {
		name = n.src.Name
	}
	return fmt.Sprintf("node %q (%s)", name, n.op)
}

// input returns in[i], or nil where it is absent.
func (n *node) input(i int) *value {
	if i < len(n.in) {
		return n.in[i]
	}
	return nil
}

func (n *node) attrInt(name string, absent int64) int {
	if n.src == nil {
		return int(absent)
	}
	return int(n.src.Int(name, absent))
}

func (n *node) attrFloat(name string, absent float32) float32 {
	if n.src == nil {
		return absent
	}
	return n.src.Float(name, absent)
}

func (n *node) attrInts(name string) []int64 {
	if n.src == nil {
		return nil
	}
	return n.src.Ints(name, nil)
}

func (n *node) attrText(name, absent string) string {
	if n.src == nil {
		return absent
	}
	return n.src.Text(name, absent)
}

// load builds the graph from g, whose values have the types and shapes of infer.
func load(g *onnx.Graph, infer map[string]onnx.Value) (*graph, error) {
	r := &graph{opset: g.Opset, values: make(map[string]*value)}
	get := func(name string) (*value, error) {
		if name == "" {
			return nil, nil
		}
		if v := r.values[name]; v != nil {
			return v, nil
		}
		v := &value{name: name}
		if t := g.Init[name]; t != nil {
			v.typ, v.shape, v.con = t.Type, t.Shape, t
		} else if i, ok := infer[name]; ok {
			v.typ, v.shape = i.Type, i.Shape
		} else {
			return nil, fmt.Errorf("value %q: %w", name, onnx.ErrShape)
		}
		r.values[name] = v
		return v, nil
	}
	all := func(names []string) ([]*value, error) {
		vs := make([]*value, len(names))
		for i, name := range names {
			v, err := get(name)
			if err != nil {
				return nil, err
			}
			vs[i] = v
		}
		return vs, nil
	}
	for _, n := range g.Nodes {
		in, err := all(n.In)
		if err != nil {
			return nil, err
		}
		out, err := all(n.Out)
		if err != nil {
			return nil, err
		}
		r.nodes = append(r.nodes, &node{op: n.Op, src: n, in: in, out: out})
	}
	for _, side := range []struct {
		from []onnx.Value
		to   *[]*value
	}{{g.Inputs, &r.inputs}, {g.Outputs, &r.outputs}} {
		for _, x := range side.from {
			v, err := get(x.Name)
			if err != nil {
				return nil, err
			}
			*side.to = append(*side.to, v)
		}
	}
	return r, nil
}

// producers maps every value to the node that computes it.
func (g *graph) producers() map[*value]*node {
	p := make(map[*value]*node)
	for _, n := range g.nodes {
		for _, v := range n.out {
			if v != nil {
				p[v] = n
			}
		}
	}
	return p
}

// users maps every value to the nodes that read it; a graph output counts a nil node.
func (g *graph) users() map[*value][]*node {
	u := make(map[*value][]*node)
	for _, n := range g.nodes {
		for _, v := range n.reads() {
			u[v] = append(u[v], n)
		}
	}
	for _, v := range g.outputs {
		u[v] = append(u[v], nil)
	}
	return u
}

// reads returns the values n needs, the residual included.
func (n *node) reads() []*value {
	var r []*value
	for _, v := range n.in {
		if v != nil {
			r = append(r, v)
		}
	}
	if n.fuse.add != nil {
		r = append(r, n.fuse.add)
	}
	return r
}

// sweep drops nodes that no output depends on, or whose results are constants by now.
func (g *graph) sweep() {
	needed := make(map[*value]bool)
	for _, v := range g.outputs {
		needed[v] = v.con == nil
	}
	keep := g.nodes[:0:0]
	for _, n := range slices.Backward(g.nodes) {
		if !slices.ContainsFunc(n.out, func(v *value) bool { return needed[v] }) {
			continue
		}
		for _, v := range n.reads() {
			needed[v] = v.con == nil
		}
		keep = append(keep, n)
	}
	slices.Reverse(keep)
	g.nodes = keep
}

// replace makes every reader of old read v instead.
func (g *graph) replace(old, v *value) {
	for _, n := range g.nodes {
		for i := range n.in {
			if n.in[i] == old {
				n.in[i] = v
			}
		}
		if n.fuse.add == old {
			n.fuse.add = v
		}
	}
	for i := range g.outputs {
		if g.outputs[i] == old {
			g.outputs[i] = v
		}
	}
}

// scalarF32 returns the only element of constant v, or absent where v is nil.
func scalarF32(v *value, absent float32) (float32, bool) {
	if v == nil {
		return absent, true
	}
	if v.con == nil || v.con.Len() != 1 || v.typ != onnx.Float32 {
		return 0, false
	}
	return v.con.Float32s()[0], true
}

// ints returns the integers of constant v.
func ints(v *value) ([]int64, bool) {
	if v == nil || v.con == nil {
		return nil, false
	}
	s := v.con.Int64s()
	return s, s != nil
}
