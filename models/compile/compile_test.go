package compile_test

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/sightline-dev/sightline/core/predict/nn"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/models/compile"
	"github.com/sightline-dev/sightline/models/onnx"
)

// network compiles a network file of the shared data.
func network(t testing.TB, outputs []string, parts ...string) *nn.Network {
	t.Helper()
	data, err := os.ReadFile(testkit.DataPath(t, parts...))
	if err != nil {
		t.Fatal(err)
	}
	g, err := onnx.Read(data)
	if err != nil {
		t.Fatal(err)
	}
	if outputs == nil {
		outputs = g.Outputs
	}
	n, err := compile.Network(g, outputs...)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// picture reads a file of float32 values in the order (N, C, H, W), and returns them in the order of a network's input.
func picture(t testing.TB, shape []int, parts ...string) nn.Tensor {
	t.Helper()
	data, err := os.ReadFile(testkit.DataPath(t, parts...))
	if err != nil {
		t.Fatal(err)
	}
	v := make([]float32, len(data)/4)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), len(data)), data)
	c, plane := shape[1], shape[2]*shape[3]
	in := nn.Tensor{Type: nn.Float32, Shape: []int{1, shape[2], shape[3], c}, F32: make([]float32, len(v))}
	for i, x := range v {
		in.F32[i%plane*c+i/plane] = x
	}
	return in
}

