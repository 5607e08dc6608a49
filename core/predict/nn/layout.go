package nn

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

// row returns the number of elements from one line of pixels of an nhwc value to the next.
func (v *value) row() int { return (v.halo[1] + v.shape[3] + v.halo[3]) * v.shape[1] }

// image returns the number of elements from one picture of an nhwc value's batch to the next.
func (v *value) image() int { return (v.halo[0] + v.shape[2] + v.halo[2]) * v.row() }

// base returns the offset of element 0, in elements: it follows the halo above and to the left.
func (v *value) base() int {
	if !v.nhwc {
		return 0
	}
	return v.halo[0]*v.row() + v.halo[1]*v.shape[1]
}

// elems returns the number of elements of memory that v needs, halo included.
func (v *value) elems() int {
	if !v.nhwc {
		return volume(v.shape)
	}
	return v.shape[0] * v.image()
}

// dense reports whether v's memory is also a row-major array in ONNX order.
func (v *value) dense() bool {
	return !v.nhwc || (v.halo == [4]int{} && (v.shape[1] == 1 || v.shape[2]*v.shape[3] == 1))
}

// place sets the halo of every value to the largest halo that a convolution reads around it.
func (g *graph) place() {
	for _, n := range g.nodes {
		if n.Kind != Conv && n.Kind != tiled {
			continue
		}
		for i, pixels := range n.padding() {
			n.in.halo[i] = max(n.in.halo[i], pixels)
		}
	}
}

// padding returns the halo that convolution n reads around its input.
func (n *node) padding() [4]int {
	if n.Kind == tiled {
		return n.parts[0].padding()
	}
	return [4]int{n.slide.pt, n.slide.pl, n.slide.pb, n.slide.pr}
}

// fill returns the value of each byte in the halo of v: the zero point for bytes, and 0 for floats.
func (v *value) fill() byte { return byte(v.Zero) }

// fresh returns a new value with the type, shape and levels of v.
func (v *value) fresh() *value {
	return &value{typ: v.typ, shape: v.shape, Quantisation: v.Quantisation}
}

// plain returns v as a row-major array. If v's memory has another order, plain emits a step called name that copies v.
func (c *compiler) plain(name string, v *value) *value {
	if !v.nhwc {
		return v
	}
	p := v.fresh()
	if v.dense() {
		p.same = v
		return p
	}
	c.copyStep(name, p, v)
	return p
}

// copyStep emits a step that copies src to dst. Both have the same shape and element size; their layouts may differ.
func (c *compiler) copyStep(name string, dst, src *value) {
	t := newNest(dst.shape, dst.strides(), src.strides())
	to, from := dst.base(), src.base()
	var run func(s *Session)
	switch dst.typ.Size() {
	case 1:
		run = func(s *Session) { move(t, data[uint8](s, dst), data[uint8](s, src), to, from) }
	case 2:
		run = func(s *Session) { move(t, data[uint16](s, dst), data[uint16](s, src), to, from) }
	default:
		run = func(s *Session) { move(t, data[uint32](s, dst), data[uint32](s, src), to, from) }
	}
	c.emit(step{name: name, out: []*value{dst}, in: []*value{src}, run: run})
}
