package nn

import "time"

// WithTiling returns o with blocks made of inner values of at least worthwhile bytes, in tiles of
// about tile bytes.
func WithTiling(o Options, worthwhile, tile int) Options {
	b := bounds{worthwhile, tile}
	o.tiling = &tiling{b, b}
	return o
}

// SessionBytes returns the memory one session takes.
func (p *Plan) SessionBytes() int64 { return p.arena }

// WeightBytes returns the memory of packed weights shared by all sessions.
func (p *Plan) WeightBytes() int64 { return p.weights }

// Work returns the multiply-adds of one run.
func (p *Plan) Work() int64 { return p.work }

// StepTime is the measured time of one step of a plan.
type StepTime struct {
	Name  string // node and operator
	Shape []int  // shape of the first result
	Best  time.Duration
}

// Profile runs the plan rounds times on in and returns the least time of each step, in order. now is its clock.
func (s *Session) Profile(in Tensor, rounds int, now func() time.Duration) ([]StepTime, error) {
	p := s.plan
	times := make([]StepTime, len(p.steps))
	for i, st := range p.steps {
		times[i] = StepTime{Name: st.name, Shape: st.out[0].shape, Best: 1 << 62}
	}
	defer s.release()
	for range rounds {
		if err := s.feed(&in); err != nil {
			return nil, err
		}
		for i := range p.steps {
			start := now()
			s.runStep(&p.steps[i])
			times[i].Best = min(times[i].Best, now()-start)
		}
	}
	return times, nil
}

// PointwiseConv is a 1×1 convolution of bytes.
type PointwiseConv struct {
	Bytes   []int8
	Weights [2]int // outputs and inputs
	Pixels  int
	Zero    int32 // zero point of the results
}

// Pointwise returns the 1×1 convolutions of bytes.
func (n *Network) Pointwise() []PointwiseConv {
	var all []PointwiseConv
	for i, node := range n.nodes {
		if w, err := node.window(); node.Kind == Conv && node.Bytes != nil && err == nil && w.pointwise() {
			shape := n.values[i+1].Shape
			all = append(all, PointwiseConv{node.Bytes, [2]int{node.Shape[0], node.Shape[1]}, shape[0] * shape[2] * shape[3], node.product().Zero})
		}
	}
	return all
}
