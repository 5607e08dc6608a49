package search

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/train"
)

// CutOff is a score from which hits likely show what the user searches for.
type CutOff struct {
	Value    float64
	Source   Source
	Examples int // number of pictures, or labels, that it was learned from; 0 for a rule
}

// Source is the origin of a cut-off.
type Source string

// The sources, the weakest first.
const (
	FromBackground Source = "background" // similarity of unrelated pictures
	FromPairs      Source = "pairs"      // the similarity of labelled pictures, measured by the bake of the network
	FromLabels     Source = "labels"     // similarity of pictures with and without a common concept
	FromEvaluation Source = "evaluation" // the evaluation of the version that predicts the concept
	FromRule       Source = "rule"       // the constant index.PresentThreshold
)

// sources are all sources, the weakest first.
var sources = []Source{FromBackground, FromPairs, FromLabels, FromEvaluation, FromRule}

// Learn selects the data from which cut-offs may be learned. The zero value permits only rules.
type Learn struct {
	Labels      bool           // labels of the inputs by users
	Evaluations bool           // of the versions that predict the application's own concepts
	Network     func() *CutOff // cut-off of similarity by the network, measured or from [LearnCutOff]; nil: none
}

// cutOff returns the cut-off of the clauses' product: the product of their cut-offs, or nil if one has none.
func (e *execution) cutOff(outputs []*Clause, learn Learn) (*CutOff, error) {
	out := CutOff{Value: 1}
	for _, c := range outputs {
		if c.Negate {
			return nil, nil
		}
		for _, cond := range c.All {
			one, err := e.cutOffOf(cond, learn)
			if err != nil || one == nil {
				return nil, err
			}
			out.Value *= one.Value
			if out.Source == "" || slices.Index(sources, one.Source) < slices.Index(sources, out.Source) {
				out.Source, out.Examples = one.Source, one.Examples
			}
		}
	}
	return &out, nil
}

func (e *execution) cutOffOf(c Condition, learn Learn) (*CutOff, error) {
	switch c := c.(type) {
	case Similar:
		return e.similarCutOff(learn)
	case Prediction:
		present := float64(index.PresentThreshold)
		if c.Absent {
			return &CutOff{Value: 1 - present, Source: FromRule}, nil
		}
		for _, concept := range c.Concepts {
			if !learn.Evaluations {
				break
			}
			if learned, err := e.evaluatedCutOff(concept); err != nil || learned != nil {
				return learned, err
			}
		}
		return &CutOff{Value: present, Source: FromRule}, nil
	}
	return &CutOff{Value: 1, Source: FromRule}, nil
}

func (e *execution) similarCutOff(learn Learn) (*CutOff, error) {
	if learn.Labels {
		if learned, err := fromLabels(e.ctx, e.v, e.r); err != nil || learned != nil {
			return learned, err
		}
	}
	if learn.Network == nil {
		return nil, nil
	}
	return learn.Network(), nil
}

// evaluatedCutOff returns the cut-off of one of the application's concepts by the evaluation of the newest version that
// predicts it; nil if there is none. Hits begin at index.PresentThreshold.
func (e *execution) evaluatedCutOff(concept string) (*CutOff, error) {
	version, err := e.v.NewestVersion(concept)
	if err != nil || version == nil {
		return nil, err
	}
	m, err := e.r.Manifest(version)
	if errors.Is(err, catalog.ErrNotFound) || err == nil && len(m.Metrics) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var metrics train.Metrics
	if err := metrics.UnmarshalJSON(m.Metrics); err != nil {
		return nil, fmt.Errorf("metrics of version %q: %w", version.ID, err)
	}
	place := slices.Index(version.Concepts, concept)
	if place < 0 || place >= len(metrics.Concepts) {
		return nil, nil
	}
	of := &metrics.Concepts[place]
	if !of.Evaluated || of.CutOff <= 0 {
		return nil, nil
	}
	return &CutOff{max(of.CutOff, float64(index.PresentThreshold)), FromEvaluation, of.Positives + of.Negatives}, nil
}
