package nn

import (
	"slices"

	"github.com/sightline-dev/sightline/core/predict/onnx"
)

// root returns the value whose memory v uses.
func (v *value) root() *value {
	for v.same != nil {
		v = v.same
	}
	return v
}

// strides returns the distance in elements between neighbours along each ONNX dimension.
func (v *value) strides() []int {
	if !v.nhwc {
		return rowMajor(v.shape)
	}
	c := v.shape[1]
	row := v.row()
	return []int{(v.halo[0] + v.shape[2] + v.halo[2]) * row, 1, row, c}
}

// row returns the elements from one line of pixels to the next, of an nhwc value.
func (v *value) row() int { return (v.halo[1] + v.shape[3] + v.halo[3]) * v.shape[1] }

// image returns the elements from one picture of the batch to the next, of an nhwc value.
func (v *value) image() int { return (v.halo[0] + v.shape[2] + v.halo[2]) * v.row() }

// base returns the offset of element 0, in elements: behind the halo above and left of it.
func (v *value) base() int {
	if !v.nhwc {
		return 0
	}
	return v.halo[0]*v.row() + v.halo[1]*v.shape[1]
}

// elems returns the elements of memory v needs, halo included.
func (v *value) elems() int {
	if !v.nhwc {
		return volume(v.shape)
	}
	return v.shape[0] * v.image()
}

// dense reports whether v's bytes are those of a row-major array in ONNX order.
func (v *value) dense() bool {
	return !v.nhwc || (v.halo == [4]int{} && (v.shape[1] == 1 || v.shape[2]*v.shape[3] == 1))
}

// broadcast returns v's strides aligned to shape as ONNX broadcasts: 0 along what is repeated.
func (v *value) broadcast(shape []int) []int {
	s := make([]int, len(shape))
	own := v.strides()
	skip := len(shape) - len(v.shape)
	for d, n := range v.shape {
		if n != 1 {
			s[skip+d] = own[d]
		}
	}
	return s
}

// padding is a halo that a reader wants around a value.
type padding struct {
	halo [4]int
	fill byte
}

// spatial are the operators that read and write rank four as (N, H, W, C).
var spatial = map[string]bool{
	"Conv": true, "Block": true, "MaxPool": true, "AveragePool": true, "GlobalAveragePool": true,
}

// follows are the operators whose result of rank four lies as their operands do.
var follows = map[string]bool{
	"Add": true, "Sub": true, "Mul": true, "Div": true, "Pow": true,
	"Relu": true, "Clip": true, "Sigmoid": true, "Exp": true, "Sqrt": true,
	"HardSigmoid": true, "HardSwish": true, "Softmax": true, "LpNormalization": true,
	"Concat": true, "Slice": true, "Pad": true, "Cast": true, "ReduceMean": true,
	"QuantizeLinear": true, "DequantizeLinear": true, "Table": true,
}

// place decides how every value of rank four lies, and the halo its producer leaves.
func (g *graph) place() error {
	if slices.ContainsFunc(g.nodes, func(n *node) bool { return spatial[n.op] }) {
		for _, v := range g.inputs {
			v.nhwc = len(v.shape) == 4
		}
	}
	for _, n := range g.nodes {
		lies := spatial[n.op]
		if follows[n.op] {
			lies = slices.ContainsFunc(n.in, func(v *value) bool { return v != nil && v.nhwc })
		}
		for _, v := range n.out {
			if v != nil {
				v.nhwc = lies && len(v.shape) == 4
			}
		}
	}
	wanted := make(map[*value]padding)
	for _, n := range g.nodes {
		if n.op != "Conv" && n.op != "Block" {
			continue
		}
		want, err := n.padding()
		if err != nil {
			return err
		}
		v := n.in[0]
		if have, ok := wanted[v]; ok && have.fill != want.fill {
			continue // the second reader gets a copy
		} else if ok {
			for i := range want.halo {
				want.halo[i] = max(want.halo[i], have.halo[i])
			}
		}
		if want.halo != [4]int{} {
			wanted[v] = want
		}
	}
	for v, want := range wanted {
		if v.nhwc {
			v.halo, v.fill = want.halo, want.fill
		}
	}
	return nil
}

// padding returns the halo that convolution n reads around its input.
func (n *node) padding() (padding, error) {
	if n.op == "Block" {
		return n.parts[0].padding()
	}
	w, err := n.window(n.in[0].shape, n.out[0].shape)
	if err != nil {
		return padding{}, err
	}
	p := padding{halo: [4]int{w.pt, w.pl, w.pb, w.pr}}
	if n.q != nil {
		p.fill = byte(n.q.in.zero)
	}
	return p, nil
}

