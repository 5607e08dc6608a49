package fold

import (
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/log"
)

// changed records a change of an input.
func (f *Fold) changed(c Change) {
	f.out.Changes = append(f.out.Changes, c)
	if f.uses == nil {
		return
	}
	if c.Before != nil {
		f.countUses(c.Before, -1)
	}
	if c.After != nil {
		f.countUses(c.After, 1)
	}
}

// countUses adds by to the uses of each concept that an input has in a label, present or absent, or in an edit of a prediction.
func (f *Fold) countUses(in *catalog.Input, by int) {
	add := func(concept string) {
		if f.uses[concept] += by; f.uses[concept] == 0 {
			delete(f.uses, concept)
		}
	}
	for _, l := range in.Labels {
		if l.Value != log.Removed {
			add(l.Concept)
		}
	}
	for _, e := range in.Edits {
		if !e.Removed {
			add(e.Concept)
		}
	}
}

// isUsed reports whether a concept is in use: in a label or an edit of an input, in a model or in a version. The first call reads all inputs.
// Later ones read none, so that many deletions take little more than one. A fold of pending operations has no such memory, since they are
// undone.
func (f *Fold) isUsed(concept string) (bool, error) {
	if f.uses == nil || f.pending {
		f.uses = map[string]int{}
		if err := f.w.Inputs(0, func(in catalog.Input) bool {
			f.countUses(&in, 1)
			return true
		}); err != nil {
			return false, err
		}
	}
	if f.uses[concept] > 0 {
		return true, nil
	}
	models, versions, err := f.w.CountModelsWith(concept)
	return models+versions > 0, err
}
