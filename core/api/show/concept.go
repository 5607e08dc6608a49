package show

import (
	"errors"
	"slices"
	"time"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster/exif"
)

// Concept is a public or custom concept as answers show it.
type Concept struct {
	ID, Name, language string
	created, updated   time.Time
	Public             bool
}

// PublicConcept returns a public concept with its name in a language. Its dates are the dates of
// the model that has it.
func PublicConcept(x *call.Call, p call.PublicConcept, language string) Concept {
	return Concept{
		ID: p.Concept.ID, Name: conceptName(x, p.Concept, language), language: language,
		created: p.Model.CreatedAt, updated: p.Model.VersionCreatedAt, Public: true,
	}
}

// CustomConcept returns a custom concept, which has one name in all languages.
func CustomConcept(x *call.Call, c *catalog.Concept) Concept {
	language := c.Language
	if language == "" {
		language = x.App.Language
	}
	return Concept{ID: c.ID, Name: c.Name, language: language, created: c.Created.Time(), updated: c.Updated.Time()}
}

// ConceptNamed returns the concept with an id. For an id that is neither public nor
// the application's, the error is catalog.ErrNotFound.
func ConceptNamed(x *call.Call, v *partition.View, id, language string) (Concept, error) {
	if p, ok := x.Net.Concepts[id]; ok {
		return PublicConcept(x, p, language), nil
	}
	c, err := v.Concept(id)
	if err != nil {
		return Concept{}, err
	}
	return CustomConcept(x, &c), nil
}

// ConceptsNamed returns the concepts with ids, in the order of ids.
func ConceptsNamed(x *call.Call, v *partition.View, ids []string, language string) ([]Concept, error) {
	all := make([]Concept, 0, len(ids))
	for _, id := range ids {
		c, err := ConceptNamed(x, v, id, language)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// ConceptForm is the form of a concept in an answer. Searches (SearchForm) add the time of the last change.
type ConceptForm bool

const (
	ReadForm   ConceptForm = false
	SearchForm ConceptForm = true
)

// WriteConcept writes a concept in the form of reads or searches. It omits updated_at if public things have an app_id,
// because clients that expect one fail on updated_at.
func WriteConcept(x *call.Call, w *jsonio.Writer, c *Concept, form ConceptForm) {
	w.Object()
	w.Text("id", c.ID)
	w.Text("name", c.Name)
	WriteInt(w, "value", 1)
	w.Text("created_at", Timestamp(c.created))
	if form == SearchForm && x.PublicAppID() == "" {
		w.Text("updated_at", Timestamp(c.updated))
	}
	w.Text("language", c.language)
	writeApp(x, w, c.Public)
	w.End('}')
}

// WriteAppOf writes the member app_id of a concept.
func WriteAppOf(x *call.Call, w *jsonio.Writer, c *Concept) { writeApp(x, w, c.Public) }

// writeApp writes the member app_id. Public things have the public id.
func writeApp(x *call.Call, w *jsonio.Writer, public bool) {
	if public {
		WritePublicApp(x, w)
	} else {
		w.Text("app_id", x.App.ID)
	}
}

// WritePublicApp writes the member app_id of public things.
func WritePublicApp(x *call.Call, w *jsonio.Writer) {
	w.Name("app_id")
	if id := x.PublicAppID(); id != "" {
		w.String(id)
	} else {
		w.Null()
	}
}

// conceptName returns the name of a concept in a language. Without a name in the language, as for colours, it returns the English name.
func conceptName(x *call.Call, c *predict.Concept, language string) string {
	if language != lang.English {
		if name, ok := x.Net.Models.Names().Name(c.ID, language); ok {
			return name
		}
	}
	return c.Name
}

// LanguageOf returns the language of a model's names in a request that sets none: the application's
// language, or English if the model does not support it.
func LanguageOf(x *call.Call, m *predict.Model) string {
	if slices.Contains(m.Languages, x.App.Language) {
		return x.App.Language
	}
	return lang.English
}

// ConceptNames caches the names of the concepts that label an answer's inputs, so that each is read
// once. It also has the dates of these inputs.
type ConceptNames struct {
	known map[string]conceptLine
	taken map[uint32]exif.Time // dates of inputs by ordinal, if the request asks for them
	X     *call.Call
}

type conceptLine struct {
	name   string
	public bool
}

// Read looks up the concepts of an input's labels, and its date if the request asks for it.
func (l *ConceptNames) Read(x *call.Call, v *partition.View, in *catalog.Input) error {
	l.X = x
	if x.AsksFor(call.ShowTaken) && in.Code == catalog.InputReady {
		t, _, err := v.Taken(x.Net.Base, in)
		if err != nil {
			return err
		}
		if l.taken == nil {
			l.taken = map[uint32]exif.Time{}
		}
		l.taken[in.Ord] = t
	}
	for i := range in.Labels {
		if in.Labels[i].Value == log.Removed {
			continue
		}
		if err := l.LookUp(v, in.Labels[i].Concept); err != nil {
			return err
		}
	}
	return nil
}

// Load loads an input that the answer lists and looks up the concepts of its labels.
func (l *ConceptNames) Load(x *call.Call, v *partition.View, ord uint32) (catalog.Input, error) {
	in, err := loadInput(x, v, ord)
	if err == nil {
		err = l.Read(x, v, &in)
	}
	return in, err
}

// LookUp looks up one concept.
func (l *ConceptNames) LookUp(v *partition.View, id string) error {
	if _, ok := l.known[id]; ok {
		return nil
	}
	if l.known == nil {
		l.known = map[string]conceptLine{}
	}
	if p, ok := l.X.Net.Concepts[id]; ok {
		l.known[id] = conceptLine{conceptName(l.X, p.Concept, LanguageOf(l.X, p.Model)), true}
		return nil
	}
	c, err := v.Concept(id)
	if errors.Is(err, catalog.ErrNotFound) {
		c.Name, err = id, nil // the bundle with the public concept no longer exists
	}
	l.known[id] = conceptLine{c.Name, false}
	return err
}

// write writes data.concepts. It writes nothing for an input without labels.
func (l *ConceptNames) write(w *jsonio.Writer, in *catalog.Input) {
	live := func(l catalog.Label) bool { return l.Value != log.Removed }
	if !slices.ContainsFunc(in.Labels, live) {
		return
	}
	w.Name("concepts")
	w.Array()
	for _, label := range in.Labels {
		if live(label) {
			w.Object()
			l.Start(w, label.Concept)
			WriteInt(w, "value", label.Value-log.False)
			w.End('}')
		}
	}
	w.End(']')
}

// writeTaken writes data.taken of an input whose file has a date.
func (l *ConceptNames) writeTaken(w *jsonio.Writer, in *catalog.Input) {
	t := l.taken[in.Ord]
	if !t.Known {
		return
	}
	w.ObjectMember("taken")
	w.Text("local", time.Unix(t.Wall, 0).UTC().Format("2006-01-02T15:04:05"))
	if t.HasOffset {
		w.Name("offset")
		w.Int(t.Offset)
	}
	w.Text("source", "exif")
	w.End('}')
}

// Start writes a concept's id, name and app_id.
func (l *ConceptNames) Start(w *jsonio.Writer, id string) {
	line := l.known[id]
	w.Text("id", id)
	w.Text("name", line.name)
	writeApp(l.X, w, line.public)
}
