package onnx

import (
	"fmt"
	"math"
	"slices"
)

// inference is the state of one walk over the nodes.
type inference struct {
	g      *Graph
	values map[string]Value
	ints   map[string]*Tensor // integers known before any input is fed: initialisers, shapes and arithmetic on them
	folded map[string]bool    // values in ints that a node assigns
	memory int64
}

// Infer returns type and fixed shape of every value of the graph, initialisers included, when the
// inputs have the given shapes (by name; an input whose declared shape is fixed may be left out).
//
// Shapes that are computed in the graph from other shapes and constants (Shape, Gather, Slice,
// Unsqueeze, Squeeze, Concat, Reshape, Cast, Identity, Add, Sub, Mul, Div on integer vectors) are
// followed; one that depends on the content of an input is an error. The sizes of all values
// together stay within the Memory limit given to Read. Errors wrap ErrShape, ErrLimit or ErrOperator.
func (g *Graph) Infer(inputShapes map[string][]int) (map[string]Value, error) {
	inf, err := g.infer(inputShapes)
	if err != nil {
		return nil, err
	}
	return inf.values, nil
}

// Fold returns the graph for fixed input shapes: what Infer knows as integers is an initialiser,
// nodes that computed it are gone, initialisers that nothing uses are gone, and the declared shapes of
// inputs and outputs are fixed. The rest is shared with g.
func (g *Graph) Fold(inputShapes map[string][]int) (*Graph, error) {
	inf, err := g.infer(inputShapes)
	if err != nil {
		return nil, err
	}
	f := &Graph{Name: g.Name, Opset: g.Opset, Init: map[string]*Tensor{}, limits: g.limits}
	used := map[string]bool{}
	for _, v := range g.Inputs {
		f.Inputs = append(f.Inputs, inf.values[v.Name])
	}
	for _, v := range g.Outputs {
		f.Outputs = append(f.Outputs, inf.values[v.Name])
		used[v.Name] = true
	}
	for _, n := range g.Nodes {
		if inf.folded[n.Out[0]] {
			continue
		}
		f.Nodes = append(f.Nodes, n)
		for _, name := range n.In {
			used[name] = true
		}
	}
	for _, name := range sortedKeys(used) {
		if t, ok := g.Init[name]; ok {
			f.Init[name] = t
		} else if inf.folded[name] {
			f.Init[name] = inf.ints[name]
		}
	}
	return f, nil
}

func (g *Graph) infer(inputShapes map[string][]int) (*inference, error) {
	inf := &inference{g: g, values: map[string]Value{}, ints: map[string]*Tensor{}, folded: map[string]bool{}}
	for _, name := range sortedKeys(g.Init) {
		t := g.Init[name]
		if err := inf.set(name, t.Type, t.Shape); err != nil {
			return nil, err
		}
		if isIndex(t.Type) && t.Len() <= maxFolded {
			inf.ints[name] = t
		}
	}
	if err := inf.feed(inputShapes); err != nil {
		return nil, err
	}
	for _, n := range g.Nodes {
		if err := operators[n.Op].infer(inf, n); err != nil {
			return nil, fmt.Errorf("%s %q: %w", n.Op, n.Name, err)
		}
		if t := inf.fold(n); t != nil {
			inf.ints[n.Out[0]] = t
			inf.folded[n.Out[0]] = true
		}
	}
	for _, v := range g.Outputs {
		if got := inf.values[v.Name].Type; got != v.Type {
			return nil, fmt.Errorf("%w: output %q is declared as %v but computed as %v", ErrShape, v.Name, v.Type, got)
		}
	}
	return inf, nil
}

