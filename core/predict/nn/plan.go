package nn

import (
	"fmt"
	"math"
)

// Plan is a compiled network: steps in order, weights packed for the kernels, and the arena's
// layout. It is immutable; any number of sessions may use it at once.
type Plan struct {
	input   Value
	outputs []Value
	in      *value // value that holds Run's tensor
	outs    []*value
	steps   []step
	blocks  []*block  // by value id; nil for the input
	arena   int64     // bytes
	weights int64     // bytes
	work    int64     // multiply-adds
	pooled  *lastPool // nil: Session.Cells is not supported
}

// Input returns the value that Run takes, in the shape (N, H, W, C). The caller must not change it.
func (p *Plan) Input() Value { return p.input }

// Outputs returns the values that Run gives. The caller must not change them.
func (p *Plan) Outputs() []Value { return p.outputs }

// compiler turns a graph into a plan's steps.
type compiler struct {
	plan    *Plan
	options Options
	values  []*value // by id
	err     error    // reports the first value that is too large
}

// Compile compiles n into a plan. It does not change or keep n.
//
// It returns ErrUnsupported for a network that this package does not run, ErrWork for a network that exceeds Options.Work, and ErrMemory
// for one that exceeds Options.Memory, before it allocates that memory.
func Compile(n *Network, o Options) (*Plan, error) {
	o = o.orDefault()
	if len(n.outputs) == 0 {
		return nil, fmt.Errorf("no outputs: %w", ErrUnsupported)
	}
	g := load(n)
	g.sweep()
	g.block(o.blocks())
	g.place()
	c := &compiler{plan: &Plan{}, options: o}
	c.enter(g.input, n.values[0])
	for _, node := range g.nodes {
		if err := c.lower(node); err != nil {
			return nil, err
		}
	}
	for i, v := range g.outputs {
		c.leave(v, n.outputs[i].Name)
	}
	if c.err != nil {
		return nil, c.err
	}
	c.mapArena()
	c.checkCells()
	if total := c.plan.arena + c.plan.weights; total > o.Memory {
		return nil, fmt.Errorf("%d bytes: %w", total, ErrMemory)
	}
	return c.plan, nil
}

// lower emits the steps of n.
func (c *compiler) lower(n *node) error {
	if err := c.budget(n); err != nil {
		return err
	}
	var err error
	switch n.Kind {
	case Conv:
		c.conv(n)
	case tiled:
		c.blockStep(n)
	case Add:
		c.add(n)
	case Pool:
		err = c.pool(n)
	case Flatten:
		n.out.same = c.plain(n.String(), n.in)
	case Gemm:
		err = c.gemm(n)
	}
	if err == nil {
		err = c.err
	}
	return err
}

// budget adds the memory and work that n needs to the plan, before any weights are packed. It returns an error above a limit.
func (c *compiler) budget(n *node) error {
	for _, p := range n.parts {
		if err := c.budget(p); err != nil {
			return err
		}
	}
	if n.Kind == tiled {
		return nil
	}
	if n.Kind != Conv && n.Kind != Gemm {
		return c.spend(n, int64(volume(n.in.shape)), 1)
	}
	total, outs := int64(volume(n.Shape[:])), int64(n.Shape[0])
	if err := c.spend(n, int64(volume(n.out.shape)), total/outs); err != nil {
		return err
	}
	return c.reserve(n, total, outs)
}

// spend adds the work of n to the plan: the given number of results, with each multiply-adds per result.
func (c *compiler) spend(n *node, results, each int64) error {
	if results > c.options.Work/each {
		return fmt.Errorf("%s: %d results of %d multiply-adds: %w", n, results, each, ErrWork)
	}
	if c.plan.work += results * each; c.plan.work > c.options.Work {
		return fmt.Errorf("%s: %d multiply-adds: %w", n, c.plan.work, ErrWork)
	}
	return nil
}

// groupBytes is the memory that each group of a convolution takes in addition to its weights.
const groupBytes = 512

// reserve adds the memory that the packed weights of n need: output channels in panels of
// 16, each row of the kernel in groups of four.
func (c *compiler) reserve(n *node, total, outs int64) error {
	size, groups := int64(n.in.typ.Size()), int64(1)
	if n.Kind == Conv {
		groups = int64(n.slide.group)
	}
	if n.in.typ != Float32 {
		size = 1
	}
	depth := (total/outs + 3*int64(n.Shape[2])) * size
	if n.Kind == Conv && size == 4 && n.squares() {
		depth += depth * 16 / 9 // the transformed weights
	}
	columns := (outs/groups + 15) / 16 * 16 * groups
	if n.Kind == Conv && n.depthwise() {
		groups, columns = 1, outs // one product, whose rows are not padded
	}
	if columns > 1<<40/depth {
		return fmt.Errorf("%s: weights: %w", n, ErrMemory)
	}
	if c.plan.weights += columns*(depth+12) + groups*groupBytes; c.plan.weights > c.options.Memory {
		return fmt.Errorf("%s: %d bytes of weights: %w", n, c.plan.weights, ErrMemory)
	}
	return nil
}

// enter makes v the parameter of Run. Its memory has the order of pixels, (N, H, W, C), without a halo.
func (c *compiler) enter(v *value, public Value) {
	from := v.fresh()
	from.nhwc = true
	public.Shape = []int{v.shape[0], v.shape[2], v.shape[3], v.shape[1]}
	c.plan.input, c.plan.in = public, from
	c.memory(from)
	c.plan.blocks[from.id] = nil
	if v.halo == [4]int{} {
		v.same = from
		return
	}
	c.copyStep("Input", v, from)
}

// leave makes v, row-major, a result of Run. If v is also the parameter, the result is a copy.
func (c *compiler) leave(v *value, name string) {
	c.memory(v)
	p := c.plain("Output", v)
	if c.plan.blocks[p.root().id] == nil {
		q := p.fresh()
		c.copyStep("Output", q, p)
		p = q
	}
	c.plan.outs = append(c.plan.outs, p)
	c.plan.outputs = append(c.plan.outputs, Value{name, v.typ, v.shape, v.Quantisation})
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

// memory gives v's root an id: the number of its block in the arena.
func (c *compiler) memory(v *value) {
	v = v.root()
	if v.id < len(c.values) && c.values[v.id] == v {
		return
	}
	v.id = len(c.values)
	c.values = append(c.values, v)
	bytes := int64(v.elems()) * int64(v.typ.Size())
	if bytes > c.options.Memory && c.err == nil {
		c.err = fmt.Errorf("value %v: %w", v.shape, ErrMemory)
	}
	c.plan.blocks = append(c.plan.blocks, &block{bytes: bytes, first: math.MaxInt, last: -1})
}

// mapArena finds the lifetime of every block and its offset in the arena.
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
func scratch(typ Type, n int) *value {
	return &value{typ: typ, shape: []int{n}}
}
