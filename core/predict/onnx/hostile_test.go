package onnx

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/sightline-dev/sightline/core/predict/onnx/internal/schema"
	"github.com/sightline-dev/sightline/core/proof"
)

// hostile writes small() with the schema's own code after change has spoilt it.
func hostile(change func(m *schema.ModelProto)) []byte {
	var m schema.ModelProto
	if err := proto.Unmarshal(small().Marshal(), &m); err != nil {
		panic(err)
	}
	change(&m)
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(&m)
	if err != nil {
		panic(err)
	}
	return b
}

func node(op string, in, out []string, attrs ...*schema.AttributeProto) *schema.NodeProto {
	return &schema.NodeProto{OpType: &op, Name: proto.String("n"), Input: in, Output: out, Attribute: attrs}
}

func addNode(n *schema.NodeProto) func(m *schema.ModelProto) {
	return func(m *schema.ModelProto) { m.Graph.Node = append(m.Graph.Node, n) }
}

func addInit(p *schema.TensorProto) func(m *schema.ModelProto) {
	return func(m *schema.ModelProto) {
		p.Name = proto.String("evil")
		m.Graph.Initializer = append(m.Graph.Initializer, p)
	}
}

func intsAttr(name string, v ...int64) *schema.AttributeProto {
	return &schema.AttributeProto{Name: &name, Type: schema.AttributeProto_INTS.Enum(), Ints: v}
}

