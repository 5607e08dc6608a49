package index

import (
	"bytes"
	"slices"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/log"
)

// move removes an ordinal from the postings of old and adds it to those of now. Both lists are sorted; it leaves common terms unchanged.
func (s *stage) move(ord uint32, old, now []term) {
	for len(old) > 0 || len(now) > 0 {
		order := 1
		if len(now) == 0 {
			order = -1
		} else if len(old) > 0 {
			order = compareTerms(old[0], now[0])
		}
		if order < 0 {
			s.setTerm(old[0], ord, false)
		}
		if order > 0 {
			s.setTerm(now[0], ord, true)
		}
		if order <= 0 {
			old = old[1:]
		}
		if order >= 0 {
			now = now[1:]
		}
	}
}

// termsOf appends the terms of in, each once and sorted. It omits the terms of the metadata if other has the same metadata.
func (s *stage) termsOf(terms []term, in, other *catalog.Input) []term {
	if in == nil {
		return terms
	}
	terms = append(terms, plain(kindLive))
	if in.Code == catalog.InputReady {
		terms = append(terms, plain(kindReady))
	}
	for i := range in.Labels {
		switch l := &in.Labels[i]; l.Value {
		case log.True:
			terms = append(terms, s.label(kindTrue, l.Concept))
		case log.False:
			terms = append(terms, s.label(kindFalse, l.Concept))
		}
	}
	if in.Geo != nil {
		terms = append(terms, plain(kindPlace))
	}
	if len(in.Meta) > 0 && (other == nil || !sameMeta(in.Meta, other.Meta)) {
		s.meta.read(in.Meta.JSON())
		terms = append(terms, s.meta.terms.list...)
		if s.meta.wide {
			terms = append(terms, plain(kindWide))
		}
		if s.meta.ambiguous {
			terms = append(terms, plain(kindAmbiguous))
		}
	}
	slices.SortFunc(terms, compareTerms)
	return slices.Compact(terms)
}

func compareTerms(a, b term) int { return bytes.Compare(a[:], b[:]) }

// label returns the term of a concept. It caches the hash, because a run of changes has the same concept many times.
func (s *stage) label(kind byte, concept string) term {
	t, ok := s.labels[concept]
	if !ok {
		t = hashTerm(0, concept)
		s.labels[concept] = t
	}
	t[0] = kind
	return t
}

func sameMeta(a, b catalog.Meta) bool {
	return slices.EqualFunc(a, b, func(p, q catalog.MetaPart) bool {
		return p.Removed == q.Removed && slices.Equal(p.Path, q.Path) && slices.Equal(p.JSON, q.JSON)
	})
}