func run(t testing.TB, n *nn.Network, in nn.Tensor) []nn.Tensor {
	t.Helper()
	p, err := nn.Compile(n, nn.Options{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.NewSession().Run(in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSharedNetworks compares the two MobileNets with ONNX Runtime's outputs.
func TestSharedNetworks(t *testing.T) {
	b, err := os.ReadFile(testkit.DataPath(t, "onnx", "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Cases []struct {
			Model, Input string
			Shape        []int
			Outputs      map[string]struct {
				Dims   []int
				First8 []float64
				Sum    float64
				SumAbs float64 `json:"sum_abs"`
			}
			Top5 [][]any
		}
	}
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	cases := 0
	for _, tt := range file.Cases {
		if !strings.HasPrefix(tt.Model, "mobilenet") {
			continue // face detectors have operators that the bake does not support
		}
		cases++
		n := network(t, nil, "onnx", tt.Model)
		out := run(t, n, picture(t, tt.Shape, "onnx", tt.Input))
		for i, o := range n.Outputs() {
			want, ok := tt.Outputs[o.Name]
			if !ok || !slices.Equal(out[i].Shape, want.Dims) {
				t.Fatalf("%s: output %q of shape %v, want %v", tt.Model, o.Name, out[i].Shape, want.Dims)
			}
			var sum, abs, total float64
			for _, x := range out[i].F32 {
				sum, abs, total = sum+float64(x), abs+math.Abs(float64(x)), total+math.Exp(float64(x))
			}
			near := func(got, want, scale float64) bool { return math.Abs(got-want) <= 1e-3*max(math.Abs(want), scale) }
			for k, w := range want.First8 {
				if !near(float64(out[i].F32[k]), w, want.SumAbs/float64(len(out[i].F32))) {
					t.Errorf("%s: %s[%d] = %v, want %v", tt.Model, o.Name, k, out[i].F32[k], w)
				}
			}
			if !near(sum, want.Sum, want.SumAbs) || !near(abs, want.SumAbs, 0) {
				t.Errorf("%s: %s: sum %v, of absolute values %v, want %v, %v", tt.Model, o.Name, sum, abs, want.Sum, want.SumAbs)
			}
			if o.Name != "logits" {
				continue
			}
			for _, w := range tt.Top5 {
				if p := math.Exp(float64(out[i].F32[int(w[0].(float64))])) / total; math.Abs(p-w[1].(float64)) > 1e-3 {
					t.Errorf("%s: class %v has %.5f, want %v", tt.Model, w[0], p, w[1])
				}
			}
		}
	}
	if cases < 3 {
		t.Errorf("%d cases, want 3", cases)
	}
}

// TestGeneralNetwork checks how the product's network is fused, and its output for a picture of a cat.
func TestGeneralNetwork(t *testing.T) {
	n := network(t, []string{"logits", "embedding"}, "model-next", "general.onnx")
	count, residuals, clamps := map[nn.Kind]int{}, 0, 0
	for _, node := range n.Nodes() {
		count[node.Kind]++
		if node.With != 0 {
			residuals++
		}
		if node.Kind == nn.Conv && node.Lo == 0 {
			clamps++
		}
	}
	if count[nn.Conv] != 58 || count[nn.Add] != 0 || count[nn.Gemm] != 2 || len(n.Nodes()) != 62 || residuals != 15 || clamps != 36 {
		t.Errorf("%v, %d residuals, %d clamps, want 58 convolutions with 15 and 36", count, residuals, clamps)
	}
	out := run(t, n, picture(t, []int{1, 3, 224, 224}, "onnx", "input_224_cat.f32"))
	best := 0
	for i, x := range out[0].F32 {
		if x > out[0].F32[best] {
			best = i
		}
	}
	if best < 281 || best > 285 {
		t.Errorf("the cat is class %d, want one of the domestic cats 281 to 285", best)
	}
	if _, err := nn.Read(n.Marshal()); err != nil {
		t.Errorf("its plan file = %v", err)
	}
}

// small returns a graph with a convolution, followed by nodes.
func small(nodes ...*onnx.Node) *onnx.Graph {
	return &onnx.Graph{
		Input: "x", Shape: []int{1, 2, 2, 2}, Outputs: []string{"y"},
		Nodes: append([]*onnx.Node{{Op: "Conv", In: []string{"x", "w", "b"}, Out: "c"}}, nodes...),
		Init: map[string]*onnx.Tensor{
			"w":    {Shape: []int{2, 2, 1, 1}, Floats: []float32{1, 2, 3, 4}},
			"b":    {Shape: []int{2}, Floats: []float32{-10, 1}},
			"d":    {Shape: []int{2, 1, 1, 1}, Floats: []float32{2, 2}},
			"four": {Floats: []float32{4}},
			"six":  {Floats: []float32{6}},
		},
	}
}

func node(op, out string, in ...string) *onnx.Node { return &onnx.Node{Op: op, Out: out, In: in} }

// TestFuse checks which nodes are fused, which must stay separate, and the results of both. The input is x = (1, 2, 3, 4 | 5, 6, 7, 8), for
// which the convolution gives (1, 4, 7, 10 | 24, 31, 38, 45).
func TestFuse(t *testing.T) {
	depthwise := node("Conv", "e", "x", "d")
	depthwise.Attr = map[string]any{"group": int64(2)}
	tests := []struct {
		name  string
		nodes []*onnx.Node
		kinds []nn.Kind
		want  []float32
	}{
		{"clip", []*onnx.Node{node("Clip", "y", "c", "four", "six")}, []nn.Kind{nn.Conv}, []float32{4, 4, 6, 6, 6, 6, 6, 6}},
		{"clip without a lower bound", []*onnx.Node{node("Clip", "y", "c", "", "six")}, []nn.Kind{nn.Conv}, []float32{1, 4, 6, 6, 6, 6, 6, 6}},
		{"clip by attributes, then relu", []*onnx.Node{
			{Op: "Clip", In: []string{"c"}, Out: "k", Attr: map[string]any{"min": float32(-3), "max": float32(9)}}, node("Relu", "y", "k"),
		}, []nn.Kind{nn.Conv}, []float32{1, 4, 7, 9, 9, 9, 9, 9}},
		{"residual", []*onnx.Node{node("Add", "y", "x", "c")}, []nn.Kind{nn.Conv}, []float32{2, 6, 10, 14, 29, 37, 45, 53}},
		{"residual, then clip", []*onnx.Node{node("Add", "s", "c", "x"), node("Clip", "y", "s", "", "six")}, []nn.Kind{nn.Conv}, []float32{2, 6, 6, 6, 6, 6, 6, 6}},
		{"residual that comes later", []*onnx.Node{
			depthwise, node("Add", "y", "c", "e"),
		}, []nn.Kind{nn.Conv, nn.Conv}, []float32{3, 8, 13, 18, 34, 43, 52, 61}},
		{"sum with itself", []*onnx.Node{node("Add", "y", "c", "c")}, []nn.Kind{nn.Conv, nn.Add}, []float32{2, 8, 14, 20, 48, 62, 76, 90}},
		{"sum behind a clamp", []*onnx.Node{node("Clip", "k", "c", "four", "six"), node("Add", "y", "k", "x")}, []nn.Kind{nn.Conv, nn.Add}, []float32{5, 6, 9, 10, 11, 12, 13, 14}},
		{"unread nodes", []*onnx.Node{node("Softmax", "z", "c"), node("Relu", "y", "c")}, []nn.Kind{nn.Conv}, []float32{1, 4, 7, 10, 24, 31, 38, 45}},
	}
	for _, tt := range tests {
		n, err := compile.Network(small(tt.nodes...), "y")
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		var kinds []nn.Kind
		for _, node := range n.Nodes() {
			kinds = append(kinds, node.Kind)
		}
		in := nn.Tensor{Type: nn.Float32, Shape: []int{1, 2, 2, 2}, F32: []float32{1, 5, 2, 6, 3, 7, 4, 8}}
		if out := run(t, n, in)[0].F32; !slices.Equal(kinds, tt.kinds) || !slices.Equal(out, tt.want) {
			t.Errorf("%s: %v gives %v, want %v and %v", tt.name, kinds, out, tt.kinds, tt.want)
		}
	}
}

func TestRefuses(t *testing.T) {
	with := func(n *onnx.Node, attr string, v any) *onnx.Node {
		n.Attr = map[string]any{attr: v}
		return n
	}
	for _, tt := range []struct {
		want  string
		nodes []*onnx.Node
	}{
		{"Softmax", []*onnx.Node{node("Softmax", "y", "c")}},
		{`no output "y"`, nil},
		{"auto_pad", []*onnx.Node{with(node("Conv", "y", "c", "w"), "auto_pad", "SAME_UPPER")}},
		{"strides", []*onnx.Node{with(node("Conv", "y", "c", "w"), "strides", []int64{1})}},
		{"weights", []*onnx.Node{node("Conv", "y", "c", "x")}},
		{"bias", []*onnx.Node{node("Conv", "y", "c", "w", "six")}},
		{"axis", []*onnx.Node{with(node("Flatten", "y", "c"), "axis", int64(2))}},
		{"bounds", []*onnx.Node{node("Clip", "y", "c", "x")}},
		{"behind a Conv", []*onnx.Node{node("Relu", "y", "x")}},
		{"nothing else reads", []*onnx.Node{node("Relu", "r", "c"), node("Add", "y", "r", "c")}},
		{"matrix", []*onnx.Node{node("Gemm", "y", "c", "w")}},
	} {
		if _, err := compile.Network(small(tt.nodes...), "y"); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Network = %v, want %q", err, tt.want)
		}
	}
	if _, err := compile.Network(small(node("Softmax", "y", "c")), "y"); !errors.Is(err, compile.ErrOperator) {
		t.Errorf("Network = %v, want ErrOperator", err)
	}
}
