package nn_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/predict/nn"
	"github.com/sightline-dev/sightline/core/predict/onnx"
)

// counting returns the array of shape that holds f(0), f(1), ….
func counting(f func(i int) float64, shape ...int) array {
	a := newArray(shape...)
	for i := range a.v {
		a.v[i] = f(i)
	}
	return a
}

func TestOperators(t *testing.T) {
	ramp := func(i int) float64 { return float64(i) }
	wave := func(i int) float64 { return float64(i*7%11)/4 - 1 }
	tests := []struct {
		name  string
		opset int
		x     array
		build func(b *builder, x string) string
		want  array
	}{
		{
			"Gather of rows, one from behind", 13, counting(ramp, 3, 2),
			func(b *builder, x string) string { return b.add("Gather", nil, x, b.ints(-1, 0)) },
			array{[]int{2, 2}, []float64{4, 5, 0, 1}},
		},
		{
			"Gather along the last axis", 13, counting(ramp, 2, 3),
			func(b *builder, x string) string {
				return b.add("Gather", map[string]onnx.Attr{"axis": intAttr(1)}, x, b.ints(2))
			},
			array{[]int{2, 1}, []float64{2, 5}},
		},
		{
			"Softmax before opset 13 over two axes", 11, counting(func(int) float64 { return 2 }, 2, 2, 4),
			func(b *builder, x string) string {
				return b.add("Softmax", map[string]onnx.Attr{"axis": intAttr(1)}, x)
			},
			counting(func(int) float64 { return 0.125 }, 2, 2, 4),
		},
		{
			"Softmax since opset 13 over the last axis", 13, counting(func(int) float64 { return 2 }, 2, 2, 4),
			func(b *builder, x string) string { return b.add("Softmax", nil, x) },
			counting(func(int) float64 { return 0.25 }, 2, 2, 4),
		},
		{
			"LpNormalization", 13,
			array{[]int{2, 2}, []float64{3, -4, 0, 0}},
			func(b *builder, x string) string { return b.add("LpNormalization", nil, x) },
			array{[]int{2, 2}, []float64{0.6, -0.8, 0, 0}},
		},
		{
			"LpNormalization with p = 1", 13,
			array{[]int{1, 2}, []float64{3, -1}},
			func(b *builder, x string) string {
				return b.add("LpNormalization", map[string]onnx.Attr{"p": intAttr(1), "axis": intAttr(1)}, x)
			},
			array{[]int{1, 2}, []float64{0.75, -0.25}},
		},
		{
			"ReduceMean over the middle", 13, counting(ramp, 2, 3, 2),
			func(b *builder, x string) string {
				return b.add("ReduceMean", map[string]onnx.Attr{"axes": intsAttr(1), "keepdims": intAttr(0)}, x)
			},
			array{[]int{2, 2}, []float64{2, 3, 8, 9}},
		},
		{
			"ReduceMean over pixels, axes as input", 18, counting(ramp, 1, 2, 2, 2),
			func(b *builder, x string) string { return b.add("ReduceMean", nil, x, b.ints(-1, 2)) },
			array{[]int{1, 2, 1, 1}, []float64{1.5, 5.5}},
		},
		{
			"ReduceMean over channels", 13, counting(ramp, 1, 2, 2, 2),
			func(b *builder, x string) string {
				return b.add("ReduceMean", map[string]onnx.Attr{"axes": intsAttr(1)}, b.add("MaxPool", slide{1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1}.attrs("", false), x))
			},
			array{[]int{1, 1, 2, 2}, []float64{2, 3, 4, 5}},
		},
		{
			"MatMul of two computed matrices", 13, counting(ramp, 2, 2),
			func(b *builder, x string) string { return b.add("MatMul", nil, x, b.add("Relu", nil, x)) },
			array{[]int{2, 2}, []float64{2, 3, 6, 11}},
		},
		{
			"MatMul with a batch and constant weights", 13, counting(ramp, 2, 1, 2),
			func(b *builder, x string) string {
				return b.add("MatMul", nil, x, b.floats([]float64{1, 2, 3, 4}, 2, 2))
			},
			array{[]int{2, 1, 2}, []float64{3, 4, 11, 16}},
		},
		{
			"Gemm with alpha, beta and one bias", 13, counting(ramp, 1, 2),
			func(b *builder, x string) string {
				half := onnx.Attr{Kind: onnx.AttrFloat, F: 0.5}
				return b.add("Gemm", map[string]onnx.Attr{"alpha": half, "beta": half}, x, b.floats([]float64{1, 2, 3, 4}, 2, 2), b.floats([]float64{8}, 1))
			},
			array{[]int{1, 2}, []float64{5.5, 6}},
		},
		{
			"constants are folded through a Transpose into Conv", 13, counting(wave, 1, 2, 3, 3),
			func(b *builder, x string) string {
				w := b.floats([]float64{1, 0, 0, 1}, 2, 2, 1, 1)
				return b.add("Conv", nil, x, b.add("Transpose", map[string]onnx.Attr{"perm": intsAttr(1, 0, 3, 2)}, b.add("Mul", nil, w, b.floats([]float64{2}))))
			},
			counting(func(i int) float64 { return 2 * wave(i) }, 1, 2, 3, 3),
		},
		{
			"Transpose of a convolution to pixels", 13, counting(ramp, 1, 2, 2, 2),
			func(b *builder, x string) string {
				y := b.add("Conv", nil, x, b.floats([]float64{1, 0, 0, 1}, 2, 2, 1, 1))
				return b.add("Transpose", map[string]onnx.Attr{"perm": intsAttr(0, 2, 3, 1)}, y)
			},
			array{[]int{1, 2, 2, 2}, []float64{0, 4, 1, 5, 2, 6, 3, 7}},
		},
		{
			"Squeeze, Unsqueeze, Identity and Dropout move nothing", 13, counting(ramp, 2, 1, 2),
			func(b *builder, x string) string {
				y := b.add("Unsqueeze", nil, b.add("Squeeze", nil, x, b.ints(1)), b.ints(0))
				return b.add("Dropout", nil, b.add("Identity", nil, y))
			},
			counting(ramp, 1, 2, 2),
		},
		{
			"Pow, Sqrt, Exp and HardSwish", 14,
			array{[]int{2}, []float64{1, 4}},
			func(b *builder, x string) string {
				return b.add("HardSwish", nil, b.add("Exp", nil, b.add("Sqrt", nil, b.add("Pow", nil, x, b.floats([]float64{3})))))
			},
			array{[]int{2}, []float64{math.E * (math.E + 3) / 6, math.Exp(8)}},
		},
		{
			"Div by what broadcasts, both computed", 13, counting(func(i int) float64 { return float64(i + 1) }, 2, 2),
			func(b *builder, x string) string {
				return b.add("Div", nil, x, b.add("Slice", nil, x, b.ints(1), b.ints(2), b.ints(0)))
			},
			array{[]int{2, 2}, []float64{1. / 3, 0.5, 1, 1}},
		},
		{
			"QuantizeLinear and DequantizeLinear per channel", 13,
			array{[]int{1, 2, 2}, []float64{0.26, -1, 0.26, 300}},
			func(b *builder, x string) string {
				scale := b.floats([]float64{0.5, 2}, 2)
				zero := onnx.FromInt8s("zero", []int{2}, []int8{0, -7})
				b.g.Init["zero"] = zero
				return b.add("DequantizeLinear", nil, b.add("QuantizeLinear", nil, x, scale, "zero"), scale, "zero")
			},
			array{[]int{1, 2, 2}, []float64{0.5, -1, 0, 268}},
		},
		{
			"a float operator between quantised ones without an integer form", 13,
			array{[]int{1, 2}, []float64{1, 2}},
			func(b *builder, x string) string {
				scale := b.floats([]float64{0.25})
				b.g.Init[scale].Shape = []int{}
				q := b.add("QuantizeLinear", nil, x, scale)
				y := b.add("Mul", nil, b.add("DequantizeLinear", nil, q, scale), b.add("DequantizeLinear", nil, q, scale))
				return b.add("DequantizeLinear", nil, b.add("QuantizeLinear", nil, y, scale), scale)
			},
			array{[]int{1, 2}, []float64{1, 4}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBuilder()
			b.g.Opset = tt.opset
			x := b.input(onnx.Float32, tt.x.shape...)
			b.output(tt.build(b, x), onnx.Float32, tt.want.shape)
			out, err := b.run(nn.Options{}, nn.Tensor{Type: onnx.Float32, Shape: tt.x.shape, F32: tt.x.float32s()})
			if err != nil {
				t.Fatal(err)
			}
			if d := differs(out[0], tt.want); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestInterleavedInput feeds a picture as it lies in memory and as ONNX wants it.
func TestInterleavedInput(t *testing.T) {
	b := newBuilder()
	x := b.input(onnx.Uint8, 1, 3, 4, 5)
	f := &intNet{builder: b}
	real := f.dequantised(stored{name: x, scale: 0.5, zero: 128, typ: onnx.Uint8})
	w := slide{3, 3, 2, 2, 1, 1, 0, 0, 1, 1, 1}
	weights := counting(func(i int) float64 { return float64(i%5) - 2 }, 2, 3, 3, 3)
	y := b.add("Conv", w.attrs("", true), real, b.floats(weights.v, weights.shape...))
	b.output(y, onnx.Float32, []int{1, 2, 2, 2})
	planes, pixels := make([]uint8, 60), make([]uint8, 60)
	for i := range planes {
		planes[i] = uint8(i * 37)
		pixels[i%20*3+i/20] = planes[i]
	}
	first, err := b.run(nn.Options{}, nn.Tensor{Type: onnx.Uint8, Shape: []int{1, 3, 4, 5}, U8: planes})
	if err != nil {
		t.Fatal(err)
	}
	second, err := b.run(nn.Options{InputNHWC: x}, nn.Tensor{Type: onnx.Uint8, Shape: []int{1, 4, 5, 3}, U8: pixels})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nn.Compile(b.g, nn.Options{InputNHWC: "picture"}); !errors.Is(err, nn.ErrInput) {
		t.Errorf("Compile with an unknown input = %v, want ErrInput", err)
	}
	if !slices.Equal(first[0].F32, second[0].F32) {
		t.Errorf("planes give %v, pixels %v", first[0].F32, second[0].F32)
	}
}

// TestCast reads bytes as numbers.
func TestCast(t *testing.T) {
	b := newBuilder()
	x := b.input(onnx.Uint8, 1, 2, 2, 1)
	y := b.add("Cast", map[string]onnx.Attr{"to": intAttr(int(onnx.Float32))}, x)
	b.output(b.add("MaxPool", slide{2, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1}.attrs("", false), y), onnx.Float32, []int{1, 2, 1, 1})
	out, err := b.run(nn.Options{}, nn.Tensor{Type: onnx.Uint8, Shape: []int{1, 2, 2, 1}, U8: []uint8{3, 200, 255, 7}})
	if err != nil {
		t.Fatal(err)
	}
	if d := differs(out[0], array{[]int{1, 2, 1, 1}, []float64{200, 255}}); d != "" {
		t.Error(d)
	}
}

// small returns a graph of one convolution.
func small() *builder {
	b := newBuilder()
	x := b.input(onnx.Float32, -1, 3, 8, 8)
	w := counting(func(i int) float64 { return float64(i) }, 4, 3, 3, 3)
	b.output(b.add("Conv", nil, x, b.floats(w.v, w.shape...)), onnx.Float32, []int{-1, 4, 6, 6})
	return b
}

func TestRunRefusesOtherInputs(t *testing.T) {
	p, err := nn.Compile(small().g, nn.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := p.NewSession()
	good := nn.Tensor{Type: onnx.Float32, Shape: []int{1, 3, 8, 8}, F32: make([]float32, 192)}
	short, turned, bytes := good, good, good
	short.F32 = short.F32[1:]
	turned.Shape = []int{1, 8, 8, 3}
	bytes.Type = onnx.Uint8
	for name, in := range map[string][]nn.Tensor{
		"none": {}, "two": {good, good}, "short": {short}, "turned": {turned}, "bytes": {bytes},
	} {
		if _, err := s.Run(in); !errors.Is(err, nn.ErrInput) {
			t.Errorf("%s: Run = %v, want ErrInput", name, err)
		}
	}
	if _, err := s.Run([]nn.Tensor{good}); err != nil {
		t.Errorf("Run after refusals = %v", err)
	}
}

func TestCompileHoldsMemory(t *testing.T) {
	b := small()
	p, err := nn.Compile(b.g, nn.Options{})
	if err != nil {
		t.Fatal(err)
	}
	need := p.SessionBytes() + p.WeightBytes()
	if _, err := nn.Compile(b.g, nn.Options{Memory: need}); err != nil {
		t.Errorf("Compile with exactly the memory needed = %v", err)
	}
	if _, err := nn.Compile(b.g, nn.Options{Memory: need - 1}); !errors.Is(err, nn.ErrMemory) {
		t.Errorf("Compile with a byte less = %v, want ErrMemory", err)
	}
	open := newBuilder()
	x := open.input(onnx.Float32, 1, 3, -1, -1)
	open.output(open.add("Relu", nil, x), onnx.Float32, []int{1, 3, -1, -1})
	huge := nn.Options{Shapes: map[string][]int{x: {1, 3, 1 << 13, 1 << 14}}}
	if _, err := nn.Compile(open.g, huge); !errors.Is(err, nn.ErrMemory) && !errors.Is(err, onnx.ErrLimit) {
		t.Errorf("Compile for a huge picture = %v, want ErrMemory", err)
	}
}

// TestPaddingCountsAsMemory bends a network of small shapes whose halos alone are enormous.
func TestPaddingCountsAsMemory(t *testing.T) {
	b := newBuilder()
	x := b.input(onnx.Float32, 1, 64, 8, 8)
	w := slide{1, 1, 4000, 4000, 1, 1, 4000, 4000, 4000, 4000, 1}
	weights := newArray(1, 64, 1, 1)
	b.output(b.add("Conv", w.attrs("", true), x, b.floats(weights.v, weights.shape...)), onnx.Float32, nil)
	if _, err := nn.Compile(b.g, nn.Options{}); !errors.Is(err, nn.ErrMemory) {
		t.Errorf("Compile = %v, want ErrMemory", err)
	}
}

func TestCompileHoldsWork(t *testing.T) {
	b := small()
	p, err := nn.Compile(b.g, nn.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := int64(4 * 6 * 6 * 27); p.Work() != want {
		t.Errorf("Work() = %d, want %d", p.Work(), want)
	}
	if _, err := nn.Compile(b.g, nn.Options{Work: p.Work() - 1}); !errors.Is(err, nn.ErrWork) {
		t.Errorf("Compile with less work = %v, want ErrWork", err)
	}
}

func TestErrorsNameTheNode(t *testing.T) {
	b := newBuilder()
	x := b.input(onnx.Float32, 2, 2)
	b.g.Init["reflect"] = onnx.FromInt64s("reflect", []int{4}, []int64{1, 1, 1, 1})
	y := b.add("Pad", map[string]onnx.Attr{"mode": textAttr("reflect")}, x, "reflect")
	b.output(y, onnx.Float32, []int{4, 4})
	_, err := nn.Compile(b.g, nn.Options{})
	if !errors.Is(err, nn.ErrUnsupported) || !strings.Contains(err.Error(), y) || !strings.Contains(err.Error(), "Pad") {
		t.Errorf("Compile = %v, want ErrUnsupported naming %s and Pad", err, y)
	}
}

// TestSessionsShareAPlan runs sessions of one plan at once, and holds Run to no allocation.
func TestSessionsShareAPlan(t *testing.T) {
	b := newBuilder()
	x := b.input(onnx.Float32, 1, 3, 16, 16)
	w := counting(func(i int) float64 { return float64(i%7) - 3 }, 4, 3, 3, 3)
	y := b.add("Conv", nil, x, b.floats(w.v, w.shape...))
	y = b.add("MaxPool", slide{2, 2, 2, 2, 1, 1, 0, 0, 0, 0, 1}.attrs("", false), b.add("Sigmoid", nil, y))
	b.output(b.add("Softmax", map[string]onnx.Attr{"axis": intAttr(1)}, y), onnx.Float32, []int{1, 4, 7, 7})
	p, err := nn.Compile(b.g, nn.Options{})
	if err != nil {
		t.Fatal(err)
	}
	in := []nn.Tensor{{Type: onnx.Float32, Shape: []int{1, 3, 16, 16}, F32: counting(func(i int) float64 { return float64(i%13) / 13 }, 768).float32s()}}
	want, err := p.NewSession().Run(in)
	if err != nil {
		t.Fatal(err)
	}
	results := make(chan []float32)
	for range 4 {
		go func() {
			s := p.NewSession()
			var out []nn.Tensor
			for range 20 {
				out, _ = s.Run(in)
			}
			results <- out[0].F32
		}()
	}
	for range 4 {
		if got := <-results; !slices.Equal(got, want[0].F32) {
			t.Error("a session beside others gives another result")
		}
	}
	s := p.NewSession()
	if n := testing.AllocsPerRun(10, func() { _, _ = s.Run(in) }); n != 0 {
		t.Errorf("Run allocates %v times", n)
	}
}

// TestGeneralNetwork runs the product's network in float32 and holds what its graph promises:
// unit is the embedding at length one.
func TestGeneralNetwork(t *testing.T) {
	s, in := prepare(t, network(t, "model", "general.onnx"), floatsFile(t, "onnx", "input_224_cat.f32"))
	out, err := s.Run(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range out {
		for i, x := range o.F32 {
			if math.IsNaN(float64(x)) || math.Abs(float64(x)) > 100 {
				t.Fatalf("element %d of %v is %v", i, o.Shape, x)
			}
		}
	}
	best := 0
	for _, o := range out {
		if len(o.F32) == 1000 {
			for i, x := range o.F32 {
				if x > o.F32[best] {
					best = i
				}
			}
		}
	}
	if best < 281 || best > 285 {
		t.Errorf("the cat is class %d, want one of the domestic cats 281 to 285", best)
	}
}
