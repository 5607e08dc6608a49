package training

import (
	"errors"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// Survey has the figures of the data on which a training of a model would start now.
type Survey struct {
	Inputs   uint64  // inputs with a label for one of the concepts, whose pictures are analysed or pending
	New      uint64  // those of Inputs that the newest trained version was not trained on, or with other labels
	Concepts []Tally // in the model's order
}

// Tally counts the inputs with a positive label for a concept, and those with a negative one.
type Tally struct{ Positives, Negatives uint64 }

// NewSurvey surveys the labels for a model's concepts. than is the model's newest trained version, or nil. Inputs
// whose pictures are unavailable do not count, since they are useless for training. It reads postings and one manifest. It reads
// an input only for its ordinal, if the input was not confirmed yet when than was trained.
func NewSurvey(v *partition.View, x *index.View, concepts []string, than *catalog.Version) (Survey, error) {
	able, err := trainable(v, x)
	if err != nil {
		return Survey{}, err
	}
	s := Survey{Concepts: make([]Tally, len(concepts))}
	labelled, changed := roaring.New(), roaring.New()
	before, err := trainedInputs(v, concepts, than)
	if err != nil {
		return Survey{}, err
	}
	for i, id := range concepts {
		for sign, value := range []log.Value{log.False, log.True} {
			now, err := x.LabelledInputs(id, value)
			if err != nil {
				return Survey{}, err
			}
			now.And(able)
			if value == log.True {
				s.Concepts[i].Positives = now.GetCardinality()
			} else {
				s.Concepts[i].Negatives = now.GetCardinality()
			}
			labelled.Or(now)
			now.Xor(before[i][sign])
			changed.Or(now)
		}
	}
	s.Inputs = labelled.GetCardinality()
	s.New = labelled.AndCardinality(changed)
	return s, nil
}

// trainable returns the inputs whose pictures are analysed or pending.
func trainable(v *partition.View, x *index.View) (*roaring.Bitmap, error) {
	able, err := x.Ready()
	if err != nil {
		return nil, err
	}
	return able, v.PendingInputs(0, func(ord uint32) bool {
		able.Add(ord)
		return true
	})
}

// signs has the ordinals of the inputs labelled false for a concept, and of those labelled true.
type signs [2]*roaring.Bitmap

// trainedInputs returns the inputs that a version was trained on, by concept and label.
func trainedInputs(v *partition.View, concepts []string, version *catalog.Version) ([]signs, error) {
	all := make([]signs, len(concepts))
	for i := range all {
		all[i] = signs{roaring.New(), roaring.New()}
	}
	if version == nil {
		return all, nil
	}
	m, err := v.Manifest(version)
	if err != nil {
		return nil, err
	}
	place := places(concepts)
	for i := range m.Inputs {
		t := &m.Inputs[i]
		ord := t.Ord
		if ord >= fold.PendingOrds { // it had no place in the log yet when the version was trained here
			in, err := v.InputByDot(t.Dot)
			if errors.Is(err, catalog.ErrNotFound) {
				continue
			}
			if err != nil {
				return nil, err
			}
			ord = in.Ord
		}
		for _, l := range t.Labels {
			if c, ours := place[l.Concept]; ours && l.Value != log.Removed {
				all[c][l.Value-log.False].Add(ord)
			}
		}
	}
	return all, nil
}
