// Package onnx reads ONNX files with github.com/owulveryck/onnx-go.
//
//	file ── onnx-go ──▶ backend (below) ──▶ Graph ──▶ models/compile, models/bake
//
// onnx-go decodes a file and hands its graph to a backend. The backend here does not compute: it keeps operators with their names,
// attributes and weights. Weights are float32. onnx-go supports neither int8 nor the version of the operator set, and fails on
// attributes that hold strings or graphs.
//
// Only tools of the developers read ONNX files: no program that is shipped does.
package onnx

import (
	"errors"
	"fmt"
	"slices"

	onnxgo "github.com/owulveryck/onnx-go"
	"gonum.org/v1/gonum/graph"
	"gorgonia.org/tensor"
)

// ErrFormat is returned for a file that onnx-go does not read, or whose graph is incomplete.
var ErrFormat = errors.New("unreadable ONNX file")

// Graph is a network as in its file. Every value is computed before a node reads it.
type Graph struct {
	Input   string
	Shape   []int // shape of the input; an open first dimension is 1
	Outputs []string
	Nodes   []*Node
	Init    map[string]*Tensor // constants by name
}

// Node applies one operator.
type Node struct {
	Op   string // "Conv"
	In   []string
	Out  string         // the first output
	Attr map[string]any // as onnx-go returns them: int64, float32, string, []int64, []float32, tensor.Tensor
}

// Tensor is a float32 constant, row-major.
type Tensor struct {
	Shape  []int
	Floats []float32
}

// Input returns the name of input i, or "" if it is absent.
func (n *Node) Input(i int) string {
	if i < len(n.In) {
		return n.In[i]
	}
	return ""
}

// String returns a name of the node for errors. onnx-go drops the name in the file.
func (n *Node) String() string { return fmt.Sprintf("%s of %q", n.Op, n.Out) }

// Attr returns the attribute name of n, or absent if n has no such attribute of type T.
func Attr[T any](n *Node, name string, absent T) T {
	if v, ok := n.Attr[name].(T); ok {
		return v
	}
	return absent
}

// Read decodes an ONNX file whose network has one input.
func Read(data []byte) (g *Graph, err error) {
	defer func() {
		if p := recover(); p != nil { // gorgonia's tensors panic where a shape and its data disagree
			g, err = nil, fmt.Errorf("%w: %v", ErrFormat, p)
		}
	}()
	b := &backend{}
	m := onnxgo.NewModel(b)
	if err := m.UnmarshalBinary(data); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return b.graph(m)
}

// backend receives a graph from onnx-go. Its decoder calls only the methods below, so the others of the interface are missing.
type backend struct {
	graph.WeightedDirected

	values []*value
	nodes  []*Node
}

// value is an input, a constant or a result, by its place in backend.values.
type value struct {
	id       int64
	name     string
	tensor   tensor.Tensor // content of a constant, or shape of an input or output; nil for other results
	operands []*value      // operands of a result, in the operator's order
	computed bool
}

func (v *value) ID() int64                { return v.id }
func (v *value) SetName(name string)      { v.name = name }
func (v *value) GetName() string          { return v.name }
func (v *value) GetTensor() tensor.Tensor { return v.tensor }
func (v *value) SetTensor(t tensor.Tensor) error {
	v.tensor = t
	return nil
}

func (b *backend) NewNode() graph.Node { return &value{id: int64(len(b.values))} }

func (b *backend) AddNode(n graph.Node) { b.values = append(b.values, n.(*value)) }

// edge leads from a result to an operand.
type edge struct {
	from, to graph.Node
	weight   float64
}

func (e edge) From() graph.Node         { return e.from }
func (e edge) To() graph.Node           { return e.to }
func (e edge) ReversedEdge() graph.Edge { return edge{e.to, e.from, e.weight} }
func (e edge) Weight() float64          { return e.weight }

func (b *backend) NewWeightedEdge(from, to graph.Node, weight float64) graph.WeightedEdge {
	return edge{from, to, weight}
}

// SetWeightedEdge keeps every edge: x·x has two between the same values.
func (b *backend) SetWeightedEdge(e graph.WeightedEdge) {
	from, at := e.From().(*value), int(e.Weight())
	for len(from.operands) <= at {
		from.operands = append(from.operands, nil)
	}
	from.operands[at] = e.To().(*value)
}

