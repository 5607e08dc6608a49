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

// place decides the halo that the producer of every value leaves: the largest that a convolution reads.
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

// fill returns what the halo of v holds, in each byte: the zero point of bytes, and 0 for floats.
func (v *value) fill() byte { return byte(v.Zero) }

// fresh returns a new value like v in type and shape.
func (v *value) fresh() *value {
	return &value{typ: v.typ, shape: v.shape, Levels: v.Levels}
}

// plain returns v as a row-major array, through a copy where it does not lie so. The step of the copy is called name.
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

// copyStep moves src to dst, which has the same shape and element size and may lie differently.
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
