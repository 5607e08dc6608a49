package nn_test

import (
	"fmt"
	"math"
	"slices"

	"github.com/sightline-dev/sightline/core/predict/nn"
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

// counting returns the array of shape that holds f(0), f(1), ….
func counting(f func(i int) float64, shape ...int) array {
	a := newArray(shape...)
	for i := range a.v {
		a.v[i] = f(i)
	}
	return a
}

// each returns v with g applied to every element.
func (a array) each(g func(float64) float64) array {
	r := newArray(a.shape...)
	for i, x := range a.v {
		r.v[i] = g(x)
	}
	return r
}

// at returns the element at (b, c, y, x) of a rank-four array, and whether (y, x) lies inside.
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

// picture returns a (N, C, H, W) in the layout that Run accepts.
func (a array) picture() nn.Tensor {
	n, c, h, w := a.shape[0], a.shape[1], a.shape[2], a.shape[3]
	return nn.Tensor{Type: nn.Float32, Shape: []int{n, h, w, c}, F32: toNHWC(a.float32s(), a.shape)}
}

// toNHWC returns v (N, C, H, W) as (N, H, W, C).
func toNHWC[T any](v []T, shape []int) []T {
	c, plane := shape[1], shape[2]*shape[3]
	r := make([]T, len(v))
	for i, x := range v {
		r[(i/(c*plane)*plane+i%plane)*c+i/plane%c] = x
	}
	return r
}

// slide holds the attributes of a sliding window: kernel, stride, dilation, padding and groups.
type slide struct{ kh, kw, sh, sw, dh, dw, pt, pl, pb, pr, group int }

// point is a window of one pixel that moves pixel by pixel.
var point = slide{1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1}

func (w slide) out(h, width int) (int, int) {
	return (h+w.pt+w.pb-(w.kh-1)*w.dh-1)/w.sh + 1, (width+w.pl+w.pr-(w.kw-1)*w.dw-1)/w.sw + 1
}

func (w slide) fits(h, width int) bool {
	return h+w.pt+w.pb >= (w.kh-1)*w.dh+1 && width+w.pl+w.pr >= (w.kw-1)*w.dw+1
}

// conv returns a Conv node with this window over value of. It has no weights yet.
func (w slide) conv(of, outs, ins int) nn.Node {
	return nn.Node{
		Kind: nn.Conv, Of: of, Group: w.group, Stride: [2]int{w.sh, w.sw}, Dilation: [2]int{w.dh, w.dw},
		Pad: [4]int{w.pt, w.pl, w.pb, w.pr}, Shape: [4]int{outs, ins / w.group, w.kh, w.kw},
	}
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

// convolve computes a convolution by its definition. Pixels outside the picture are zero.
func convolve(x, weights array, bias []float64, w slide) array {
	h, width := w.out(x.shape[2], x.shape[3])
	outs, ins := weights.shape[0], weights.shape[1]
	r := newArray(x.shape[0], outs, h, width)
	w.visit(r.shape, func(b, o, y, xx, ky, kx, iy, ix int) {
		to := &r.v[((b*outs+o)*h+y)*width+xx]
		if ky == 0 && kx == 0 {
			*to += bias[o]
		}
		for i := range ins {
			v, _ := x.at(b, o/(outs/w.group)*ins+i, iy, ix)
			*to += v * weights.v[((o*ins+i)*w.kh+ky)*w.kw+kx]
		}
	})
	return r
}

// drawSlide draws a window that fits a picture of h × width.
func drawSlide(t *rapid.T, h, width, maxKernel int) slide {
	n := func(lo, hi int, label string) int { return rapid.IntRange(lo, hi).Draw(t, label) }
	w := slide{
		kh: n(1, maxKernel, "kh"), kw: n(1, maxKernel, "kw"), sh: n(1, 3, "sh"), sw: n(1, 3, "sw"),
		dh: n(1, 2, "dh"), dw: n(1, 2, "dw"), group: 1,
	}
	w.pt, w.pl, w.pb, w.pr = n(0, w.kh-1, "pt"), n(0, w.kw-1, "pl"), n(0, w.kh-1, "pb"), n(0, w.kw-1, "pr")
	if rapid.Bool().Draw(t, "same") { // the result has the picture's size, so that it can be added
		w.sh, w.sw, w.dh, w.dw = 1, 1, 1, 1
		w.pb, w.pr = w.kh-1-w.pt, w.kw-1-w.pl
	}
	if !w.fits(h, width) {
		return point
	}
	return w
}

// drawGroups draws the number of groups and of outputs of a convolution of c channels.
func drawGroups(t *rapid.T, c int) (group, outs int) {
	switch rapid.IntRange(0, 4).Draw(t, "grouping") {
	case 0:
		return c, c
	case 2:
		return 1, c
	case 1:
		if c%2 == 0 {
			return 2, 2 * rapid.IntRange(1, 5).Draw(t, "half")
		}
	}
	return 1, rapid.IntRange(1, 20).Draw(t, "outs")
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

// drawShape draws the shape of a small input.
func drawShape(t *rapid.T) []int {
	n := func(hi int, label string) int { return rapid.IntRange(1, hi).Draw(t, label) }
	return []int{n(2, "batch"), n(9, "channels"), n(12, "height"), n(24, "width")}
}

// drawOptions draws how convolutions are tiled: by default, which does not tile small networks, or in blocks of few rows.
func drawOptions(t *rapid.T) nn.Options {
	if rapid.Bool().Draw(t, "blocks") {
		return nn.WithTiling(nn.Options{}, 1, rapid.IntRange(1, 20_000).Draw(t, "tile"))
	}
	return nn.Options{}
}

// fatal is a *testing.T or a *rapid.T.
type fatal interface {
	Helper()
	Fatal(args ...any)
}

// network returns a network with one input and no nodes.
func network(t fatal, typ nn.Type, levels nn.Quantisation, shape ...int) *nn.Network {
	t.Helper()
	n, err := nn.NewNetwork(nn.Value{Name: "x", Type: typ, Shape: shape, Quantisation: levels})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// add appends a node and returns its number.
func add(t fatal, n *nn.Network, node nn.Node) int {
	t.Helper()
	number, err := n.Append(node)
	if err != nil {
		t.Fatal(err)
	}
	return number
}

// give makes the values with these numbers outputs of n.
func give(t fatal, n *nn.Network, numbers ...int) {
	t.Helper()
	for _, number := range numbers {
		if err := n.AddOutput(fmt.Sprint("v", number), number); err != nil {
			t.Fatal(err)
		}
	}
}

// plan compiles n.
func plan(t fatal, n *nn.Network, o nn.Options) *nn.Plan {
	t.Helper()
	p, err := nn.Compile(n, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// differs returns "" if got equals want up to float32 rounding. Otherwise it describes the difference.
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

// again returns n after writing and reading its file.
func again(t fatal, n *nn.Network) *nn.Network {
	t.Helper()
	r, err := nn.Read(n.Marshal())
	if err != nil {
		t.Fatal(err)
	}
	return r
}
