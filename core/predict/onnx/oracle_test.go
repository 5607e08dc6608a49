package onnx

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/sightline-dev/sightline/core/predict/onnx/internal/schema"
	"github.com/sightline-dev/sightline/core/proof"
)

// shared returns the content of a file of the test data beside the project, or skips the test.
func shared(t testing.TB, dir, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(proof.Shared(t, dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestReadAgreesWithSchema compares what Read gives with what the schema's own generated code reads.
func TestReadAgreesWithSchema(t *testing.T) {
	for _, tt := range networks {
		t.Run(tt.file, func(t *testing.T) { agree(t, shared(t, tt.dir, tt.file)) })
	}
	t.Run("small", func(t *testing.T) { agree(t, small().Marshal()) })
}

func agree(t *testing.T, data []byte) {
	t.Helper()
	g, err := Read(data, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var m schema.ModelProto
	if err := proto.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	if got := m.GetOpsetImport()[0].GetVersion(); int(got) != g.Opset {
		t.Errorf("opset %d, the schema says %d", g.Opset, got)
	}
	want := map[string]*schema.TensorProto{}
	for _, p := range m.GetGraph().GetInitializer() {
		want[p.GetName()] = p
	}
	nodes := map[string]*schema.NodeProto{} // by first output
	for _, p := range m.GetGraph().GetNode() {
		if p.GetOpType() == "Constant" {
			want[p.GetOutput()[0]] = p.GetAttribute()[0].GetT()
			continue
		}
		nodes[p.GetOutput()[0]] = p
	}
	if len(want) != len(g.Init) || len(nodes) != len(g.Nodes) {
		t.Fatalf("%d initialisers and %d nodes, the schema says %d and %d", len(g.Init), len(g.Nodes), len(want), len(nodes))
	}
	for name, p := range want {
		agreeTensor(t, name, g.Init[name], p)
	}
	for _, n := range g.Nodes {
		agreeNode(t, n, nodes[n.Out[0]])
	}
	values := slices.Concat(m.GetGraph().GetInput(), m.GetGraph().GetOutput())
	values = slices.DeleteFunc(values, func(v *schema.ValueInfoProto) bool { return want[v.GetName()] != nil })
	ours := slices.Concat(g.Inputs, g.Outputs)
	if len(ours) != len(values) {
		t.Fatalf("%d inputs and outputs, the schema says %d", len(ours), len(values))
	}
	for i, v := range ours {
		agreeValue(t, v, values[i])
	}
}

func agreeValue(t *testing.T, v Value, p *schema.ValueInfoProto) {
	t.Helper()
	tensor := p.GetType().GetTensorType()
	var shape []int
	if tensor.GetShape() != nil {
		shape = []int{}
	}
	for _, d := range tensor.GetShape().GetDim() {
		if _, fixed := d.GetValue().(*schema.TensorShapeProto_Dimension_DimValue); fixed {
			shape = append(shape, int(d.GetDimValue()))
		} else {
			shape = append(shape, -1)
		}
	}
	if v.Name != p.GetName() || int32(v.Type) != tensor.GetElemType() || !slices.Equal(v.Shape, shape) {
		t.Errorf("value %+v, the schema says %v", v, p)
	}
}

func agreeNode(t *testing.T, n *Node, p *schema.NodeProto) {
	t.Helper()
	if p == nil || n.Op != p.GetOpType() || n.Name != p.GetName() || n.Domain != p.GetDomain() ||
		!slices.Equal(n.In, p.GetInput()) || !slices.Equal(n.Out, p.GetOutput()) || len(n.Attr) != len(p.GetAttribute()) {
		t.Fatalf("node %+v, the schema says %v", n, p)
	}
	for _, q := range p.GetAttribute() {
		a := n.Attr[q.GetName()]
		if int32(a.Kind) != int32(q.GetType()) || a.F != q.GetF() || a.I != q.GetI() || !bytes.Equal(a.S, q.GetS()) ||
			!slices.Equal(a.Ints, q.GetInts()) || !slices.Equal(a.Floats, q.GetFloats()) || (a.T == nil) != (q.GetT() == nil) {
			t.Errorf("%s %q: attribute %+v, the schema says %v", n.Op, n.Name, a, q)
		}
	}
}

// agreeTensor compares the elements with those that the schema's fields hold.
func agreeTensor(t *testing.T, name string, got *Tensor, p *schema.TensorProto) {
	t.Helper()
	if got == nil {
		t.Fatalf("tensor %q is missing", name)
	}
	shape := make([]int, len(p.GetDims()))
	for i, d := range p.GetDims() {
		shape[i] = int(d)
	}
	data := p.GetRawData()
	for _, f := range p.GetFloatData() {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(f))
	}
	for _, i := range p.GetInt64Data() {
		data = binary.LittleEndian.AppendUint64(data, uint64(i))
	}
	for _, f := range p.GetDoubleData() {
		data = binary.LittleEndian.AppendUint64(data, math.Float64bits(f))
	}
	for _, i := range p.GetInt32Data() {
		data = appendElement(data, uint64(i), DType(p.GetDataType()).Size())
	}
	for _, i := range p.GetUint64Data() {
		data = appendElement(data, i, DType(p.GetDataType()).Size())
	}
	if int32(got.Type) != p.GetDataType() || !slices.Equal(got.Shape, shape) || !bytes.Equal(got.Data, data) {
		t.Errorf("tensor %q: %v %v with %d bytes, the schema says %d %v with %d, or their content differs",
			name, got.Type, got.Shape, len(got.Data), p.GetDataType(), shape, len(data))
	}
}

func appendElement(b []byte, v uint64, size int) []byte {
	return append(b, binary.LittleEndian.AppendUint64(nil, v)[:size]...)
}

// TestReadTypedData reads elements from every field that may hold them, packed by the schema's code.
func TestReadTypedData(t *testing.T) {
	tests := []*schema.TensorProto{
		{DataType: typeOf(Float32), Dims: []int64{2}, FloatData: []float32{1.5, -2}},
		{DataType: typeOf(Float64), Dims: []int64{2}, DoubleData: []float64{1.5, -2}},
		{DataType: typeOf(Uint8), Dims: []int64{2}, Int32Data: []int32{0, 255}},
		{DataType: typeOf(Int8), Dims: []int64{2, 1}, Int32Data: []int32{-128, 127}},
		{DataType: typeOf(Uint16), Dims: []int64{2}, Int32Data: []int32{0, 65535}},
		{DataType: typeOf(Int16), Dims: []int64{2}, Int32Data: []int32{-32768, 32767}},
		{DataType: typeOf(Int32), Dims: []int64{2}, Int32Data: []int32{math.MinInt32, math.MaxInt32}},
		{DataType: typeOf(Bool), Dims: []int64{2}, Int32Data: []int32{0, 1}},
		{DataType: typeOf(Float16), Dims: []int64{1}, Int32Data: []int32{0x3c00}},
		{DataType: typeOf(Int64), Dims: []int64{2}, Int64Data: []int64{math.MinInt64, math.MaxInt64}},
		{DataType: typeOf(Uint32), Dims: []int64{2}, Uint64Data: []uint64{0, math.MaxUint32}},
		{DataType: typeOf(Uint64), Dims: []int64{2}, Uint64Data: []uint64{0, math.MaxUint64}},
		{DataType: typeOf(Float32), Dims: []int64{0, 3}},
		{DataType: typeOf(Float32), RawData: []byte{0, 0, 128, 63}},
	}
	for _, p := range tests {
		t.Run(DType(p.GetDataType()).String(), func(t *testing.T) {
			p.Name = proto.String("typed")
			m := hostile(func(m *schema.ModelProto) { m.Graph.Initializer = append(m.Graph.Initializer, p) })
			agree(t, m)
		})
	}
}

func typeOf(t DType) *int32 { return proto.Int32(int32(t)) }
