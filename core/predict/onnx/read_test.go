package onnx

import (
	"errors"
	"reflect"
	"slices"
	"testing"
)

// networks are the real files, with what they take and give.
var networks = []struct {
	dir     string
	file    string
	opset   int
	nodes   int
	input   string
	shape   []int
	outputs map[string][]int
}{
	{"onnx", "mobilenet_v2_1.0_224.onnx", 13, 100, "input", []int{1, 3, 224, 224}, map[string][]int{"logits": {1, 1000}, "embedding": {1, 1280}}},
	{"onnx", "mobilenet_v1_0.25_128.onnx", 13, 57, "input", []int{1, 3, 128, 128}, map[string][]int{"logits": {1, 1000}, "embedding": {1, 256}}},
	{"onnx", "ultraface_rfb-320.onnx", 9, 211, "input", []int{1, 3, 240, 320}, map[string][]int{"scores": {1, 4420, 2}, "boxes": {1, 4420, 4}}},
	{"onnx", "ultraface_rfb-320_simplified.onnx", 9, 110, "input", []int{1, 3, 240, 320}, map[string][]int{"scores": {1, 4420, 2}, "boxes": {1, 4420, 4}}},
	{"model", "general.onnx", 13, 103, "image", []int{2, 3, 224, 224}, map[string][]int{"embedding": {2, 256}, "logits": {2, 1000}, "heads": {2, 62}}},
}

