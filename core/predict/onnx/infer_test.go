package onnx

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
)

// inferCase is one node: its inputs' shapes or constants, and the shape it must give.
type inferCase struct {
	op    string
	opset int
	in    []any // []int: a float32 input of this shape; []int64: a constant; *Tensor: a constant; nil: absent
	attr  map[string]Attr
	want  []int // nil: bad
	err   error // for a nil want
}

func (c inferCase) graph() *Graph {
	g := &Graph{
		Opset: c.opset, Init: map[string]*Tensor{}, limits: Limits{}.orDefault(),
		Outputs: []Value{{Name: "out", Type: Float32}},
	}
	n := &Node{Op: c.op, Out: []string{"out"}, Attr: c.attr}
	for i, in := range c.in {
		name := fmt.Sprint("in", i)
		switch v := in.(type) {
		case []int:
			g.Inputs = append(g.Inputs, Value{name, Float32, v})
		case []int64:
			g.Init[name] = FromInt64s(name, []int{len(v)}, v)
		case *Tensor:
			g.Init[name] = &Tensor{name, v.Type, v.Shape, v.Data}
		default:
			name = ""
		}
		n.In = append(n.In, name)
	}
	if isIndexOp(c) {
		g.Outputs[0].Type = Int64
	}
	if c.op == "QuantizeLinear" {
		g.Outputs[0].Type = Uint8
		if len(c.in) > 2 {
			g.Outputs[0].Type = c.in[2].(*Tensor).Type
		}
	}
	g.Nodes = []*Node{n}
	return g
}

// isIndexOp reports whether the case's output is of integers.
func isIndexOp(c inferCase) bool {
	_, constant := c.in[0].([]int64)
	return c.op == "Shape" || constant || c.op == "Cast"
}

func ints(v ...int64) Attr              { return Attr{Kind: AttrInts, Ints: v} }
func integer(v int64) Attr              { return Attr{Kind: AttrInt, I: v} }
func text(s string) Attr                { return Attr{Kind: AttrString, S: []byte(s)} }
func float(v float32) *Tensor           { return FromFloat32s("", nil, []float32{v}) }
func floats(n int) *Tensor              { return FromFloat32s("", []int{n}, make([]float32, n)) }
func bytesOf(n int) *Tensor             { return &Tensor{Type: Uint8, Shape: []int{n}, Data: make([]byte, n)} }
func scalar(t DType) *Tensor            { return &Tensor{Type: t, Shape: []int{}, Data: make([]byte, t.Size())} }
func kernel(v ...int64) map[string]Attr { return map[string]Attr{"kernel_shape": ints(v...)} }

func and(a map[string]Attr, name string, v Attr) map[string]Attr {
	m := map[string]Attr{name: v}
	for k, x := range a {
		m[k] = x
	}
	return m
}

