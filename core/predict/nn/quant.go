package nn

import (
	"math"
	"slices"

	"github.com/sightline-dev/sightline/core/predict/onnx"
)

// moves are the operators that only carry elements of their first input about, or choose among
// them by order: they commute with a per-tensor DequantizeLinear.
var moves = map[string]bool{
	"Flatten": true, "Reshape": true, "Squeeze": true, "Unsqueeze": true, "Transpose": true,
	"Slice": true, "MaxPool": true,
}

// quantiser rewrites QDQ patterns into integer nodes.
type quantiser struct {
	prod  map[*value]*node
	users map[*value][]*node
	nodes []*node // rewritten
}

// quantise turns DequantizeLinear → operator → QuantizeLinear into integer nodes. What it does
// not recognise stays as it is and runs in float32.
func (g *graph) quantise() error {
	if !slices.ContainsFunc(g.nodes, func(n *node) bool { return n.op == "DequantizeLinear" }) {
		return nil
	}
	g.sinkDequantise()
	g.raiseQuantise()
	g.sweep()
	z := &quantiser{prod: g.producers(), users: g.users()}
	for _, n := range g.nodes {
		switch n.op {
		case "Conv", "Gemm", "MatMul":
			z.linear(n)
		case "QuantizeLinear":
			n = z.quantised(n)
			z.prod[n.out[0]] = n
		}
		z.nodes = append(z.nodes, n)
	}
	g.nodes = z.nodes
	g.sweep()
	g.fuseQuantisedAdd()
	return nil
}

// sinkDequantise moves each per-tensor DequantizeLinear below the moves that follow it, so that
// they move bytes.
func (g *graph) sinkDequantise() {
	prod := g.producers()
	nodes := g.nodes[:0:0]
	for _, n := range g.nodes {
		nodes = append(nodes, n)
		if !moves[n.op] || (len(n.out) > 1 && n.out[1] != nil) {
			continue
		}
		dq := prod[n.in[0]]
		if dq == nil || dq.op != "DequantizeLinear" || dq.in[0].con != nil {
			continue
		}
		if a, ok := dq.affineOf(dq.in[0]); !ok || (n.op == "MaxPool" && !a.bytes()) {
			continue
		}
		out := n.out[0]
		moved := &value{name: out.name, typ: dq.in[0].typ, shape: out.shape}
		in := append([]*value{dq.in[0]}, n.in[1:]...)
		below := &node{op: dq.op, src: dq.src, in: append([]*value{moved}, dq.in[1:]...), out: []*value{out}}
		nodes[len(nodes)-1] = &node{op: n.op, src: n.src, in: in, out: []*value{moved}}
		nodes = append(nodes, below)
		prod[out] = below
	}
	g.nodes = nodes
}

// raiseQuantise moves each per-tensor QuantizeLinear above the moves that only it reads.
func (g *graph) raiseQuantise() {
	prod, users := g.producers(), g.users()
	at := make(map[*node]int)
	for i, n := range g.nodes {
		at[n] = i
	}
	for i := range g.nodes {
		for q, j := g.nodes[i], i; q.op == "QuantizeLinear"; {
			m := prod[q.in[0]]
			if m == nil || !moves[m.op] || m.op == "MaxPool" || len(users[q.in[0]]) != 1 || (len(m.out) > 1 && m.out[1] != nil) {
				break
			}
			if _, ok := q.affineOf(q.out[0]); !ok {
				break
			}
			x, out := m.in[0], q.out[0]
			raised := &value{name: out.name, typ: out.typ, shape: x.shape}
			above := &node{op: q.op, src: q.src, in: append([]*value{x}, q.in[1:]...), out: []*value{raised}}
			below := &node{op: m.op, src: m.src, in: append([]*value{raised}, m.in[1:]...), out: []*value{out}}
			k := at[m]
			g.nodes[k], g.nodes[j] = above, below
			at[above], at[below] = k, j
			prod[raised], prod[out] = above, below
			q, j = above, k
		}
	}
}

