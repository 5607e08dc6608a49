package nn

import (
	"math"

	"github.com/sightline-dev/sightline/core/predict/nn/kernel"
)

// maxDepth is the maximum number of inputs of a Gemm whose operand is sums, so that the kernel's sums do not overflow.
const maxDepth = 1 << 16

// gemm emits the step of a Gemm node.
func (c *compiler) gemm(n *node) error {
	x, out := n.in, n.out
	rows, outs, depth := x.shape[0], n.Shape[0], n.Shape[1]
	if x.typ == Float32 {
		p := c.product(n, x, out, 0, 1, 1, depth)
		p.stepX = depth
		c.emit(step{name: n.String(), out: []*value{out}, in: p.reads(), run: func(s *Session) { p.rows(s, 0, 0, 0, rows) }})
		return nil
	}
	if depth > maxDepth {
		return n.errorf("rows of %d sums, at most %d", depth, maxDepth)
	}
	// The sums in int64 are exact. Each is rounded once to float32 and multiplied once with the scale.
	w := kernel.PackS8(n.Bytes, outs, depth)
	bias, scale := make([]int32, outs), make([]float32, outs)
	for j, sum := range w.Sum {
		b := int64(n.Offsets[j]) - int64(x.Zero)*int64(sum)
		if b < math.MinInt32 || b > math.MaxInt32 {
			return n.errorf("the offset of output %d is %d", j, b)
		}
		bias[j], scale[j] = int32(b), x.Scale*n.Scales[j]
	}
	acc := scratch(int64s, outs)
	c.emit(step{name: n.String(), out: []*value{out}, in: []*value{x}, temp: []*value{acc}, run: func(s *Session) {
		a, src := data[int64](s, acc)[:outs], data[uint16](s, x)
		for i := range rows {
			kernel.GemvU16(a, src[i*depth:(i+1)*depth], w, bias)
			to := data[float32](s, out)[i*outs:][:len(a)]
			for j, v := range a {
				to[j] = float32(v) * scale[j]
			}
		}
	}})
	return nil
}