var hostileModels = []struct {
	name string
	data []byte
	want error
	text string // part of the message
}{
	{"no bytes", nil, ErrFormat, "no graph"},
	{"text", []byte("once upon a time"), ErrFormat, ""},
	{"two graphs", append(small().Marshal(), small().Marshal()...), ErrFormat, "two graphs"},
	{"opset 8", hostile(func(m *schema.ModelProto) { m.OpsetImport[0].Version = proto.Int64(8) }), ErrOperator, "operator set 8"},
	{"opset 22", hostile(func(m *schema.ModelProto) { m.OpsetImport[0].Version = proto.Int64(22) }), ErrOperator, "operator set 22"},
	{"opset -1", hostile(func(m *schema.ModelProto) { m.OpsetImport[0].Version = proto.Int64(-1) }), ErrFormat, ""},
	{"no opset", hostile(func(m *schema.ModelProto) { m.OpsetImport = nil }), ErrFormat, "operator set"},
	{"functions", hostile(func(m *schema.ModelProto) { m.Functions = []*schema.FunctionProto{{}} }), ErrOperator, "functions"},
	{"sparse", hostile(func(m *schema.ModelProto) { m.Graph.SparseInitializer = []*schema.SparseTensorProto{{}} }), ErrOperator, "sparse"},

	{"unknown operator", hostile(addNode(node("Gremlin", []string{"y"}, []string{"g"}))), ErrOperator, "Gremlin"},
	{"foreign domain", hostile(func(m *schema.ModelProto) { m.Graph.Node[0].Domain = proto.String("com.evil") }), ErrOperator, "com.evil.Conv"},
	{"control flow", hostile(addNode(node("Loop", []string{"y"}, []string{"g"}, &schema.AttributeProto{
		Name: proto.String("body"), Type: schema.AttributeProto_GRAPH.Enum(), G: &schema.GraphProto{},
	}))), ErrOperator, "Loop"},
	{"graph attribute", hostile(addNode(node("Relu", []string{"y"}, []string{"g"}, &schema.AttributeProto{
		Name: proto.String("body"), Type: schema.AttributeProto_GRAPH.Enum(), G: &schema.GraphProto{},
	}))), ErrOperator, "body"},
	{"unknown attribute", hostile(addNode(node("Relu", []string{"y"}, []string{"g"}, intsAttr("backdoor", 1)))), ErrOperator, "backdoor"},
	{"attribute of another kind", hostile(addNode(node("Flatten", []string{"y"}, []string{"g"}, intsAttr("axis", 1)))), ErrFormat, "axis"},
	{"attribute from the future", hostile(addNode(node("Shape", []string{"y"}, []string{"g"}, &schema.AttributeProto{
		Name: proto.String("start"), Type: schema.AttributeProto_INT.Enum(), I: proto.Int64(1),
	}))), ErrOperator, "start"},
	{"attribute twice", hostile(func(m *schema.ModelProto) {
		a := m.Graph.Node[0].Attribute
		m.Graph.Node[0].Attribute = append(a, a[0])
	}), ErrFormat, "twice"},
	{"attribute refers", hostile(addNode(node("Relu", []string{"y"}, []string{"g"}, &schema.AttributeProto{
		Name: proto.String("a"), RefAttrName: proto.String("b"),
	}))), ErrOperator, "refers"},
	{"second output", hostile(addNode(node("MaxPool", []string{"c"}, []string{"g", "h"}, intsAttr("kernel_shape", 1, 1)))), ErrOperator, "MaxPool"},
	{"missing input", hostile(addNode(node("Add", []string{"y", ""}, []string{"g"}))), ErrFormat, "Add"},
	{"too few inputs", hostile(addNode(node("Add", []string{"y"}, []string{"g"}))), ErrFormat, "Add"},
	{"no output", hostile(addNode(node("Relu", []string{"y"}, nil))), ErrFormat, "Relu"},

	{"cycle", hostile(func(m *schema.ModelProto) {
		m.Graph.Node = append(m.Graph.Node, node("Add", []string{"c", "p"}, []string{"o"}), node("Relu", []string{"o"}, []string{"p"}))
	}), ErrCycle, ""},
	{"own output", hostile(addNode(node("Relu", []string{"g"}, []string{"g"}))), ErrCycle, ""},
	{"duplicate output", hostile(addNode(node("Relu", []string{"y"}, []string{"c"}))), ErrFormat, "assigned twice"},
	{"output over input", hostile(addNode(node("Relu", []string{"y"}, []string{"x"}))), ErrFormat, "assigned twice"},
	{"output over weight", hostile(addNode(node("Relu", []string{"y"}, []string{"w"}))), ErrFormat, "assigned twice"},
	{"unassigned input", hostile(addNode(node("Relu", []string{"nowhere"}, []string{"g"}))), ErrFormat, "nowhere"},
	{"unassigned output", hostile(func(m *schema.ModelProto) { m.Graph.Output[0].Name = proto.String("nowhere") }), ErrFormat, "nowhere"},
	{"no outputs", hostile(func(m *schema.ModelProto) { m.Graph.Output = nil }), ErrFormat, "no outputs"},
	{"output twice", hostile(func(m *schema.ModelProto) { m.Graph.Output[1] = m.Graph.Output[0] }), ErrFormat, "twice"},
	{"input twice", hostile(func(m *schema.ModelProto) { m.Graph.Input = append(m.Graph.Input, m.Graph.Input[0]) }), ErrFormat, "twice"},
	{"weight twice", hostile(func(m *schema.ModelProto) {
		m.Graph.Initializer = append(m.Graph.Initializer, m.Graph.Initializer[0])
	}), ErrFormat, "twice"},
	{"input unlike its weight", hostile(func(m *schema.ModelProto) {
		v := proto.Clone(m.Graph.Input[0]).(*schema.ValueInfoProto)
		v.Name = proto.String("w")
		m.Graph.Input = append(m.Graph.Input, v)
	}), ErrShape, "\"w\""},
	{"a sequence", hostile(func(m *schema.ModelProto) {
		m.Graph.Input[0].Type = &schema.TypeProto{Value: &schema.TypeProto_SequenceType{SequenceType: &schema.TypeProto_Sequence{}}}
	}), ErrFormat, ""},

	{"external data", hostile(addInit(&schema.TensorProto{
		DataType: typeOf(Float32), Dims: []int64{1}, DataLocation: schema.TensorProto_EXTERNAL.Enum(),
		ExternalData: []*schema.StringStringEntryProto{{Key: proto.String("location"), Value: proto.String("../../etc/passwd")}},
	})), ErrFormat, "outside the file"},
	{"external data without location", hostile(addInit(&schema.TensorProto{
		DataType: typeOf(Float32), Dims: []int64{1}, ExternalData: []*schema.StringStringEntryProto{{}},
	})), ErrFormat, "outside the file"},
	{"segment", hostile(addInit(&schema.TensorProto{
		DataType: typeOf(Float32), Segment: &schema.TensorProto_Segment{},
	})), ErrFormat, "segment"},
	{"strings", hostile(addInit(&schema.TensorProto{DataType: typeOf(8), Dims: []int64{1}, StringData: [][]byte{{1}}})), ErrFormat, ""},
	{"overflowing shape", hostile(addInit(&schema.TensorProto{
		DataType: typeOf(Float32), Dims: []int64{1 << 31, 1 << 31, 4}, RawData: []byte{0, 0, 0, 0},
	})), ErrShape, ""},
	{"overflow to zero", hostile(addInit(&schema.TensorProto{
		DataType: typeOf(Uint8), Dims: []int64{1 << 30, 1 << 30, 1 << 4},
	})), ErrShape, "overflows"},
	{"huge claim", hostile(addInit(&schema.TensorProto{
		DataType: typeOf(Uint8), Dims: []int64{1 << 30}, RawData: []byte{1},
	})), ErrFormat, "too little data"},
	{"claim over the memory limit", hostile(addInit(&schema.TensorProto{
		DataType: typeOf(Uint8), Dims: []int64{1 << 30, 1 << 10}, RawData: []byte{1},
	})), ErrLimit, "memory"},
	{"negative dimension", hostile(addInit(&schema.TensorProto{
		DataType: typeOf(Uint8), Dims: []int64{-1}, RawData: []byte{1},
	})), ErrShape, "-1"},
	{"nine dimensions", hostile(addInit(&schema.TensorProto{
		DataType: typeOf(Uint8), Dims: []int64{1, 1, 1, 1, 1, 1, 1, 1, 1}, RawData: []byte{1},
	})), ErrLimit, "8 dimensions"},
	{"data in two fields", hostile(addInit(&schema.TensorProto{
		DataType: typeOf(Float32), Dims: []int64{1}, RawData: []byte{0, 0, 0, 0}, FloatData: []float32{1},
	})), ErrFormat, "two fields"},
	{"data in the wrong field", hostile(addInit(&schema.TensorProto{
		DataType: typeOf(Float32), Dims: []int64{1}, Int64Data: []int64{1},
	})), ErrFormat, "field 7"},
	{"too much data", hostile(addInit(&schema.TensorProto{
		DataType: typeOf(Float32), Dims: []int64{1}, FloatData: []float32{1, 2},
	})), ErrFormat, "more data"},
	{"too many varints", hostile(addInit(&schema.TensorProto{
		DataType: typeOf(Int64), Dims: []int64{1}, Int64Data: []int64{1, 2},
	})), ErrFormat, "more data"},
	{"element out of range", hostile(addInit(&schema.TensorProto{
		DataType: typeOf(Uint8), Dims: []int64{1}, Int32Data: []int32{256},
	})), ErrFormat, "range"},
	{"bool of 2", hostile(addInit(&schema.TensorProto{
		DataType: typeOf(Bool), Dims: []int64{1}, RawData: []byte{2},
	})), ErrFormat, "bool"},
	{"input over 2^31", hostile(func(m *schema.ModelProto) {
		m.Graph.Input[0].Type.GetTensorType().Shape.Dim[0].Value = &schema.TensorShapeProto_Dimension_DimValue{DimValue: 1 << 40}
	}), ErrShape, ""},
	{"name of 2 KB", hostile(func(m *schema.ModelProto) { m.Graph.Name = proto.String(strings.Repeat("a", 2048)) }), ErrLimit, "name"},
	{"name no UTF-8", hostile(func(m *schema.ModelProto) { m.Graph.Name = proto.String("\xff") }), ErrFormat, "UTF-8"},
	{"long list", hostile(func(m *schema.ModelProto) {
		m.Graph.Node[0].Attribute[0].Ints = make([]int64, maxAttrInts+1)
	}), ErrLimit, "elements"},
	{"many nodes", manyNodes(10_001), ErrLimit, "nodes"},
	{"many edges", hostile(addNode(node("Concat", make([]string, maxEdges+1), []string{"g"}))), ErrLimit, "inputs"},
	{"many inputs", hostile(func(m *schema.ModelProto) {
		for i := range 10_001 {
			v := proto.Clone(m.Graph.Input[0]).(*schema.ValueInfoProto)
			v.Name = proto.String(fmt.Sprint("i", i))
			m.Graph.Input = append(m.Graph.Input, v)
		}
	}), ErrLimit, "inputs"},
	{"truncated varint", append(small().Marshal(), 0x08, 0xff, 0xff), ErrFormat, "cut short"},
	{"overlong varint", append(small().Marshal(), append([]byte{8}, []byte(strings.Repeat("\xff", 11))...)...), ErrFormat, "cut short"},
	{"length past the end", append(small().Marshal(), 0x12, 0xff, 0xff, 0xff, 0x7f), ErrFormat, "cut short"},
	{"a group", append(small().Marshal(), 0x0b, 0x0c), ErrFormat, "wire type"},
	{"deep groups", []byte(strings.Repeat("\x0b", 1<<20)), ErrFormat, "wire type"},
	{"deep graphs", deepGraphs(2000), ErrOperator, ""},
}

