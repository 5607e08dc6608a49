package nn

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"
)

// A plan file begins with magic and version. models/README.md describes the format. A network has only one encoding: if Read accepts a
// file, Marshal returns the same bytes for the result.
const (
	magic   = "SLPN"
	version = 1
)

// Marshal returns the bytes of a plan file with n.
func (n *Network) Marshal() []byte {
	w := writer(append([]byte(magic), version))
	in := n.values[0]
	w = append(w, byte(in.Type))
	w.text(in.Name)
	w.numbers(in.Shape...)
	w.levels(in.Quantisation)
	w.numbers(len(n.nodes))
	for i := range n.nodes {
		w.node(&n.nodes[i], n.values[n.nodes[i].Of-1].Type)
	}
	w.numbers(len(n.outputs))
	for _, o := range n.outputs {
		w.text(o.Name)
		w.numbers(o.Of)
	}
	return w
}

type writer []byte

func (w *writer) numbers(v ...int) {
	for _, x := range v {
		*w = binary.LittleEndian.AppendUint32(*w, uint32(x))
	}
}

func (w *writer) text(s string) {
	w.numbers(len(s))
	*w = append(*w, s...)
}

func (w *writer) floats(v ...float32) {
	for _, x := range v {
		*w = binary.LittleEndian.AppendUint32(*w, math.Float32bits(x))
	}
}

func (w *writer) levels(l Quantisation) {
	w.floats(l.Scale)
	w.numbers(int(l.Zero))
}

// node writes a node. typ is the type of its operand.
func (w *writer) node(n *Node, typ Type) {
	*w = append(*w, byte(n.Kind))
	w.numbers(n.Of)
	switch n.Kind {
	case Conv:
		w.numbers(n.With, n.Group)
		w.numbers(n.Stride[:]...)
		w.numbers(n.Dilation[:]...)
		w.numbers(n.Pad[:]...)
		w.numbers(n.Shape[:]...)
		w.weights(n, typ)
		if typ != Float32 {
			w.levels(n.To)
			w.levels(n.Before)
		}
	case Add:
		w.numbers(n.With)
		w.levels(n.To)
	case Gemm:
		w.numbers(n.Shape[:2]...)
		w.weights(n, typ)
	}
}

func (w *writer) weights(n *Node, typ Type) {
	if typ == Float32 {
		w.floats(n.Weights...)
		w.floats(n.Bias...)
		w.floats(n.Lo, n.Hi)
		return
	}
	*w = append(*w, bytesOf(n.Bytes)...)
	w.floats(n.Scales...)
	for _, x := range n.Offsets {
		w.numbers(int(x))
	}
}

// Read decodes a plan file. The integer weights of the network share the memory of data, which the caller must not change. Read allocates
// at most a small multiple of the file's size. It returns ErrFormat for a file that is damaged or has another version.
func Read(data []byte) (*Network, error) {
	if len(data) <= len(magic) || string(data[:len(magic)]) != magic {
		return nil, fmt.Errorf("no plan file: %w", ErrFormat)
	}
	if v := data[len(magic)]; v != version {
		return nil, fmt.Errorf("plan file of version %d, want %d: %w", v, version, ErrFormat)
	}
	r := &reader{rest: data[len(magic)+1:]}
	in := Value{Type: Type(r.byte()), Name: r.text(), Shape: make([]int, 4)}
	r.numbers(in.Shape)
	in.Quantisation = r.levels()
	if r.short {
		return nil, errShort()
	}
	n, err := NewNetwork(in)
	if err != nil {
		return nil, err
	}
	for range r.number() {
		node := r.node(n)
		if r.short {
			return nil, errShort()
		}
		if _, err := n.Append(node); err != nil {
			return nil, err
		}
	}
	for range r.number() {
		name, of := r.text(), r.number()
		if r.short {
			return nil, errShort()
		}
		if err := n.AddOutput(name, of); err != nil {
			return nil, err
		}
	}
	if r.short {
		return nil, errShort()
	}
	if len(r.rest) > 0 {
		return nil, fmt.Errorf("%d bytes after the last output: %w", len(r.rest), ErrFormat)
	}
	return n, nil
}

func errShort() error { return fmt.Errorf("the plan file ends too early: %w", ErrFormat) }

// reader reads the fields of a plan file. Past the file's end its methods return zeros and set short.
type reader struct {
	rest  []byte
	short bool
}

// take returns the bytes of the next n elements, which have size bytes each. If n is negative or the file has fewer, it returns nil.
func (r *reader) take(n, size int) []byte {
	if n < 0 || n > len(r.rest)/size {
		r.short, r.rest = true, nil
		return nil
	}
	b := r.rest[:n*size]
	r.rest = r.rest[n*size:]
	return b
}

func (r *reader) byte() byte {
	if b := r.take(1, 1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) number() int {
	if b := r.take(1, 4); b != nil {
		return int(binary.LittleEndian.Uint32(b))
	}
	return 0
}

func (r *reader) numbers(v []int) {
	for i := range v {
		v[i] = r.number()
	}
}

func (r *reader) text() string { return string(r.take(r.number(), 1)) }

func (r *reader) floats(n int) []float32 {
	b := r.take(n, 4)
	v := make([]float32, len(b)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v
}

func (r *reader) float() float32 { return math.Float32frombits(uint32(r.number())) }

func (r *reader) levels() Quantisation { return Quantisation{r.float(), int32(r.number())} }

// node reads the next node of n without checking it; Append checks it.
func (r *reader) node(n *Network) Node {
	node := Node{Kind: Kind(r.byte()), Of: r.number()}
	x, _ := n.Value(node.Of)
	switch node.Kind {
	case Conv:
		node.With, node.Group = r.number(), r.number()
		r.numbers(node.Stride[:])
		r.numbers(node.Dilation[:])
		r.numbers(node.Pad[:])
		r.numbers(node.Shape[:])
		r.weights(&node, x.Type)
		if x.Type != Float32 {
			node.To, node.Before = r.levels(), r.levels()
		}
	case Add:
		node.With, node.To = r.number(), r.levels()
	case Gemm:
		node.Shape = [4]int{r.number(), r.number(), 1, 1}
		r.weights(&node, x.Type)
	}
	return node
}

func (r *reader) weights(n *Node, typ Type) {
	total, outs := -1, n.Shape[0]
	if isValidShape(n.Shape[:]) {
		total = volume(n.Shape[:])
	}
	if typ == Float32 {
		n.Weights, n.Bias = r.floats(total), r.floats(outs)
		n.Lo, n.Hi = r.float(), r.float()
		return
	}
	b := r.take(total, 1)
	n.Bytes = unsafe.Slice((*int8)(unsafe.Pointer(unsafe.SliceData(b))), len(b))
	n.Scales = r.floats(outs)
	if b := r.take(outs, 4); b != nil {
		n.Offsets = make([]int32, outs)
		for i := range n.Offsets {
			n.Offsets[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
		}
	}
}