var inferCases = []inferCase{
	{op: "Add", opset: 13, in: []any{[]int{2, 3}, []int{3}}, want: []int{2, 3}},
	{op: "Mul", opset: 13, in: []any{[]int{1, 3}, []int{2, 1}}, want: []int{2, 3}},
	{op: "Sub", opset: 9, in: []any{[]int{2}, []int{4, 2, 2}}, want: []int{4, 2, 2}},
	{op: "Div", opset: 9, in: []any{[]int{2}, []int{3}}, err: ErrShape},
	{op: "Pow", opset: 13, in: []any{[]int{2, 3}, float(2)}, want: []int{2, 3}},
	{op: "Pow", opset: 13, in: []any{[]int{2, 3}, floats(2)}, err: ErrShape},
	{op: "Sigmoid", opset: 9, in: []any{[]int{}}, want: []int{}},
	{op: "HardSwish", opset: 14, in: []any{[]int{4}}, want: []int{4}},
	{op: "Softmax", opset: 13, in: []any{[]int{4, 2}}, attr: map[string]Attr{"axis": integer(-2)}, want: []int{4, 2}},
	{op: "Softmax", opset: 13, in: []any{[]int{4, 2}}, attr: map[string]Attr{"axis": integer(2)}, err: ErrShape},
	{op: "LpNormalization", opset: 9, in: []any{[]int{4, 2}}, attr: map[string]Attr{"p": integer(3)}, err: ErrOperator},
	{op: "Clip", opset: 11, in: []any{[]int{4}, float(0), nil}, want: []int{4}},
	{op: "Clip", opset: 11, in: []any{[]int{4}, floats(2)}, err: ErrShape},
	{op: "Clip", opset: 9, in: []any{[]int{4}, float(0)}, err: ErrOperator},
	{op: "Dropout", opset: 12, in: []any{[]int{4}, float(0.5), scalar(Bool)}, want: []int{4}},
	{op: "Dropout", opset: 12, in: []any{[]int{4}, nil, &Tensor{"", Bool, []int{}, []byte{1}}}, err: ErrOperator},
	{op: "Cast", opset: 9, in: []any{[]int{4}}, attr: map[string]Attr{"to": integer(7)}, want: []int{4}},
	{op: "Cast", opset: 9, in: []any{[]int{4}}, attr: map[string]Attr{"to": integer(8)}, err: ErrOperator},

	{op: "Conv", opset: 9, in: []any{[]int{2, 4, 9, 7}, []int{6, 2, 3, 3}, floats(6)}, attr: map[string]Attr{"group": integer(2)}, want: []int{2, 6, 7, 5}},
	{op: "Conv", opset: 9, in: []any{[]int{1, 4, 9, 9}, []int{6, 4, 3, 3}}, attr: map[string]Attr{"dilations": ints(2, 3), "strides": ints(2, 1), "pads": ints(1, 0, 2, 1)}, want: []int{1, 6, 4, 4}},
	{op: "Conv", opset: 9, in: []any{[]int{1, 4, 9, 8}, []int{6, 4, 3, 3}}, attr: map[string]Attr{"auto_pad": text("SAME_UPPER"), "strides": ints(2, 2)}, want: []int{1, 6, 5, 4}},
	{op: "Conv", opset: 9, in: []any{[]int{1, 4, 9, 8}, []int{6, 4, 3, 3}}, attr: map[string]Attr{"auto_pad": text("VALID")}, want: []int{1, 6, 7, 6}},
	{op: "Conv", opset: 9, in: []any{[]int{1, 4, 9}, []int{6, 4, 3}}, want: []int{1, 6, 7}},
	{op: "Conv", opset: 9, in: []any{[]int{1, 4, 9, 8}, []int{6, 4, 3, 3}}, attr: map[string]Attr{"auto_pad": text("MAYBE")}, err: ErrOperator},
	{op: "Conv", opset: 9, in: []any{[]int{1, 4, 9, 8}, []int{6, 3, 3, 3}}, err: ErrShape},
	{op: "Conv", opset: 9, in: []any{[]int{1, 4, 9, 8}, []int{6, 4, 3, 3}, floats(5)}, err: ErrShape},
	{op: "Conv", opset: 9, in: []any{[]int{4, 9}, []int{6, 4}}, err: ErrShape},
	{op: "Conv", opset: 9, in: []any{[]int{1, 4, 9, 8}, []int{6, 4, 3, 3}}, attr: map[string]Attr{"group": integer(0)}, err: ErrShape},
	{op: "MaxPool", opset: 10, in: []any{[]int{1, 2, 6, 6}}, attr: and(kernel(3, 3), "strides", ints(2, 2)), want: []int{1, 2, 2, 2}},
	{op: "MaxPool", opset: 10, in: []any{[]int{1, 2, 6, 6}}, attr: and(and(kernel(3, 3), "strides", ints(2, 2)), "ceil_mode", integer(1)), want: []int{1, 2, 3, 3}},
	{op: "AveragePool", opset: 10, in: []any{[]int{1, 1, 4, 4}}, attr: and(and(and(kernel(2, 2), "strides", ints(4, 4)), "ceil_mode", integer(1)), "pads", ints(0, 0, 3, 3)), want: []int{1, 1, 2, 2}},
	{op: "MaxPool", opset: 10, in: []any{[]int{1, 2, 6, 6}}, err: ErrFormat},
	{op: "MaxPool", opset: 10, in: []any{[]int{1, 2}}, attr: kernel(1), err: ErrShape},
	{op: "MaxPool", opset: 10, in: []any{[]int{1, 2, 6, 6}}, attr: kernel(3), err: ErrShape},
	{op: "GlobalAveragePool", opset: 9, in: []any{[]int{2, 5, 7, 7}}, want: []int{2, 5, 1, 1}},
	{op: "GlobalAveragePool", opset: 9, in: []any{[]int{2, 5, 0, 7}}, err: ErrShape},
	{op: "BatchNormalization", opset: 9, in: []any{[]int{2, 5, 7, 7}, floats(5), floats(5), floats(5), floats(5)}, want: []int{2, 5, 7, 7}},
	{op: "BatchNormalization", opset: 9, in: []any{[]int{2, 5, 7, 7}, floats(5), floats(5), floats(5), floats(4)}, err: ErrShape},
	{op: "BatchNormalization", opset: 14, in: []any{[]int{2, 1}, floats(1), floats(1), floats(1), floats(1)}, attr: map[string]Attr{"training_mode": integer(1)}, err: ErrOperator},
	{op: "Gemm", opset: 13, in: []any{[]int{2, 3}, []int{3, 4}, floats(4)}, want: []int{2, 4}},
	{op: "Gemm", opset: 13, in: []any{[]int{3, 2}, []int{4, 3}}, attr: map[string]Attr{"transA": integer(1), "transB": integer(1)}, want: []int{2, 4}},
	{op: "Gemm", opset: 13, in: []any{[]int{2, 3}, []int{4, 3}}, err: ErrShape},
	{op: "Gemm", opset: 13, in: []any{[]int{1, 3}, []int{3, 4}, []int{2, 4}}, err: ErrShape},
	{op: "MatMul", opset: 13, in: []any{[]int{5, 1, 2, 3}, []int{6, 3, 4}}, want: []int{5, 6, 2, 4}},
	{op: "MatMul", opset: 13, in: []any{[]int{3}, []int{3, 4}}, want: []int{4}},
	{op: "MatMul", opset: 13, in: []any{[]int{3}, []int{3}}, want: []int{}},
	{op: "MatMul", opset: 13, in: []any{[]int{2, 3}, []int{2, 3}}, err: ErrShape},
	{op: "ReduceMean", opset: 13, in: []any{[]int{2, 3, 4}}, attr: map[string]Attr{"axes": ints(-1, 0), "keepdims": integer(0)}, want: []int{3}},
	{op: "ReduceMean", opset: 18, in: []any{[]int{2, 3, 4}, []int64{1}}, want: []int{2, 1, 4}},
	{op: "ReduceMean", opset: 18, in: []any{[]int{2, 3}}, want: []int{1, 1}},
	{op: "ReduceMean", opset: 18, in: []any{[]int{2, 3}}, attr: map[string]Attr{"noop_with_empty_axes": integer(1)}, want: []int{2, 3}},
	{op: "ReduceMean", opset: 13, in: []any{[]int{2, 3, 4}}, attr: map[string]Attr{"axes": ints(2, -1)}, err: ErrShape},

	{op: "Shape", opset: 13, in: []any{[]int{2, 3, 4}}, want: []int{3}},
	{op: "Shape", opset: 15, in: []any{[]int{2, 3, 4}}, attr: map[string]Attr{"start": integer(-2), "end": integer(9)}, want: []int{2}},
	{op: "Flatten", opset: 13, in: []any{[]int{2, 3, 4}}, attr: map[string]Attr{"axis": integer(-1)}, want: []int{6, 4}},
	{op: "Flatten", opset: 13, in: []any{[]int{2, 3, 4}}, attr: map[string]Attr{"axis": integer(3)}, want: []int{24, 1}},
	{op: "Flatten", opset: 13, in: []any{[]int{2, 3}}, attr: map[string]Attr{"axis": integer(4)}, err: ErrShape},
	{op: "Reshape", opset: 13, in: []any{[]int{2, 3, 4}, []int64{0, -1}}, want: []int{2, 12}},
	{op: "Reshape", opset: 13, in: []any{[]int{2, 3, 4}, []int64{-1, 5}}, err: ErrShape},
	{op: "Reshape", opset: 13, in: []any{[]int{2, 3, 4}, []int64{-1, -1}}, err: ErrShape},
	{op: "Reshape", opset: 13, in: []any{[]int{2, 3, 4}, []int64{25}}, err: ErrShape},
	{op: "Reshape", opset: 13, in: []any{[]int{2, 3, 4}, []int64{-2, 12}}, err: ErrShape},
	{op: "Reshape", opset: 13, in: []any{[]int{2, 3, 4}, []int64{math.MaxInt64, 2}}, err: ErrShape},
	{op: "Reshape", opset: 13, in: []any{[]int{24}, []int64{1, 1, 1, 1, 1, 1, 1, 1, 24}}, err: ErrLimit},
	{op: "Reshape", opset: 13, in: []any{[]int{24}, []int64{24, 0}}, err: ErrShape},
	{op: "Reshape", opset: 14, in: []any{[]int{0, 2}, []int64{3, 0}}, attr: map[string]Attr{"allowzero": integer(1)}, want: []int{3, 0}},
	{op: "Transpose", opset: 13, in: []any{[]int{2, 3, 4}}, want: []int{4, 3, 2}},
	{op: "Transpose", opset: 13, in: []any{[]int{2, 3, 4}}, attr: map[string]Attr{"perm": ints(1, 0, 2)}, want: []int{3, 2, 4}},
	{op: "Transpose", opset: 13, in: []any{[]int{2, 3, 4}}, attr: map[string]Attr{"perm": ints(1, 1, 2)}, err: ErrShape},
	{op: "Transpose", opset: 13, in: []any{[]int{2, 3, 4}}, attr: map[string]Attr{"perm": ints(1, 0)}, err: ErrShape},
	{op: "Concat", opset: 13, in: []any{[]int{2, 3}, []int{2, 4}}, attr: map[string]Attr{"axis": integer(-1)}, want: []int{2, 7}},
	{op: "Concat", opset: 13, in: []any{[]int{2, 3}, []int{3, 4}}, attr: map[string]Attr{"axis": integer(-1)}, err: ErrShape},
	{op: "Concat", opset: 13, in: []any{[]int{2, 3}, []int{3}}, attr: map[string]Attr{"axis": integer(0)}, err: ErrShape},
	{op: "Concat", opset: 13, in: []any{[]int{2, 3}}, err: ErrFormat},
	{op: "Gather", opset: 13, in: []any{[]int{2, 3, 4}, []int64{0, -1}}, attr: map[string]Attr{"axis": integer(1)}, want: []int{2, 2, 4}},
	{op: "Gather", opset: 13, in: []any{[]int{2, 3}, []int64{3}}, attr: map[string]Attr{"axis": integer(1)}, err: ErrShape},
	{op: "Gather", opset: 13, in: []any{[]int{2, 3}, []int{3}}, err: ErrShape},
	{op: "Slice", opset: 9, in: []any{[]int{5, 6}}, attr: map[string]Attr{"starts": ints(1, -2), "ends": ints(99, 6)}, want: []int{4, 2}},
	{op: "Slice", opset: 9, in: []any{[]int{5, 6}}, attr: map[string]Attr{"starts": ints(4), "ends": ints(2), "axes": ints(1)}, want: []int{5, 0}},
	{op: "Slice", opset: 9, in: []any{[]int{5, 6}, []int64{1}}, err: ErrOperator},
	{op: "Slice", opset: 10, in: []any{[]int{5, 6}, []int64{-1}, []int64{math.MinInt64}, []int64{0}, []int64{-2}}, want: []int{3, 6}},
	{op: "Slice", opset: 13, in: []any{[]int{5, 6}, []int64{0}, []int64{math.MaxInt64}, []int64{1}, []int64{4}}, want: []int{5, 2}},
	{op: "Slice", opset: 13, in: []any{[]int{5, 6}, []int64{0}, []int64{4}, []int64{1}, []int64{0}}, err: ErrShape},
	{op: "Slice", opset: 13, in: []any{[]int{5, 6}, []int64{0, 0}, []int64{4}}, err: ErrShape},
	{op: "Slice", opset: 13, in: []any{[]int{5, 6}, []int64{0, 0}, []int64{4, 4}, []int64{1, 1}}, err: ErrShape},
	{op: "Slice", opset: 13, in: []any{[]int{5, 6}}, err: ErrShape},
	{op: "Unsqueeze", opset: 13, in: []any{[]int{5, 6}, []int64{0, -1}}, want: []int{1, 5, 6, 1}},
	{op: "Unsqueeze", opset: 11, in: []any{[]int{5, 6}}, attr: map[string]Attr{"axes": ints(1)}, want: []int{5, 1, 6}},
	{op: "Unsqueeze", opset: 13, in: []any{[]int{5, 6}, []int64{0, 0}}, err: ErrShape},
	{op: "Unsqueeze", opset: 13, in: []any{[]int{5, 6}}, err: ErrFormat},
	{op: "Unsqueeze", opset: 11, in: []any{[]int{5, 6}, []int64{0}}, err: ErrOperator},
	{op: "Unsqueeze", opset: 13, in: []any{[]int{5}, []int64{0, 1, 2, 3, 4, 5, 6, 7}}, err: ErrLimit},
	{op: "Squeeze", opset: 13, in: []any{[]int{1, 5, 1}}, want: []int{5}},
	{op: "Squeeze", opset: 13, in: []any{[]int{1, 5, 1}, []int64{-1}}, want: []int{1, 5}},
	{op: "Squeeze", opset: 11, in: []any{[]int{1, 5, 1}}, attr: map[string]Attr{"axes": ints(0)}, want: []int{5, 1}},
	{op: "Squeeze", opset: 13, in: []any{[]int{1, 5, 1}, []int64{1}}, err: ErrShape},
	{op: "Pad", opset: 9, in: []any{[]int{2, 3}}, attr: map[string]Attr{"pads": ints(1, 0, 2, -1)}, want: []int{5, 2}},
	{op: "Pad", opset: 13, in: []any{[]int{2, 3}, []int64{1, 0, 2, 0}, float(1)}, want: []int{5, 3}},
	{op: "Pad", opset: 18, in: []any{[]int{2, 3}, []int64{1, 2}, nil, []int64{-1}}, want: []int{2, 6}},
	{op: "Pad", opset: 13, in: []any{[]int{2, 3}, []int64{1, 2}}, err: ErrShape},
	{op: "Pad", opset: 13, in: []any{[]int{2, 3}, []int64{-3, 0, 0, 0}}, err: ErrShape},
	{op: "Pad", opset: 9, in: []any{[]int{2, 3}}, attr: map[string]Attr{"pads": ints(0, 0, 0, 0), "mode": text("wrap")}, err: ErrOperator},
	{op: "Pad", opset: 18, in: []any{[]int{2, 3}, []int64{1, 2}, nil, []int64{5}}, err: ErrShape},

	{op: "QuantizeLinear", opset: 13, in: []any{[]int{2, 3}, float(1)}, want: []int{2, 3}},
	{op: "QuantizeLinear", opset: 13, in: []any{[]int{2, 3}, float(1), scalar(Int8)}, want: []int{2, 3}},
	{op: "QuantizeLinear", opset: 21, in: []any{[]int{2, 3}, float(1), scalar(Uint16)}, want: []int{2, 3}},
	{op: "QuantizeLinear", opset: 21, in: []any{[]int{2, 3}, float(1), scalar(Uint8)}, attr: map[string]Attr{"output_dtype": integer(3)}, err: ErrShape},
	{op: "QuantizeLinear", opset: 13, in: []any{[]int{2, 3}, float(1), scalar(Int32)}, err: ErrOperator},
	{op: "QuantizeLinear", opset: 13, in: []any{[]int{2, 3}, floats(3), bytesOf(3)}, want: []int{2, 3}},
	{op: "QuantizeLinear", opset: 13, in: []any{[]int{2, 3}, floats(2)}, err: ErrShape},
	{op: "QuantizeLinear", opset: 13, in: []any{[]int{2, 3}, floats(2)}, attr: map[string]Attr{"axis": integer(0)}, want: []int{2, 3}},
	{op: "QuantizeLinear", opset: 10, in: []any{[]int{2, 3}, floats(3)}, err: ErrOperator},
	{op: "QuantizeLinear", opset: 21, in: []any{[]int{2, 3}, float(1)}, attr: map[string]Attr{"block_size": integer(2)}, err: ErrOperator},
	{op: "DequantizeLinear", opset: 13, in: []any{bytesOf(3), float(1), scalar(Uint8)}, want: []int{3}},
	{op: "DequantizeLinear", opset: 13, in: []any{bytesOf(3), floats(3), scalar(Uint8)}, attr: map[string]Attr{"axis": integer(0)}, err: ErrShape},
	{op: "DequantizeLinear", opset: 13, in: []any{bytesOf(3), float(1), scalar(Int8)}, err: ErrShape},
	{op: "DequantizeLinear", opset: 13, in: []any{[]int{3}, float(1)}, err: ErrOperator},
}

