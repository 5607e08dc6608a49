package nn_test

import (
	"math"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/predict/nn"
	"github.com/sightline-dev/sightline/core/predict/onnx"
	"pgregory.net/rapid"
)

// floatNet grows a random float32 network and the reference's values with it.
type floatNet struct {
	*builder
	t      *rapid.T
	names  []string
	values []array
}

func (f *floatNet) last() (string, array) {
	return f.names[len(f.names)-1], f.values[len(f.values)-1]
}

func (f *floatNet) push(name string, v array) {
	f.names, f.values = append(f.names, name), append(f.values, v)
}

func (f *floatNet) int(lo, hi int, label string) int { return rapid.IntRange(lo, hi).Draw(f.t, label) }

// each returns v with g applied to every element.
func (a array) each(g func(float64) float64) array {
	r := newArray(a.shape...)
	for i, x := range a.v {
		r.v[i] = g(x)
	}
	return r
}

func (f *floatNet) conv() {
	_, x := f.last()
	w, auto := drawSlide(f.t, x.shape[2], x.shape[3], 4)
	c := x.shape[1]
	outs := f.int(1, 20, "outs")
	switch f.int(0, 3, "grouping") {
	case 0:
		w.group, outs = c, c
	case 1:
		if c%2 == 0 {
			w.group, outs = 2, 2*f.int(1, 5, "half")
		}
	}
	f.convolution(w, auto, outs)
}

func (f *floatNet) convolution(w slide, auto string, outs int) {
	name, x := f.last()
	weights := newArray(outs, x.shape[1]/w.group, w.kh, w.kw)
	weights.v = drawFloats(f.t, len(weights.v), "weights")
	in := []string{name, f.floats(weights.v, weights.shape...)}
	var bias []float64
	if rapid.Bool().Draw(f.t, "bias") {
		bias = drawFloats(f.t, outs, "biases")
		in = append(in, f.floats(bias, outs))
	}
	f.push(f.add("Conv", w.attrs(auto, true), in...), convolve(x, weights, bias, w))
}

// inverted is an inverted residual: expand, depthwise, project, and the sum where shapes allow.
func (f *floatNet) inverted() {
	name, x := f.last()
	point := slide{1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1}
	clip := func() {
		real, v := f.last()
		f.push(f.add("Clip", nil, real, f.floats([]float64{0}), f.floats([]float64{6})), v.each(func(v float64) float64 { return min(max(v, 0), 6) }))
	}
	if f.int(0, 2, "dense") == 0 {
		w, auto := drawSlide(f.t, x.shape[2], x.shape[3], 3)
		f.convolution(w, auto, f.int(2, 20, "wide"))
	} else {
		f.convolution(point, "", f.int(2, 20, "wide"))
	}
	clip()
	_, wide := f.last()
	w, auto := drawSlide(f.t, wide.shape[2], wide.shape[3], 3)
	w.group = wide.shape[1]
	f.convolution(w, auto, w.group)
	clip()
	outs := x.shape[1]
	f.convolution(point, "", outs)
	if narrow, v := f.last(); slices.Equal(v.shape, x.shape) {
		sum := newArray(v.shape...)
		for i := range sum.v {
			sum.v[i] = v.v[i] + x.v[i]
		}
		f.push(f.add("Add", nil, narrow, name), sum)
	}
}

func (f *floatNet) pool() {
	name, x := f.last()
	w, auto := drawSlide(f.t, x.shape[2], x.shape[3], 3)
	w.dh, w.dw = 1, 1
	if auto != "" || !w.fits(x.shape[2], x.shape[3]) {
		w, auto = slide{1, 1, 2, 1, 1, 1, 0, 0, 0, 0, 1}, "VALID"
	}
	if rapid.Bool().Draw(f.t, "average") {
		padded := rapid.Bool().Draw(f.t, "padded")
		a := w.attrs(auto, false)
		if padded {
			a["count_include_pad"] = intAttr(1)
		}
		f.push(f.add("AveragePool", a, name), poolRef(x, w, true, padded))
		return
	}
	f.push(f.add("MaxPool", w.attrs(auto, false), name), poolRef(x, w, false, false))
}

func (f *floatNet) norm() {
	name, x := f.last()
	c := x.shape[1]
	p := make([][]float64, 4)
	in := []string{name}
	for i := range p {
		p[i] = drawFloats(f.t, c, "norm")
		if i == 3 {
			for j := range p[i] {
				p[i][j] = math.Abs(p[i][j]) + 0.1
			}
		}
		in = append(in, f.floats(p[i], c))
	}
	r := newArray(x.shape...)
	plane := x.shape[2] * x.shape[3]
	for i, v := range x.v {
		j := i / plane % c
		r.v[i] = (v-p[2][j])/math.Sqrt(p[3][j]+1e-5)*p[0][j] + p[1][j]
	}
	f.push(f.add("BatchNormalization", nil, in...), r)
}

