package nn

import (
	"fmt"
	"slices"
)

// maxCells is the maximum number of times that Cells runs the end of a plan.
const maxCells = 1 << 10

// lastPool is the last Pool of a plan, and its input, the network's last map.
type lastPool struct {
	step          int // index in the plan's steps
	x             *value
	height, width int
}

// CellsShape returns the height and the width, in pixels, of the map that the plan's last Pool reads. If [Session.Cells] cannot run the
// plan, both are 0.
func (p *Plan) CellsShape() (height, width int) {
	if p.pooled == nil {
		return 0, 0
	}
	return p.pooled.height, p.pooled.width
}

// Cells runs the plan on in as [Session.Run] does. It runs the steps from the last Pool on once for every pixel (y, x) of the pooled
// map, row by row, as if all pixels of the map were like that one. The function each gets the plan's outputs, which belong to the session
// and are overwritten after it returns. If those steps are linear, the mean of these outputs is the output of Run: each of them is the
// contribution of one part of the picture.
//
// The errors are Run's, and ErrUnsupported if [Plan.CellsShape] returns 0.
func (s *Session) Cells(in Tensor, each func(y, x int, out []Tensor)) error {
	last := s.plan.pooled
	if last == nil {
		return fmt.Errorf("no map that ends in a Pool: %w", ErrUnsupported)
	}
	defer s.release()
	if err := s.feed(&in); err != nil {
		return err
	}
	s.runSteps(0, last.step)
	// Values of the later steps may overwrite the map's memory, so these steps read a copy of the map.
	id := last.x.root().id
	shared := s.mem[id]
	s.mem[id] = alignedBytes(int64(len(shared)))
	copy(s.mem[id], shared)
	defer func() { s.mem[id], s.cell = shared, 0 }()
	for y := range last.height {
		for x := range last.width {
			s.cell = 1 + y*last.width + x
			s.runSteps(last.step, len(s.plan.steps))
			each(y, x, s.outs)
		}
	}
	return nil
}

// pools records that the next step of the plan is a Pool of x. A later Pool replaces it.
func (c *compiler) pools(x *value) {
	c.plan.pooled = &lastPool{step: len(c.plan.steps), x: x, height: x.shape[2], width: x.shape[3]}
}

// checkCells clears p.pooled if Cells cannot run the end of the plan: the map covers several pictures or more than maxCells pixels, or a
// later step reads another value from before the Pool.
func (c *compiler) checkCells() {
	p := c.plan
	last := p.pooled
	if last == nil {
		return
	}
	early := func(v *value) bool {
		b := p.blocks[v.root().id]
		return b != nil && b.first < last.step
	}
	for _, st := range p.steps[last.step+1:] {
		if slices.ContainsFunc(st.in, early) {
			p.pooled = nil
		}
	}
	if last.x.shape[0] != 1 || last.height*last.width > maxCells {
		p.pooled = nil
	}
}
