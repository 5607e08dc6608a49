package nn

import (
	"fmt"
	"math"
	"slices"

	"github.com/sightline-dev/sightline/core/predict/onnx"
)

// simplify removes operators that do nothing in inference and gives others their common form.
func (g *graph) simplify() error {
	for _, n := range g.nodes {
		switch {
		case n.op == "Identity", n.op == "Dropout" && (len(n.out) < 2 || n.out[1] == nil):
			if v := n.out[0]; !slices.Contains(g.outputs, v) {
				g.replace(v, n.in[0])
			} else {
				n.op, n.in = "Reshape", n.in[:1]
			}
		case n.op == "ReduceMean" && n.overPixels():
			n.op, n.in = "GlobalAveragePool", n.in[:1]
		}
	}
	return nil
}

// overPixels reports whether ReduceMean n averages (N, C, H, W) to (N, C, 1, 1).
func (n *node) overPixels() bool {
	if len(n.in[0].shape) != 4 || len(n.out[0].shape) != 4 {
		return false
	}
	axes := n.axes(1)
	return len(axes) == 2 && axes[2] && axes[3]
}

// axes returns the axes of n, from input i or the attribute, as a set without negatives.
func (n *node) axes(i int) map[int]bool {
	list, ok := ints(n.input(i))
	if !ok {
		list = n.attrInts("axes")
	}
	set := make(map[int]bool)
	for _, a := range list {
		if a < 0 {
			a += int64(len(n.in[0].shape))
		}
		set[int(a)] = true
	}
	return set
}

// fuse folds batch norm, per-channel scaling, activation and residual into the Conv or Gemm before them.
func (g *graph) fuse() error {
	prod, users := g.producers(), g.users()
	for i, n := range g.nodes {
		var made *node
		switch n.op {
		case "BatchNormalization":
			made = g.fuseNorm(n, prod, users)
		case "Relu", "Clip":
			made = fuseClamp(n, prod, users)
		case "Add":
			made = fuseAdd(n, prod, users)
		}
		if made != nil {
			g.nodes[i] = made
			prod[made.out[0]] = made
		}
	}
	g.sweep()
	return g.splitNorm()
}

// absorb returns the Conv or Gemm behind v that may take over what n does to it: one that only
// n reads. The caller gets a copy to change, with n's result as its own.
func absorb(n *node, v *value, prod map[*value]*node, users map[*value][]*node) *node {
	p := prod[v]
	if p == nil || (p.op != "Conv" && p.op != "Gemm") || len(users[v]) != 1 || (p.q != nil && p.q.out != nil) {
		return nil
	}
	if !p.weighted() {
		return nil
	}
	made := *p
	made.out = n.out
	return &made
}

// fuseNorm folds BatchNormalization n into the weights and bias of the convolution before it.
func (g *graph) fuseNorm(n *node, prod map[*value]*node, users map[*value][]*node) *node {
	scale, shift, ok := n.norm()
	if !ok {
		return nil
	}
	p := absorb(n, n.in[0], prod, users)
	if p == nil || p.op != "Conv" || p.q != nil || p.fuse.act || p.fuse.add != nil {
		return nil
	}
	w, bias := p.floatWeights()
	w, outs := slices.Clone(w), len(scale)
	b := make([]float32, outs)
	copy(b, bias)
	per := len(w) / outs
	for j := range outs {
		for k := range per {
			w[j*per+k] *= scale[j]
		}
		b[j] = float32(b[j]*scale[j]) + shift[j]
	}
	p.fuse.weights, p.fuse.bias = w, b
	return p
}

// norm returns batch norm as y = x·scale + shift per channel, where its parameters are constants.
func (n *node) norm() (scale, shift []float32, ok bool) {
	for _, v := range n.in[1:5] {
		if v.con == nil || v.typ != onnx.Float32 {
			return nil, nil, false
		}
	}
	gamma, beta := n.in[1].con.Float32s(), n.in[2].con.Float32s()
	mean, variance := n.in[3].con.Float32s(), n.in[4].con.Float32s()
	epsilon := float64(n.attrFloat("epsilon", 1e-5))
	shift = make([]float32, len(gamma))
	scale = make([]float32, len(gamma))
	for j := range gamma {
		s := float64(gamma[j]) / math.Sqrt(float64(variance[j])+epsilon)
		scale[j] = float32(s)
		shift[j] = float32(float64(beta[j]) - float64(s*float64(mean[j])))
	}
	return scale, shift, true
}

