package search

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/predict"
)

// walkLimit is the maximum number of hits, of all pages up to the requested one, that a walk of the graph finds. For deeper pages every
// match is ranked.
const walkLimit = 1000

// walkStep rounds the number of hits that a walk finds. Neighbouring pages then come from the
// same walk, and no hit is on two of them or on neither.
const walkStep = 64

// rankedPage returns a page of the matches by score. The output clauses with a Similar are
// last in outputs.
func (e *execution) rankedPage(outputs []*Clause, p Page) (Result, error) {
	if pic := nearest(outputs); pic >= 0 && p.Offset+p.N <= walkLimit && p.Offset+p.N >= p.N {
		return e.nearest(e.q.Pictures[pic].Embedding, p)
	}
	e.mem = memories.Get().(*memory)
	defer memories.Put(e.mem)
	s, err := e.scoreMatches(outputs)
	if err != nil {
		return Result{}, err
	}
	result := s.page(p, e.mem)
	e.mem.give(s)
	return result, nil
}

// scoreMatches returns every match with its score, except those below the query's MinScore.
func (e *execution) scoreMatches(outputs []*Clause) (scoredInputs, error) {
	for _, c := range outputs {
		if err := e.narrow(c); err != nil {
			return scoredInputs{}, err
		}
	}
	ords := e.mem.ords.take(int(e.matches.GetCardinality()))
	e.matches.ToExistingArray(&ords)
	s, err := e.clause(outputs[0], ords)
	e.mem.ords.give(ords)
	for _, c := range outputs[1:] {
		if err != nil {
			return scoredInputs{}, err
		}
		var values scoredInputs
		values, err = e.clause(c, s.ords)
		s = s.times(values)
		e.mem.give(values)
	}
	return s.atLeast(e.q.MinScore), err
}

// narrow removes matches for which a clause cannot hold, by postings, before any value is read.
func (e *execution) narrow(c *Clause) error {
	if c.Negate {
		return nil
	}
	for _, cond := range c.All {
		p, ok := cond.(Prediction)
		if !ok {
			continue
		}
		any := roaring.New() // inputs for which one of the concepts may be present
		for _, concept := range p.Concepts {
			among := e.matches
			if !p.Absent && len(p.Concepts) > 1 {
				among = among.Clone()
			}
			if err := e.v.Narrow(concept, index.Side(!p.Absent), among); err != nil {
				return err
			}
			if among != e.matches {
				any.Or(among)
			}
		}
		if !p.Absent && len(p.Concepts) != 1 {
			e.matches = any
		}
	}
	return nil
}

// nearest returns the picture by which a query ranks if nothing else ranks, or −1.
func nearest(outputs []*Clause) int {
	if len(outputs) == 1 && len(outputs[0].All) == 1 && !outputs[0].Negate {
		if s, ok := outputs[0].All[0].(Similar); ok {
			return s.Picture
		}
	}
	return -1
}

func (e *execution) nearest(to *predict.Embedding, p Page) (Result, error) {
	total := e.matches.GetCardinality()
	k := (p.Offset + p.N + walkStep - 1) / walkStep * walkStep
	near, err := e.v.Nearest(e.ctx, to, e.matches, int(min(k, total)))
	if err != nil {
		return Result{}, err
	}
	s := scoredInputs{}
	slices.SortFunc(near, func(a, b index.Similar) int { return int(int64(a.Ord) - int64(b.Ord)) })
	for _, n := range near {
		s.ords = append(s.ords, n.Ord)
		s.factor = append(s.factor, similarity(n.Cosine))
	}
	return s.atLeast(e.q.MinScore).page(p, new(memory)), nil
}

// similarity maps a cosine to 0…1: identical pictures have 1, unrelated ones about 0.5.
func similarity(cosine float64) float64 { return (1 + cosine) / 2 }

