package onnx_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/models/onnx"
	"github.com/sightline-dev/sightline/models/onnx/onnxtest"
)

// TestReadShared reads the networks that the bake, tests and measurements use.
func TestReadShared(t *testing.T) {
	tests := []struct {
		path  []string
		shape []int
		ops   map[string]int
	}{
		{[]string{"model-next", "general.onnx"}, []int{1, 3, 224, 224}, map[string]int{
			"Conv": 58, "Clip": 36, "Add": 15, "Gemm": 3, "GlobalAveragePool": 1, "Flatten": 1, "LpNormalization": 1,
		}},
		{[]string{"onnx", "mobilenet_v2_1.0_224.onnx"}, []int{1, 3, 224, 224}, map[string]int{
			"Conv": 52, "Clip": 35, "Add": 10, "Gemm": 1, "GlobalAveragePool": 1, "Flatten": 1,
		}},
		{[]string{"onnx", "mobilenet_v1_0.25_128.onnx"}, []int{1, 3, 128, 128}, map[string]int{
			"Conv": 27, "Clip": 27, "Gemm": 1, "GlobalAveragePool": 1, "Flatten": 1,
		}},
	}
	for _, tt := range tests {
		data, err := os.ReadFile(testkit.DataPath(t, tt.path...))
		if err != nil {
			t.Fatal(err)
		}
		g, err := onnx.Read(data)
		if err != nil {
			t.Errorf("%v: Read = %v", tt.path, err)
			continue
		}
		ops := map[string]int{}
		for _, n := range g.Nodes {
			ops[n.Op]++
			if n.Op == "Conv" || n.Op == "Gemm" {
				if w := g.Init[n.Input(1)]; w == nil || len(w.Floats) != size(w.Shape) {
					t.Errorf("%v: %v has the weights %v", tt.path, n, w)
				}
			}
		}
		for op, n := range tt.ops {
			if ops[op] != n {
				t.Errorf("%v: %d of %s, want %d", tt.path, ops[op], op, n)
			}
		}
		if len(ops) != len(tt.ops) || !slices.Equal(g.Shape, tt.shape) {
			t.Errorf("%v: operators %v, input %v, want %v and %v", tt.path, ops, g.Shape, tt.ops, tt.shape)
		}
	}
}

func size(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// double returns a graph that computes x + x, then clips it, flattens it and multiplies it by a matrix.
func double() *onnx.Graph {
	return &onnx.Graph{
		Input: "x", Shape: []int{1, 2, 1, 1}, Outputs: []string{"y"},
		Nodes: []*onnx.Node{
			{Op: "Add", In: []string{"x", "x"}, Out: "twice"},
			{Op: "Clip", In: []string{"twice", "", "six"}, Out: "least"},
			{Op: "Flatten", In: []string{"least"}, Out: "row", Attr: map[string]any{"axis": int64(1)}},
			{Op: "Gemm", In: []string{"row", "w", "b"}, Out: "y"},
		},
		Init: map[string]*onnx.Tensor{
			"six": {Shape: nil, Floats: []float32{6}},
			"w":   {Shape: []int{2, 3}, Floats: []float32{1, 2, 3, 4, 5, 6}},
			"b":   {Shape: []int{3}, Floats: []float32{7, 8, 9}},
		},
	}
}

// TestRead checks the cases that onnx-go leaves to its backend: two edges between the same values, absent operands, scalars, and an
// unspecified first dimension of the input.
func TestRead(t *testing.T) {
	want := double()
	g, err := onnx.Read(onnxtest.Marshal(t, want))
	if err != nil {
		t.Fatal(err)
	}
	if g.Input != "x" || !slices.Equal(g.Shape, want.Shape) || !slices.Equal(g.Outputs, want.Outputs) || len(g.Nodes) != len(want.Nodes) {
		t.Errorf("Read = %+v, want %+v", g, want)
	}
	for i, n := range g.Nodes {
		w := want.Nodes[i]
		if n.Op != w.Op || n.Out != w.Out || !slices.Equal(n.In, w.In) || onnx.Attr[int64](n, "axis", 7) != onnx.Attr[int64](w, "axis", 7) {
			t.Errorf("node %d is %+v, want %+v", i, n, w)
		}
	}
	for name, w := range want.Init {
		if got := g.Init[name]; got == nil || !slices.Equal(got.Floats, w.Floats) || size(got.Shape) != len(w.Floats) {
			t.Errorf("constant %s is %v, want %v", name, got, w)
		}
	}
	weights, bias, err := g.Product(g.Nodes[3])
	if err != nil || !slices.Equal(weights.Shape, []int{3, 2}) || !slices.Equal(weights.Floats, []float32{1, 4, 2, 5, 3, 6}) || !slices.Equal(bias, []float32{7, 8, 9}) {
		t.Errorf("Product = %v, %v, %v", weights, bias, err)
	}
}

func TestReadRefuses(t *testing.T) {
	file := onnxtest.Marshal(t, double())
	for name, data := range map[string][]byte{"nothing": nil, "text": []byte("no network"), "half": file[:len(file)/2]} {
		if _, err := onnx.Read(data); !errors.Is(err, onnx.ErrFormat) {
			t.Errorf("%s: Read = %v, want ErrFormat", name, err)
		}
	}
	for _, tt := range []struct {
		want   string
		change func(g *onnx.Graph)
	}{
		{"computed before", func(g *onnx.Graph) { g.Nodes[0].In[1] = "w2" }},
		{"computed before", func(g *onnx.Graph) { slices.Reverse(g.Nodes) }},
		{"shape", func(g *onnx.Graph) { g.Init["w"].Shape = []int{2, 4} }},
		{"picture", func(g *onnx.Graph) { g.Shape = []int{1, 2} }},
	} {
		g := double()
		tt.change(g)
		if _, err := onnx.Read(onnxtest.Marshal(t, g)); !errors.Is(err, onnx.ErrFormat) || !strings.Contains(strings.ToLower(err.Error()), tt.want) {
			t.Errorf("Read = %v, want ErrFormat with %q", err, tt.want)
		}
	}
	for _, attr := range []map[string]any{{"transA": int64(1)}, {"alpha": float32(2)}, {"beta": float32(2)}} {
		g := double()
		g.Nodes[3].Attr = attr
		if _, _, err := g.Product(g.Nodes[3]); err == nil {
			t.Errorf("a Gemm with %v is a plain product", attr)
		}
	}
}