// manyNodes is a chain of n nodes.
func manyNodes(n int) []byte {
	return hostile(func(m *schema.ModelProto) {
		last := "y"
		for i := range n {
			next := fmt.Sprint("v", i)
			m.Graph.Node = append(m.Graph.Node, node("Relu", []string{last}, []string{next}))
			last = next
		}
	})
}

// deepGraphs nests graphs in attributes of nodes.
func deepGraphs(depth int) []byte {
	var graph []byte
	for range depth {
		attr := appendMessage(appendText(nil, 1, "then_branch"), 6, graph)
		graph = appendMessage(nil, 1, appendMessage(appendText(nil, 4, "If"), 5, attr))
	}
	set := protowire.AppendVarint(protowire.AppendTag(nil, 2, protowire.VarintType), 13)
	return appendMessage(appendMessage(nil, 7, graph), 8, set)
}

func TestReadHostile(t *testing.T) {
	for _, tt := range hostileModels {
		t.Run(tt.name, func(t *testing.T) {
			before := allocated()
			start := time.Now()
			g, err := Read(tt.data, Limits{})
			took := time.Since(start)
			used := allocated() - before
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("Read = %v, %v; want %v with %q", g != nil, err, tt.want, tt.text)
			}
			if proof.Timing() && took > 2*time.Second {
				t.Errorf("Read took %v", took)
			}
			if used > bound(len(tt.data)) {
				t.Errorf("Read of %d bytes took %d bytes of memory", len(tt.data), used)
			}
		})
	}
}