func (f *floatNet) unary() {
	name, x := f.last()
	switch f.int(0, 5, "unary") {
	case 0:
		f.push(f.add("Relu", nil, name), x.each(func(v float64) float64 { return max(v, 0) }))
	case 1:
		f.push(f.add("Clip", nil, name, f.floats([]float64{-0.25}), f.floats([]float64{1.5})),
			x.each(func(v float64) float64 { return min(max(v, -0.25), 1.5) }))
	case 2:
		f.push(f.add("Sigmoid", nil, name), x.each(func(v float64) float64 { return 1 / (1 + math.Exp(-v)) }))
	case 3:
		f.push(f.add("HardSigmoid", nil, name), x.each(func(v float64) float64 { return min(max(0.2*v+0.5, 0), 1) }))
	case 4:
		f.push(f.add("Clip", nil, name, f.floats([]float64{0})), x.each(func(v float64) float64 { return max(v, 0) }))
	case 5:
		y := f.floats([]float64{2})
		f.push(f.add("Pow", nil, name, y), x.each(func(v float64) float64 { return v * v }))
	}
}

// binary combines the last value with an earlier one of its shape, or with a constant that broadcasts.
func (f *floatNet) binary() {
	name, x := f.last()
	var fits []int
	for i, v := range f.values {
		if slices.Equal(v.shape, x.shape) {
			fits = append(fits, i)
		}
	}
	op := rapid.SampledFrom([]string{"Add", "Add", "Add", "Sub", "Mul"}).Draw(f.t, "binary")
	do := func(a, b float64) float64 {
		switch op {
		case "Add":
			return a + b
		case "Sub":
			return a - b
		}
		return a * b
	}
	r := newArray(x.shape...)
	if rapid.Bool().Draw(f.t, "constant") {
		c, plane := x.shape[1], x.shape[2]*x.shape[3]
		v := drawFloats(f.t, c, "per channel")
		for i := range r.v {
			r.v[i] = do(x.v[i], v[i/plane%c])
		}
		f.push(f.add(op, nil, name, f.floats(v, c, 1, 1)), r)
		return
	}
	k := rapid.SampledFrom(fits).Draw(f.t, "operand")
	for i := range r.v {
		r.v[i] = do(f.values[k].v[i], x.v[i])
	}
	f.push(f.add(op, nil, f.names[k], name), r)
}

// concat joins the last value with an earlier one that agrees in all but the channels.
func (f *floatNet) concat() {
	name, x := f.last()
	k := f.int(0, len(f.values)-1, "joined")
	y := f.values[k]
	if y.shape[2] != x.shape[2] || y.shape[3] != x.shape[3] {
		k, y = len(f.values)-1, x
	}
	plane := x.shape[2] * x.shape[3]
	r := newArray(x.shape[0], x.shape[1]+y.shape[1], x.shape[2], x.shape[3])
	r.v = r.v[:0]
	for b := range x.shape[0] {
		r.v = append(r.v, x.v[b*x.shape[1]*plane:(b+1)*x.shape[1]*plane]...)
		r.v = append(r.v, y.v[b*y.shape[1]*plane:(b+1)*y.shape[1]*plane]...)
	}
	f.push(f.add("Concat", map[string]onnx.Attr{"axis": intAttr(1)}, name, f.names[k]), r)
}

// slice cuts rows and columns, with a step and from behind.
func (f *floatNet) slice() {
	name, x := f.last()
	if x.shape[2] < 3 {
		return
	}
	h := x.shape[2]
	var rows []int
	var in []string
	if rapid.Bool().Draw(f.t, "backwards") {
		in = []string{name, f.ints(-1), f.ints(math.MinInt64), f.ints(2), f.ints(-2)}
		for y := h - 1; y >= 0; y -= 2 {
			rows = append(rows, y)
		}
	} else {
		in = []string{name, f.ints(1), f.ints(math.MaxInt64), f.ints(-2), f.ints(1)}
		for y := 1; y < h; y++ {
			rows = append(rows, y)
		}
	}
	r := newArray(x.shape[0], x.shape[1], len(rows), x.shape[3])
	r.v = r.v[:0]
	for plane := range x.shape[0] * x.shape[1] {
		for _, y := range rows {
			r.v = append(r.v, x.v[(plane*h+y)*x.shape[3]:(plane*h+y+1)*x.shape[3]]...)
		}
	}
	f.push(f.add("Slice", nil, in...), r)
}

func (f *floatNet) pad() {
	name, x := f.last()
	w := slide{1, 1, 1, 1, 1, 1, f.int(0, 2, "top"), f.int(0, 2, "left"), f.int(0, 2, "bottom"), f.int(0, 2, "right"), 1}
	h, width := w.out(x.shape[2], x.shape[3])
	r := newArray(x.shape[0], x.shape[1], h, width)
	w.visit(r.shape, func(b, c, y, xx, _, _, iy, ix int) {
		v, inside := x.at(b, c, iy, ix)
		if !inside {
			v = 0.5
		}
		r.v[((b*x.shape[1]+c)*h+y)*width+xx] = v
	})
	pads := f.ints(0, 0, int64(w.pt), int64(w.pl), 0, 0, int64(w.pb), int64(w.pr))
	f.push(f.add("Pad", nil, name, pads, f.floats([]float64{0.5})), r)
}

