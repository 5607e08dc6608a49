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

// padding is a halo that a reader wants around a value.
type padding struct {
	halo [4]int
	fill byte
}

// place decides the halo that the producer of every value leaves.
func (g *graph) place() {
	wanted := make(map[*value]padding)
	for _, n := range g.nodes {
		if n.Kind != Conv && n.Kind != tiled {
			continue
		}
		v, want := n.in, n.padding()
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
		v.halo, v.fill = want.halo, want.fill
	}
}

// padding returns the halo that convolution n reads around its input.
func (n *node) padding() padding {
	if n.Kind == tiled {
		return n.parts[0].padding()
	}
	w := n.slide
	return padding{[4]int{w.pt, w.pl, w.pb, w.pr}, byte(n.in.Zero)}
}

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

// pixels returns v with at least the halo of want, through a copy where it has less or another fill.
func (c *compiler) pixels(n *node, v *value, want padding) *value {
	fits := want.halo == [4]int{} || v.fill == want.fill
	for i := range want.halo {
		fits = fits && v.halo[i] >= want.halo[i]
	}
	if fits {
		return v
	}
	p := v.fresh()
	p.nhwc, p.halo, p.fill = true, want.halo, want.fill
	c.copyStep(n.String(), p, v)
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