// splitNorm turns each BatchNormalization that is left into a product and a sum.
func (g *graph) splitNorm() error {
	nodes := g.nodes[:0:0]
	for _, n := range g.nodes {
		if n.op != "BatchNormalization" {
			nodes = append(nodes, n)
			continue
		}
		scale, shift, ok := n.norm()
		if !ok {
			return n.errorf("parameters are not float32 constants")
		}
		x, y := n.in[0], n.out[0]
		shape := slices.Repeat([]int{1}, max(1, len(x.shape)-1))
		shape[0] = len(scale)
		constant := func(name string, v []float32) *value {
			t := onnx.FromFloat32s(name, shape, v)
			return &value{name: name, typ: onnx.Float32, shape: shape, con: t}
		}
		scaled := x.fresh()
		nodes = append(nodes,
			&node{op: "Mul", src: n.src, in: []*value{x, constant(y.name+" scale", scale)}, out: []*value{scaled}},
			&node{op: "Add", src: n.src, in: []*value{scaled, constant(y.name+" shift", shift)}, out: []*value{y}})
	}
	g.nodes = nodes
	return nil
}

// fuseClamp lets the operator before Relu or Clip n clamp its own result.
func fuseClamp(n *node, prod map[*value]*node, users map[*value][]*node) *node {
	lo, hi, ok := n.bounds()
	if !ok {
		return nil
	}
	p := absorb(n, n.in[0], prod, users)
	if p == nil {
		return nil
	}
	if p.fuse.act {
		lo, hi = min(max(p.fuse.lo, lo), hi), max(min(p.fuse.hi, hi), lo)
	}
	p.fuse.act, p.fuse.lo, p.fuse.hi = true, lo, hi
	return p
}

// fuseAdd lets the convolution that computes one operand of Add n add the other.
func fuseAdd(n *node, prod map[*value]*node, users map[*value][]*node) *node {
	if n.q != nil || len(n.out[0].shape) != 4 || !slices.Equal(n.in[0].shape, n.in[1].shape) {
		return nil
	}
	for k, v := range n.in {
		p := absorb(n, v, prod, users)
		if p == nil || p.op != "Conv" || p.q != nil || p.fuse.act || p.fuse.add != nil {
			continue
		}
		if p.attrInt("group", 1) == p.in[0].shape[1] && p.in[0].shape[1] > 1 {
			continue // depthwise rows take no residual
		}
		p.fuse.add = n.in[1-k]
		return p
	}
	return nil
}

// bounds returns what Relu or Clip n with constant bounds clamps to.
func (n *node) bounds() (lo, hi float32, ok bool) {
	if n.in[0].typ != onnx.Float32 {
		return 0, 0, false
	}
	inf := float32(math.Inf(1))
	switch n.op {
	case "Relu":
		return 0, inf, true
	case "Clip":
		l, ok := scalarF32(n.input(1), n.attrFloat("min", -inf))
		h, ok2 := scalarF32(n.input(2), n.attrFloat("max", inf))
		return min(l, h), h, ok && ok2
	}
	return 0, 0, false
}

// foldConstants computes every node whose operands are all constants, by running it. The results
// may take memory bytes.
func (g *graph) foldConstants(memory int64) error {
	for _, n := range g.nodes {
		if slices.ContainsFunc(n.reads(), func(v *value) bool { return v.con == nil }) || len(n.reads()) == 0 {
			continue
		}
		if memory -= int64(volume(n.out[0].shape)) * int64(n.out[0].typ.Size()); memory < 0 {
			return fmt.Errorf("%s: constants: %w", n, ErrMemory)
		}
		if err := g.evaluate(n); err != nil {
			return err
		}
	}
	return nil
}

// evaluate makes n's result a constant: it compiles n alone, without inputs, and runs it once. Its
// operands and result have been counted already.
func (g *graph) evaluate(n *node) error {
	alone := *n
	alone.in, alone.out = slices.Clone(n.in), []*value{n.out[0].fresh()}
	for i, v := range n.in {
		if v != nil {
			alone.in[i] = v.fresh()
			alone.in[i].con = v.con
		}
	}
	one := &graph{opset: g.opset, nodes: []*node{&alone}, outputs: alone.out}
	if err := one.place(); err != nil {
		return err
	}
	p, err := one.lower(Options{Memory: 1 << 40, Work: 1 << 32})
	if err != nil {
		return err
	}
	out, err := p.NewSession().Run(nil)
	if err != nil {
		return err
	}
	v := n.out[0]
	v.con = &onnx.Tensor{Name: v.name, Type: v.typ, Shape: v.shape, Data: out[0].bytes()}
	return nil
}
