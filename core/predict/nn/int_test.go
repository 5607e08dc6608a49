package nn_test

import (
	"math"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/predict/nn/kernel"
	"github.com/sightline-dev/sightline/core/predict/onnx"
	"pgregory.net/rapid"
)

// intNet grows a random network in QDQ form, and its bytes by definition.
type intNet struct {
	*builder
	t      *rapid.T
	values []stored
}

func (f *intNet) int(lo, hi int, label string) int { return rapid.IntRange(lo, hi).Draw(f.t, label) }

func (f *intNet) last() stored { return f.values[len(f.values)-1] }

// parameters adds the constants scale and zero point of x.
func (f *intNet) parameters(x stored) (scale, zero string) {
	scale = f.floats([]float64{float64(x.scale)})
	f.g.Init[scale].Shape = []int{}
	z := &onnx.Tensor{Name: f.name("z"), Type: x.typ, Shape: []int{}, Data: []byte{byte(x.zero), byte(x.zero >> 8)}[:x.typ.Size()]}
	f.g.Init[z.Name] = z
	return scale, z.Name
}

func (f *intNet) dequantised(x stored) string {
	scale, zero := f.parameters(x)
	return f.add("DequantizeLinear", nil, x.name, scale, zero)
}

// quantised closes an operator named real and records its result.
func (f *intNet) quantised(real string, x stored) {
	scale, zero := f.parameters(x)
	x.name = f.add("QuantizeLinear", nil, real, scale, zero)
	f.values = append(f.values, x)
}

// target draws a quantised tensor to hold reals up to top in absolute value.
func (f *intNet) target(shape []int, top float64) stored {
	x := stored{shape: shape, q: make([]int, size(shape)), typ: onnx.Uint8}
	x.zero = f.int(0, 255, "zero")
	if rapid.Bool().Draw(f.t, "signed") {
		x.typ, x.zero = onnx.Int8, x.zero-128
	}
	x.scale = float32(max(top, 1e-3) / float64(f.int(60, 250, "range")))
	return x
}

// clamp draws an activation after real, and returns its bounds.
func (f *intNet) clamp(real string) (string, float32, float32) {
	inf := float32(math.Inf(1))
	switch f.int(0, 3, "activation") {
	case 0:
		return f.add("Relu", nil, real), 0, inf
	case 1:
		return f.add("Clip", nil, real, f.floats([]float64{-0.5}), f.floats([]float64{0.75})), -0.5, 0.75
	}
	return real, -inf, inf
}

// bound returns q clamped to what lo and hi are in x.
func (x stored) bound(q int, lo, hi float32) int {
	return min(max(q, x.quantise(lo)), x.quantise(hi))
}

func drawInts(t *rapid.T, n, lo, hi int, label string) []int {
	v := make([]int, n)
	for i, x := range drawFloats(t, n, label) {
		v[i] = lo + int((x+1)/2*float64(hi-lo+1))
	}
	return v
}

// weights adds dequantised int8 weights with one scale per output along axis, and an int32 bias.
func (f *intNet) weights(in stored, shape []int, outs, axis int) (w []int, bias []int, scales []float32, names []string) {
	w = drawInts(f.t, size(shape), -128, 127, "weights")
	bias = drawInts(f.t, outs, -9000, 9000, "bias")
	scales = make([]float32, outs)
	for j, s := range drawFloats(f.t, outs, "scales") {
		scales[j] = float32(0.002 + 0.001*s)
	}
	bytes := make([]int8, len(w))
	for i, x := range w {
		bytes[i] = int8(x)
	}
	words := make([]int32, outs)
	ws, bs, zeros := make([]float64, outs), make([]float64, outs), make([]int32, outs)
	for j := range outs {
		words[j], ws[j], bs[j] = int32(bias[j]), float64(scales[j]), float64(in.scale*scales[j])
	}
	wt := onnx.FromInt8s(f.name("w"), shape, bytes)
	bt := onnx.FromInt32s(f.name("b"), []int{outs}, words)
	wz := onnx.FromInt8s(f.name("wz"), []int{outs}, make([]int8, outs))
	bz := onnx.FromInt32s(f.name("bz"), []int{outs}, zeros)
	for _, t := range []*onnx.Tensor{wt, bt, wz, bz} {
		f.g.Init[t.Name] = t
	}
	names = []string{
		f.add("DequantizeLinear", map[string]onnx.Attr{"axis": intAttr(axis)}, wt.Name, f.floats(ws, outs), wz.Name),
		f.add("DequantizeLinear", map[string]onnx.Attr{"axis": intAttr(0)}, bt.Name, f.floats(bs, outs), bz.Name),
	}
	return w, bias, scales, names
}

