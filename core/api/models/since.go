package models

import (
	"slices"

	"github.com/sightline-dev/sightline/core/api/show"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// trainedBefore returns the version of a model that was trained before another, or nil if there is none.
func trainedBefore(v *partition.View, m *catalog.Model, than *catalog.Version) (*catalog.Version, error) {
	var older *catalog.Version
	err := v.Versions(m.Dot, func(got catalog.Version) bool {
		if got.Seq < than.Seq && got.Code == catalog.VersionTrained {
			older = &got
		}
		return older == nil
	})
	return older, err
}

// since is the difference between the training sets of a version and of the version trained before it.
type since struct {
	version        string // id of the version before
	new, corrected int    // numbers of inputs
}

// sinceBefore compares the training sets of a version and of the version trained before it. It returns nil if there is none.
func sinceBefore(v *partition.View, m *catalog.Model, version *catalog.Version, manifest *catalog.Manifest) (*since, error) {
	older, err := trainedBefore(v, m, version)
	if err != nil || older == nil {
		return nil, err
	}
	before, err := v.Manifest(older)
	if err != nil {
		return nil, err
	}
	s := differ(older, version, &before, manifest)
	return &s, nil
}

// differ counts the inputs from which only the newer version learned, and the corrected inputs: both versions learned from them, and for a
// concept of both versions a label changed or was removed. An input with only additional labels is neither.
func differ(older, newer *catalog.Version, before, after *catalog.Manifest) since {
	type said struct {
		Media   log.Dot
		concept string
	}
	learned, labels := map[log.Dot]bool{}, map[said]log.Value{}
	taught := teaches(older)
	for i := range before.Inputs {
		t := &before.Inputs[i]
		if !taught(t) {
			continue
		}
		learned[t.Dot] = true
		for _, l := range t.Labels {
			if l.Value != log.Removed {
				labels[said{t.Dot, l.Concept}] = l.Value
			}
		}
	}
	s := since{version: older.ID}
	teaches := teaches(newer)
	for i := range after.Inputs {
		t := &after.Inputs[i]
		switch {
		case !teaches(t):
			continue
		case !learned[t.Dot]:
			s.new++
			continue
		}
		now := make(map[string]log.Value, len(t.Labels))
		for _, l := range t.Labels {
			now[l.Concept] = l.Value
		}
		for _, id := range older.Concepts {
			was, did := labels[said{t.Dot, id}]
			if did && isOf(newer, id) && now[id] != was {
				s.corrected++
				break
			}
		}
	}
	return s
}

// isOf reports whether a version has a concept.
func isOf(v *catalog.Version, concept string) bool { return slices.Contains(v.Concepts, concept) }

func (s *since) write(w *jsonio.Writer) {
	w.ObjectMember("since")
	show.WriteText(w, "version_id", s.version)
	show.WriteInt(w, "new_inputs", s.new)
	show.WriteInt(w, "corrected_inputs", s.corrected)
	w.End('}')
}
