package onnx

import (
	"fmt"
	"math"
)

// operator says how one operator of the allow-list may be used.
type operator struct {
	since        int // first opset that has it; 0: all supported ones
	minIn, maxIn int
	maxOut       int // outputs beyond maxOut, such as MaxPool's indices, are refused
	attrs        map[string]attrSpec
	infer        func(*inference, *Node) error
}

// attrSpec is the kind of an attribute and the opsets that have it: from ≤ opset, and opset < until unless 0.
type attrSpec struct {
	kind        AttrKind
	from, until int
}

func always(k AttrKind) attrSpec            { return attrSpec{kind: k} }
func since(opset int, k AttrKind) attrSpec  { return attrSpec{kind: k, from: opset} }
func before(opset int, k AttrKind) attrSpec { return attrSpec{kind: k, until: opset} }

type attrs = map[string]attrSpec

var operators = operatorTable()

// operatorTable is the allow-list: what the networks we know use, in the order of the schema's documentation.
func operatorTable() map[string]operator {
	unary := operator{minIn: 1, maxIn: 1, maxOut: 1, infer: inferSame}
	binary := operator{minIn: 2, maxIn: 2, maxOut: 1, infer: inferBroadcast}
	window := func(more attrs) attrs {
		return with(more, attrs{
			"auto_pad": always(AttrString), "kernel_shape": always(AttrInts), "pads": always(AttrInts), "strides": always(AttrInts),
		})
	}
	taking := func(a attrs) operator { o := unary; o.attrs = a; return o }
	table := map[string]operator{
		"Add": binary, "Sub": binary, "Mul": binary, "Div": binary, "Pow": {minIn: 2, maxIn: 2, maxOut: 1, infer: inferPow},
		"Relu": unary, "Sigmoid": unary, "Exp": unary, "Sqrt": unary, "Identity": unary,
		"HardSigmoid":     taking(attrs{"alpha": always(AttrFloat), "beta": always(AttrFloat)}),
		"HardSwish":       {since: 14, minIn: 1, maxIn: 1, maxOut: 1, infer: inferSame},
		"Softmax":         taking(attrs{"axis": always(AttrInt)}),
		"LpNormalization": taking(attrs{"axis": always(AttrInt), "p": always(AttrInt)}),
		"Clip": {minIn: 1, maxIn: 3, maxOut: 1, infer: inferClip, attrs: attrs{
			"min": before(11, AttrFloat), "max": before(11, AttrFloat),
		}},
		"Dropout": {minIn: 1, maxIn: 3, maxOut: 2, infer: inferDropout, attrs: attrs{
			"ratio": before(12, AttrFloat), "seed": since(12, AttrInt),
		}},
		"Cast": {minIn: 1, maxIn: 1, maxOut: 1, infer: inferCast, attrs: attrs{
			"to": always(AttrInt), "saturate": since(19, AttrInt),
		}},
		"Conv": {minIn: 2, maxIn: 3, maxOut: 1, infer: inferConv, attrs: window(attrs{
			"dilations": always(AttrInts), "group": always(AttrInt),
		})},
		"MaxPool": {minIn: 1, maxIn: 1, maxOut: 1, infer: inferPool, attrs: window(attrs{
			"dilations": since(10, AttrInts), "ceil_mode": since(10, AttrInt), "storage_order": always(AttrInt),
		})},
		"AveragePool": {minIn: 1, maxIn: 1, maxOut: 1, infer: inferPool, attrs: window(attrs{
			"dilations": since(19, AttrInts), "ceil_mode": since(10, AttrInt), "count_include_pad": always(AttrInt),
		})},
		"GlobalAveragePool": {minIn: 1, maxIn: 1, maxOut: 1, infer: inferGlobalPool},
		"BatchNormalization": {minIn: 5, maxIn: 5, maxOut: 1, infer: inferBatchNorm, attrs: attrs{
			"epsilon": always(AttrFloat), "momentum": always(AttrFloat), "training_mode": since(14, AttrInt),
		}},
		"Gemm": {minIn: 2, maxIn: 3, maxOut: 1, infer: inferGemm, attrs: attrs{
			"alpha": always(AttrFloat), "beta": always(AttrFloat), "transA": always(AttrInt), "transB": always(AttrInt),
		}},
		"MatMul": {minIn: 2, maxIn: 2, maxOut: 1, infer: inferMatMul},
		"ReduceMean": {minIn: 1, maxIn: 2, maxOut: 1, infer: inferReduce, attrs: attrs{
			"axes": before(18, AttrInts), "keepdims": always(AttrInt), "noop_with_empty_axes": since(18, AttrInt),
		}},
	}
	for name, o := range shapeOperators() {
		table[name] = o
	}
	return table
}

