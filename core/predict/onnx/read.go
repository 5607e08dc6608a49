package onnx

import "fmt"

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
		return nil, fmt.Errorf("%w: the operator set is missing", ErrFormat)
	case opset < minOpset || opset > maxOpset:
		return nil, fmt.Errorf("%w: operator set %d, but only %d to %d are supported", ErrOperator, opset, minOpset, maxOpset)
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
		return fmt.Errorf("%w: with %s the model needs more than %d bytes of memory", ErrLimit, what, r.limits.Memory)
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
