package fold

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/log"
)

// publicPrefix begins the ids of the concepts that ship with the program. Labels and models use them like custom ones, and no operation
// creates them.
const publicPrefix = "ai_"

// useConcept creates the concept that a label or a model names, unless it exists.
func (f *Fold) useConcept(id string, v log.Value) error {
	if v == log.Removed || strings.HasPrefix(id, publicPrefix) || f.concepts[id] {
		return nil
	}
	_, err := f.w.Concept(id)
	if errors.Is(err, catalog.ErrNotFound) {
		f.newConcept(id, id, "")
		return nil
	}
	f.concepts[id] = err == nil
	return err
}

func (f *Fold) newConcept(id, name, language string) {
	f.h.Concepts++
	f.concepts[id] = true
	at := f.e.Op.At
	f.w.PutConcept(&catalog.Concept{
		Dot: f.e.Op.Dot, Seq: f.h.Concepts, ID: id, Name: name, NameAt: f.stamp, Created: at, Updated: at, Language: language,
	})
}

func (f *Fold) conceptCreate(b *log.ConceptCreate) (Verdict, error) {
	id := f.idOr(b.ID, "concept")
	if !isID(id) || strings.HasPrefix(id, publicPrefix) {
		return refusal("id"), nil
	}
	c, err := f.w.Concept(id)
	if err == nil {
		return Verdict{Code: Duplicate, Detail: "id", Dot: c.Dot, ID: id}, nil
	}
	if !errors.Is(err, catalog.ErrNotFound) {
		return Verdict{}, err
	}
	f.newConcept(id, cmp.Or(b.Name, id), b.Language)
	return Verdict{Code: OK, Dot: f.e.Op.Dot, ID: id}, nil
}

func (f *Fold) conceptName(b *log.ConceptName) (Verdict, error) {
	c, err := f.w.Concept(b.ID)
	if err != nil {
		return missingVerdict(err)
	}
	v := Verdict{Code: OK, Dot: c.Dot, ID: c.ID}
	met := ofName(conceptName(c.ID), c.ID, c.Name, c.NameAt, b.Name, b.Seen)
	switch {
	case f.stale():
		v.Code = Stale
	case f.stamp.Less(c.NameAt):
		v.Code = Superseded
	default:
		c.Name, c.NameAt = b.Name, f.stamp
		c.Updated = max(c.Updated, f.stamp.At)
		f.w.PutConcept(&c)
	}
	return v, f.meetAll(v, met)
}

// conceptDelete deletes a concept that nothing uses. A use, or a name that was written later, supersedes the deletion.
func (f *Fold) conceptDelete(b *log.ConceptDelete) (Verdict, error) {
	if !f.inForce(rulesOfConcepts) {
		return refusal("kind"), nil
	}
	c, err := f.w.Concept(b.ID)
	if err != nil {
		return missingVerdict(err)
	}
	v := Verdict{Code: OK, Dot: c.Dot, ID: c.ID}
	used, err := f.isUsed(b.ID)
	switch {
	case err != nil:
		return Verdict{}, err
	case used || f.stamp.Less(c.NameAt):
		v.Code = Superseded
		return v, nil
	}
	f.w.DeleteConcept(&c)
	delete(f.concepts, b.ID)
	_, err = f.forget(conceptName(c.ID))
	return v, err
}

// model returns a live model without what the horizon has collected.
func (f *Fold) model(dot log.Dot) (catalog.Model, error) {
	m, err := f.w.ModelByDot(dot)
	if err == nil {
		m.DropRemovals(f.h.Horizon)
	}
	return m, err
}