// linear makes Conv, Gemm or MatMul n an integer node with a float32 result, where its input
// is dequantised and its weights are dequantised int8 constants with zero point 0.
func (z *quantiser) linear(n *node) {
	dq := z.prod[n.in[0]]
	if dq == nil || dq.op != "DequantizeLinear" || dq.in[0].con != nil {
		return
	}
	in, ok := dq.affineOf(dq.in[0])
	wide := ok && in.typ == onnx.Uint16 && in.zero == 0 && n.op != "Conv"
	if !ok || !(in.bytes() || wide) {
		return
	}
	q, ok := z.weights(n)
	if !ok {
		return
	}
	q.in = in
	if b := n.input(2); b != nil {
		if q.bias, ok = z.bias(b, q); !ok {
			return
		}
	}
	n.q = q
	n.in = []*value{dq.in[0]}
}

// weights returns n's int8 weights as (out, in, kh, kw) with their scales.
func (z *quantiser) weights(n *node) (*quantised, bool) {
	dq := z.prod[n.in[1]]
	if dq == nil || dq.op != "DequantizeLinear" || dq.attrInt("block_size", 0) != 0 {
		return nil, false
	}
	w, scale := dq.in[0], dq.in[1]
	if w.con == nil || w.typ != onnx.Int8 || scale.con == nil || scale.typ != onnx.Float32 || len(w.shape) < 2 {
		return nil, false
	}
	if zero := dq.input(2); zero != nil {
		zs, ok := ints(zero)
		if !ok || slices.ContainsFunc(zs, func(x int64) bool { return x != 0 }) {
			return nil, false
		}
	}
	q := &quantised{shape: w.shape, weights: w.con.Int8s()}
	axis := 0
	if n.op != "Conv" {
		if len(w.shape) != 2 || n.attrInt("transA", 0) != 0 || n.attrFloat("alpha", 1) != 1 || n.attrFloat("beta", 1) != 1 {
			return nil, false
		}
		if n.attrInt("transB", 0) == 0 {
			axis = 1
			q.weights = transposed(q.weights, w.shape[0], w.shape[1])
			q.shape = []int{w.shape[1], w.shape[0]}
		}
		q.shape = []int{q.shape[0], q.shape[1], 1, 1}
	}
	if len(q.shape) != 4 {
		return nil, false
	}
	q.wscale = scale.con.Float32s()
	if slices.ContainsFunc(q.wscale, func(s float32) bool { return !finite(s) }) {
		return nil, false
	}
	along := dq.attrInt("axis", 1)
	if along < 0 {
		along += len(w.shape)
	}
	switch {
	case len(q.wscale) == 1:
		q.wscale = slices.Repeat(q.wscale, q.shape[0])
	case len(q.wscale) != q.shape[0] || along != axis:
		return nil, false
	}
	return q, true
}

// bias returns b, one real number per output channel, in steps of in·w.
func (z *quantiser) bias(b *value, q *quantised) ([]int32, bool) {
	steps := make([]float64, len(q.wscale))
	var at func(j int) float64
	exact := func(int) (int32, bool) { return 0, false }
	dq := z.prod[b]
	switch {
	case b.con != nil && b.typ == onnx.Float32 && b.con.Len() == len(steps):
		f := b.con.Float32s()
		at = func(j int) float64 { return float64(f[j]) }
	case dq != nil && dq.op == "DequantizeLinear" && dq.in[0].con != nil && dq.in[1].con != nil && dq.in[0].typ == onnx.Int32:
		raw, scale := dq.in[0].con.Int32s(), dq.in[1].con.Float32s()
		if zs, ok := ints(dq.input(2)); ok && slices.ContainsFunc(zs, func(x int64) bool { return x != 0 }) {
			return nil, false
		}
		if len(raw) != len(steps) || (len(scale) != 1 && len(scale) != len(steps)) {
			return nil, false
		}
		at = func(j int) float64 { return float64(float64(raw[j]) * float64(scale[j%len(scale)])) }
		exact = func(j int) (int32, bool) { return raw[j], scale[j%len(scale)] == q.in.scale*q.wscale[j] }
	default:
		return nil, false
	}
	r := make([]int32, len(steps))
	for j := range r {
		if raw, ok := exact(j); ok {
			r[j] = raw
			continue
		}
		x := math.RoundToEven(at(j) / float64(float64(q.in.scale)*float64(q.wscale[j])))
		if !(math.Abs(x) < 1<<31) {
			return nil, false
		}
		r[j] = int32(x)
	}
	return r, true
}

// transposed returns w (rows, cols) as (cols, rows).
func transposed[T any](w []T, rows, cols int) []T {
	r := make([]T, len(w))
	for i := range rows {
		for j := range cols {
			r[j*rows+i] = w[i*cols+j]
		}
	}
	return r
}
