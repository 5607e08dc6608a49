package nn

import (
	"slices"

	"github.com/sightline-dev/sightline/core/predict/nn/kernel"
	"github.com/sightline-dev/sightline/core/predict/onnx"
)

// matmul lowers Gemm and MatMul: with constant weights one product, otherwise plain loops.
func (c *compiler) matmul(n *node) error {
	x := c.plain(n, n.in[0])
	out := n.out[0]
	if n.q != nil {
		if n.q.in.typ == onnx.Uint16 {
			return c.wideProduct(n, x)
		}
		c.linear(n, x, volume(x.shape)/max(1, n.q.shape[1]))
		return nil
	}
	if !floats(n.in...) {
		return n.errorf("type %v", x.typ)
	}
	if ok := n.gemmWeights(); ok {
		c.linear(n, x, volume(out.shape)/out.shape[len(out.shape)-1])
		return nil
	}
	if n.op == "Gemm" {
		return n.errorf("weights, bias, or transA that are not constant")
	}
	return c.loops(n, x, c.plain(n, n.in[1]))
}

// gemmWeights brings constant weights and bias of n to (out, in) and (out), alpha and beta
// multiplied in. It reports whether they can be.
func (n *node) gemmWeights() bool {
	w := n.in[1]
	if w.con == nil || len(w.shape) != 2 || n.attrInt("transA", 0) != 0 || len(n.out[0].shape) == 0 || len(n.in[0].shape) < 2 {
		return false
	}
	weights := w.con.Float32s()
	shape := slices.Clone(w.shape)
	if n.attrInt("transB", 0) == 0 {
		weights = transposed(weights, shape[0], shape[1])
		shape[0], shape[1] = shape[1], shape[0]
	}
	if alpha := n.attrFloat("alpha", 1); n.op == "Gemm" && alpha != 1 {
		for i := range weights {
			weights[i] *= alpha
		}
	}
	if b := n.input(2); b != nil {
		if b.con == nil || (b.con.Len() != 1 && (b.con.Len() != shape[0] || b.shape[len(b.shape)-1] != shape[0])) {
			return false
		}
		bias := b.con.Float32s()
		if len(bias) == 1 {
			bias = slices.Repeat(bias, shape[0])
		}
		for i := range bias {
			bias[i] *= n.attrFloat("beta", 1)
		}
		n.fuse.bias = bias
	}
	n.fuse.weights = weights
	n.fuse.shape = []int{shape[0], shape[1], 1, 1}
	return true
}

// linear emits the product of x, rows of n's depth, with n's weights.
func (c *compiler) linear(n *node, x *value, rows int) {
	shape := n.weightShape()
	p := c.product(n, x, n.out[0], 0, 1, 1, shape[1])
	p.ldd, p.stepX = shape[0], shape[1]
	c.emit(step{name: n.String(), out: []*value{n.out[0]}, in: p.reads(), temp: p.temps(), run: func(s *Session) {
		p.rows(s, 0, 0, 0, rows)
	}})
}

// wideProduct emits the product of uint16 rows, pooled sums, with int8 weights: exact in int64,
// then one rounding to float32 and one product with the scale.
func (c *compiler) wideProduct(n *node, x *value) error {
	outs, depth := n.q.shape[0], n.q.shape[1]
	w := kernel.PackS8(n.q.weights, outs, depth)
	out := n.out[0]
	rows := volume(x.shape) / max(1, depth)
	bias, scale := n.q.folded(w.Sum), n.q.scales()
	acc := scratch(onnx.Int64, outs)
	lo, hi := n.clamp()
	store := func(s *Session, row int, acc []int64) {
		to := data[float32](s, out)[row*outs:][:len(acc)]
		for j, v := range acc {
			to[j] = float32(v) * scale[j]
		}
		if n.fuse.act {
			for j, v := range to {
				to[j] = min(max(v, lo), hi)
			}
		}
	}
	if n.q.out != nil {
		to, least, most := *n.q.out, n.q.lo, n.q.hi
		req := n.q.requant(w.Sum)
		scale = req.Scale
		store = func(s *Session, row int, acc []int64) {
			bytes := data[uint8](s, out)[row*outs:][:len(acc)]
			for j, v := range acc {
				bytes[j] = to.clamped(float32(v)*scale[j], least, most)
			}
		}
	}
	c.emit(step{name: n.String(), out: []*value{out}, in: []*value{x}, temp: []*value{acc}, run: func(s *Session) {
		a := data[int64](s, acc)
		src := data[uint16](s, x)
		for i := range rows {
			kernel.GemvU16(a, src[i*depth:(i+1)*depth], w, bias)
			store(s, i, a[:outs])
		}
	}})
	return nil
}

// clamped returns the stored byte of steps: saturate(zero + roundToEven(steps)) within lo and hi.
func (a affine) clamped(steps float32, lo, hi uint8) uint8 {
	return uint8(min(max(a.saturate(roundToEven(steps)), int32(lo)), int32(hi)))
}

// loops emits MatMul of two computed tensors, batch by batch, in plain Go.
func (c *compiler) loops(n *node, a, b *value) error {
	out := n.out[0]
	if len(a.shape) < 2 || len(b.shape) < 2 || out.nhwc {
		return n.errorf("shapes %v and %v", a.shape, b.shape)
	}
	rows, depth, cols := a.shape[len(a.shape)-2], a.shape[len(a.shape)-1], b.shape[len(b.shape)-1]
	batch := out.shape[:len(out.shape)-2]
	outer := func(v *value) []int {
		st := v.broadcast(append(slices.Clone(batch), v.shape[len(v.shape)-2:]...))
		return st[:len(batch)]
	}
	t := newNest(batch, rowMajor(out.shape)[:len(batch)], outer(a), outer(b))
	size, st := t.inner()
	c.emit(step{name: n.String(), out: []*value{out}, in: []*value{a, b}, run: func(s *Session) {
		dst, x, y := data[float32](s, out), data[float32](s, a), data[float32](s, b)
		for k := t.start(0, 0, 0); !k.done; t.next(&k) {
			for i := range size {
				multiply(dst[k.off[0]+i*st[0]:], x[k.off[1]+i*st[1]:], y[k.off[2]+i*st[2]:], rows, depth, cols)
			}
		}
	}})
	return nil
}

// multiply sets dst (rows, cols) to a (rows, depth) × b (depth, cols).
func multiply(dst, a, b []float32, rows, depth, cols int) {
	for i := range rows {
		row := dst[i*cols : (i+1)*cols]
		clear(row)
		for k := range depth {
			x := a[i*depth+k]
			for j, y := range b[k*cols : (k+1)*cols] {
				row[j] += float32(x * y)
			}
		}
	}
}