// bound is the memory that reading and inferring may take for a file of n bytes: 64 times
// the file and 4 MB. A node of a few bytes in the file is a struct, two lists and a map here.
func bound(n int) uint64 { return 64*uint64(n) + 4<<20 }

// allocated is the bytes allocated since the program began; unlike runtime.ReadMemStats it stops nothing.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

func TestReadLimits(t *testing.T) {
	data := small().Marshal()
	for _, l := range []Limits{{Bytes: int64(len(data)) - 1}, {Nodes: 15}, {Rank: 3}, {Memory: 256}} {
		if _, err := Read(data, l); !errors.Is(err, ErrLimit) {
			t.Errorf("Read with %+v = %v, want %v", l, err, ErrLimit)
		}
	}
	l := Limits{Bytes: int64(len(data)), Nodes: 16, Rank: 4, Memory: 512}
	g, err := Read(data, l)
	if err != nil {
		t.Fatalf("Read with %+v = %v", l, err)
	}
	if _, err := g.Infer(nil); !errors.Is(err, ErrLimit) {
		t.Errorf("Infer with 512 bytes = %v, want %v", err, ErrLimit)
	}
}

// TestReadLongChain reads as many nodes as are allowed, written last first.
func TestReadLongChain(t *testing.T) {
	data := hostile(func(m *schema.ModelProto) {
		var chain []*schema.NodeProto
		for i := range 9000 {
			chain = append(chain, node("Relu", []string{fmt.Sprint("v", i+1)}, []string{fmt.Sprint("v", i)}))
		}
		chain[8999].Input[0] = "c"
		m.Graph.Node = append(chain, m.Graph.Node...)
	})
	g, err := Read(data, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	checkOrder(t, g)
	if _, err := g.Infer(nil); err != nil {
		t.Error(err)
	}
}

// TestInferHostile feeds shapes and sizes that only show when a graph is inferred.
func TestInferHostile(t *testing.T) {
	huge := func(dims ...int64) *schema.ValueInfoProto {
		shape := &schema.TensorShapeProto{}
		for _, d := range dims {
			shape.Dim = append(shape.Dim, &schema.TensorShapeProto_Dimension{Value: &schema.TensorShapeProto_Dimension_DimValue{DimValue: d}})
		}
		return &schema.ValueInfoProto{Name: proto.String("huge"), Type: &schema.TypeProto{Value: &schema.TypeProto_TensorType{
			TensorType: &schema.TypeProto_Tensor{ElemType: typeOf(Float32), Shape: shape},
		}}}
	}
	with := func(v *schema.ValueInfoProto, n *schema.NodeProto) []byte {
		return hostile(func(m *schema.ModelProto) {
			m.Graph.Input = append(m.Graph.Input, v)
			m.Graph.Node = append(m.Graph.Node, n)
		})
	}
	wide := node("Conv", []string{"x", "w"}, []string{"g"}, intsAttr("pads", math.MaxInt32, math.MaxInt32, math.MaxInt32, math.MaxInt32))
	tests := []struct {
		name string
		data []byte
		want error
	}{
		{"overflowing input", with(huge(math.MaxInt32, math.MaxInt32, math.MaxInt32), node("Relu", []string{"huge"}, []string{"g"})), ErrShape},
		{"input over the memory limit", with(huge(1<<20, 1<<12), node("Relu", []string{"huge"}, []string{"g"})), ErrLimit},
		{"empty but overflowing", with(huge(0, math.MaxInt32, math.MaxInt32), node("Relu", []string{"huge"}, []string{"g"})), ErrShape},
		{"outer sum", with(huge(1<<20, 1), node("MatMul", []string{"huge", "row"}, []string{"g"})), ErrLimit},
		{"padding", hostile(addNode(wide)), ErrShape},
		{"stride of 0", hostile(addNode(node("Conv", []string{"x", "w"}, []string{"g"}, intsAttr("strides", 0, 1)))), ErrShape},
		{"window too large", hostile(addNode(node("Conv", []string{"x", "w"}, []string{"g"}, intsAttr("dilations", 9, 9)))), ErrShape},
		{"wrong kernel", hostile(addNode(node("Conv", []string{"x", "w"}, []string{"g"}, intsAttr("kernel_shape", 5, 5)))), ErrShape},
		{"reshape by data", hostile(addNode(node("Reshape", []string{"y", "b"}, []string{"g"}))), ErrShape},
		{"types", hostile(addNode(node("Add", []string{"y", "q"}, []string{"g"}))), ErrShape},
		{"output type", hostile(func(m *schema.ModelProto) { m.Graph.Output[1].Type.GetTensorType().ElemType = typeOf(Int8) }), ErrShape},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			data := tt.data
			if tt.name == "outer sum" {
				var m schema.ModelProto
				if err := proto.Unmarshal(data, &m); err != nil {
					t.Fatal(err)
				}
				row := huge(1, 1<<20)
				row.Name = proto.String("row")
				m.Graph.Input = append(m.Graph.Input, row)
				data, _ = proto.Marshal(&m)
			}
			g, err := Read(data, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := g.Infer(nil); !errors.Is(err, tt.want) {
				t.Errorf("Infer = %v, want %v", err, tt.want)
			}
			if _, err := g.Fold(nil); !errors.Is(err, tt.want) {
				t.Errorf("Fold = %v, want %v", err, tt.want)
			}
		})
	}
}

