package nn

import "github.com/sightline-dev/sightline/core/predict/nn/kernel"

// pool lowers Pool to a step. For bytes the results are exact sums, for floats they are the sums times 1/(h·w). If s.cell is not 0, the
// step computes the result as if all pixels were equal to pixel s.cell-1.
func (c *compiler) pool(n *node) error {
	x, out := n.in, n.out
	batch, ch, h, w := x.shape[0], x.shape[1], x.shape[2], x.shape[3]
	if h*w >= 1<<24 {
		return n.errorf("%d pixels", h*w)
	}
	if out.halo != [4]int{} {
		return n.errorf("a convolution pads the pooled pixel")
	}
	// Without a halo at the left and right, all lines form one run of pixels.
	lines, width := h, w
	if x.halo[1]+x.halo[3] == 0 {
		lines, width = 1, h*w
	}
	c.pools(x)
	if x.typ == Float32 {
		line := scratch(Float32, ch)
		scale := 1 / float32(h*w)
		c.emit(step{name: n.String(), out: []*value{out}, in: []*value{x}, temp: []*value{line}, run: func(s *Session) {
			if s.cell > 0 {
				copy(data[float32](s, out)[:ch], data[float32](s, x)[x.pixel(s.cell-1):])
				return
			}
			sum := data[float32](s, line)[:ch]
			for b := range batch {
				dst := data[float32](s, out)[b*ch : (b+1)*ch]
				kernel.SumRowsF32(dst, data[float32](s, x)[x.at(b, 0):], ch, width)
				for y := 1; y < lines; y++ {
					kernel.SumRowsF32(sum, data[float32](s, x)[x.at(b, y):], ch, width)
					for j, v := range sum {
						dst[j] += v
					}
				}
				for j := range dst {
					dst[j] *= scale
				}
			}
		}})
		return nil
	}
	line, total := scratch(uint32s, ch), scratch(uint32s, ch)
	c.emit(step{name: n.String(), out: []*value{out}, in: []*value{x}, temp: []*value{line, total}, run: func(s *Session) {
		sum, all := data[uint32](s, line)[:ch], data[uint32](s, total)[:ch]
		for b := range batch {
			if s.cell > 0 {
				for j, v := range data[uint8](s, x)[x.pixel(s.cell-1):][:ch] {
					all[j] = uint32(h*w) * uint32(v)
				}
			} else {
				sumPixels(s, x, all, sum, b, lines, width)
			}
			dst := data[uint16](s, out)[b*ch:][:ch]
			for j, v := range all {
				dst[j] = uint16(v)
			}
		}
	}})
	return nil
}

// sumPixels sets all to the sums of the pixels of picture b, which has lines runs of width pixels. sum is scratch memory.
func sumPixels(s *Session, x *value, all, sum []uint32, b, lines, width int) {
	ch := len(all)
	kernel.SumRowsU8(all, data[uint8](s, x)[x.at(b, 0):], ch, width)
	for y := 1; y < lines; y++ {
		kernel.SumRowsU8(sum, data[uint8](s, x)[x.at(b, y):], ch, width)
		for j, v := range sum {
			all[j] += v
		}
	}
}
