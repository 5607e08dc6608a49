package nn

import "fmt"

// lowerings says how each operator becomes steps.
var lowerings = map[string]func(c *compiler, n *node) error{
	"Add":               (*compiler).add,
	"AveragePool":       (*compiler).averagePool,
	"Block":             (*compiler).blockStep,
	"Cast":              (*compiler).cast,
	"Clip":              (*compiler).unary,
	"Concat":            (*compiler).concat,
	"Conv":              (*compiler).conv,
	"DequantizeLinear":  (*compiler).dequantizeLinear,
	"Div":               (*compiler).binary,
	"Exp":               (*compiler).unary,
	"Flatten":           (*compiler).reshape,
	"Gather":            (*compiler).gather,
	"Gemm":              (*compiler).matmul,
	"GlobalAveragePool": (*compiler).globalAveragePool,
	"HardSigmoid":       (*compiler).unary,
	"HardSwish":         (*compiler).unary,
	"LpNormalization":   (*compiler).lpNormalization,
	"MatMul":            (*compiler).matmul,
	"MaxPool":           (*compiler).maxPool,
	"Mul":               (*compiler).binary,
	"Pad":               (*compiler).pad,
	"Pow":               (*compiler).unary,
	"QuantizeLinear":    (*compiler).quantizeLinear,
	"ReduceMean":        (*compiler).reduceMean,
	"Relu":              (*compiler).unary,
	"Reshape":           (*compiler).reshape,
	"Sigmoid":           (*compiler).unary,
	"Slice":             (*compiler).slice,
	"Softmax":           (*compiler).softmax,
	"Sqrt":              (*compiler).unary,
	"Squeeze":           (*compiler).reshape,
	"Sub":               (*compiler).binary,
	"Table":             (*compiler).table,
	"Transpose":         (*compiler).transpose,
	"Unsqueeze":         (*compiler).reshape,
}

// lower emits the steps of g and maps the arena.
func (g *graph) lower(o Options) (*Plan, error) {
	c := &compiler{plan: &Plan{}, graph: g, options: o}
	for _, v := range g.inputs {
		c.enter(v, v.name == o.InputNHWC)
	}
	for _, n := range g.nodes {
		emit, ok := lowerings[n.op]
		if !ok {
			return nil, n.errorf("operator has no implementation")
		}
		if err := c.budget(n); err != nil {
			return nil, err
		}
		if err := emit(c, n); err != nil {
			return nil, err
		}
	}
	for _, v := range g.outputs {
		c.leave(v)
	}
	c.mapArena()
	c.checkCells()
	if total := c.plan.arena + c.plan.weights; total > o.Memory {
		return nil, fmt.Errorf("%d bytes: %w", total, ErrMemory)
	}
	return c.plan, nil
}