// fresh returns a new value like v in type and shape.
func (v *value) fresh() *value {
	return &value{name: v.name, typ: v.typ, shape: v.shape}
}

// plain returns v as a row-major array, through a copy where it does not lie so.
func (c *compiler) plain(n *node, v *value) *value {
	if !v.nhwc {
		return v
	}
	p := v.fresh()
	if v.dense() {
		p.same = v
		return p
	}
	c.copyStep(n, p, v)
	return p
}

// pixels returns v as (N, H, W, C) with at least the halo of want, through a copy where it does not lie so.
func (c *compiler) pixels(n *node, v *value, want padding) *value {
	if v.nhwc && (want.halo == [4]int{} || v.fill == want.fill) {
		fits := true
		for i := range want.halo {
			fits = fits && v.halo[i] >= want.halo[i]
		}
		if fits {
			return v
		}
	}
	p := v.fresh()
	p.nhwc, p.halo, p.fill = true, want.halo, want.fill
	if p.halo == [4]int{} && !v.nhwc && p.dense() {
		p.same = v
		return p
	}
	c.copyStep(n, p, v)
	return p
}

// copyStep moves src to dst, which has the same shape and element size and may lie differently.
func (c *compiler) copyStep(n *node, dst, src *value) {
	if len(dst.shape) == 4 && dst.shape[1] == 3 && dst.nhwc && !src.nhwc {
		c.interleaveStep(n, dst, src)
		return
	}
	t := newNest(dst.shape, dst.strides(), src.strides())
	c.moveStep(n, t, dst, src, dst.base(), src.base())
}

// interleaveStep is copyStep for three planes into pixels: every picture comes in this way.
func (c *compiler) interleaveStep(n *node, dst, src *value) {
	run := func(s *Session) { interleave(dst, data[float32](s, dst), data[float32](s, src)) }
	switch dst.typ.Size() {
	case 1:
		run = func(s *Session) { interleave(dst, data[uint8](s, dst), data[uint8](s, src)) }
	case 2:
		run = func(s *Session) { interleave(dst, data[uint16](s, dst), data[uint16](s, src)) }
	case 8:
		run = func(s *Session) { interleave(dst, data[uint64](s, dst), data[uint64](s, src)) }
	}
	c.emit(step{name: n.String(), out: []*value{dst}, in: []*value{src}, run: run})
}

// interleave writes the planes of src, (N, 3, H, W), into to, which lies as v does.
func interleave[T any](v *value, to, src []T) {
	h, w := v.shape[2], v.shape[3]
	for b := range v.shape[0] {
		planes := src[b*3*h*w:]
		for y := range h {
			r := planes[y*w:][:w]
			g, bl := planes[(h+y)*w:][:len(r)], planes[(2*h+y)*w:][:len(r)]
			line := to[v.at(b, y):][:3*w]
			for x := range r {
				if len(line) < 3 {
					break
				}
				line[0], line[1], line[2] = r[x], g[x], bl[x]
				line = line[3:]
			}
		}
	}
}

// moveStep emits the strided copy t from src to dst, by element size.
func (c *compiler) moveStep(n *node, t *nest, dst, src *value, dstBase, srcBase int) {
	var run func(s *Session)
	switch dst.typ.Size() {
	case 1:
		run = func(s *Session) { move(t, data[uint8](s, dst), data[uint8](s, src), dstBase, srcBase) }
	case 2:
		run = func(s *Session) { move(t, data[uint16](s, dst), data[uint16](s, src), dstBase, srcBase) }
	case 4:
		run = func(s *Session) { move(t, data[uint32](s, dst), data[uint32](s, src), dstBase, srcBase) }
	default:
		run = func(s *Session) { move(t, data[uint64](s, dst), data[uint64](s, src), dstBase, srcBase) }
	}
	c.emit(step{name: n.String(), out: []*value{dst}, in: []*value{src}, run: run})
}

// shiftStep emits dst = src with 128 added to every byte, modulo 256: between ONNX's int8 and ours.
func (c *compiler) shiftStep(n *node, dst, src *value) {
	size := volume(src.shape)
	c.emit(step{name: n.String(), out: []*value{dst}, in: []*value{src}, run: func(s *Session) {
		d, x := data[uint8](s, dst)[:size], data[uint8](s, src)[:size]
		for i := range d {
			d[i] = x[i] ^ 0x80
		}
	}})
}

// floats is the type most operators want.
func floats(vs ...*value) bool {
	for _, v := range vs {
		if v != nil && v.typ != onnx.Float32 {
			return false
		}
	}
	return true
}
