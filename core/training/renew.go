package training

import (
	"cmp"
	"errors"
	"slices"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/partition"
)

// Retrain starts a run that trains a version again for another network, as the version id. It uses the inputs,
// labels and settings of the version's manifest, even if they have changed since. It omits inputs that were deleted or that
// the network could not analyse. With the same network and all inputs, the outcome is the same bit for bit. An imported
// version cannot be trained: its run ends at once. The run owns the view unless Retrain returns an error. Errors: those of the store.
func Retrain(view *partition.View, models Models, version catalog.Version, id string) (*Run, error) {
	m, err := view.Manifest(&version)
	if err != nil {
		return nil, err
	}
	r := newRun(view, models, version)
	if m.Imported {
		r.end(CodeNoData, "An imported version has no inputs to be trained from.")
		return r, nil
	}
	r.manifest.Seq, r.manifest.Version = m.Seq, id
	place := places(version.Concepts)
	for i := range m.Inputs {
		t := &m.Inputs[i]
		in, err := view.InputByDot(t.Dot)
		if errors.Is(err, catalog.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if in.Code == catalog.InputReady {
			_, err := view.DerivedOfInput(models.Base(), &in)
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