// swap transposes rows and columns.
func (f *floatNet) swap() {
	name, x := f.last()
	r := newArray(x.shape[0], x.shape[1], x.shape[3], x.shape[2])
	for i := range r.v {
		y, xx := i/x.shape[2]%x.shape[3], i%x.shape[2]
		r.v[i] = x.v[i/(x.shape[2]*x.shape[3])*(x.shape[2]*x.shape[3])+xx*x.shape[3]+y]
	}
	f.push(f.add("Transpose", map[string]onnx.Attr{"perm": intsAttr(0, 1, 3, 2)}, name), r)
}

func (f *floatNet) softmax() {
	name, x := f.last()
	plane := x.shape[2] * x.shape[3]
	c := x.shape[1]
	r := newArray(x.shape...)
	sums := map[int]float64{}
	for i, v := range x.v {
		r.v[i] = math.Exp(v)
		sums[i/(c*plane)*plane+i%plane] += r.v[i]
	}
	for i := range r.v {
		r.v[i] /= sums[i/(c*plane)*plane+i%plane]
	}
	f.push(f.add("Softmax", map[string]onnx.Attr{"axis": intAttr(-3)}, name), r)
}

// finish adds a head over the pixels, and makes everything an output.
func (f *floatNet) finish() {
	name, x := f.last()
	b, c, plane := x.shape[0], x.shape[1], x.shape[2]*x.shape[3]
	mean := newArray(b, c, 1, 1)
	for i, v := range x.v {
		mean.v[i/plane] += v / float64(plane)
	}
	pooled := f.add("GlobalAveragePool", nil, name)
	flat := f.add("Flatten", nil, pooled)
	outs := f.int(1, 30, "head")
	w := drawFloats(f.t, outs*c, "head weights")
	bias := drawFloats(f.t, outs, "head bias")
	logits := newArray(b, outs)
	for i := range b {
		for j := range outs {
			sum := bias[j]
			for k := range c {
				sum += mean.v[i*c+k] * w[j*c+k]
			}
			logits.v[i*outs+j] = sum
		}
	}
	gemm := f.add("Gemm", map[string]onnx.Attr{"transB": intAttr(1)}, flat, f.floats(w, outs, c), f.floats(bias, outs))
	f.push(gemm, logits)
	// Some values in between are outputs too: they must survive what follows and not be fused away.
	for i, v := range f.values {
		if i > 0 && (i == len(f.values)-1 || rapid.Bool().Draw(f.t, "output")) {
			f.output(f.names[i], onnx.Float32, v.shape)
		}
	}
}

func growFloatNet(t *rapid.T) *floatNet {
	f := &floatNet{builder: newBuilder(), t: t}
	x := newArray(f.int(1, 2, "batch"), f.int(1, 9, "channels"), f.int(1, 12, "height"), f.int(1, 24, "width"))
	x.v = drawFloats(t, len(x.v), "picture")
	f.push(f.input(onnx.Float32, x.shape...), x)
	layers := []func(){f.inverted, f.inverted, f.conv, f.conv, f.conv, f.pool, f.norm, f.unary, f.unary, f.binary, f.binary, f.concat, f.slice, f.pad, f.swap, f.softmax}
	for range f.int(1, 8, "layers") {
		rapid.SampledFrom(layers).Draw(t, "layer")()
		// Keep the numbers near one, so that a tolerance means something.
		if _, v := f.last(); slices.ContainsFunc(v.v, func(x float64) bool { return math.Abs(x) > 100 }) {
			name, _ := f.last()
			f.push(f.add("Mul", nil, name, f.floats([]float64{0.0078125})), v.each(func(x float64) float64 { return x / 128 }))
		}
	}
	f.finish()
	return f
}

// TestRandomFloatNetworks holds whole random networks, and so every fusion that applies to them,
// to direct loops over the operators' definitions, at every kernel level of this machine.
func TestRandomFloatNetworks(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := growFloatNet(rt)
		options := drawOptions(rt)
		atEveryLevel(t, func(level string) {
			out, err := f.run(options, nn.Tensor{Type: onnx.Float32, Shape: f.values[0].shape, F32: f.values[0].float32s()})
			if err != nil {
				rt.Fatal(err)
			}
			for i, o := range f.g.Outputs {
				k := slices.Index(f.names, o.Name)
				if d := differs(out[i], f.values[k]); d != "" {
					rt.Fatalf("%s: %s: %s", level, o.Name, d)
				}
			}
		})
	})
}