func (f *Fold) modelCreate(b *log.ModelCreate) (Verdict, error) {
	if !orNone(b.ID) || !orNone(b.Version) || !areIDs(b.Concepts) || !areSettings(b.Config) {
		return refusal("model"), nil
	}
	if deleted, err := f.wasDeleted(); deleted || err != nil {
		return Verdict{Code: Superseded}, err
	}
	id := f.idOr(b.ID, "model")
	other, err := f.w.Model(id)
	if err == nil {
		return Verdict{Code: Duplicate, Detail: "id", Dot: other.Dot, ID: id}, nil
	}
	if !errors.Is(err, catalog.ErrNotFound) {
		return Verdict{}, err
	}
	op := &f.e.Op
	m := catalog.Model{Dot: op.Dot, Seq: f.e.Seq, ID: id, Name: cmp.Or(b.Name, id), NameAt: f.stamp, Created: op.At, Made: op.Made}
	setConfig(&m, b.Config, f.stamp)
	setMembers(&m, b.Concepts, true, f.stamp)
	if err := f.useConcepts(b.Concepts); err != nil {
		return Verdict{}, err
	}
	f.newVersion(&m, b.Version, catalog.VersionUntrained)
	return Verdict{Code: OK, Dot: m.Dot, ID: m.ID}, nil
}

func (f *Fold) useConcepts(ids []string) error {
	for _, id := range ids {
		if err := f.useConcept(id, log.True); err != nil {
			return err
		}
	}
	return nil
}

// newVersion writes a version of the model's present concepts and settings, and the model.
func (f *Fold) newVersion(m *catalog.Model, id string, code int) {
	v := catalog.Version{
		Model: m.Dot, Seq: f.e.Seq, ID: f.idOr(id, "version"), Created: f.e.Op.At, Code: code, RequestedAt: f.e.Op.Dot,
	}
	for _, c := range m.Concepts {
		if c.In {
			v.Concepts = append(v.Concepts, c.Concept)
		}
	}
	for _, s := range m.Config {
		if s.JSON != nil {
			v.Config = append(v.Config, s)
		}
	}
	m.Newest = v.ID
	f.w.PutVersion(&v)
	f.w.PutModel(m)
}

// setConfig writes settings. It returns false if all of them are superseded.
func setConfig(m *catalog.Model, settings []log.Setting, at log.Stamp) (changed bool) {
	for _, s := range settings {
		changed = put(&m.Config, catalog.Setting{Setting: s, At: at}, func(s catalog.Setting) (string, log.Stamp) { return s.Name, s.At }) || changed
	}
	return changed
}

// setMembers writes memberships. It returns false if all of them are superseded.
func setMembers(m *catalog.Model, ids []string, in bool, at log.Stamp) (changed bool) {
	for _, id := range ids {
		i := slices.IndexFunc(m.Concepts, func(c catalog.Member) bool { return c.Concept == id })
		switch {
		case i < 0:
			m.Concepts = append(m.Concepts, catalog.Member{Concept: id, In: in, At: at})
		case at.Less(m.Concepts[i].At):
			continue
		default:
			m.Concepts[i] = catalog.Member{Concept: id, In: in, At: at}
		}
		changed = true
	}
	return changed
}

func (f *Fold) modelPatch(b *log.ModelPatch) (Verdict, error) {
	if !orNone(b.Version) || !areIDs(b.Add) || !areIDs(b.Remove) || !areSettings(b.Config) {
		return refusal("model"), nil
	}
	m, err := f.model(b.Model)
	if err != nil {
		return missingVerdict(err)
	}
	v := Verdict{Code: OK, Dot: m.Dot, ID: m.ID}
	if f.stale() {
		v.Code = Stale
		return v, nil
	}
	if b.Version != "" {
		if taken, err := f.hasVersion(m.Dot, b.Version); err != nil || taken {
			return Verdict{Code: Duplicate, Detail: "version", Dot: m.Dot, ID: m.ID}, err
		}
	}
	changed := setConfig(&m, b.Config, f.stamp)
	if b.Name != nil {
		met := ofName(modelName(m.Dot), m.ID, m.Name, m.NameAt, *b.Name, b.Seen)
		if err := f.meetAll(v, met); err != nil {
			return Verdict{}, err
		}
		if !f.stamp.Less(m.NameAt) {
			m.Name, m.NameAt, changed = *b.Name, f.stamp, true
		}
	}
	moved := setMembers(&m, b.Add, true, f.stamp)
	moved = setMembers(&m, b.Remove, false, f.stamp) || moved
	if !changed && !moved {
		v.Code = Superseded
		return v, nil
	}
	if err := f.useConcepts(b.Add); err != nil {
		return Verdict{}, err
	}
	if moved && b.Version != "" {
		f.newVersion(&m, b.Version, catalog.VersionUntrained)
	} else {
		f.w.PutModel(&m)
	}
	return v, nil
}

