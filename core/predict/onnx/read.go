package onnx

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	minOpset, maxOpset = 9, 21
	maxNameBytes       = 1024
	maxEdges           = 4096    // inputs, or outputs, of one node
	maxAttrs           = 64      // attributes of one node
	maxAttrInts        = 1 << 16 // elements of one attribute that is a list
)

// reader carries the limits and what has been taken of them.
type reader struct {
	limits Limits
	memory int64 // bytes of tensors and lists declared so far
	edges  int   // names in inputs and outputs of all nodes
}

// Read reads and checks a model. The graph borrows from data, which must not change while the
// graph is in use. Errors wrap ErrFormat, ErrLimit, ErrCycle, ErrOperator or ErrShape.
func Read(data []byte, l Limits) (*Graph, error) {
	l = l.orDefault()
	if int64(len(data)) > l.Bytes {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrLimit, len(data), l.Bytes)
	}
	r := &reader{limits: l}
	var graph []byte
	opset := int64(0)
	err := fields(data, func(f field) error {
		switch f.num {
		case 7:
			if graph != nil {
				return fmt.Errorf("%w: two graphs", ErrFormat)
			}
			b, err := f.message()
			graph = b
			if graph == nil {
				graph = []byte{}
			}
			return err
		case 8:
			return readOpset(f, &opset)
		case 20, 25:
			return fmt.Errorf("%w: the model defines training or functions", ErrOperator)
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case graph == nil:
		return nil, fmt.Errorf("%w: no graph", ErrFormat)
	case opset == 0:
		return nil, fmt.Errorf("%w: no operator set is named", ErrFormat)
	case opset < minOpset || opset > maxOpset:
		return nil, fmt.Errorf("%w: operator set %d, supported are %d to %d", ErrOperator, opset, minOpset, maxOpset)
	}
	g, err := r.graph(graph, int(opset))
	if err != nil {
		return nil, err
	}
	if err := g.check(); err != nil {
		return nil, err
	}
	return g, nil
}

// readOpset stores the version of the default domain.
func readOpset(f field, opset *int64) error {
	b, err := f.message()
	if err != nil {
		return err
	}
	var domain string
	var version int64
	err = fields(b, func(f field) (err error) {
		switch f.num {
		case 1:
			domain, err = f.text()
		case 2:
			version, err = f.integer()
		}
		return err
	})
	if err != nil || canonicalDomain(domain) != "" {
		return err
	}
	if *opset != 0 {
		return fmt.Errorf("%w: the default operator set is named twice", ErrFormat)
	}
	if version < 1 {
		return fmt.Errorf("%w: operator set %d", ErrFormat, version)
	}
	*opset = version
	return nil
}

func canonicalDomain(d string) string {
	if d == "ai.onnx" {
		return ""
	}
	return d
}

// count refuses the n-th thing of a kind past the limit.
func (r *reader) count(n int, what string) error {
	if n > r.limits.Nodes {
		return fmt.Errorf("%w: more than %d %s", ErrLimit, r.limits.Nodes, what)
	}
	return nil
}

// take charges bytes that the file declares before they are allocated.
func (r *reader) take(bytes int64, what string) error {
	if bytes > r.limits.Memory-r.memory {
		return fmt.Errorf("%w: %s brings the model over %d bytes of memory", ErrLimit, what, r.limits.Memory)
	}
	r.memory += bytes
	return nil
}

func (r *reader) graph(b []byte, opset int) (*Graph, error) {
	g := &Graph{Opset: opset, Init: map[string]*Tensor{}, limits: r.limits}
	err := fields(b, func(f field) (err error) {
		switch f.num {
		case 1:
			return r.appendNode(g, f)
		case 2:
			g.Name, err = f.text()
		case 5:
			return r.appendInit(g, f)
		case 11:
			g.Inputs, err = r.appendValue(g.Inputs, f, "inputs")
		case 12:
			g.Outputs, err = r.appendValue(g.Outputs, f, "outputs")
		case 15:
			return fmt.Errorf("%w: sparse initialisers", ErrOperator)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return g, nil
}

func (r *reader) appendNode(g *Graph, f field) error {
	b, err := f.message()
	if err != nil {
		return err
	}
	// Constants become initialisers, so both count.
	if err := r.count(len(g.Nodes)+len(g.Init)+1, "nodes and initialisers"); err != nil {
		return err
	}
	n, err := r.node(b, g.Opset)
	if err != nil {
		return err
	}
	if n.Op != "Constant" {
		g.Nodes = append(g.Nodes, n)
		return nil
	}
	t, err := constantOf(n)
	if err != nil {
		return err
	}
	return g.addInit(t)
}

func (g *Graph) addInit(t *Tensor) error {
	if t.Name == "" {
		return fmt.Errorf("%w: a constant without a name", ErrFormat)
	}
	if _, ok := g.Init[t.Name]; ok {
		return fmt.Errorf("%w: %q is assigned twice", ErrFormat, t.Name)
	}
	g.Init[t.Name] = t
	return nil
}

func (r *reader) appendInit(g *Graph, f field) error {
	b, err := f.message()
	if err != nil {
		return err
	}
	if err := r.count(len(g.Nodes)+len(g.Init)+1, "nodes and initialisers"); err != nil {
		return err
	}
	t, err := r.tensor(b)
	if err != nil {
		return err
	}
	return g.addInit(t)
}

func (r *reader) node(b []byte, opset int) (*Node, error) {
	n := &Node{}
	var refused error // an attribute we cannot hold; the operator's own error goes first
	err := fields(b, func(f field) (err error) {
		switch f.num {
		case 1:
			n.In, err = r.appendEdge(n.In, f)
		case 2:
			n.Out, err = r.appendEdge(n.Out, f)
		case 3:
			n.Name, err = f.text()
		case 4:
			n.Op, err = f.text()
		case 5:
			refused, err = r.appendAttr(n, f, refused)
		case 7:
			n.Domain, err = f.text()
			n.Domain = canonicalDomain(n.Domain)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := checkOperator(n, opset); err != nil {
		return nil, err
	}
	if refused != nil {
		return nil, fmt.Errorf("%s %q: %w", n.Op, n.Name, refused)
	}
	return n, checkAttrs(n, opset)
}

func (r *reader) appendEdge(names []string, f field) ([]string, error) {
	r.edges++
	if len(names) >= maxEdges || r.edges > 16*r.limits.Nodes {
		return nil, fmt.Errorf("%w: too many inputs or outputs of nodes", ErrLimit)
	}
	s, err := f.text()
	return append(names, s), err
}

func (r *reader) appendAttr(n *Node, f field, refused error) (error, error) {
	b, err := f.message()
	if err != nil {
		return refused, err
	}
	name, a, bad, err := r.attr(b)
	if err != nil {
		return refused, err
	}
	if bad != nil {
		return bad, nil
	}
	if _, ok := n.Attr[name]; ok {
		return refused, fmt.Errorf("%w: attribute %q twice", ErrFormat, name)
	}
	if len(n.Attr) >= maxAttrs {
		return refused, fmt.Errorf("%w: more than %d attributes of a node", ErrLimit, maxAttrs)
	}
	if n.Attr == nil {
		n.Attr = map[string]Attr{}
	}
	n.Attr[name] = a
	return refused, nil
}

// attr reads an attribute. A kind that Attr cannot hold is returned as refused.
func (r *reader) attr(b []byte) (name string, a Attr, refused, err error) {
	var declared int64
	var held AttrKind // by the field that is present, for files that do not declare the kind
	err = fields(b, func(f field) (err error) {
		switch f.num {
		case 1:
			name, err = f.text()
		case 2:
			held, a.F = AttrFloat, math.Float32frombits(uint32(f.bits))
			if f.typ != protowire.Fixed32Type {
				return fmt.Errorf("%w: attribute %q is no float", ErrFormat, name)
			}
		case 3:
			held = AttrInt
			a.I, err = f.integer()
		case 4:
			held = AttrString
			a.S, err = f.message()
			if len(a.S) > maxNameBytes {
				return fmt.Errorf("%w: attribute %q has %d bytes", ErrLimit, name, len(a.S))
			}
		case 5:
			held = AttrTensor
			err = r.attrTensor(&a, f)
		case 7:
			held = AttrFloats
			err = f.numbers(protowire.Fixed32Type, func(bits uint64) error {
				a.Floats = append(a.Floats, math.Float32frombits(uint32(bits)))
				return r.listed(len(a.Floats), name)
			})
		case 8:
			held = AttrInts
			err = f.numbers(protowire.VarintType, func(bits uint64) error {
				a.Ints = append(a.Ints, int64(bits))
				return r.listed(len(a.Ints), name)
			})
		case 20:
			declared, err = f.integer()
		case 21:
			refused = fmt.Errorf("%w: attribute refers to a function's", ErrOperator)
		case 6, 9, 10, 11, 14, 15, 22, 23:
			refused = fmt.Errorf("%w: attribute %q of a kind that is not supported", ErrOperator, name)
		}
		return err
	})
	if err != nil || refused != nil {
		return name, a, refused, err
	}
	a, err = settleKind(name, a, declared, held)
	return name, a, nil, err
}

// settleKind keeps the one field of a that its kind names. An empty list has no field of its own.
func settleKind(name string, a Attr, declared int64, held AttrKind) (Attr, error) {
	kind := held
	if declared != 0 {
		if declared < 0 || declared > math.MaxUint8 {
			return a, fmt.Errorf("%w: attribute %q of kind %d", ErrFormat, name, declared)
		}
		kind = AttrKind(declared)
	}
	switch kind {
	case AttrFloat:
		return Attr{Kind: kind, F: a.F}, nil
	case AttrInt:
		return Attr{Kind: kind, I: a.I}, nil
	case AttrString:
		return Attr{Kind: kind, S: append([]byte{}, a.S...)}, nil
	case AttrFloats:
		return Attr{Kind: kind, Floats: a.Floats}, nil
	case AttrInts:
		return Attr{Kind: kind, Ints: a.Ints}, nil
	case AttrTensor:
		if a.T != nil {
			return Attr{Kind: kind, T: a.T}, nil
		}
	}
	return a, fmt.Errorf("%w: attribute %q of kind %d has no value of that kind", ErrFormat, name, kind)
}

func (r *reader) attrTensor(a *Attr, f field) error {
	b, err := f.message()
	if err != nil {
		return err
	}
	if a.T != nil {
		return fmt.Errorf("%w: two tensors in one attribute", ErrFormat)
	}
	a.T, err = r.tensor(b)
	return err
}

func (r *reader) listed(n int, name string) error {
	if n > maxAttrInts {
		return fmt.Errorf("%w: attribute %q has over %d elements", ErrLimit, name, maxAttrInts)
	}
	return r.take(8, "an attribute's list")
}

func (r *reader) appendValue(vs []Value, f field, what string) ([]Value, error) {
	b, err := f.message()
	if err != nil {
		return nil, err
	}
	if err := r.count(len(vs)+1, what); err != nil {
		return nil, err
	}
	v, err := r.value(b)
	return append(vs, v), err
}

// value reads a ValueInfoProto, which must be of a tensor type.
func (r *reader) value(b []byte) (v Value, err error) {
	err = fields(b, func(f field) (err error) {
		switch f.num {
		case 1:
			v.Name, err = f.text()
		case 2:
			b, err = f.message()
			if err == nil {
				err = fields(b, func(f field) error { return r.valueType(&v, f) })
			}
		}
		return err
	})
	switch {
	case err != nil:
		return v, err
	case v.Name == "":
		return v, fmt.Errorf("%w: an input or output without a name", ErrFormat)
	case v.Type.Size() == 0:
		return v, fmt.Errorf("%w: %q is no tensor of a supported type (%v)", ErrFormat, v.Name, v.Type)
	}
	return v, nil
}

// valueType reads one field of a TypeProto.
func (r *reader) valueType(v *Value, f field) error {
	if f.num != 1 {
		if f.num == 6 {
			return nil // denotation
		}
		return fmt.Errorf("%w: %q is no tensor", ErrFormat, v.Name)
	}
	b, err := f.message()
	if err != nil {
		return err
	}
	return fields(b, func(f field) error {
		switch f.num {
		case 1:
			t, err := f.integer()
			if t < 0 || t > math.MaxInt32 {
				return fmt.Errorf("%w: element type %d", ErrFormat, t)
			}
			v.Type = DType(t)
			return err
		case 2:
			b, err := f.message()
			if err != nil {
				return err
			}
			if v.Shape != nil {
				return fmt.Errorf("%w: %q has two shapes", ErrFormat, v.Name)
			}
			v.Shape = []int{}
			return fields(b, func(f field) error { return r.valueDim(v, f) })
		}
		return nil
	})
}

func (r *reader) valueDim(v *Value, f field) error {
	if f.num != 1 {
		return nil
	}
	b, err := f.message()
	if err != nil {
		return err
	}
	if len(v.Shape) >= r.limits.Rank {
		return fmt.Errorf("%w: %q has more than %d dimensions", ErrLimit, v.Name, r.limits.Rank)
	}
	dim := int64(-1)
	err = fields(b, func(f field) (err error) {
		if f.num == 1 {
			dim, err = f.integer()
		}
		return err
	})
	if err != nil {
		return err
	}
	if dim < -1 || dim > math.MaxInt32 {
		return fmt.Errorf("%w: %q has a dimension of %d", ErrShape, v.Name, dim)
	}
	v.Shape = append(v.Shape, int(dim))
	return nil
}
