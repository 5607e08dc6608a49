package nn

import (
	"fmt"
	"math"
	"slices"

	"github.com/sightline-dev/sightline/core/predict/onnx"
)

// Plan is a compiled network: steps in order, weights packed for the kernels, and the arena's
// map. It is immutable; any number of sessions may use it at once.
type Plan struct {
	inputs  []onnx.Value
	outputs []onnx.Value
	ins     []*value // what Run's tensors become
	outs    []*value
	steps   []step
	consts  [][]byte // by value id
	blocks  []*block // by value id; nil for constants and inputs
	arena   int64    // bytes
	weights int64    // bytes
	work    int64    // multiply-adds
	pooled  *pooled  // nil: the plan has no map for Session.Cells
}

// Inputs returns what Run takes, shapes fixed. The caller must not change it.
func (p *Plan) Inputs() []onnx.Value { return p.inputs }

// Outputs returns what Run gives. The caller must not change it.
func (p *Plan) Outputs() []onnx.Value { return p.outputs }

// compiler turns a rewritten graph into a plan's steps.
type compiler struct {
	plan    *Plan
	graph   *graph
	options Options
	values  []*value // by id
}

// Compile turns g into a plan. g is not changed and not kept.
//
// It returns ErrUnsupported naming the node for what it cannot run, ErrMemory before taking more
// than Options.Memory, ErrWork for more than Options.Work, ErrInput where Options.InputNHWC names no
// picture, and the errors of onnx.Graph.Infer.
func Compile(g *onnx.Graph, o Options) (*Plan, error) {
	o = o.orDefault()
	if o.InputNHWC != "" && !slices.ContainsFunc(g.Inputs, func(v onnx.Value) bool {
		return v.Name == o.InputNHWC && len(v.Shape) == 4
	}) {
		return nil, fmt.Errorf("no input %q of rank 4: %w", o.InputNHWC, ErrInput)
	}
	shapes := inputShapes(g, o)
	folded, err := g.Fold(shapes)
	if err != nil {
		return nil, err
	}
	infer, err := folded.Infer(shapes)
	if err != nil {
		return nil, err
	}
	if err := checkMemory(folded, infer, o.Memory); err != nil {
		return nil, err
	}
	r, err := load(folded, infer)
	if err != nil {
		return nil, err
	}
	passes := []func() error{
		r.simplify,
		r.quantise,
		func() error { return r.foldConstants(o.Memory) },
		r.fuse,
		func() error { return r.block(o.blocks()) },
		r.place,
	}
	for _, pass := range passes {
		if err := pass(); err != nil {
			return nil, err
		}
		r.sweep()
	}
	return r.lower(o)
}

// inputShapes returns a shape for every input of g: the caller's, or the graph's with an open
// first dimension taken as 1.
func inputShapes(g *onnx.Graph, o Options) map[string][]int {
	shapes := make(map[string][]int)
	for _, in := range g.Inputs {
		if s, ok := o.Shapes[in.Name]; ok {
			shapes[in.Name] = s
			continue
		}
		s := append([]int{}, in.Shape...)
		if len(s) > 0 && s[0] < 0 {
			s[0] = 1
		}
		shapes[in.Name] = s
	}
	return shapes
}

// checkMemory refuses a graph whose values, each on its own, could never fit: what comes later
// (halos, packing) is counted exactly, but only once shapes are known to be of this world.
func checkMemory(g *onnx.Graph, infer map[string]onnx.Value, limit int64) error {
	for name, v := range infer {
		bytes := int64(v.Type.Size())
		for _, d := range v.Shape {
			if d > 0 && bytes > limit/int64(d) {
				return fmt.Errorf("value %q %v: %w", name, v.Shape, ErrMemory)
			}
			bytes *= int64(d)
		}
	}
	var weights int64
	for _, t := range g.Init {
		weights += int64(len(t.Data))
	}
	if weights > limit {
		return fmt.Errorf("%d bytes of weights: %w", weights, ErrMemory)
	}
	return nil
}

// enter makes v a parameter of Run, and brings it into the layout that its readers want.
func (c *compiler) enter(v *value, interleaved bool) {
	from := v.fresh()
	n := &node{op: "Input", out: []*value{v}}
	public := onnx.Value{Name: v.name, Type: v.typ, Shape: v.shape}
	if interleaved && len(v.shape) == 4 {
		from.nhwc = true
		public.Shape = []int{v.shape[0], v.shape[2], v.shape[3], v.shape[1]}
	}
	c.plan.inputs = append(c.plan.inputs, public)
	c.plan.ins = append(c.plan.ins, from)
	c.memory(from)
	c.plan.blocks[from.id] = nil
	if v.typ == onnx.Int8 {
		shifted := from.fresh()
		shifted.nhwc = from.nhwc
		c.shiftStep(n, shifted, from)
		from = shifted
	}
	if from.nhwc == v.nhwc && v.halo == [4]int{} {
		v.same = from
		return
	}
	c.copyStep(n, v, from)
}

// leave makes v, row-major, a result of Run. It is a copy where v is also a parameter or a
// constant.
func (c *compiler) leave(v *value) {
	n := &node{op: "Output", out: []*value{v}}
	c.memory(v)
	p := c.plain(n, v)
	switch {
	case v.typ == onnx.Int8:
		q := p.fresh()
		c.shiftStep(n, q, p)
		p = q
	case c.plan.blocks[p.root().id] == nil:
		q := p.fresh()
		c.copyStep(n, q, p)
		p = q
	}
	c.plan.outs = append(c.plan.outs, p)
	c.plan.outputs = append(c.plan.outputs, onnx.Value{Name: v.name, Type: v.typ, Shape: v.shape})
}

// emit appends st and gives its values memory.
func (c *compiler) emit(st step) {
	for _, vs := range [][]*value{st.out, st.in, st.temp} {
		for _, v := range vs {
			c.memory(v)
		}
	}
	c.plan.steps = append(c.plan.steps, st)
}

// memory gives v's root an id: a constant's bytes, or a block of the arena to be mapped.
func (c *compiler) memory(v *value) {
	v = v.root()
	if v.id < len(c.values) && c.values[v.id] == v {
		return
	}
	v.id = len(c.values)
	c.values = append(c.values, v)
	p := c.plan
	var con []byte
	var b *block
	if v.con != nil {
		con = alignedBytes(int64(len(v.con.Data)))
		copy(con, v.con.Data)
		if v.typ == onnx.Int8 {
			for i := range con {
				con[i] ^= 0x80
			}
		}
		p.weights += int64(len(con))
	} else {
		b = &block{bytes: int64(v.elems()) * int64(v.typ.Size()), first: math.MaxInt, last: -1}
	}
	p.consts = append(p.consts, con)
	p.blocks = append(p.blocks, b)
}

// mapArena finds when every block lives and where it lies.
func (c *compiler) mapArena() {
	p := c.plan
	var blocks []*block
	for i, st := range p.steps {
		for _, vs := range [][]*value{st.out, st.in, st.temp} {
			for _, v := range vs {
				b := p.blocks[v.root().id]
				if b == nil {
					continue
				}
				b.first, b.last = min(b.first, i), max(b.last, i)
			}
		}
	}
	for _, v := range p.outs {
		b := p.blocks[v.root().id]
		b.last = len(p.steps)
		b.first = min(b.first, b.last)
	}
	for _, b := range p.blocks {
		if b != nil {
			blocks = append(blocks, b)
		}
	}
	p.arena = assign(blocks)
}

// scratch returns a value of n elements for one step's use.
func scratch(typ onnx.DType, n int) *value {
	return &value{name: "scratch", typ: typ, shape: []int{n}}
}
