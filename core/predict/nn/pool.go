package nn

import (
	"github.com/sightline-dev/sightline/core/predict/nn/kernel"
	"github.com/sightline-dev/sightline/core/predict/onnx"
)

// globalAveragePool lowers GlobalAveragePool: exact sums, then one division or requantisation.
func (c *compiler) globalAveragePool(n *node) error {
	if len(n.in[0].shape) != 4 {
		return n.errorf("input of rank %d", len(n.in[0].shape))
	}
	x := c.pixels(n, n.in[0], padding{})
	out := n.out[0]
	batch, ch, h, w := x.shape[0], x.shape[1], x.shape[2], x.shape[3]
	if n.q == nil && !floats(x) {
		return n.errorf("type %v", x.typ)
	}
	if h*w == 0 || h*w >= 1<<24 {
		return n.errorf("%d pixels", h*w)
	}
	// One run of pixels where lines follow each other, otherwise line by line.
	lines, width := h, w
	if x.halo[1]+x.halo[3] == 0 {
		lines, width = 1, h*w
	}
	dense := out.halo == [4]int{}
	if !dense {
		return n.errorf("a convolution pads the pooled pixel")
	}
	c.pools(x)
	if n.q == nil {
		line := scratch(onnx.Float32, ch)
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
	line, total := scratch(onnx.Uint32, ch), scratch(onnx.Uint32, ch)
	to := *n.q.out
	scale := float32(float64(n.q.in.scale) / (float64(h*w) * float64(to.scale)))
	zero := int32(h*w) * n.q.in.zero
	lo, hi := to.limits()
	if to.bytes() {
		lo, hi = int32(n.q.lo), int32(n.q.hi)
	}
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
			if to.typ == onnx.Uint16 {
				storeSums(data[uint16](s, out)[b*ch:], all, zero, scale, to, lo, hi)
			} else {
				storeSums(data[uint8](s, out)[b*ch:], all, zero, scale, to, lo, hi)
			}
		}
	}})
	return nil
}

// sumPixels sets all to the sums of picture b's pixels, lines of width, with sum as scratch.
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

// storeSums stores sums less zero, times scale, as to says.
func storeSums[T uint8 | uint16](dst []T, sums []uint32, zero int32, scale float32, to affine, lo, hi int32) {
	dst = dst[:len(sums)]
	least, most, shift := float64(lo), float64(hi), float64(to.zero)
	for j, v := range sums {
		switch x := roundToEven(float32(int32(v)-zero)*scale) + shift; {
		case x <= least:
			dst[j] = T(lo)
		case x >= most:
			dst[j] = T(hi)
		case x == x:
			dst[j] = T(int32(x))
		default: // as affine.saturate
			dst[j] = T(min(max(to.zero, lo), hi))
		}
	}
}

// maxPool lowers MaxPool of floats or bytes; pixels of the padding do not take part.
func (c *compiler) maxPool(n *node) error {
	if len(n.out) > 1 && n.out[1] != nil {
		return n.errorf("indices output is not supported")
	}
	if t := n.in[0].typ; t != onnx.Float32 && t != onnx.Uint8 && t != onnx.Int8 {
		return n.errorf("type %v", t)
	}
	return c.pool(n, func(s *Session, out, x *value, d int, taps *taps, ch int) {
		if x.typ == onnx.Float32 {
			poolMax(data[float32](s, out)[d:d+ch], data[float32](s, x), taps)
		} else {
			poolMax(data[uint8](s, out)[d:d+ch], data[uint8](s, x), taps)
		}
	})
}

// averagePool lowers AveragePool of floats.
func (c *compiler) averagePool(n *node) error {
	if !floats(n.in[0]) {
		return n.errorf("type %v", n.in[0].typ)
	}
	padded := n.attrInt("count_include_pad", 0) != 0
	return c.pool(n, func(s *Session, out, x *value, d int, taps *taps, ch int) {
		dst, src := data[float32](s, out)[d:d+ch], data[float32](s, x)
		clear(dst)
		for y := range taps.rows {
			for k := range taps.cols {
				for j, v := range src[taps.first+y*taps.stepY+k*taps.stepX:][:ch] {
					dst[j] += v
				}
			}
		}
		count := taps.rows * taps.cols
		if padded {
			count = taps.whole
		}
		for j := range dst {
			dst[j] /= float32(count)
		}
	})
}

// taps are the pixels of one window that lie inside the picture.
type taps struct {
	first        int // offset of the first
	rows, cols   int
	stepY, stepX int
	whole        int // pixels of the window inside the picture or its declared padding
}

// clip returns the first tap k with 0 ≤ at+k·dilation and the number of taps below size.
func clip(at, taps, dilation, size int) (first, count int) {
	if at < 0 {
		first = (-at + dilation - 1) / dilation
	}
	last := -1
	if size-1-at >= 0 {
		last = min(taps-1, (size-1-at)/dilation)
	}
	return first, max(0, last-first+1)
}

// pool emits one call of f per output pixel, with the window's pixels inside the picture.
func (c *compiler) pool(n *node, f func(s *Session, out, x *value, d int, t *taps, ch int)) error {
	out := n.out[0]
	w, err := n.window(n.in[0].shape, out.shape)
	if err != nil {
		return err
	}
	x := c.pixels(n, n.in[0], padding{})
	ch, h, width := x.shape[1], x.shape[2], x.shape[3]
	t := &taps{stepY: w.dh * x.row(), stepX: w.dw * ch}
	for y := range out.shape[2] {
		if _, count := clip(y*w.sh-w.pt, w.kh, w.dh, h); count == 0 {
			return n.errorf("a window lies entirely in the padding")
		}
	}
	for k := range out.shape[3] {
		if _, count := clip(k*w.sw-w.pl, w.kw, w.dw, width); count == 0 {
			return n.errorf("a window lies entirely in the padding")
		}
	}
	c.emit(step{name: n.String(), out: []*value{out}, in: []*value{x}, run: func(s *Session) {
		s.taps = *t
		t := &s.taps
		for b := range out.shape[0] {
			for y := range out.shape[2] {
				top := y*w.sh - w.pt
				first, rows := clip(top, w.kh, w.dh, h)
				_, wholeY := clip(top, w.kh, w.dh, h+w.pb)
				for k := range out.shape[3] {
					left := k*w.sw - w.pl
					col, cols := clip(left, w.kw, w.dw, width)
					_, wholeX := clip(left, w.kw, w.dw, width+w.pr)
					t.rows, t.cols = rows, cols
					t.first = x.at(b, top+first*w.dh) + (left+col*w.dw)*ch
					t.whole = (wholeY + first) * (wholeX + col)
					f(s, out, x, out.at(b, y)+k*ch, t, ch)
				}
			}
		}
	}})
	return nil
}

// poolMax sets dst to the largest of the window's pixels, channel by channel.
func poolMax[T uint8 | float32](dst, src []T, t *taps) {
	copy(dst, src[t.first:])
	for y := range t.rows {
		for k := range t.cols {
			for j, v := range src[t.first+y*t.stepY+k*t.stepX:][:len(dst)] {
				dst[j] = max(dst[j], v)
			}
		}
	}
}
