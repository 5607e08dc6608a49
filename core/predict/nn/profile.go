package nn

import "time"

// StepTime is where a run's time goes: one step of the plan.
type StepTime struct {
	Name  string // node and operator
	Shape []int  // of what it computes
	Best  time.Duration
}

// Profile runs the plan rounds times on in and returns the least time of each step, in order.
// now is a clock with the resolution the caller wants to see.
func (s *Session) Profile(in []Tensor, rounds int, now func() time.Duration) ([]StepTime, error) {
	p := s.plan
	times := make([]StepTime, len(p.steps))
	for i, st := range p.steps {
		times[i] = StepTime{Name: st.name, Shape: st.out[0].shape, Best: 1 << 62}
	}
	defer s.release()
	for range rounds {
		if err := s.feedAll(in); err != nil {
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