func TestInferInputs(t *testing.T) {
	g, err := Read(small().Marshal(), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for name, shapes := range map[string]map[string][]int{
		"another name":  {"z": {1}},
		"another rank":  {"x": {1, 2, 5}},
		"another shape": {"x": {1, 2, 5, 6}},
	} {
		if _, err := g.Infer(shapes); !errors.Is(err, ErrShape) {
			t.Errorf("%s: Infer = %v, want %v", name, err, ErrShape)
		}
	}
}

// skeleton is a real network whose large weights are inputs, so that it is small enough to change often.
func skeleton(t testing.TB, data []byte) []byte {
	t.Helper()
	g, err := Read(data, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range sortedKeys(g.Init) {
		if c := g.Init[name]; c.Len() > 16 {
			delete(g.Init, name)
			g.Inputs = append(g.Inputs, Value{name, c.Type, c.Shape})
		}
	}
	return g.Marshal()
}

// FuzzRead holds Read to: no panic, memory in proportion to the file, errors of this package, and
// what is read writes and reads back equal. Infer and Fold then run too.
func FuzzRead(f *testing.F) {
	f.Add(small().Marshal())
	f.Add(hostile(func(*schema.ModelProto) {}))
	f.Add(manyNodes(3))
	f.Add(deepGraphs(3))
	for _, tt := range hostileModels {
		if len(tt.data) < 4096 {
			f.Add(tt.data)
		}
	}
	for _, tt := range inferCases {
		f.Add(tt.graph().Marshal())
	}
	for _, tt := range networks {
		if data, err := os.ReadFile(filepath.Join(proof.Root(f), "..", "shared", tt.dir, tt.file)); err == nil {
			f.Add(skeleton(f, data))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l := Limits{Memory: 64 << 20}
		before := allocated()
		g, err := Read(data, l)
		if used := allocated() - before; used > bound(len(data)) {
			t.Errorf("Read of %d bytes took %d bytes of memory", len(data), used)
		}
		if err != nil {
			if !ours(err) {
				t.Errorf("%v wraps none of the package's errors", err)
			}
			return
		}
		roundTrip(t, g)
		if _, err := g.Infer(nil); err != nil {
			if !ours(err) {
				t.Errorf("%v wraps none of the package's errors", err)
			}
			return
		}
		folded, err := g.Fold(nil)
		if err != nil {
			t.Fatalf("Fold = %v after Infer succeeded", err)
		}
		if _, err := folded.Infer(nil); err != nil {
			t.Errorf("Infer after Fold = %v", err)
		}
	})
}
