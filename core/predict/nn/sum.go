package nn

import "github.com/sightline-dev/sightline/core/predict/nn/kernel"

// add lowers Add to a step. If a value has a halo, the step adds line by line, otherwise all at once.
func (c *compiler) add(n *node) {
	a, b, out := n.in, n.add, n.out
	lines, size := a.shape[0]*a.shape[2], a.shape[3]*a.shape[1]
	height := a.shape[2]
	if a.halo == [4]int{} && b.halo == [4]int{} && out.halo == [4]int{} {
		lines, size, height = 1, lines*size, 1
	}
	var p *kernel.Add
	if a.typ != Float32 {
		p = residual(a.Quantisation, b.Quantisation, out.Quantisation)
	}
	c.emit(step{name: n.String(), out: []*value{out}, in: []*value{a, b}, run: func(s *Session) {
		for i := range lines {
			d, x, y := out.at(i/height, i%height), a.at(i/height, i%height), b.at(i/height, i%height)
			if p != nil {
				kernel.AddU8(data[uint8](s, out)[d:][:size], data[uint8](s, a)[x:], data[uint8](s, b)[y:], p)
				continue
			}
			kernel.AddF32(data[float32](s, out)[d:][:size], data[float32](s, a)[x:], data[float32](s, b)[y:])
		}
	}})
}