func TestReadRealNetworks(t *testing.T) {
	for _, tt := range networks {
		t.Run(tt.file, func(t *testing.T) {
			g, err := Read(shared(t, tt.dir, tt.file), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if g.Opset != tt.opset || len(g.Nodes) != tt.nodes {
				t.Errorf("opset %d with %d nodes, want %d with %d", g.Opset, len(g.Nodes), tt.opset, tt.nodes)
			}
			if len(g.Inputs) != 1 || g.Inputs[0].Name != tt.input {
				t.Errorf("inputs %v, want only %q", g.Inputs, tt.input)
			}
			checkOrder(t, g)
			values, err := g.Infer(map[string][]int{tt.input: tt.shape})
			if err != nil {
				t.Fatal(err)
			}
			for name, want := range tt.outputs {
				if got := values[name]; !slices.Equal(got.Shape, want) || got.Type != Float32 {
					t.Errorf("output %q is %v %v, want %v", name, got.Type, got.Shape, want)
				}
			}
			if len(g.Outputs) != len(tt.outputs) {
				t.Errorf("%d outputs, want %d", len(g.Outputs), len(tt.outputs))
			}
			roundTrip(t, g)
		})
	}
}

// checkOrder holds every node to use only what stands before it.
func checkOrder(t *testing.T, g *Graph) {
	t.Helper()
	have := map[string]bool{"": true}
	for name := range g.Init {
		have[name] = true
	}
	for _, v := range g.Inputs {
		have[v.Name] = true
	}
	for _, n := range g.Nodes {
		for _, name := range n.In {
			if !have[name] {
				t.Errorf("%s %q uses %q before it is assigned", n.Op, n.Name, name)
			}
		}
		for _, name := range n.Out {
			have[name] = true
		}
	}
}

// roundTrip holds Read(Marshal(g)) to equal g, and a second writing to equal the first.
func roundTrip(t *testing.T, g *Graph) {
	t.Helper()
	b := g.Marshal()
	again, err := Read(b, Limits{})
	if err != nil {
		t.Fatalf("reading what was written: %v", err)
	}
	again.limits = g.limits
	if !reflect.DeepEqual(again, g) {
		t.Errorf("Read(Marshal(g)) differs from g")
	}
	if !slices.Equal(again.Marshal(), b) {
		t.Errorf("Marshal gives other bytes the second time")
	}
}

// TestFold holds that the shape arithmetic of the older exporter disappears.
func TestFold(t *testing.T) {
	g, err := Read(shared(t, "onnx", "ultraface_rfb-320.onnx"), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := g.Fold(map[string][]int{"input": {1, 3, 240, 320}})
	if err != nil {
		t.Fatal(err)
	}
	ops := map[string]int{}
	for _, n := range f.Nodes {
		ops[n.Op]++
	}
	for _, op := range []string{"Shape", "Gather", "Unsqueeze"} {
		if ops[op] != 0 {
			t.Errorf("%d nodes %s are left", ops[op], op)
		}
	}
	if ops["Conv"] != 52 || ops["Reshape"] != 8 {
		t.Errorf("%d Conv and %d Reshape, want 52 and 8", ops["Conv"], ops["Reshape"])
	}
	checkOrder(t, f)
	before, err := g.Infer(nil)
	if err != nil {
		t.Fatal(err)
	}
	after, err := f.Infer(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range after {
		if !reflect.DeepEqual(before[name], v) {
			t.Errorf("%q is %v after folding, %v before", name, v, before[name])
		}
	}
	roundTrip(t, f)
}

func TestReadTruncated(t *testing.T) {
	whole := small().Marshal()
	for i := range whole {
		if _, err := Read(whole[:i], Limits{}); err == nil {
			t.Errorf("Read of the first %d of %d bytes succeeds", i, len(whole))
		}
	}
}

// TestReadFlipped changes single bits: Read may accept what is still a model, and must never panic.
func TestReadFlipped(t *testing.T) {
	whole := small().Marshal()
	accepted, bits := 0, []int{0, 1, 2, 3, 4, 5, 6, 7}
	if testing.Short() {
		bits = []int{0, 7}
	}
	for i := range whole {
		for _, bit := range bits {
			b := slices.Clone(whole)
			b[i] ^= 1 << bit
			g, err := Read(b, Limits{})
			if err == nil {
				accepted++
				roundTrip(t, g)
				_, err = g.Infer(nil)
			}
			if err != nil && !ours(err) {
				t.Fatalf("byte %d bit %d: %v wraps none of the package's errors", i, bit, err)
			}
		}
	}
	if accepted == 0 {
		t.Error("no flip was accepted: weights and names hold free bits")
	}
}

// ours reports whether err wraps one of the five errors of the package.
func ours(err error) bool {
	for _, e := range []error{ErrFormat, ErrLimit, ErrCycle, ErrOperator, ErrShape} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// small is a network of every kind of field: conv, clip, pool, gemm, quantisation and shape arithmetic.
func small() *Graph {
	return &Graph{
		Name: "small", Opset: 13, limits: Limits{}.orDefault(),
		Inputs:  []Value{{"x", Float32, []int{1, 2, 5, 5}}},
		Outputs: []Value{{"y", Float32, []int{1, -1}}, {"q", Uint8, nil}},
		Init: map[string]*Tensor{
			"w":    FromFloat32s("w", []int{3, 2, 3, 3}, make([]float32, 54)),
			"b":    FromFloat32s("b", []int{3}, []float32{1, 2, 3}),
			"lo":   FromFloat32s("lo", nil, []float32{0}),
			"hi":   FromFloat32s("hi", nil, []float32{6}),
			"s":    FromFloat32s("s", nil, []float32{0.5}),
			"z":    {Name: "z", Type: Uint8, Shape: []int{}, Data: []byte{3}},
			"zero": FromInt64s("zero", []int{1}, []int64{0}),
			"rest": FromInt64s("rest", []int{1}, []int64{-1}),
		},
		Nodes: []*Node{
			{Name: "conv", Op: "Conv", In: []string{"x", "w", "b"}, Out: []string{"c"}, Attr: map[string]Attr{
				"pads": {Kind: AttrInts, Ints: []int64{0, 0, 1, 1}}, "strides": {Kind: AttrInts, Ints: []int64{2, 2}},
			}},
			{Name: "clip", Op: "Clip", In: []string{"c", "lo", "hi"}, Out: []string{"r"}},
			{Name: "relu", Op: "Clip", In: []string{"r", "lo", ""}, Out: []string{"k"}},
			{Name: "shape", Op: "Shape", In: []string{"k"}, Out: []string{"d"}},
			{Name: "batch", Op: "Gather", In: []string{"d", "zero"}, Out: []string{"n"}},
			{Name: "form", Op: "Concat", In: []string{"n", "rest"}, Out: []string{"f"}, Attr: map[string]Attr{"axis": {Kind: AttrInt, I: 0}}},
			{Name: "flat", Op: "Reshape", In: []string{"k", "f"}, Out: []string{"y"}},
			{Name: "quantise", Op: "QuantizeLinear", In: []string{"y", "s", "z"}, Out: []string{"q"}},
		},
	}
}

func TestSmallNetwork(t *testing.T) {
	g := small()
	roundTrip(t, g)
	values, err := g.Infer(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]int{"c": {1, 3, 2, 2}, "d": {4}, "n": {1}, "f": {2}, "y": {1, 12}, "q": {1, 12}}
	for name, shape := range want {
		if got := values[name].Shape; !slices.Equal(got, shape) {
			t.Errorf("%q has shape %v, want %v", name, got, shape)
		}
	}
	if values["q"].Type != Uint8 {
		t.Errorf("q is %v, want uint8", values["q"].Type)
	}
	f, err := g.Fold(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Init["f"].Int64s(); !slices.Equal(got, []int64{1, -1}) {
		t.Errorf("folded form is %v, want [1 -1]", got)
	}
	if len(f.Nodes) != 5 {
		t.Errorf("%d nodes after folding, want 5", len(f.Nodes))
	}
}
