package onnx

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Marshal writes the graph as an ONNX model: initialisers in the order of their names, with raw
// data, and attributes in the order of theirs, so that equal graphs give equal bytes. Reading
// the result gives an equal graph.
func (g *Graph) Marshal() []byte {
	m := protowire.AppendTag(nil, 1, protowire.VarintType)
	m = protowire.AppendVarint(m, irVersion(g.Opset))
	m = appendText(m, 2, "sightline")
	m = appendMessage(m, 7, g.marshal())
	set := protowire.AppendTag(nil, 2, protowire.VarintType)
	set = protowire.AppendVarint(set, uint64(g.Opset))
	return appendMessage(m, 8, set)
}

// irVersion is the oldest file version that carries an operator set, by the schema's table of releases;
// never below 4, since initialisers are no inputs here.
func irVersion(opset int) uint64 {
	switch {
	case opset >= 21:
		return 10
	case opset >= 19:
		return 9
	case opset >= 15:
		return 8
	case opset >= 12:
		return 7
	case opset == 11:
		return 6
	case opset == 10:
		return 5
	}
	return 4
}

func (g *Graph) marshal() []byte {
	var b []byte
	for _, n := range g.Nodes {
		b = appendMessage(b, 1, n.marshal())
	}
	b = appendText(b, 2, g.Name)
	for _, name := range sortedKeys(g.Init) {
		b = appendMessage(b, 5, g.Init[name].marshal())
	}
	for _, v := range g.Inputs {
		b = appendMessage(b, 11, v.marshal())
	}
	for _, v := range g.Outputs {
		b = appendMessage(b, 12, v.marshal())
	}
	return b
}

func (n *Node) marshal() []byte {
	var b []byte
	for _, s := range n.In {
		b = appendText(b, 1, s)
	}
	for _, s := range n.Out {
		b = appendText(b, 2, s)
	}
	b = appendText(b, 3, n.Name)
	b = appendText(b, 4, n.Op)
	for _, name := range sortedKeys(n.Attr) {
		b = appendMessage(b, 5, n.Attr[name].marshal(name))
	}
	if n.Domain != "" {
		b = appendText(b, 7, n.Domain)
	}
	return b
}

func (a Attr) marshal(name string) []byte {
	b := appendText(nil, 1, name)
	switch a.Kind {
	case AttrFloat:
		b = protowire.AppendTag(b, 2, protowire.Fixed32Type)
		b = protowire.AppendFixed32(b, math.Float32bits(a.F))
	case AttrInt:
		b = protowire.AppendTag(b, 3, protowire.VarintType)
		b = protowire.AppendVarint(b, uint64(a.I))
	case AttrString:
		b = appendMessage(b, 4, a.S)
	case AttrTensor:
		b = appendMessage(b, 5, a.T.marshal())
	case AttrFloats:
		// Unpacked, as the schema (proto2) declares these two lists.
		for _, f := range a.Floats {
			b = protowire.AppendTag(b, 7, protowire.Fixed32Type)
			b = protowire.AppendFixed32(b, math.Float32bits(f))
		}
	case AttrInts:
		for _, i := range a.Ints {
			b = protowire.AppendTag(b, 8, protowire.VarintType)
			b = protowire.AppendVarint(b, uint64(i))
		}
	}
	b = protowire.AppendTag(b, 20, protowire.VarintType)
	return protowire.AppendVarint(b, uint64(a.Kind))
}

func (t *Tensor) marshal() []byte {
	b := make([]byte, 0, len(t.Data)+len(t.Name)+64)
	for _, d := range t.Shape {
		b = protowire.AppendTag(b, 1, protowire.VarintType)
		b = protowire.AppendVarint(b, uint64(d))
	}
	b = protowire.AppendTag(b, 2, protowire.VarintType)
	b = protowire.AppendVarint(b, uint64(t.Type))
	if t.Name != "" {
		b = appendText(b, 8, t.Name)
	}
	return appendMessage(b, fieldRaw, t.Data)
}

func (v Value) marshal() []byte {
	tensor := protowire.AppendTag(nil, 1, protowire.VarintType)
	tensor = protowire.AppendVarint(tensor, uint64(v.Type))
	if v.Shape != nil {
		var shape []byte
		for _, d := range v.Shape {
			var dim []byte
			if d >= 0 {
				dim = protowire.AppendTag(dim, 1, protowire.VarintType)
				dim = protowire.AppendVarint(dim, uint64(d))
			}
			shape = appendMessage(shape, 1, dim)
		}
		tensor = appendMessage(tensor, 2, shape)
	}
	return appendMessage(appendText(nil, 1, v.Name), 2, appendMessage(nil, 1, tensor))
}

func appendText(b []byte, num protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, num, protowire.BytesType), s)
}

func appendMessage(b []byte, num protowire.Number, m []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), m)
}