func (f *intNet) conv() {
	x := f.last()
	w, auto := drawSlide(f.t, x.shape[2], x.shape[3], 3)
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

func (f *intNet) convolution(w slide, auto string, outs int) {
	x := f.last()
	shape := []int{outs, x.shape[1] / w.group, w.kh, w.kw}
	weights, bias, scales, names := f.weights(x, shape, outs, 0)
	wa, ba := array{shape, make([]float64, len(weights))}, make([]float64, outs)
	for i, v := range weights {
		wa.v[i] = float64(v)
	}
	for j, v := range bias {
		ba[j] = float64(v)
	}
	acc := convolve(x.offsets(), wa, ba, w)
	plane := acc.shape[2] * acc.shape[3]
	var top float64
	for i, a := range acc.v {
		top = max(top, math.Abs(a*float64(x.scale)*float64(scales[i/plane%outs])))
	}
	y := f.target(acc.shape, top)
	real, lo, hi := f.clamp(f.add("Conv", w.attrs(auto, true), f.dequantised(x), names[0], names[1]))
	for i, a := range acc.v {
		m := float32(x.scale*scales[i/plane%outs]) / y.scale
		y.q[i] = y.bound(y.put(float32(float32(a)*m)), lo, hi)
	}
	f.quantised(real, y)
}

// inverted is an inverted residual: expand, depthwise, project, and perhaps the sum.
func (f *intNet) inverted() {
	x := f.last()
	point := slide{1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1}
	if f.int(0, 2, "dense") == 0 {
		w, auto := drawSlide(f.t, x.shape[2], x.shape[3], 3)
		f.convolution(w, auto, f.int(2, 20, "wide"))
	} else {
		f.convolution(point, "", f.int(2, 20, "wide"))
	}
	wide := f.last()
	w, auto := drawSlide(f.t, wide.shape[2], wide.shape[3], 3)
	w.group = wide.shape[1]
	f.convolution(w, auto, w.group)
	f.convolution(point, "", x.shape[1])
	f.residual()
}

func (f *intNet) residual() {
	b := f.last()
	a := rapid.SampledFrom(f.values).Draw(f.t, "operand")
	if !slices.Equal(a.shape, b.shape) {
		a = b
	}
	if rapid.Bool().Draw(f.t, "swap") {
		a, b = b, a
	}
	y := f.target(b.shape, 200*float64(max(a.scale, b.scale)))
	real, lo, hi := f.clamp(f.add("Add", nil, f.dequantised(a), f.dequantised(b)))
	ma, mb := float32(float64(a.scale)/float64(y.scale)), float32(float64(b.scale)/float64(y.scale))
	for i := range y.q {
		sum := float32(float32(a.q[i]-a.zero)*ma) + float32(float32(b.q[i]-b.zero)*mb)
		y.q[i] = y.bound(y.put(sum), lo, hi)
	}
	f.quantised(real, y)
}

// lookup is an operator on single bytes: Relu, HardSigmoid or nothing, between other parameters.
func (f *intNet) lookup() {
	x := f.last()
	y := f.target(x.shape, 200*float64(x.scale))
	real := f.dequantised(x)
	g := func(v float32) float32 { return v }
	switch f.int(0, 2, "function") {
	case 0:
		real, g = f.add("Relu", nil, real), func(v float32) float32 { return max(v, 0) }
	case 1:
		real = f.add("HardSigmoid", nil, real)
		g = func(v float32) float32 { return min(max(float32(float32(0.2)*v)+0.5, 0), 1) }
	}
	for i, q := range x.q {
		y.q[i] = y.quantise(g(float32(q-x.zero) * x.scale))
	}
	f.quantised(real, y)
}

func (f *intNet) maxPool() {
	x := f.last()
	w := slide{2, 3, 2, 1, 1, 1, 1, 1, 0, 1, 1}
	if !w.fits(x.shape[2], x.shape[3]) {
		return
	}
	real := f.add("MaxPool", w.attrs("", false), f.dequantised(x))
	a := poolRef(x.offsets(), w, false, false)
	y := x
	y.shape, y.q = a.shape, make([]int, len(a.v))
	for i, v := range a.v {
		y.q[i] = int(v) + x.zero
	}
	f.quantised(real, y)
}

func (f *intNet) concat() {
	x := f.last()
	other := rapid.SampledFrom(f.values).Draw(f.t, "joined")
	if other.shape[0] != 1 || x.shape[0] != 1 || other.shape[2] != x.shape[2] || other.shape[3] != x.shape[3] {
		return
	}
	y := f.target([]int{1, x.shape[1] + other.shape[1], x.shape[2], x.shape[3]}, 200*float64(max(x.scale, other.scale)))
	real := f.add("Concat", map[string]onnx.Attr{"axis": intAttr(1)}, f.dequantised(x), f.dequantised(other))
	y.q = y.q[:0]
	for _, from := range []stored{x, other} {
		for _, q := range from.q {
			y.q = append(y.q, y.quantise(float32(q-from.zero)*from.scale))
		}
	}
	f.quantised(real, y)
}

// pool averages over the pixels, to exact sums in uint16 as the baked network does or to bytes,
// with a Flatten before or behind the QuantizeLinear.
func (f *intNet) pool() {
	x := f.last()
	b, c, plane := x.shape[0], x.shape[1], x.shape[2]*x.shape[3]
	pooled := stored{shape: []int{b, c}, q: make([]int, b*c), typ: onnx.Uint16, scale: float32(float64(x.scale) / float64(plane))}
	if rapid.Bool().Draw(f.t, "bytes") {
		pooled = f.target(pooled.shape, 200*float64(x.scale))
	}
	sums := make([]int, b*c)
	for i, q := range x.q {
		sums[i/plane] += q - x.zero
	}
	m := float32(float64(x.scale) / (float64(plane) * float64(pooled.scale)))
	for i, s := range sums {
		pooled.q[i] = pooled.put(float32(float32(s) * m))
	}
	real := f.add("GlobalAveragePool", nil, f.dequantised(x))
	if rapid.Bool().Draw(f.t, "flatten first") {
		f.quantised(f.add("Flatten", nil, real), pooled)
		return
	}
	pooled.shape = []int{b, c, 1, 1}
	f.quantised(real, pooled)
}

// finish pools and adds a product whose result stays float32, written as Gemm or MatMul, and
// one whose result is quantised.
func (f *intNet) finish() []float32 {
	f.pool()
	pooled := f.last()
	b, c := pooled.shape[0], pooled.shape[1]
	outs := f.int(1, 20, "head")
	form := f.int(0, 2, "form")
	shape, axis := []int{outs, c}, 0
	at := func(j, k int) int { return j*c + k }
	if form > 0 {
		shape, axis = []int{c, outs}, 1
		at = func(j, k int) int { return k*outs + j }
	}
	w, bias, scales, names := f.weights(pooled, shape, outs, axis)
	flat := f.add("Flatten", nil, f.dequantised(pooled))
	var product string
	switch form {
	case 0:
		product = f.add("Gemm", map[string]onnx.Attr{"transB": intAttr(1)}, flat, names[0], names[1])
	case 1:
		product = f.add("Gemm", nil, flat, names[0], names[1])
	case 2:
		product = f.add("MatMul", nil, flat, names[0])
		clear(bias)
	}
	out := make([]float32, b*outs)
	accs := make([]int64, b*outs)
	for i := range b {
		for j := range outs {
			acc := int64(bias[j])
			for k := range c {
				acc += int64(pooled.q[i*c+k]-pooled.zero) * int64(w[at(j, k)])
			}
			accs[i*outs+j] = acc
			out[i*outs+j] = float32(acc) * float32(pooled.scale*scales[j])
		}
	}
	if rapid.Bool().Draw(f.t, "quantise the head") {
		y := f.target([]int{b, outs}, 1)
		for i, acc := range accs {
			y.q[i] = y.put(float32(float32(acc) * (float32(pooled.scale*scales[i%outs]) / y.scale)))
		}
		f.quantised(product, y)
		for i, q := range y.q {
			out[i] = float32(q-y.zero) * y.scale
		}
		product = f.dequantised(f.last())
	}
	f.output(product, onnx.Float32, []int{b, outs})
	for i, v := range f.values {
		if i > 0 && (i >= len(f.values)-2 || rapid.Bool().Draw(f.t, "output")) {
			f.output(v.name, v.typ, v.shape)
		}
	}
	return out
}

func growIntNet(t *rapid.T) (*intNet, []float32) {
	f := &intNet{builder: newBuilder(), t: t}
	f.g.Opset = 21
	x := f.target([]int{f.int(1, 2, "batch"), f.int(1, 9, "channels"), f.int(1, 12, "height"), f.int(1, 24, "width")}, 1)
	lo, hi := x.limits()
	x.q = drawInts(t, len(x.q), lo, hi, "picture")
	x.name = f.input(x.typ, x.shape...)
	f.values = append(f.values, x)
	layers := []func(){f.inverted, f.inverted, f.conv, f.conv, f.conv, f.residual, f.residual, f.lookup, f.maxPool, f.concat}
	for range f.int(1, 8, "layers") {
		rapid.SampledFrom(layers).Draw(t, "layer")()
	}
	return f, f.finish()
}

// TestRandomIntegerNetworks holds whole random QDQ networks to the definition of each integer
// operator, byte for byte, at every kernel level of this machine.
func TestRandomIntegerNetworks(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f, logits := growIntNet(rt)
		options := drawOptions(rt)
		atEveryLevel(t, func(level string) {
			out, err := f.run(options, f.values[0].tensor())
			if err != nil {
				rt.Fatal(err)
			}
			if !slices.Equal(out[0].F32, logits) {
				rt.Fatalf("%s: logits %v, want %v", level, out[0].F32, logits)
			}
			for i, o := range f.g.Outputs[1:] {
				k := slices.IndexFunc(f.values, func(x stored) bool { return x.name == o.Name })
				if d := f.values[k].same(out[i+1]); d != "" {
					rt.Fatalf("%s: %s: %s", level, o.Name, d)
				}
			}
		})
	})
}

// atEveryLevel runs f with the kernels forced to each level that this machine has.
func atEveryLevel(t testing.TB, f func(level string)) {
	t.Helper()
	for _, level := range kernel.Levels.All() {
		restore := kernel.Levels.Force(level)
		f(level.String())
		restore()
	}
}
