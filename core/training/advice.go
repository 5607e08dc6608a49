package training

import "slices"

// Advice is the most helpful improvement of a training set.
type Advice struct {
	Code    AdviceCode
	Concept int // index among the model's concepts; -1: no particular concept
	Missing int // number of examples to add; 0: unknown
}

// AdviceCode is the kind of problem of a training set.
type AdviceCode string

// The codes, the most urgent first.
const (
	NoAdvice    AdviceCode = ""
	NoConcepts  AdviceCode = "no_concepts"  // the model has no concepts and cannot be trained
	NoPositives AdviceCode = "no_positives" // a concept without a positive label
	OneClass    AdviceCode = "one_class"    // no inputs that distinguish the concepts
	FewExamples AdviceCode = "few_examples" // a concept with fewer positives than RecommendedPositives
	Unbalanced  AdviceCode = "unbalanced"   // a concept with fewer than half of the model's usual positives
)

// RecommendedPositives is the recommended number of positives of a concept: with ten photographs each, models distinguish two concepts well.
const RecommendedPositives = 10

// Advise returns the most urgent problem of a model's training set. r is the relation of the model's concepts.
func Advise(s *Survey, r Relation) Advice {
	if len(s.Concepts) == 0 {
		return Advice{NoConcepts, -1, 0}
	}
	least, withPositives := 0, 0
	counts := make([]uint64, len(s.Concepts))
	for i := range s.Concepts {
		counts[i] = s.Concepts[i].Positives
		if counts[i] > 0 {
			withPositives++
		}
		if counts[i] < counts[least] {
			least = i
		}
	}
	n := counts[least]
	slices.Sort(counts)
	usual := (counts[len(counts)/2] + 1) / 2
	switch {
	case r.Exclusive && withPositives == 1:
		return Advice{OneClass, least, missing(n, RecommendedPositives)}
	case n == 0:
		return Advice{NoPositives, least, RecommendedPositives}
	case r.Closed && indistinct(s):
		return Advice{OneClass, least, 0}
	case n < RecommendedPositives:
		return Advice{FewExamples, least, missing(n, RecommendedPositives)}
	case n < usual:
		return Advice{Unbalanced, least, missing(n, usual)}
	}
	return Advice{NoAdvice, -1, 0}
}

func missing(have, want uint64) int { return int(want - min(have, want)) }

// indistinct reports whether every input shows every concept.
func indistinct(s *Survey) bool {
	return !slices.ContainsFunc(s.Concepts, func(t Tally) bool { return t.Positives < s.Inputs })
}
