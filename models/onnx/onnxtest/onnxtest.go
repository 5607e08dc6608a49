// Package onnxtest writes ONNX files for tests.
package onnxtest

import (
	"maps"
	"math"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sightline-dev/sightline/models/onnx"
)

// Numbers in the schema, onnx.proto.
const (
	float32Type                                   = 1
	attrFloat, attrInt, attrFloats, attrInts      = 1, 2, 6, 7
	modelVersion, modelGraph                      = 1, 7
	graphNode, graphInit, graphInput, graphOutput = 1, 5, 11, 12
)

// message has the encoded fields of a message.
type message []byte

func (m *message) number(field protowire.Number, v int) {
	*m = protowire.AppendVarint(protowire.AppendTag(*m, field, protowire.VarintType), uint64(v))
}

func (m *message) text(field protowire.Number, s string) {
	*m = protowire.AppendString(protowire.AppendTag(*m, field, protowire.BytesType), s)
}

func (m *message) float(field protowire.Number, x float32) {
	*m = protowire.AppendFixed32(protowire.AppendTag(*m, field, protowire.Fixed32Type), math.Float32bits(x))
}

func (m *message) within(field protowire.Number, f func(m *message)) {
	var inner message
	f(&inner)
	m.text(field, string(inner))
}

// Marshal returns g as an ONNX file. Its input has an open first dimension.
func Marshal(t testing.TB, g *onnx.Graph) []byte {
	t.Helper()
	var m message
	m.number(modelVersion, 7)
	m.within(modelGraph, func(m *message) {
		for _, n := range g.Nodes {
			m.within(graphNode, func(m *message) { node(t, m, n) })
		}
		for _, name := range slices.Sorted(maps.Keys(g.Init)) {
			m.within(graphInit, func(m *message) { constant(m, name, g.Init[name]) })
		}
		m.within(graphInput, func(m *message) { value(m, g.Input, g.Shape) })
		for _, name := range g.Outputs {
			m.within(graphOutput, func(m *message) { value(m, name, nil) })
		}
	})
	return m
}

func node(t testing.TB, m *message, n *onnx.Node) {
	t.Helper()
	for _, name := range n.In {
		m.text(1, name)
	}
	m.text(2, n.Out)
	m.text(4, n.Op)
	for _, name := range slices.Sorted(maps.Keys(n.Attr)) {
		m.within(5, func(m *message) {
			m.text(1, name)
			kind := 0
			switch v := n.Attr[name].(type) {
			case float32:
				kind = attrFloat
				m.float(2, v)
			case int64:
				kind = attrInt
				m.number(3, int(v))
			case []float32:
				kind = attrFloats
				for _, x := range v {
					m.float(7, x)
				}
			case []int64:
				kind = attrInts
				for _, x := range v {
					m.number(8, int(x))
				}
			default:
				t.Fatalf("%v: attribute %s of type %T", n, name, v)
			}
			m.number(20, kind)
		})
	}
}

func constant(m *message, name string, t *onnx.Tensor) {
	for _, d := range t.Shape {
		m.number(1, d)
	}
	m.number(2, float32Type)
	m.text(8, name)
	var raw []byte
	for _, x := range t.Floats {
		raw = protowire.AppendFixed32(raw, math.Float32bits(x))
	}
	m.text(9, string(raw))
}

func value(m *message, name string, shape []int) {
	m.text(1, name)
	m.within(2, func(m *message) {
		m.within(1, func(m *message) {
			m.number(1, float32Type)
			m.within(2, func(m *message) {
				for i, d := range shape {
					m.within(1, func(m *message) {
						if i == 0 {
							m.text(2, "batch")
						} else {
							m.number(1, d)
						}
					})
				}
			})
		})
	})
}
