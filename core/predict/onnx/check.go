package onnx

import (
	"cmp"
	"fmt"
	"slices"
)

// check holds the graph to what its fields promise: names assigned once and before use,
// nodes in order, outputs present.
func (g *Graph) check() error {
	if err := g.checkInputs(); err != nil {
		return err
	}
	producer, err := g.producers()
	if err != nil {
		return err
	}
	if err := g.sort(producer); err != nil {
		return err
	}
	if len(g.Outputs) == 0 {
		return fmt.Errorf("%w: no outputs", ErrFormat)
	}
	seen := map[string]bool{}
	for _, v := range g.Outputs {
		if _, ok := producer[v.Name]; !ok {
			return fmt.Errorf("%w: output %q is never assigned", ErrFormat, v.Name)
		}
		if seen[v.Name] {
			return fmt.Errorf("%w: output %q twice", ErrFormat, v.Name)
		}
		seen[v.Name] = true
	}
	return nil
}

// checkInputs takes inputs that repeat an initialiser out, after comparing the two.
func (g *Graph) checkInputs() error {
	seen := map[string]bool{}
	kept := g.Inputs[:0]
	for _, v := range g.Inputs {
		if seen[v.Name] {
			return fmt.Errorf("%w: input %q twice", ErrFormat, v.Name)
		}
		seen[v.Name] = true
		t, ok := g.Init[v.Name]
		if !ok {
			kept = append(kept, v)
			continue
		}
		if t.Type != v.Type || !fits(t.Shape, v.Shape) {
			return fmt.Errorf("%w: initialiser %q is %v %v, the input of that name %v %v",
				ErrShape, v.Name, t.Type, t.Shape, v.Type, v.Shape)
		}
	}
	g.Inputs = kept
	if len(kept) == 0 {
		g.Inputs = nil
	}
	return nil
}

// fits reports whether a fixed shape is one that declared allows.
func fits(fixed, declared []int) bool {
	if declared == nil {
		return true
	}
	if len(fixed) != len(declared) {
		return false
	}
	for i, d := range declared {
		if d >= 0 && d != fixed[i] {
			return false
		}
	}
	return true
}

// outside is the producer of what no node assigns: inputs and initialisers.
const outside = -1

// producers maps every name to the index of the node that assigns it, or outside.
func (g *Graph) producers() (map[string]int, error) {
	p := make(map[string]int, len(g.Nodes)+len(g.Init))
	for name := range g.Init {
		p[name] = outside
	}
	for _, v := range g.Inputs {
		p[v.Name] = outside
	}
	for i, n := range g.Nodes {
		for _, name := range n.Out {
			if name == "" {
				continue
			}
			if _, ok := p[name]; ok {
				return nil, fmt.Errorf("%w: %q is assigned twice", ErrFormat, name)
			}
			p[name] = i
		}
	}
	return p, nil
}

// sort puts the nodes in topological order: each after what it needs, otherwise as in the file.
// A walk without recursion, so that a long chain costs no stack.
func (g *Graph) sort(producer map[string]int) error {
	type visit struct{ node, next int } // next input of node to look at
	const fresh, open, done = 0, 1, 2
	state := make([]byte, len(g.Nodes))
	order := make([]*Node, 0, len(g.Nodes))
	var stack []visit
	for root := range g.Nodes {
		if state[root] == done {
			continue
		}
		state[root] = open
		stack = append(stack, visit{node: root})
		for len(stack) > 0 {
			v := &stack[len(stack)-1]
			n := g.Nodes[v.node]
			if v.next == len(n.In) {
				state[v.node] = done
				order = append(order, n)
				stack = stack[:len(stack)-1]
				continue
			}
			name := n.In[v.next]
			v.next++
			if name == "" {
				continue
			}
			p, ok := producer[name]
			switch {
			case !ok:
				return fmt.Errorf("%w: %s %q needs %q, which is never assigned", ErrFormat, n.Op, n.Name, name)
			case p == outside || state[p] == done:
			case state[p] == open:
				return fmt.Errorf("%w: %s %q depends on itself through %q", ErrCycle, n.Op, n.Name, name)
			default:
				state[p] = open
				stack = append(stack, visit{node: p})
			}
		}
	}
	g.Nodes = order
	if len(order) == 0 {
		g.Nodes = nil
	}
	return nil
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
