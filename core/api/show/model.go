package show

import (
	"errors"
	"slices"
	"time"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict"
)

// Model is the model in a path or a workflow: a public model, or a custom one at one version.
type Model struct {
	Public  *predict.Model   // nil for a custom model
	Custom  *catalog.Model   // nil for a public model
	Version *catalog.Version // version of a custom model: the named version, otherwise the newest; nil if it has none
	Named   bool             // the path names the version
}

// FindModel finds a model by id, and its version. If version is empty, it finds the newest
// version. Errors are 404s and errors of the store.
func FindModel(x *call.Call, v *partition.View, id, version string) (Model, error) {
	if m, ok := x.Net.Models.Model(id); ok {
		if version != "" && version != m.VersionID {
			return Model{}, call.UnknownIDError("model_version_id", version)
		}
		return Model{Public: m, Named: version != ""}, nil
	}
	own, err := v.Model(id)
	if err != nil {
		return Model{}, call.ReplaceNotFound(err, call.UnknownIDError("model_id", id))
	}
	m := Model{Custom: &own, Named: version != ""}
	want := own.Newest
	if m.Named {
		want = version
	}
	if want == "" {
		return m, nil
	}
	got, err := v.Version(own.Dot, want)
	if errors.Is(err, catalog.ErrNotFound) && m.Named {
		return Model{}, call.UnknownIDError("model_version_id", version)
	}
	if err != nil {
		return Model{}, err
	}
	m.Version = &got
	return m, nil
}

// ModelOfPath finds the model in the path, and its version if the path names one. It also returns the view that it read.
func ModelOfPath(x *call.Call) (*partition.View, Model, error) {
	v := x.View()
	m, err := FindModel(x, v, x.IDs["model_id"], x.IDs["version_id"])
	return v, m, err
}

// CustomModel finds the custom model in the path. For a public model it returns an error.
func CustomModel(x *call.Call) (*partition.View, Model, error) {
	v, m, err := ModelOfPath(x)
	if err == nil && m.Public != nil {
		err = RefusePublic(m.Public.ID)
	}
	return v, m, err
}

// RefusePublic returns the error for a change of a public model.
func RefusePublic(id string) error {
	return call.Refusef(call.ErrModelPermission, "model_id '%s' is public and cannot be changed.", id)
}

// ModelConcepts returns the ids of the concepts that belong to a model now, in the order of their
// first addition.
func ModelConcepts(m *catalog.Model) []string {
	var ids []string
	for _, c := range m.Concepts {
		if c.In {
			ids = append(ids, c.Concept)
		}
	}
	return ids
}

// InfoForm is the form of a model's output_info: a message with a path, or the concepts, which
// only that path shows.
type InfoForm bool

const (
	InfoMessage  InfoForm = false
	InfoConcepts InfoForm = true
)

// ModelInfo is a model with the data that WriteModel needs.
type ModelInfo struct {
	Model
	form     InfoForm
	concepts []Concept // set for the form InfoConcepts
}

// InfoOf reads the data that WriteModel needs.
func InfoOf(x *call.Call, v *partition.View, m Model, form InfoForm) (ModelInfo, error) {
	s := ModelInfo{Model: m, form: form}
	if form == InfoMessage {
		return s, nil
	}
	if m.Public != nil {
		language := LanguageOf(x, m.Public)
		for i := range m.Public.Concepts {
			s.concepts = append(s.concepts, PublicConcept(x, call.PublicConcept{Model: m.Public, Concept: &m.Public.Concepts[i]}, language))
		}
		return s, nil
	}
	ids := ModelConcepts(m.Custom)
	if m.Named && m.Version != nil {
		ids = m.Version.Concepts
	}
	var err error
	s.concepts, err = ConceptsNamed(x, v, ids, lang.English)
	return s, err
}

// WriteModel writes a model. For a key that may not read models, it writes only the id and the type,
// which clients need to interpret an output.
func WriteModel(x *call.Call, w *jsonio.Writer, s *ModelInfo) {
	all := x.Shows(auth.ModelsGet)
	id, name, created := "", "", time.Time{}
	if m := s.Public; m != nil {
		id, name, created = m.ID, m.Name, m.CreatedAt
	} else {
		id, name, created = s.Custom.ID, s.Custom.Name, s.Custom.Created.Time()
	}
	w.Object()
	w.Text("id", id)
	if all {
		w.Text("name", name)
		w.Text("created_at", Timestamp(created))
		writeApp(x, w, s.Public != nil)
	}
	writeOutputInfo(x, w, s)
	switch {
	case !all:
	case s.Public != nil:
		w.Name("model_version")
		WritePublicVersion(w, s.Public)
	case s.Version != nil:
		w.Name("model_version")
		WriteVersion(w, s.Version, nil)
	}
	if all && s.Public != nil && s.Public.DisplayName != "" {
		w.Text("display_name", s.Public.DisplayName)
	}
	w.End('}')
}

