// Package train fits heads: the small trained layer of a model version, on the unit embedding.
//
//	examples, labels ─▶ weights, targets ─▶ L-BFGS on our kernels ─▶ Head ─▶ values
//	background ───────▶                  └▶ k folds with it ───────▶ Metrics
//
// A head is logistic regression with an L2 penalty: one sigmoid output per concept, or
// one softmax over all concepts if they exclude each other. Package spago writes a head as a spago model
// and reads it back. This package does not compute with spago, because spago's kernels
// differ between targets and take one example at a time. Here each step is a matrix product over the
// whole set, and a head has the same bits on every host. A test trains the same head with spago.
//
// Nothing here reads a clock, a random source or a file, and nothing runs by itself: a host
// drives a [Fitter] in steps of some milliseconds.
package train

import (
	"errors"
	"fmt"

	"github.com/sightline-dev/sightline/core/predict"
)

// EngineVersion is the version of this package's arithmetic. It is part of the digests of trainings. Raise it with every change that gives a
// problem another head.
const EngineVersion = 1

var (
	// ErrNoExamples is returned when there are labels, but none on an example with an embedding.
	ErrNoExamples = errors.New("no example to train on")
	// ErrNoPositives is returned when concepts of the model are labelled, but none true.
	ErrNoPositives = errors.New("no positive example")
	// ErrSingleClass is returned when concepts exclude each other and fewer than two of them have
	// a positive example.
	ErrSingleClass = errors.New("mutually exclusive concepts with a single class")
	// ErrProblem is returned for a problem that contradicts itself.
	ErrProblem = errors.New("malformed training problem")
)

// Labels of an example for one concept.
const (
	False   int8 = -1
	Unknown int8 = 0
	True    int8 = 1
)

// Example is a picture to learn from.
type Example struct {
	Embedding *predict.Embedding // nil if the picture is not analysed: its labels are checked, but no head is trained on it
	// Labels holds True, False or Unknown for each of Problem.Concepts; nil means all Unknown.
	Labels []int8
	// Other reports that the example is labelled true with a concept that does not belong to the model.
	Other bool
}

// Problem is the data that a head is fitted to. A Fitter reads it until the Fitter ends, and changes nothing.
//
// An explicit True is always a positive of its concept, and an explicit False a negative. Further negatives of a concept, if it is
// Unknown, are:
//
//   - examples that are True for another concept of the model;
//   - unless Closed, examples labelled with Other concepts alone; the remaining examples, which
//     have no True at all, at a low weight; and Background with a tenth of the positives' weight.
//
// The result does not depend on the order of Examples.
type Problem struct {
	Concepts   []string
	Examples   []Example
	Exclusive  bool                // one softmax over the concepts instead of a sigmoid each
	Closed     bool                // every picture shows one of the concepts
	Background []predict.Embedding // embeddings of varied pictures; ignored if Closed
	Precision  float64             // precision that the cut-offs promise, below 1; 0: DefaultPrecision
}

// Result is a fitted head and its evaluation.
type Result struct {
	Head    *Head
	Metrics *Metrics
}

// check returns ErrProblem for too few or too many concepts.
func (p *Problem) check() error {
	if len(p.Concepts) == 0 {
		return fmt.Errorf("no concept: %w", ErrProblem)
	}
	if len(p.Concepts) > MaxConcepts {
		return fmt.Errorf("%d concepts, at most %d: %w", len(p.Concepts), MaxConcepts, ErrProblem)
	}
	return nil
}

// checkExample returns ErrProblem for an invalid example, and reports whether it has a label.
func (p *Problem) checkExample(i int) (labelled bool, err error) {
	e := &p.Examples[i]
	if e.Labels != nil && len(e.Labels) != len(p.Concepts) {
		return false, fmt.Errorf("example %d: %w", i, ErrProblem)
	}
	for _, l := range e.Labels {
		if l < False || l > True {
			return false, fmt.Errorf("example %d has label %d: %w", i, l, ErrProblem)
		}
		labelled = labelled || l != Unknown
	}
	return labelled, nil
}
