package nn

import (
	"slices"

	"github.com/sightline-dev/sightline/core/predict/onnx"
)

// quantised returns the integer node that computes QuantizeLinear n's result straight from
// quantised operands, or n itself where there is none.
func (z *quantiser) quantised(n *node) *node {
	out, ok := n.affineOf(n.out[0])
	if !ok {
		return n
	}
	// Between the operator and n may stand clamps, which become bounds of the stored result.
	lo, hi := out.limits()
	v := n.in[0]
	for {
		p := z.prod[v]
		if p == nil || len(z.users[v]) != 1 {
			break
		}
		l, h, ok := p.bounds()
		if !ok {
			break
		}
		// The inner clamp acts first: its bounds pass through the outer one.
		ql, qh := out.quantise(l), out.quantise(h)
		lo, hi = min(max(ql, lo), hi), max(min(qh, hi), lo)
		v = p.in[0]
	}
	p := z.prod[v]
	if p == nil {
		return n
	}
	q := &quantised{out: &out}
	if out.bytes() {
		q.lo, q.hi = uint8(lo), uint8(hi)
	}
	made := &node{op: p.op, src: p.src, out: n.out, q: q}
	alone := len(z.users[v]) == 1
	switch {
	case p.q != nil && p.q.out == nil && alone && out.bytes() && p.q.finite(out):
		*q = *p.q
		q.out, q.lo, q.hi = &out, uint8(lo), uint8(hi)
		made.in = p.in
		return made
	case p.op == "Add" && alone && out.bytes() && z.add(p, made):
		return made
	case p.op == "GlobalAveragePool" && (out.bytes() || (out.typ == onnx.Uint16 && v == n.in[0])) && z.pool(p, made):
		return made
	case p.op == "Concat" && out.bytes() && v == n.in[0] && z.concat(p, made):
		return made
	}
	if made := z.table(n, out); made != nil {
		return made
	}
	return n
}

// stored returns what v was dequantised from, per tensor.
func (z *quantiser) stored(v *value) (*value, affine, bool) {
	dq := z.prod[v]
	if dq == nil || dq.op != "DequantizeLinear" || dq.in[0].con != nil {
		return nil, affine{}, false
	}
	a, ok := dq.affineOf(dq.in[0])
	return dq.in[0], a, ok
}

// add fills made from Add p of two dequantised tensors of one shape.
func (z *quantiser) add(p, made *node) bool {
	y, ya, ok := z.stored(p.in[0])
	r, ra, ok2 := z.stored(p.in[1])
	if !ok || !ok2 || !ya.bytes() || !ra.bytes() || !slices.Equal(y.shape, r.shape) {
		return false
	}
	made.in = []*value{y, r}
	made.q.add = residual(ya, ra, *made.q.out, made.q.lo, made.q.hi)
	return finite(made.q.add.ScaleY) && finite(made.q.add.ScaleR)
}

// pool fills made from GlobalAveragePool p of a dequantised tensor.
func (z *quantiser) pool(p, made *node) bool {
	x, a, ok := z.stored(p.in[0])
	if !ok || !a.bytes() || len(x.shape) != 4 {
		return false
	}
	made.in, made.q.in = []*value{x}, a
	return true
}

// concat fills made from Concat p of dequantised tensors, each brought to the result's
// parameters by a table where its own differ.
func (z *quantiser) concat(p, made *node) bool {
	out := *made.q.out
	var tables []*node
	for _, v := range p.in {
		x, a, ok := z.stored(v)
		if !ok || !a.bytes() {
			return false
		}
		if a != out {
			t := &node{op: "Table", src: p.src, in: []*value{x}, q: &quantised{in: a, out: &out, table: tableOf(a, out, nil)}}
			x = &value{name: x.name, typ: out.typ, shape: x.shape}
			t.out = []*value{x}
			tables = append(tables, t)
		}
		made.in = append(made.in, x)
	}
	made.q = nil
	z.nodes = append(z.nodes, tables...)
	return true
}

// tableOf returns, for each of the 256 bytes under in, the byte under out that the chain of
// functions makes of it, the last function first, in float32.
func tableOf(in, out affine, chain []func(float32) float32) []uint8 {
	t := make([]uint8, 256)
	for b := range t {
		r := in.real(int32(b))
		for _, f := range slices.Backward(chain) {
			r = f(r)
		}
		t[b] = uint8(out.quantise(r))
	}
	return t
}

// table returns a node that maps bytes to bytes, where QuantizeLinear n closes a chain of
// operators on single elements behind a DequantizeLinear. It computes the chain in float32 for
// each of the 256 bytes, as the graph says. nil: there is no such chain.
func (z *quantiser) table(n *node, out affine) *node {
	var chain []func(float32) float32
	v := n.in[0]
	for {
		x, a, ok := z.stored(v)
		if ok && a.bytes() && out.bytes() {
			q := &quantised{in: a, out: &out, table: tableOf(a, out, chain)}
			return &node{op: "Table", src: n.src, in: []*value{x}, out: n.out, q: q}
		}
		p := z.prod[v]
		if p == nil || len(z.users[v]) != 1 {
			return nil
		}
		f, ok := p.elementwise()
		if !ok {
			return nil
		}
		chain = append(chain, f)
		v = p.in[0]
	}
}

// fuseQuantisedAdd lets an integer convolution add the residual itself, where the quantised sum
// is the only reader of its result.
func (g *graph) fuseQuantisedAdd() {
	prod, users := g.producers(), g.users()
	for i, n := range g.nodes {
		if n.op != "Add" || n.q == nil {
			continue
		}
		for k, v := range n.in {
			p := prod[v]
			if p == nil || p.op != "Conv" || p.q == nil || p.q.out == nil || p.fuse.add != nil || len(users[v]) != 1 || len(v.shape) != 4 {
				continue
			}
			q := *p.q
			add := *n.q.add
			if k == 1 { // the sum's first operand becomes the residual
				add.ScaleY, add.ScaleR = add.ScaleR, add.ScaleY
				add.ZeroY, add.ZeroR = add.ZeroR, add.ZeroY
			}
			q.add = &add
			made := &node{op: "Conv", src: p.src, in: p.in, out: n.out, q: &q}
			made.fuse.add = n.in[1-k]
			g.nodes[i] = made
			prod[n.out[0]] = made
			break
		}
	}
	g.sweep()
}