// feed assigns the inputs.
func (inf *inference) feed(shapes map[string][]int) error {
	for _, name := range sortedKeys(shapes) {
		if !slices.ContainsFunc(inf.g.Inputs, func(v Value) bool { return v.Name == name }) {
			return fmt.Errorf("%w: the graph has no input %q", ErrShape, name)
		}
	}
	for _, v := range inf.g.Inputs {
		shape, ok := shapes[v.Name]
		if !ok {
			shape = v.Shape
			if shape == nil || slices.Contains(shape, -1) {
				return fmt.Errorf("%w: input %q has no fixed shape", ErrShape, v.Name)
			}
		}
		if !fits(shape, v.Shape) {
			return fmt.Errorf("%w: input %q is declared as %v but given as %v", ErrShape, v.Name, v.Shape, shape)
		}
		if err := inf.set(v.Name, v.Type, shape); err != nil {
			return err
		}
	}
	return nil
}

// set assigns a value after checking its size.
func (inf *inference) set(name string, t DType, shape []int) error {
	l := inf.g.limits.orDefault()
	if len(shape) > l.Rank {
		return fmt.Errorf("%w: %q has %d dimensions, at most %d are allowed", ErrLimit, name, len(shape), l.Rank)
	}
	if t.Size() == 0 {
		return fmt.Errorf("%w: %q has unsupported type %v", ErrShape, name, t)
	}
	bytes, err := byteSize(shape, t)
	if err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	if bytes > l.Memory-inf.memory {
		return fmt.Errorf("%w: with %q of shape %v the values need more than %d bytes", ErrLimit, name, shape, l.Memory)
	}
	inf.memory += bytes
	inf.values[name] = Value{Name: name, Type: t, Shape: append([]int{}, shape...)}
	return nil
}

// in returns the value of input i, which checkOperator has seen to be there.
func (inf *inference) in(n *Node, i int) Value { return inf.values[n.In[i]] }

// need returns the integers of input i, or an error where they depend on what is fed.
func (inf *inference) need(n *Node, i int) ([]int64, error) {
	t, ok := inf.ints[n.Input(i)]
	if !ok {
		return nil, fmt.Errorf("%w: input %d must be integers known before the graph runs", ErrShape, i)
	}
	if len(t.Shape) > 1 {
		return nil, fmt.Errorf("%w: input %d must be a vector", ErrShape, i)
	}
	return t.Int64s(), nil
}

// axis brings a, which may count from the end, into [0, rank).
func axis(a int64, rank int) (int, error) {
	if a < int64(-rank) || a >= int64(rank) {
		return 0, fmt.Errorf("%w: axis %d of %d dimensions", ErrShape, a, rank)
	}
	if a < 0 {
		a += int64(rank)
	}
	return int(a), nil
}

// axes brings all of as into [0, rank), sorted; a repeated one is an error.
func axes(as []int64, rank int) ([]int, error) {
	if len(as) > rank {
		return nil, fmt.Errorf("%w: %d axes of %d dimensions", ErrShape, len(as), rank)
	}
	out := make([]int, len(as))
	for i, a := range as {
		x, err := axis(a, rank)
		if err != nil {
			return nil, err
		}
		out[i] = x
	}
	slices.Sort(out)
	for i := 1; i < len(out); i++ {
		if out[i] == out[i-1] {
			return nil, fmt.Errorf("%w: axis %d twice", ErrShape, out[i])
		}
	}
	return out, nil
}

// sameType refuses inputs of different types among those present.
func (inf *inference) sameType(n *Node) error {
	for i, name := range n.In {
		if name != "" && inf.values[name].Type != inf.in(n, 0).Type {
			return fmt.Errorf("%w: inputs 0 and %d are %v and %v", ErrShape, i, inf.in(n, 0).Type, inf.values[name].Type)
		}
	}
	return nil
}

// isFloat refuses an input that is not of a float type.
func isFloat(v Value) error {
	switch v.Type {
	case Float32, Float16, Float64:
		return nil
	}
	return fmt.Errorf("%w: %q is %v, but must be a float", ErrShape, v.Name, v.Type)
}

// dimension returns an int for a computed dimension, refusing what no tensor has.
func dimension(d int64) (int, error) {
	if d < 0 || d > math.MaxInt32 {
		return 0, fmt.Errorf("%w: a dimension of %d", ErrShape, d)
	}
	return int(d), nil
}
