package training

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/partition"
)

// ErrGone is returned by Again for a version whose inputs are not all there any more.
var ErrGone = errors.New("an input of the training set was deleted")

// Again starts a run that makes a trained version anew, bit for bit: from the inputs, labels
// and settings of its manifest, whatever has become of them since. The view is the run's from
// then on, unless there is an error. Errors: ErrGone, and the store's.
func Again(view *partition.View, models Models, version catalog.Version) (*Run, error) {
	return again(view, models, version, false)
}

// Renew is Again for another network, and goes on without the inputs that were deleted or that
// it could not analyse: the head is what the version is worth there. The outcome's manifest is that of a version called id.
func Renew(view *partition.View, models Models, version catalog.Version, id string) (*Run, error) {
	r, err := again(view, models, version, true)
	if err == nil {
		r.manifest.Version = id
	}
	return r, err
}

func again(view *partition.View, models Models, version catalog.Version, without bool) (*Run, error) {
	m, err := view.Manifest(&version)
	if err != nil {
		return nil, err
	}
	r := newRun(view, models, version)
	r.manifest.Seq = m.Seq
	place := places(&version)
	for i := range m.Inputs {
		t := &m.Inputs[i]
		in, err := view.InputByDot(t.Dot)
		if errors.Is(err, catalog.ErrNotFound) && without {
			continue
		}
		if errors.Is(err, catalog.ErrNotFound) {
			return nil, fmt.Errorf("input %d: %w", t.Ord, ErrGone)
		}
		if err != nil {
			return nil, err
		}
		if without && in.Code == catalog.InputReady {
			_, err := view.Derived(models.Base(), &in)
			if errors.Is(err, catalog.ErrNotFound) {
				continue
			}
			if err != nil {
				return nil, err
			}
		}
		labels := make([]catalog.Label, len(t.Labels))
		for j, l := range t.Labels {
			labels[j].Label = l
		}
		got := judge(labels, place)
		got.ord, got.dot = in.Ord, t.Dot
		r.members = append(r.members, got)
	}
	slices.SortFunc(r.members, func(a, b member) int { return cmp.Compare(a.ord, b.ord) })
	return r, nil
}