// clause returns the values of an output clause for those of ords, ascending, for which it holds.
func (e *execution) clause(c *Clause, ords []uint32) (scoredInputs, error) {
	if c.Negate {
		return e.negatedClause(c, ords)
	}
	all := c.conditionsByCost()
	s, err := e.matchingValues(all[0], ords)
	for _, cond := range all[1:] {
		if err != nil {
			return scoredInputs{}, err
		}
		var values scoredInputs
		values, err = e.matchingValues(cond, s.ords)
		s = s.times(values)
		e.mem.give(values)
	}
	return s, err
}

// negatedClause evaluates a negated clause: it evaluates all conditions for all inputs.
func (e *execution) negatedClause(c *Clause, ords []uint32) (scoredInputs, error) {
	s := e.mem.ones(ords)
	allMet := e.mem.holds(len(ords)) // all conditions but Similar
	others := false
	for _, cond := range c.conditionsByCost() {
		values, met, err := e.values(cond, ords)
		if err != nil {
			return scoredInputs{}, err
		}
		if _, ok := cond.(Similar); ok {
			s.scale(values, met, nil)
		} else {
			others = true
			s.scale(values, met, allMet)
		}
		e.mem.give(values)
		e.mem.flags.give(met)
	}
	n := 0
	for i, ord := range s.ords {
		if !others || !allMet[i] {
			s.ords[n], s.factor[n] = ord, 1-s.factor[i]
			n++
		}
	}
	e.mem.flags.give(allMet)
	return scoredInputs{s.ords[:n], s.factor[:n]}, nil
}

// matchingValues returns the value of a condition for those of ords for which it holds.
func (e *execution) matchingValues(c Condition, ords []uint32) (scoredInputs, error) {
	switch c := c.(type) {
	case Prediction:
		s, err := e.largest(c, ords)
		n := 0
		for i, f := range s.factor {
			s.ords[n], s.factor[n] = s.ords[i], c.value(f)
			if c.holds(f) {
				n++
			}
		}
		return scoredInputs{s.ords[:n], s.factor[:n]}, err
	case Similar:
		return e.similar(c, ords)
	}
	b, err := e.holds(c, index.BitmapOf(ords))
	if err != nil {
		return scoredInputs{}, err
	}
	return e.mem.ones(b.ToArray()), nil
}

// values returns the values of a condition for those of ords that have one, and whether the condition holds for each.
func (e *execution) values(c Condition, ords []uint32) (scoredInputs, []bool, error) {
	p, ok := c.(Prediction)
	if !ok {
		s, err := e.matchingValues(c, ords)
		return s, e.mem.holds(len(s.ords)), err
	}
	s, err := e.largest(p, ords)
	met := e.mem.flags.take(len(s.ords))
	for i, f := range s.factor {
		met[i], s.factor[i] = p.holds(f), p.value(f)
	}
	return s, met, err
}

// holds reports whether the condition holds if f is the largest value of the concepts.
func (p Prediction) holds(f float64) bool { return (f < float64(index.PresentThreshold)) == p.Absent }

// value returns the condition's value for a prediction.
func (p Prediction) value(f float64) float64 {
	if p.Absent {
		return 1 - f
	}
	return f
}

// largest returns the largest value of the concepts for those of ords that have one.
func (e *execution) largest(c Prediction, ords []uint32) (scoredInputs, error) {
	var s scoredInputs
	buf := e.mem.values.take(len(ords))
	defer e.mem.values.give(buf)
	for i, concept := range c.Concepts {
		v, err := e.v.Predictions(e.ctx, concept, ords, buf)
		if err != nil {
			return scoredInputs{}, err
		}
		if i == 0 {
			s = e.mem.copyValues(v)
		} else {
			s = s.or(v)
		}
	}
	return s, nil
}

// similar returns the similarity of every input of ords.
func (e *execution) similar(c Similar, ords []uint32) (scoredInputs, error) {
	near, err := e.v.Cosines(e.ctx, e.q.Pictures[c.Picture].Embedding, index.BitmapOf(ords))
	if err != nil {
		return scoredInputs{}, err
	}
	s := e.mem.allocate(len(near))
	for i, n := range near {
		s.ords[i], s.factor[i] = n.Ord, similarity(n.Cosine)
	}
	return s, nil
}
