package fold

import (
	"errors"
	"slices"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/log"
)

// NamesState reports whether a body names a part of the state that its maker sees, see NameState.
func NamesState(body log.Body) bool { return lacksNames(body) || sees(body) }

// NameState returns bodies with the parts of a state that they name: a deletion of all inputs has the inputs that it deletes, and a write to a register
// the values that its maker sees there. It copies the bodies that it changes.
func NameState(r catalog.Reader, bodies []log.Body) ([]log.Body, error) {
	h, err := r.Header()
	if err != nil {
		return nil, err
	}
	bodies = slices.Clone(bodies)
	s := seer{r: r, some: h.Contradictions > 0}
	for i, body := range bodies {
		if !sees(body) {
			continue
		}
		if bodies[i], err = s.body(body); err != nil && !errors.Is(err, catalog.ErrNotFound) {
			return nil, err
		}
	}
	if !slices.ContainsFunc(bodies, lacksNames) {
		return bodies, nil
	}
	return addNames(r, h, bodies)
}

// sees reports whether a body writes to registers.
func sees(body log.Body) bool {
	switch b := body.(type) {
	case *log.InputCreate:
		return b.MergeIfEqual && len(b.Labels) > 0
	case *log.ModelPatch:
		return b.Name != nil
	case *log.InputLabels, *log.InputMeta, *log.InputGeo, *log.InputDelete, *log.ConceptName:
		return true
	}
	return false
}

// seer reads the values that a state shows.
type seer struct {
	r    catalog.Reader
	some bool // whether the state has contradictions
}

// body returns a body with the values that its maker sees. For a body whose thing does not exist it returns the body and catalog.ErrNotFound.
func (s *seer) body(body log.Body) (log.Body, error) {
	switch b := body.(type) {
	case *log.InputCreate:
		in, err := s.r.InputByID(b.ID)
		c := *b
		if err == nil {
			c.Seen, err = s.labels(&in, b.Labels)
		}
		return &c, err
	case *log.ConceptName:
		concept, err := s.r.Concept(b.ID)
		c := *b
		if err == nil {
			c.Seen, err = s.values(ofName(conceptName(b.ID), concept.ID, concept.Name, concept.NameAt, b.Name, nil))
		}
		return &c, err
	case *log.ModelPatch:
		m, err := s.r.ModelByDot(b.Model)
		c := *b
		if err == nil {
			c.Seen, err = s.values(ofName(modelName(b.Model), m.ID, m.Name, m.NameAt, *b.Name, nil))
		}
		return &c, err
	}
	return s.input(body)
}

// input is body for operations on an input.
func (s *seer) input(body log.Body) (log.Body, error) {
	in, err := s.r.InputByDot(log.SubjectDot(body))
	if err != nil {
		return body, err
	}
	switch b := body.(type) {
	case *log.InputLabels:
		c := *b
		c.Seen, err = s.labels(&in, b.Labels)
		return &c, err
	case *log.InputMeta:
		c := *b
		c.Seen, err = s.meta(&in, b.Writes)
		return &c, err
	case *log.InputGeo:
		c := *b
		c.Seen, err = s.values(ofPlace(&in, b.Geo, nil))
		return &c, err
	case *log.InputDelete:
		c := *b
		eachWrite(&in, func(_ catalog.Register, v catalog.SetValue) { c.Seen = max(c.Seen, v.At.MadeAt()) })
		return &c, nil
	}
	return body, nil
}

func (s *seer) labels(in *catalog.Input, labels []log.Label) (log.SeenEach, error) {
	return s.each(len(labels), func(i int) []meeting { return []meeting{ofLabel(in, labels[i], nil)} })
}

func (s *seer) meta(in *catalog.Input, writes []log.MetaWrite) (log.SeenEach, error) {
	return s.each(len(writes), func(i int) []meeting { return ofMeta(in, writes[i], nil) })
}

// each returns the values that the maker of n writes sees at each.
func (s *seer) each(n int, meets func(i int) []meeting) (each log.SeenEach, err error) {
	for i := range n {
		seen, err := s.values(meets(i))
		if err != nil {
			return nil, err
		}
		each.Add(i, seen)
	}
	return each, nil
}

// values returns the names of the values that serve in registers, and of those in their contradictions, at most MaxSeen of them.
func (s *seer) values(met []meeting) (seen log.Seen, err error) {
	for _, x := range met {
		if x.serving.At != (log.Stamp{}) {
			seen = append(seen, x.serving.At.Name())
		}
		if !s.some {
			continue
		}
		c, err := s.r.Contradiction(x.register)
		if err != nil {
			return nil, err
		}
		for _, v := range c.Values {
			seen = append(seen, v.At.Name())
		}
	}
	slices.Sort(seen)
	seen = slices.Compact(seen)
	return seen[:min(len(seen), log.MaxSeen)], nil
}
