package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sightline-dev/sightline/core/predict/nn"
)

// Numbers of element types in ONNX.
const (
	float32Type = 1
	uint8Type   = 2
	int8Type    = 3
	int32Type   = 6
)

// qdq writes an integer network as ONNX in QDQ form: every operator computes with floats between DequantizeLinear and QuantizeLinear.
// ONNX Runtime replaces these by its integer kernels.
type qdq struct {
	network *nn.Network
	graph   []byte
	values  []string // names of the values in float32, by number
	names   int
}

// writeQDQ converts the plan at from into an ONNX file. After the pooling the plan has sums of bytes, and the file has floats.
func writeQDQ(to, from string) error {
	network, err := read(from)
	if err != nil {
		return err
	}
	q := &qdq{network: network, values: []string{""}}
	input, _ := network.Value(1)
	q.graph = message(q.graph, 11, valueInfo("input", uint8Type, input.Shape))
	q.values = append(q.values, q.float("input", input.Quantisation))
	for _, node := range network.Nodes() {
		q.values = append(q.values, q.add(node))
	}
	for _, o := range network.Outputs() {
		q.graph = message(q.graph, 12, valueInfo(q.values[o.Of], float32Type, nil))
	}
	opset := varint(message(nil, 1, nil), 2, 13)
	return os.WriteFile(to, message(message(varint(nil, 1, 8), 7, q.graph), 8, opset), 0o600)
}

func (q *qdq) level(value int) nn.Quantisation {
	v, _ := q.network.Value(value)
	return v.Quantisation
}

// add writes a node and returns its result.
func (q *qdq) add(node nn.Node) string {
	x := q.values[node.Of]
	switch node.Kind {
	case nn.Pool:
		return q.node("GlobalAveragePool", nil, x)
	case nn.Flatten:
		return q.node("Flatten", nil, x)
	case nn.Add:
		return q.roundToLevels(q.node("Add", nil, x, q.values[node.With]), node.To)
	case nn.Gemm:
		w, bias := make([]float32, len(node.Bytes)), make([]float32, len(node.Offsets))
		for i, v := range node.Bytes {
			w[i] = float32(v) * node.Scales[i/node.Shape[1]]
		}
		for j, v := range node.Offsets {
			bias[j] = float32(v) * node.Scales[j] * q.level(node.Of).Scale
		}
		return q.node("Gemm", integer(nil, "transB", 1), x, q.constant(float32Type, node.Shape[:2], w), q.constant(float32Type, node.Shape[:1], bias))
	}
	w, bias := q.weights(node)
	attributes := integer(nil, "group", node.Group)
	attributes = integers(attributes, "strides", node.Stride[:])
	attributes = integers(attributes, "dilations", node.Dilation[:])
	attributes = integers(attributes, "pads", node.Pad[:])
	y := q.node("Conv", attributes, x, w, bias)
	if node.With == 0 {
		return q.roundToLevels(y, node.To)
	}
	return q.roundToLevels(q.node("Add", nil, q.roundToLevels(y, node.Before), q.values[node.With]), node.To)
}

// roundToLevels rounds a value to the bytes with which the plan stores it.
func (q *qdq) roundToLevels(x string, l nn.Quantisation) string {
	return q.float(q.node("QuantizeLinear", nil, x, q.scale(l), q.zero(l)), l)
}

// float converts bytes into floats.
func (q *qdq) float(x string, l nn.Quantisation) string {
	return q.node("DequantizeLinear", nil, x, q.scale(l), q.zero(l))
}

func (q *qdq) scale(l nn.Quantisation) string { return q.constant(float32Type, nil, l.Scale) }

func (q *qdq) zero(l nn.Quantisation) string { return q.constant(uint8Type, nil, uint8(l.Zero)) }

// weights writes the weights of a convolution and its offsets, times their scales. It returns their names.
func (q *qdq) weights(node nn.Node) (w, bias string) {
	outs, axis := node.Shape[:1], integer(nil, "axis", 0)
	w = q.node("DequantizeLinear", axis, q.constant(int8Type, node.Shape[:], node.Bytes), q.constant(float32Type, outs, node.Scales),
		q.constant(int8Type, outs, make([]int8, outs[0])))
	scales := slices.Clone(node.Scales)
	for j := range scales {
		scales[j] *= q.level(node.Of).Scale
	}
	bias = q.node("DequantizeLinear", axis, q.constant(int32Type, outs, node.Offsets), q.constant(float32Type, outs, scales),
		q.constant(int32Type, outs, make([]int32, outs[0])))
	return w, bias
}

// name returns a new name for a value.
func (q *qdq) name() string {
	q.names++
	return fmt.Sprint("v", q.names)
}

func (q *qdq) node(op string, attributes []byte, in ...string) string {
	var n []byte
	for _, name := range in {
		n = message(n, 1, []byte(name))
	}
	out := q.name()
	n = append(message(message(n, 2, []byte(out)), 4, []byte(op)), attributes...)
	q.graph = message(q.graph, 1, n)
	return out
}

// constant writes a number or a slice of numbers and returns its name.
func (q *qdq) constant(element int, shape []int, of any) string {
	var t []byte
	for _, d := range shape {
		t = varint(t, 1, d)
	}
	out := q.name()
	raw, err := binary.Append(nil, binary.LittleEndian, of)
	if err != nil {
		panic(err) // only a type without a size, which no caller gives
	}
	q.graph = message(q.graph, 5, message(message(varint(t, 2, element), 8, []byte(out)), 9, raw))
	return out
}

func valueInfo(name string, element int, shape []int) []byte {
	var dims []byte
	for _, d := range shape {
		dims = message(dims, 1, varint(nil, 1, d))
	}
	tensor := varint(nil, 1, element)
	if shape != nil {
		tensor = message(tensor, 2, dims)
	}
	return message(message(nil, 1, []byte(name)), 2, message(nil, 1, tensor))
}

// integer appends an attribute with one number to to.
func integer(to []byte, name string, v int) []byte {
	const kind = 2
	return message(to, 5, varint(varint(message(nil, 1, []byte(name)), 3, v), 20, kind))
}

// integers appends an attribute with several numbers to to.
func integers(to []byte, name string, vs []int) []byte {
	const kind = 7
	a := message(nil, 1, []byte(name))
	for _, v := range vs {
		a = varint(a, 8, v)
	}
	return message(to, 5, varint(a, 20, kind))
}

func varint(to []byte, tag protowire.Number, v int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(to, tag, protowire.VarintType), uint64(v))
}

func message(to []byte, tag protowire.Number, inner []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(to, tag, protowire.BytesType), inner)
}