// ModelJSON returns the output of WriteModel for the model of an output. Calls share the bytes, so the caller must not change them.
func ModelJSON(x *call.Call, s *ModelInfo) []byte {
	var w jsonio.Writer
	cache := x.Net.JSON[s.Public]
	if cache == nil || s.form != InfoMessage {
		WriteModel(x, &w, s)
		return w.Bytes()
	}
	place := &cache.Little
	switch {
	case !x.Shows(auth.ModelsGet):
	case x.PublicAppID() == "":
		place = &cache.AllNull
	default:
		place = &cache.All
	}
	if p := place.Load(); p != nil {
		return *p
	}
	WriteModel(x, &w, s)
	b := slices.Clip(w.Bytes())
	place.Store(&b)
	return b
}

func writeOutputInfo(x *call.Call, w *jsonio.Writer, s *ModelInfo) {
	all := x.Shows(auth.ModelsGet)
	w.ObjectMember("output_info")
	switch {
	case !all:
	case s.form == InfoMessage:
		w.Text("message", "Show output_info with: GET /models/{model_id}/output_info")
	case len(s.concepts) > 0 && x.Shows(auth.ConceptsGet):
		w.ObjectMember("data")
		w.List("concepts", len(s.concepts), func(i int) { WriteConcept(x, w, &s.concepts[i], ReadForm) })
		w.End('}')
	}
	kind, ext := string(predict.TypeConcept), string(predict.TypeConcept)
	if s.Public != nil {
		kind, ext = string(s.Public.Type), s.Public.TypeExt
	}
	w.Text("type", kind)
	w.Text("type_ext", ext)
	if all && s.Custom != nil {
		config := settingsOf(s.Custom.Config)
		if s.Named && s.Version != nil {
			config = settingsOf(s.Version.Config)
		}
		if !x.Shows(auth.ConceptsGet) {
			delete(config, settingSelected)
		}
		config.write(w)
	}
	w.End('}')
}

// WritePublicVersion writes the single version of a public model.
func WritePublicVersion(w *jsonio.Writer, m *predict.Model) {
	w.Object()
	w.Text("id", m.VersionID)
	w.Text("created_at", Timestamp(m.VersionCreatedAt))
	call.WriteStatus(w, call.StatusTrained, "")
	if n := len(m.Concepts); n > 0 {
		WriteInt(w, "active_concept_count", n)
	}
	w.End('}')
}

// WriteVersion writes a version of a custom model. more, if not nil, writes additional members.
func WriteVersion(w *jsonio.Writer, v *catalog.Version, more func()) {
	w.Object()
	w.Text("id", v.ID)
	w.Text("created_at", Timestamp(v.Created.Time()))
	call.WriteStatus(w, versionStatus(v.Code), v.Detail)
	if n := len(v.Concepts); n > 0 {
		WriteInt(w, "active_concept_count", n)
	}
	if more != nil {
		more()
	}
	w.End('}')
}

// versionStatus returns the status of a version with a code.
func versionStatus(code int) call.Status {
	s := call.StatusOfCode(code)
	if s.Description == "" {
		s.Description = call.StatusTrainingFailed.Description // code of a later program
	}
	return s
}

// NewestTrained returns the version that predicts: the newest at 21100 with a stored manifest. A replica may have a version without
// a manifest, which will be deleted. If there is none, the error is ErrUntrained or ErrQueued.
func NewestTrained(v *partition.View, m *catalog.Model) (catalog.Version, error) {
	var trained, newest *catalog.Version
	var failed error
	queued := false
	err := v.Versions(m.Dot, func(got catalog.Version) bool {
		if newest == nil {
			newest = &got
		}
		switch got.Code {
		case catalog.VersionTrained:
			var stored bool
			if stored, failed = v.HasObject(got.Manifest); stored {
				trained = &got
			}
		case catalog.VersionQueued:
			queued = true
		}
		return trained == nil && failed == nil
	})
	switch err = errors.Join(err, failed); {
	case err != nil:
		return catalog.Version{}, err
	case trained != nil:
		return *trained, nil
	case queued:
		return catalog.Version{}, call.Refusef(call.ErrQueued, "model_id '%s' is being trained. Try again when its version has code %d.", m.ID, catalog.VersionTrained)
	case newest != nil && newest.Code != catalog.VersionUntrained:
		return catalog.Version{}, call.Refusef(call.ErrUntrained, "model_id '%s': its last training ended with code %d: %s", m.ID, newest.Code, versionStatus(newest.Code).Description)
	}
	return catalog.Version{}, call.Refusef(call.ErrUntrained, "model_id '%s' is not trained. Train it with POST /v2/models/{model_id}/versions.", m.ID)
}

// TrainedVersion returns the version named in the path, which must be trained. Without a named version it is
// NewestTrained.
func TrainedVersion(v *partition.View, m *Model) (catalog.Version, error) {
	if !m.Named {
		return NewestTrained(v, m.Custom)
	}
	switch got := m.Version; got.Code {
	case catalog.VersionTrained:
		return *got, nil
	case catalog.VersionQueued:
		return *got, call.Refusef(call.ErrQueued, "model_version_id '%s' is being trained. Try again when it has code %d.", got.ID, catalog.VersionTrained)
	default:
		return *got, call.Refusef(call.ErrUntrained, "model_version_id '%s' has code %d: %s", got.ID, got.Code, versionStatus(got.Code).Description)
	}
}
