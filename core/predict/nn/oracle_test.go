package nn_test

import (
	"fmt"
	"math"
	"slices"

	"github.com/sightline-dev/sightline/core/predict/nn"
	"github.com/sightline-dev/sightline/core/predict/onnx"
	"pgregory.net/rapid"
)

// array is a row-major tensor of the slow reference, in float64.
type array struct {
	shape []int
	v     []float64
}

func newArray(shape ...int) array {
	return array{shape, make([]float64, size(shape))}
}

func size(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// at returns the element at (b, c, y, x) of a rank-four array, and whether that lies inside.
func (a array) at(b, c, y, x int) (float64, bool) {
	if y < 0 || y >= a.shape[2] || x < 0 || x >= a.shape[3] {
		return 0, false
	}
	return a.v[((b*a.shape[1]+c)*a.shape[2]+y)*a.shape[3]+x], true
}

func (a array) float32s() []float32 {
	f := make([]float32, len(a.v))
	for i, x := range a.v {
		f[i] = float32(x)
	}
	return f
}

// slide holds the attributes of a sliding window.
type slide struct{ kh, kw, sh, sw, dh, dw, pt, pl, pb, pr, group int }

func (w slide) out(h, width int) (int, int) {
	return (h+w.pt+w.pb-(w.kh-1)*w.dh-1)/w.sh + 1, (width+w.pl+w.pr-(w.kw-1)*w.dw-1)/w.sw + 1
}

func (w slide) fits(h, width int) bool {
	return h+w.pt+w.pb >= (w.kh-1)*w.dh+1 && width+w.pl+w.pr >= (w.kw-1)*w.dw+1
}

// visit calls f for every output pixel and every tap of its window.
func (w slide) visit(out []int, f func(b, c, y, x, ky, kx, iy, ix int)) {
	for b := range out[0] {
		for c := range out[1] {
			for y := range out[2] {
				for x := range out[3] {
					for ky := range w.kh {
						for kx := range w.kw {
							f(b, c, y, x, ky, kx, y*w.sh-w.pt+ky*w.dh, x*w.sw-w.pl+kx*w.dw)
						}
					}
				}
			}
		}
	}
}

// convolve is ONNX's Conv from its definition; pad is the value outside the picture.
func convolve(x, weights array, bias []float64, w slide) array {
	h, width := w.out(x.shape[2], x.shape[3])
	outs, ins := weights.shape[0], weights.shape[1]
	r := newArray(x.shape[0], outs, h, width)
	w.visit(r.shape, func(b, o, y, xx, ky, kx, iy, ix int) {
		to := &r.v[((b*outs+o)*h+y)*width+xx]
		if ky == 0 && kx == 0 && bias != nil {
			*to += bias[o]
		}
		for i := range ins {
			v, _ := x.at(b, o/(outs/w.group)*ins+i, iy, ix)
			*to += v * weights.v[((o*ins+i)*w.kh+ky)*w.kw+kx]
		}
	})
	return r
}

// poolRef is MaxPool, or AveragePool where average is set.
func poolRef(x array, w slide, average, padded bool) array {
	h, width := w.out(x.shape[2], x.shape[3])
	r := newArray(x.shape[0], x.shape[1], h, width)
	count := make([]int, len(r.v))
	w.visit(r.shape, func(b, c, y, xx, _, _, iy, ix int) {
		at := ((b*x.shape[1]+c)*h+y)*width + xx
		v, inside := x.at(b, c, iy, ix)
		switch {
		case !inside && average && padded:
			count[at]++
		case !inside:
		case average:
			count[at]++
			r.v[at] += v
		case count[at] == 0 || v > r.v[at]:
			count[at]++
			r.v[at] = v
		}
	})
	if average {
		for i := range r.v {
			r.v[i] /= float64(count[i])
		}
	}
	return r
}

// builder makes a graph node by node beside what the reference says its values are.
type builder struct {
	g    *onnx.Graph
	next int
}

func newBuilder() *builder {
	return &builder{g: &onnx.Graph{Name: "test", Opset: 13, Init: map[string]*onnx.Tensor{}}}
}

func (b *builder) name(kind string) string {
	b.next++
	return fmt.Sprintf("%s%d", kind, b.next)
}

func (b *builder) input(t onnx.DType, shape ...int) string {
	name := b.name("in")
	b.g.Inputs = append(b.g.Inputs, onnx.Value{Name: name, Type: t, Shape: shape})
	return name
}

func (b *builder) output(name string, t onnx.DType, shape []int) {
	b.g.Outputs = append(b.g.Outputs, onnx.Value{Name: name, Type: t, Shape: shape})
}

func (b *builder) floats(v []float64, shape ...int) string {
	t := onnx.FromFloat32s(b.name("f"), shape, array{shape, v}.float32s())
	b.g.Init[t.Name] = t
	return t.Name
}

func (b *builder) ints(v ...int64) string {
	t := onnx.FromInt64s(b.name("i"), []int{len(v)}, v)
	b.g.Init[t.Name] = t
	return t.Name
}

func (b *builder) add(op string, attr map[string]onnx.Attr, in ...string) string {
	out := b.name(op)
	b.g.Nodes = append(b.g.Nodes, &onnx.Node{Name: out, Op: op, In: in, Out: []string{out}, Attr: attr})
	return out
}

func intAttr(i int) onnx.Attr { return onnx.Attr{Kind: onnx.AttrInt, I: int64(i)} }

func intsAttr(v ...int) onnx.Attr {
	a := onnx.Attr{Kind: onnx.AttrInts}
	for _, i := range v {
		a.Ints = append(a.Ints, int64(i))
	}
	return a
}

func textAttr(s string) onnx.Attr { return onnx.Attr{Kind: onnx.AttrString, S: []byte(s)} }

// attrs returns w as ONNX attributes; auto is "" for explicit padding.
func (w slide) attrs(auto string, conv bool) map[string]onnx.Attr {
	a := map[string]onnx.Attr{
		"kernel_shape": intsAttr(w.kh, w.kw), "strides": intsAttr(w.sh, w.sw),
	}
	if conv {
		a["dilations"] = intsAttr(w.dh, w.dw)
		a["group"] = intAttr(w.group)
	}
	if auto == "" {
		a["pads"] = intsAttr(w.pt, w.pl, w.pb, w.pr)
	} else {
		a["auto_pad"] = textAttr(auto)
	}
	return a
}

// drawSlide draws a window that fits a picture of h × width, and how its padding is written.
func drawSlide(t *rapid.T, h, width, most int) (slide, string) {
	n := func(lo, hi int, label string) int { return rapid.IntRange(lo, hi).Draw(t, label) }
	w := slide{
		kh: n(1, most, "kh"), kw: n(1, most, "kw"), sh: n(1, 3, "sh"), sw: n(1, 3, "sw"),
		dh: n(1, 2, "dh"), dw: n(1, 2, "dw"), group: 1,
	}
	auto := rapid.SampledFrom([]string{"", "", "SAME_UPPER", "SAME_LOWER", "VALID"}).Draw(t, "auto")
	same := func(in, k, s, d int) (int, int) {
		total := max(0, ((in+s-1)/s-1)*s+(k-1)*d+1-in)
		return total / 2, total - total/2
	}
	switch auto {
	case "":
		w.pt, w.pl, w.pb, w.pr = n(0, w.kh-1, "pt"), n(0, w.kw-1, "pl"), n(0, w.kh-1, "pb"), n(0, w.kw-1, "pr")
	case "SAME_UPPER":
		w.pt, w.pb = same(h, w.kh, w.sh, w.dh)
		w.pl, w.pr = same(width, w.kw, w.sw, w.dw)
	case "SAME_LOWER":
		w.pb, w.pt = same(h, w.kh, w.sh, w.dh)
		w.pr, w.pl = same(width, w.kw, w.sw, w.dw)
	}
	if !w.fits(h, width) {
		w, auto = slide{1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1}, ""
	}
	return w, auto
}

func drawFloats(t *rapid.T, n int, label string) []float64 {
	seed := rapid.Uint32().Draw(t, label)
	v := make([]float64, n)
	for i := range v {
		seed = seed*1664525 + 1013904223
		v[i] = float64(int32(seed)>>16) / 32768
	}
	return v
}

// run compiles b's graph and runs it once.
func (b *builder) run(o nn.Options, in ...nn.Tensor) ([]nn.Tensor, error) {
	p, err := nn.Compile(b.g, o)
	if err != nil {
		return nil, err
	}
	return p.NewSession().Run(in)
}

// drawOptions draws how convolutions are tiled: as usual (small networks are not), or in blocks
// of few rows.
func drawOptions(t *rapid.T) nn.Options {
	if rapid.Bool().Draw(t, "blocks") {
		return nn.WithTiling(nn.Options{}, 1, rapid.IntRange(1, 20_000).Draw(t, "tile"))
	}
	return nn.Options{}
}

// differs says how got differs from want by more than float32 arithmetic does, or "".
func differs(got nn.Tensor, want array) string {
	if !slices.Equal(got.Shape, want.shape) || len(got.F32) != len(want.v) {
		return fmt.Sprintf("shape %v, want %v", got.Shape, want.shape)
	}
	var top float64
	for _, w := range want.v {
		top = max(top, math.Abs(w))
	}
	for i, w := range want.v {
		if g := float64(got.F32[i]); !(math.Abs(g-w) <= 1e-5*(top+1)) {
			return fmt.Sprintf("element %d of %v is %v, want %v", i, want.shape, g, w)
		}
	}
	return ""
}