// shapeOperators are those that move elements without computing on them, and quantisation.
func shapeOperators() map[string]operator {
	quantise := attrs{"axis": since(13, AttrInt), "block_size": since(21, AttrInt)}
	return map[string]operator{
		"Constant": {maxOut: 1, attrs: attrs{
			"value": always(AttrTensor), "value_float": since(12, AttrFloat), "value_floats": since(12, AttrFloats),
			"value_int": since(12, AttrInt), "value_ints": since(12, AttrInts),
		}},
		"Shape":     {minIn: 1, maxIn: 1, maxOut: 1, infer: inferShapeOf, attrs: attrs{"start": since(15, AttrInt), "end": since(15, AttrInt)}},
		"Flatten":   {minIn: 1, maxIn: 1, maxOut: 1, infer: inferFlatten, attrs: attrs{"axis": always(AttrInt)}},
		"Reshape":   {minIn: 2, maxIn: 2, maxOut: 1, infer: inferReshape, attrs: attrs{"allowzero": since(14, AttrInt)}},
		"Transpose": {minIn: 1, maxIn: 1, maxOut: 1, infer: inferTranspose, attrs: attrs{"perm": always(AttrInts)}},
		"Concat":    {minIn: 1, maxIn: maxEdges, maxOut: 1, infer: inferConcat, attrs: attrs{"axis": always(AttrInt)}},
		"Gather":    {minIn: 2, maxIn: 2, maxOut: 1, infer: inferGather, attrs: attrs{"axis": always(AttrInt)}},
		"Slice": {minIn: 1, maxIn: 5, maxOut: 1, infer: inferSlice, attrs: attrs{
			"axes": before(10, AttrInts), "starts": before(10, AttrInts), "ends": before(10, AttrInts),
		}},
		"Unsqueeze": {minIn: 1, maxIn: 2, maxOut: 1, infer: inferUnsqueeze, attrs: attrs{"axes": before(13, AttrInts)}},
		"Squeeze":   {minIn: 1, maxIn: 2, maxOut: 1, infer: inferSqueeze, attrs: attrs{"axes": before(13, AttrInts)}},
		"Pad": {minIn: 1, maxIn: 4, maxOut: 1, infer: inferPad, attrs: attrs{
			"mode": always(AttrString), "pads": before(11, AttrInts), "value": before(11, AttrFloat),
		}},
		"QuantizeLinear": {since: 10, minIn: 2, maxIn: 3, maxOut: 1, infer: inferQuantize, attrs: with(quantise, attrs{
			"saturate": since(19, AttrInt), "output_dtype": since(21, AttrInt),
		})},
		"DequantizeLinear": {since: 10, minIn: 2, maxIn: 3, maxOut: 1, infer: inferDequantize, attrs: quantise},
	}
}

func with(a, b attrs) attrs {
	m := attrs{}
	for k, v := range a {
		m[k] = v
	}
	for k, v := range b {
		m[k] = v
	}
	return m
}

// checkOperator holds a node to the allow-list.
func checkOperator(n *Node, opset int) error {
	o, ok := operators[n.Op]
	switch {
	case n.Op == "":
		return fmt.Errorf("%w: node %q has no operator", ErrFormat, n.Name)
	case n.Domain != "":
		return fmt.Errorf("%w: %s.%s", ErrOperator, n.Domain, n.Op)
	case !ok:
		return fmt.Errorf("%w: %s", ErrOperator, n.Op)
	case opset < o.since:
		return fmt.Errorf("%w: %s in operator set %d, but it exists only since %d", ErrOperator, n.Op, opset, o.since)
	case len(n.In) < o.minIn || len(n.In) > o.maxIn:
		return fmt.Errorf("%w: %s %q has %d inputs", ErrFormat, n.Op, n.Name, len(n.In))
	case len(n.Out) == 0 || n.Out[0] == "":
		return fmt.Errorf("%w: %s %q has no output", ErrFormat, n.Op, n.Name)
	}
	for i, name := range n.In[:o.minIn] {
		if name == "" {
			return fmt.Errorf("%w: %s %q lacks input %d", ErrFormat, n.Op, n.Name, i)
		}
	}
	for _, name := range n.Out[min(o.maxOut, len(n.Out)):] {
		if name != "" {
			return fmt.Errorf("%w: %s with %d outputs", ErrOperator, n.Op, len(n.Out))
		}
	}
	return nil
}

// checkAttrs holds a node's attributes to its operator's: an unknown one changes a meaning we cannot know.
func checkAttrs(n *Node, opset int) error {
	specs := operators[n.Op].attrs
	for _, name := range sortedKeys(n.Attr) {
		s, ok := specs[name]
		if !ok || opset < s.from || s.until > 0 && opset >= s.until {
			return fmt.Errorf("%w: %s with attribute %q in operator set %d", ErrOperator, n.Op, name, opset)
		}
		a := n.Attr[name]
		if a.Kind != s.kind {
			return fmt.Errorf("%w: attribute %q of %s has kind %d", ErrFormat, name, n.Op, a.Kind)
		}
		for _, f := range append([]float32{a.F}, a.Floats...) {
			if math.IsNaN(float64(f)) {
				return fmt.Errorf("%w: attribute %q of %s is not a number", ErrFormat, name, n.Op)
			}
		}
	}
	return nil
}

// constantOf returns the tensor that a Constant node holds, under its output's name.
func constantOf(n *Node) (*Tensor, error) {
	if len(n.Attr) != 1 {
		return nil, fmt.Errorf("%w: Constant %q has %d values", ErrFormat, n.Name, len(n.Attr))
	}
	for name, a := range n.Attr {
		switch name {
		case "value":
			t := *a.T
			t.Name = n.Out[0]
			return &t, nil
		case "value_float":
			return FromFloat32s(n.Out[0], nil, []float32{a.F}), nil
		case "value_floats":
			return FromFloat32s(n.Out[0], []int{len(a.Floats)}, a.Floats), nil
		case "value_int":
			return FromInt64s(n.Out[0], nil, []int64{a.I}), nil
		case "value_ints":
			return FromInt64s(n.Out[0], []int{len(a.Ints)}, a.Ints), nil
		}
	}
	return nil, fmt.Errorf("%w: Constant %q", ErrOperator, n.Name)
}