func (f *Fold) hasVersion(model log.Dot, id string) (bool, error) {
	_, err := f.w.Version(model, id)
	if errors.Is(err, catalog.ErrNotFound) {
		return false, nil
	}
	return true, err
}

func (f *Fold) modelDelete(b *log.ModelDelete) (Verdict, error) {
	m, err := f.w.ModelByDot(b.Model)
	if err != nil {
		return f.deleteMissing(b.Model, err)
	}
	if err := f.w.DeleteContradictionsOf(&f.h, m.Dot); err != nil {
		return Verdict{}, err
	}
	return Verdict{Code: OK, Dot: m.Dot, ID: m.ID}, f.w.DeleteModel(&m)
}

func (f *Fold) versionTrain(b *log.VersionTrain) (Verdict, error) {
	if !orNone(b.Version) {
		return refusal("version"), nil
	}
	m, err := f.model(b.Model)
	if err != nil {
		return missingVerdict(err)
	}
	id := f.idOr(b.Version, "version")
	if taken, err := f.hasVersion(m.Dot, id); err != nil || taken {
		return Verdict{Code: Duplicate, Detail: "version", Dot: m.Dot, ID: id}, err
	}
	f.newVersion(&m, id, catalog.VersionQueued)
	return Verdict{Code: OK, Dot: m.Dot, ID: id}, nil
}

// versionResult ends a training. A result of another lease than the version's comes too late.
func (f *Fold) versionResult(b *log.VersionResult) (Verdict, error) {
	trained := b.Code == catalog.VersionTrained
	if b.Code <= 0 || b.Code == catalog.VersionQueued || b.Code == catalog.VersionUntrained || trained == b.Manifest.IsZero() {
		return refusal("code"), nil
	}
	v, err := f.w.Version(b.Model, b.Version)
	if err != nil {
		return missingVerdict(err)
	}
	if b.Train == (log.Dot{}) && v.Seq != b.Lease {
		return Verdict{Code: Gone, Detail: "lease"}, nil
	}
	if v.Code != catalog.VersionQueued {
		return Verdict{Code: Superseded, Dot: v.Model, ID: v.ID}, nil
	}
	if b.Train != (log.Dot{}) {
		request, err := f.w.TrainingRequest(&v)
		if err != nil {
			return Verdict{}, err
		}
		if request != b.Train {
			return Verdict{Code: Gone, Detail: "lease"}, nil
		}
	}
	v.Code, v.Detail, v.Manifest = b.Code, b.Detail, b.Manifest
	f.w.PutVersion(&v)
	return Verdict{Code: OK, Dot: v.Model, ID: v.ID}, nil
}

func (f *Fold) versionDelete(b *log.VersionDelete) (Verdict, error) {
	v, err := f.w.Version(b.Model, b.Version)
	if err != nil {
		return missingVerdict(err)
	}
	m, err := f.model(b.Model)
	if err != nil {
		return Verdict{}, err
	}
	f.w.DeleteVersion(&v)
	m.Newest = ""
	err = f.w.Versions(m.Dot, func(v catalog.Version) bool {
		m.Newest = v.ID
		return false
	})
	f.w.PutModel(&m)
	return Verdict{Code: OK, Dot: m.Dot, ID: v.ID}, err
}
