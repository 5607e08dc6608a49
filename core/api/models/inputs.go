package models

import (
	"errors"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/api/show"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// Inputs lists the inputs from which a training of the model would learn its concepts
// now: inputs with a true or false label for any of the concepts. For a public model the list is empty.
func Inputs(x *call.Call) error {
	p, err := x.Page()
	if err != nil {
		return err
	}
	v, m, err := show.ModelOfPath(x)
	if err != nil {
		return err
	}
	var ids []string
	if m.Custom != nil {
		ids = show.ModelConcepts(m.Custom)
	}
	all, err := labelledWith(x, v, ids)
	if err != nil {
		return err
	}
	inputs, err := show.LoadInputs(x, v, rows(all, p))
	if err != nil {
		return err
	}
	return show.AnswerInputs(x, v, call.StatusOk, inputs)
}

// labelledWith returns the ordinals of the inputs with a label for any of the concepts.
func labelledWith(x *call.Call, v *partition.View, concepts []string) (*roaring.Bitmap, error) {
	index := x.App.Partition.Index().At(v.Reader)
	all := roaring.New()
	for _, id := range concepts {
		for _, value := range []log.Value{log.True, log.False} {
			some, err := index.LabelledInputs(id, value)
			if err != nil {
				return nil, err
			}
			all.Or(some)
		}
	}
	return all, nil
}

// rows returns the ordinals on a page.
func rows(all *roaring.Bitmap, p call.Page) []uint32 {
	from, n := uint64((p.Number-1)*p.Size), all.GetCardinality()
	var ords []uint32
	for at := from; at < min(from+uint64(p.Size), n); at++ {
		ord, err := all.Select(uint32(at))
		if err != nil {
			break // impossible: at is below the cardinality
		}
		ords = append(ords, ord)
	}
	return ords
}

// VersionInputs lists the inputs from which a version learned its concepts, with their labels
// at the time. Inputs that were deleted later have status 30102.
func VersionInputs(x *call.Call) error {
	p, err := x.Page()
	if err != nil {
		return err
	}
	v, m, err := show.ModelOfPath(x)
	if err != nil {
		return err
	}
	var inputs []catalog.Input
	if m.Custom != nil && m.Version.Code == catalog.VersionTrained {
		manifest, err := v.Manifest(m.Version)
		if err != nil {
			return err
		}
		if inputs, err = frozenInputs(x, v, m.Version, &manifest, p); err != nil {
			return err
		}
	}
	return show.AnswerInputs(x, v, call.StatusOk, inputs)
}

// frozenInputs returns a page of a version's training inputs with their labels in the training.
func frozenInputs(x *call.Call, v *partition.View, version *catalog.Version, m *catalog.Manifest, p call.Page) ([]catalog.Input, error) {
	taught := teaches(version)
	var inputs []catalog.Input
	at, from := int64(0), (p.Number-1)*p.Size
	for i := range m.Inputs {
		t := &m.Inputs[i]
		if !taught(t) {
			continue
		}
		if at == from+p.Size {
			break
		}
		in, err := v.InputByDot(t.Dot)
		if errors.Is(err, catalog.ErrNotFound) {
			if t.ID == "" {
				continue // an older program trained the version
			}
			in, err = deletedInput(t), nil
		}
		if err != nil {
			return nil, err
		}
		if at++; at <= from {
			continue
		}
		if err := show.NameSameFile(x, v, &in); err != nil {
			return nil, err
		}
		in.Labels = make([]catalog.Label, len(t.Labels))
		for j, l := range t.Labels {
			in.Labels[j].Label = l
		}
		show.ReserveInput(x, &in)
		inputs = append(inputs, in)
	}
	return inputs, nil
}

// deletedInput returns the record of a training input that was deleted later.
func deletedInput(t *catalog.TrainingInput) catalog.Input {
	err := show.VerdictError(&fold.Verdict{Code: fold.Gone})
	return catalog.Input{ID: t.ID, Created: t.Created, Code: call.StatusOf(err).Code, Detail: err.Error()}
}

// teaches returns a function that reports whether a training input has a label for one of the
// version's concepts. Inputs without such a label are only negative examples for all concepts.
func teaches(version *catalog.Version) func(*catalog.TrainingInput) bool {
	ours := make(map[string]bool, len(version.Concepts))
	for _, id := range version.Concepts {
		ours[id] = true
	}
	return func(t *catalog.TrainingInput) bool {
		for _, l := range t.Labels {
			if ours[l.Concept] {
				return true
			}
		}
		return false
	}
}