func (b *backend) ApplyOperation(op onnxgo.Operation, results ...graph.Node) error {
	if len(results) == 0 {
		return fmt.Errorf("%s without outputs", op.Name)
	}
	first := results[0].(*value)
	n := &Node{Op: op.Name, Out: first.name, Attr: op.Attributes}
	for _, v := range first.operands {
		n.In = append(n.In, v.name)
	}
	for _, r := range results {
		r.(*value).computed = true
	}
	b.nodes = append(b.nodes, n)
	return nil
}

// graph returns the graph that b received.
func (b *backend) graph(m *onnxgo.Model) (*Graph, error) {
	g := &Graph{Nodes: b.nodes, Init: map[string]*Tensor{}}
	if len(m.Input) != 1 {
		return nil, fmt.Errorf("%d inputs, want 1: %w", len(m.Input), ErrFormat)
	}
	in := b.values[m.Input[0]]
	g.Input = in.name
	if in.tensor != nil {
		g.Shape = slices.Clone(in.tensor.Shape())
	}
	if len(g.Shape) == 3 { // onnx-go drops an open dimension
		g.Shape = append([]int{1}, g.Shape...)
	}
	if len(g.Shape) != 4 || g.Shape[0] != 1 {
		return nil, fmt.Errorf("input %q of shape %v, want one picture: %w", in.name, g.Shape, ErrFormat)
	}
	for _, id := range m.Output {
		g.Outputs = append(g.Outputs, b.values[id].name)
	}
	known := map[string]bool{in.name: true, "": true} // an absent operand has no name
	for _, v := range b.values {
		if v.tensor == nil || v.computed || v == in {
			continue
		}
		known[v.name] = true
		if floats, ok := v.tensor.Data().([]float32); ok {
			g.Init[v.name] = &Tensor{slices.Clone(v.tensor.Shape()), floats}
		} else if x, ok := v.tensor.Data().(float32); ok { // a scalar
			g.Init[v.name] = &Tensor{nil, []float32{x}}
		}
	}
	for _, n := range g.Nodes {
		for _, name := range n.In {
			if !known[name] {
				return nil, fmt.Errorf("%v reads %q, which is not computed before: %w", n, name, ErrFormat)
			}
		}
		known[n.Out] = true
	}
	return g, nil
}

// Product returns the weights (out, in) and the bias (out) of the Gemm n. It returns an error for a
// Gemm that is more than a product and a sum.
func (g *Graph) Product(n *Node) (weights *Tensor, bias []float32, err error) {
	t := g.Init[n.Input(1)]
	if t == nil || len(t.Shape) != 2 {
		return nil, nil, fmt.Errorf("%v: the weights are not a float32 matrix", n)
	}
	if Attr[int64](n, "transA", 0) != 0 || Attr[float32](n, "alpha", 1) != 1 || Attr[float32](n, "beta", 1) != 1 {
		return nil, nil, fmt.Errorf("%v: only plain products are supported", n)
	}
	if Attr[int64](n, "transB", 0) == 0 {
		t = t.transpose()
	}
	bias, err = g.Bias(n, t.Shape[0])
	return t, bias, err
}

// Bias returns input 2 of a Conv or Gemm with outs outputs, or zeros if it is absent.
func (g *Graph) Bias(n *Node, outs int) ([]float32, error) {
	name := n.Input(2)
	if name == "" {
		return make([]float32, outs), nil
	}
	t := g.Init[name]
	if t == nil || len(t.Floats) != outs {
		return nil, fmt.Errorf("%v: the bias is not a float32 constant of length %d", n, outs)
	}
	return t.Floats, nil
}

// transpose returns the transposed matrix.
func (t *Tensor) transpose() *Tensor {
	rows, cols := t.Shape[0], t.Shape[1]
	r := &Tensor{[]int{cols, rows}, make([]float32, len(t.Floats))}
	for i := range rows {
		for j := range cols {
			r.Floats[j*rows+i] = t.Floats[i*cols+j]
		}
	}
	return r
}