func TestInferOperators(t *testing.T) {
	for _, tt := range inferCases {
		t.Run(fmt.Sprintf("%s/%d/%v/%v", tt.op, tt.opset, tt.in, tt.attr), func(t *testing.T) {
			g, err := Read(tt.graph().Marshal(), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			values, err := g.Infer(nil)
			if tt.want == nil {
				if !errors.Is(err, tt.err) {
					t.Errorf("Infer = %v, want %v", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := values["out"].Shape; !slices.Equal(got, tt.want) {
				t.Errorf("shape %v, want %v", got, tt.want)
			}
		})
	}
}

// TestOperatorsAreCovered holds that every operator of the allow-list has a case.
func TestOperatorsAreCovered(t *testing.T) {
	have := map[string]bool{"Constant": true, "Identity": true, "Relu": true, "Exp": true, "Sqrt": true, "HardSigmoid": true}
	for _, c := range inferCases {
		have[c.op] = true
	}
	for _, op := range sortedKeys(operators) {
		if !have[op] {
			t.Errorf("no case infers %s", op)
		}
	}
}

// TestFoldIntegers computes shapes as exporters write them.
func TestFoldIntegers(t *testing.T) {
	two := FromInt64s("", nil, []int64{2})
	narrow := FromInt32s("", []int{2}, []int32{7, -3})
	tests := []struct {
		c    inferCase
		want []int64 // nil: not folded
	}{
		{inferCase{op: "Shape", in: []any{[]int{4, 5}}}, []int64{4, 5}},
		{inferCase{op: "Shape", opset: 15, in: []any{[]int{4, 5, 6}}, attr: map[string]Attr{"start": integer(1), "end": integer(-1)}}, []int64{5}},
		{inferCase{op: "Gather", in: []any{[]int64{4, 5, 6}, []int64{-1, 0}}}, []int64{6, 4}},
		{inferCase{op: "Concat", in: []any{[]int64{4}, []int64{5, 6}}, attr: map[string]Attr{"axis": integer(0)}}, []int64{4, 5, 6}},
		{inferCase{op: "Unsqueeze", in: []any{two, []int64{0}}}, []int64{2}},
		{inferCase{op: "Squeeze", in: []any{[]int64{3}}}, []int64{3}},
		{inferCase{op: "Reshape", in: []any{[]int64{3}, []int64{-1}}}, []int64{3}},
		{inferCase{op: "Identity", in: []any{[]int64{3, 9}}}, []int64{3, 9}},
		{inferCase{op: "Cast", in: []any{narrow}, attr: map[string]Attr{"to": integer(7)}}, []int64{7, -3}},
		{inferCase{op: "Add", in: []any{[]int64{3, 9}, two}}, []int64{5, 11}},
		{inferCase{op: "Sub", in: []any{[]int64{3, 9}, []int64{1, 2}}}, []int64{2, 7}},
		{inferCase{op: "Mul", in: []any{two, two}}, []int64{4}},
		{inferCase{op: "Div", in: []any{[]int64{-3, 9}, two}}, []int64{-1, 4}},
		{inferCase{op: "Div", in: []any{[]int64{3, 9}, []int64{0, 1}}}, nil},
		{inferCase{op: "Slice", in: []any{[]int64{1, 2, 3, 4, 5}, []int64{-1}, []int64{0}, []int64{0}, []int64{-2}}}, []int64{5, 3}},
		{inferCase{op: "Concat", in: []any{make([]int64, 600), make([]int64, 600)}, attr: map[string]Attr{"axis": integer(0)}}, nil},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.c.op, tt.want), func(t *testing.T) {
			c := tt.c
			c.opset = max(c.opset, 13)
			g := c.graph()
			g.Outputs[0].Type = Int64
			f, err := g.Fold(nil)
			if err != nil {
				t.Fatal(err)
			}
			got := f.Init["out"]
			if tt.want == nil {
				if got != nil || len(f.Nodes) != 1 {
					t.Errorf("folded to %v", got)
				}
				return
			}
			if got == nil || !slices.Equal(got.Int64s(), tt.want) || len(f.Nodes) != 0 {
				t.Errorf("folded to %v with %d nodes left, want %v", got, len(f.Nodes), tt.want)
			}
		})
	}
}

func TestTensorAccessors(t *testing.T) {
	f := FromFloat32s("f", []int{2}, []float32{1.5, -2})
	if got := f.Float32s(); !slices.Equal(got, []float32{1.5, -2}) {
		t.Errorf("Float32s = %v", got)
	}
	if f.Int8s() != nil || f.Int32s() != nil || f.Int64s() != nil {
		t.Error("a float tensor gives integers")
	}
	if got := FromInt8s("i", []int{2}, []int8{-128, 127}); !slices.Equal(got.Int8s(), []int8{-128, 127}) ||
		!slices.Equal(got.Int32s(), []int32{-128, 127}) || got.Float32s() != nil {
		t.Errorf("Int8s = %v", got.Int8s())
	}
	if got := FromInt32s("i", []int{1}, []int32{math.MinInt32}); !slices.Equal(got.Int64s(), []int64{math.MinInt32}) {
		t.Errorf("Int64s of int32 = %v", got.Int64s())
	}
	if got := (&Tensor{Type: Uint16, Shape: []int{1}, Data: []byte{0xff, 0xff}}).Int32s(); !slices.Equal(got, []int32{65535}) {
		t.Errorf("Int32s of uint16 = %v", got)
	}
	if got := (&Tensor{Type: Int16, Shape: []int{1}, Data: []byte{0xff, 0xff}}).Int64s(); !slices.Equal(got, []int64{-1}) {
		t.Errorf("Int64s of int16 = %v", got)
	}
	if got := (&Tensor{Type: Uint32, Shape: []int{1}, Data: []byte{255, 255, 255, 255}}).Int64s(); !slices.Equal(got, []int64{math.MaxUint32}) {
		t.Errorf("Int64s of uint32 = %v", got)
	}
	if DType(8).Size() != 0 || DType(8).String() != "type 8" || Float16.String() != "float16" {
		t.Error("names and sizes of types")
	}
}

// TestConstants reads every form of a Constant node that holds numbers.
func TestConstants(t *testing.T) {
	tests := []struct {
		name string
		attr Attr
		want *Tensor
	}{
		{"value", Attr{Kind: AttrTensor, T: FromInt8s("", []int{1}, []int8{5})}, FromInt8s("", []int{1}, []int8{5})},
		{"value_float", Attr{Kind: AttrFloat, F: 2.5}, float(2.5)},
		{"value_floats", Attr{Kind: AttrFloats, Floats: []float32{1, 2}}, FromFloat32s("", []int{2}, []float32{1, 2})},
		{"value_int", integer(7), FromInt64s("", nil, []int64{7})},
		{"value_ints", ints(7, 8), FromInt64s("", []int{2}, []int64{7, 8})},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := small()
			g.Nodes = append(g.Nodes, &Node{Op: "Constant", Out: []string{"k0"}, Attr: map[string]Attr{tt.name: tt.attr}})
			read, err := Read(g.Marshal(), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			got := read.Init["k0"]
			if got == nil || got.Type != tt.want.Type || !slices.Equal(got.Shape, tt.want.Shape) || !slices.Equal(got.Data, tt.want.Data) {
				t.Errorf("constant %+v, want %+v", got, tt.want)
			}
			if len(read.Nodes) != len(g.Nodes)-1 {
				t.Errorf("%d nodes, want %d", len(read.Nodes), len(g.Nodes)-1)
			}
		})
	}
	g := small()
	g.Nodes = append(g.Nodes, &Node{Op: "Constant", Out: []string{"k0"}})
	if _, err := Read(g.Marshal(), Limits{}); !errors.Is(err, ErrFormat) {
		t.Errorf("a constant without a value: %v, want %v", err, ErrFormat)
	}
}

func TestWindowPads(t *testing.T) {
	n := &Node{Op: "Conv", Attr: map[string]Attr{"auto_pad": text("SAME_LOWER"), "strides": ints(2, 2)}}
	w, err := n.Window([]int{1, 1, 8, 9}, []int{3, 3})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(w.Pad, []int{1, 1, 0, 1}) || !slices.Equal(w.Out, []int{4, 5}) {
		t.Errorf("pads %v, out %v; want [1 1 0 1], [4 5]", w.Pad, w.Out)
	}
}
