// Package onnx reads an ONNX file into a checked graph, infers the shape of every value
// for fixed input shapes, and writes graphs back.
//
//	bytes ── Read ──▶ Graph ── Fold ──▶ Graph without shape arithmetic ──▶ nn.Compile
//	            ▲       │  └─── Infer ─▶ type and shape of every value
//	            └───────┘
//	             Marshal
//
// A file is hostile input. The reader is our own, over the wire format alone
// (protobuf's protowire), and holds the limits of [Limits]: every count, every dimension
// and every product of dimensions is checked in 64 bits before memory is taken, weights
// come from inside the file only, values are assigned once (SSA), the nodes form no cycle,
// and an operator outside the allow-list is an error that names it. Weights are borrowed
// from the file's bytes where their encoding allows it, so reading costs little more
// memory than the file.
//
// The schema is onnx.proto of github.com/onnx/onnx (Apache-2.0), operator sets 9 to 21.
//
// The package is no interpreter: what operators compute stands in core/predict/nn. Only
// integer arithmetic on shapes is done here, because shapes depend on it. Control flow,
// functions, sparse and quantised-float types, strings and sequences are refused.
package onnx

import (
	"errors"
)

// ErrFormat is returned for bytes that are no ONNX model, or one that breaks the schema's rules:
// truncated fields, a name assigned twice or never, data that does not match its shape, data outside the file.
var ErrFormat = errors.New("malformed ONNX model")

// ErrLimit is returned for a model larger in some respect than [Limits] allow.
var ErrLimit = errors.New("ONNX model is over a limit")

// ErrCycle is returned when nodes depend on their own outputs.
var ErrCycle = errors.New("ONNX graph has a cycle")

// ErrOperator is returned for an operator, or a use of one, that is not supported. The message names it.
var ErrOperator = errors.New("unsupported ONNX operator")

// ErrShape is returned when shapes or types do not fit together, overflow, or stay unknown.
var ErrShape = errors.New("bad shape in ONNX graph")

// Limits bound what [Read] accepts. A zero field means its default.
type Limits struct {
	Bytes  int64 // length of the file; 0 means 512 MB (2^29)
	Nodes  int   // nodes, and separately initialisers, inputs, outputs; 0 means 10,000
	Rank   int   // dimensions of one tensor; 0 means 8
	Memory int64 // bytes of all initialisers, and in Infer of all values together; 0 means 2 GiB
}

func (l Limits) orDefault() Limits {
	if l.Bytes == 0 {
		l.Bytes = 1 << 29
	}
	if l.Nodes == 0 {
		l.Nodes = 10_000
	}
	if l.Rank == 0 {
		l.Rank = 8
	}
	if l.Memory == 0 {
		l.Memory = 2 << 30
	}
	return l
}

// Graph is a checked model: nodes in an order in which every input is assigned before it is used.
//
// Read turns Constant nodes into initialisers, takes inputs that only repeat an initialiser (as
// files before IR version 4 do) out of Inputs, and drops documentation and metadata.
// A graph may be shared by readers; nothing in this package changes it after Read.
type Graph struct {
	Name    string
	Opset   int     // version of the default operator set, 9 to 21
	Inputs  []Value // what a caller must feed
	Outputs []Value // what a caller gets
	Nodes   []*Node // topologically ordered
	Init    map[string]*Tensor

	limits Limits // the caller's, for Infer
}

// Value is a named tensor of the graph without its content.
type Value struct {
	Name  string
	Type  DType
	Shape []int // nil: unknown rank; -1: an unknown or symbolic dimension, such as the batch
}

// Node applies one operator.
type Node struct {
	Name   string
	Op     string // "Conv"
	Domain string // "" for the default operator set, the only one accepted
	In     []string
	Out    []string // names; "" in either stands for an optional one that is absent
	Attr   map[string]Attr
}

// AttrKind says which field of an [Attr] counts. The numbers are the schema's.
type AttrKind uint8

// Kinds of attributes.
const (
	AttrFloat  AttrKind = 1
	AttrInt    AttrKind = 2
	AttrString AttrKind = 3
	AttrTensor AttrKind = 4
	AttrFloats AttrKind = 6
	AttrInts   AttrKind = 7
)

// Attr is one attribute of a node.
type Attr struct {
	Kind   AttrKind
	F      float32
	I      int64
	S      []byte
	T      *Tensor
	Floats []float32
	Ints   []int64
}

// Int returns the integer attribute name, or absent where the node has none.
func (n *Node) Int(name string, absent int64) int64 {
	if a, ok := n.Attr[name]; ok && a.Kind == AttrInt {
		return a.I
	}
	return absent
}

// Float returns the float attribute name, or absent where the node has none.
func (n *Node) Float(name string, absent float32) float32 {
	if a, ok := n.Attr[name]; ok && a.Kind == AttrFloat {
		return a.F
	}
	return absent
}

// Ints returns the integers of attribute name, borrowed, or absent where the node has none.
func (n *Node) Ints(name string, absent []int64) []int64 {
	if a, ok := n.Attr[name]; ok && a.Kind == AttrInts {
		return a.Ints
	}
	return absent
}

// Text returns the string attribute name, or absent where the node has none.
func (n *Node) Text(name, absent string) string {
	if a, ok := n.Attr[name]; ok && a.Kind == AttrString {
		return string(a.S)
	}
	return absent
}

// Input returns the name of input i, or "" where it is absent.
func (n *Node) Input(i int) string {
	if i < len(n.In) {
		return n.In[i]
	}
	return ""
}
