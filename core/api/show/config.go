package show

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/lang"
)

// Config has the settings of the outputs of a predict call.
type Config struct {
	language    string
	MaxConcepts int     // maximum concepts of an output; 0: all selected concepts
	least       float32 // minimum value of a concept in an output
	SampleMS    int     // milliseconds between two frames of a video, not range-checked
	selected    []int   // indices in the model's concepts; nil: the concepts with the highest values
	Missing     []string
}

// ReadOutputConfig reads model.output_info.output_config.
func ReadOutputConfig(x *call.Call, p *Predictor) (Config, error) {
	o := x.Body
	var err error
	for _, name := range []string{"model", "output_info", "output_config"} {
		o = call.Read(&err, o.Object, name)
	}
	if err != nil {
		return Config{}, call.Refuse(call.ErrModelArgument, err)
	}
	return ConfigOf(x, o, p)
}

// ConfigOf reads a call's settings of a model's outputs. A custom model's settings are the defaults. All errors except the language's are
// ErrModelArgument.
func ConfigOf(x *call.Call, o call.Object, p *Predictor) (Config, error) {
	c, err := readConfig(x, o, p)
	return c, asArgument(err)
}

// asArgument changes the kind of err to ErrModelArgument and keeps its text. It does not change errors whose kind has the same code.
func asArgument(err error) error {
	if err == nil || call.StatusOf(err).Code == call.StatusOf(call.ErrModelArgument).Code {
		return err
	}
	return call.Refuse(call.ErrModelArgument, err)
}

func readConfig(x *call.Call, o call.Object, p *Predictor) (Config, error) {
	var c Config
	language, err := o.Text("language")
	if err != nil {
		return c, err
	}
	if c.language, err = lang.Choose(language, x.App.Language, p.languages()); err != nil {
		return c, err
	}
	var base call.Object
	if p.Custom != nil && len(p.Custom.Config) > 0 {
		if base, err = settingsOf(p.Custom.Config).object(new(jsonio.Doc)); err != nil {
			return c, err
		}
	}
	maxConcepts, err := readCount(pick(o, base, "max_concepts"), "max_concepts")
	if err != nil {
		return c, err
	}
	least, err := readShare(pick(o, base, "min_value"), "min_value")
	if err != nil {
		return c, err
	}
	c.MaxConcepts, c.least = maxConcepts, float32(least)
	if c.SampleMS, err = readSample(pick(o, base, "sample_ms"), "sample_ms"); err != nil {
		return c, err
	}
	if err := selectConcepts(x, &c, pick(o, base, "select_concepts"), p); err != nil {
		return c, err
	}
	if c.MaxConcepts == 0 && c.selected == nil {
		c.MaxConcepts = call.ShownConcepts
	}
	return c, nil
}

// pick returns the object that has a member: the call's settings o, or else the model's settings base.
func pick(o, base call.Object, name string) call.Object {
	if o.Has(name) {
		return o
	}
	return base
}

// readCount reads a number of concepts, 0 if absent.
func readCount(o call.Object, name string) (int, error) {
	n, err := o.Integer(name)
	if err == nil && (n < 0 || n > call.MaxConcepts) {
		err = call.Refusef(call.ErrModelArgument, "%s: must be 1 to %d; 0 means %d.", o.MemberPath(name), call.MaxConcepts, call.ShownConcepts)
	}
	return int(n), err
}

// readSample reads a number of milliseconds, or the default if absent. It does not check the range, which applies to videos only.
func readSample(o call.Object, name string) (int, error) {
	if !o.Has(name) {
		return call.DefaultSampleMS, nil
	}
	n, err := o.Integer(name)
	return int(min(max(n, math.MinInt32), math.MaxInt32)), err
}

// readShare reads a number from 0 to 1, or 0 if absent.
func readShare(o call.Object, name string) (float64, error) {
	f, err := o.Number(name)
	if err == nil && (f < 0 || f > 1) {
		err = call.Refusef(call.ErrModelArgument, "%s: must be a number from 0 to 1.", o.MemberPath(name))
	}
	return f, err
}

// selectConcepts reads select_concepts: ids, or names in the call's language, which must match
// exactly. If all are unknown, it returns an error. If some are, it adds them to c.Missing.
func selectConcepts(x *call.Call, c *Config, o call.Object, p *Predictor) error {
	refs, err := readRefs(o, "select_concepts")
	if err != nil || len(refs) == 0 {
		return err
	}
	names := sync.OnceValue(func() map[string]int { return namesOf(x, p, c.language) })
	for _, r := range refs {
		place, ok := p.ConceptIndex(x.Net, r.id)
		if r.id == "" {
			place, ok = names()[r.name]
		}
		switch {
		case !ok:
			c.Missing = append(c.Missing, cmp.Or(r.id, r.name))
		case !slices.Contains(c.selected, place):
			c.selected = append(c.selected, place)
		}
	}
	if len(c.selected) == 0 {
		return call.Refusef(call.ErrModelArgument, "%s: unknown to this model: %s.", o.MemberPath("select_concepts"), AbbreviateList(c.Missing))
	}
	return nil
}

// ref is a reference to a concept in a request: an id, or else a name.
type ref struct{ id, name string }

// readRefs reads a list of concepts. An absent list is empty.
func readRefs(o call.Object, name string) ([]ref, error) {
	list, n, err := o.Objects(name)
	if err == nil && n > call.MaxSelected {
		err = call.Refusef(call.ErrModelArgument, "%s: at most %d concepts are allowed.", o.MemberPath(name), call.MaxSelected)
	}
	if err != nil {
		return nil, err
	}
	refs := make([]ref, 0, n)
	for o, err := range list {
		r := ref{call.Read(&err, o.Text, "id"), call.Read(&err, o.Text, "name")}
		if err != nil {
			return nil, err
		}
		refs = append(refs, r)
	}
	return refs, nil
}

// namesOf returns the indices of the concepts by name.
func namesOf(x *call.Call, p *Predictor, language string) map[string]int {
	names := make(map[string]int, p.size())
	for i := range p.size() {
		_, name, _ := p.Concept(x, i, language)
		names[name] = i
	}
	return names
}

// AbbreviateList returns the first elements of a list for an error text, and the number of the others.
func AbbreviateList(all []string) string {
	if n := len(all) - maxListed; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:maxListed], ", "), n)
	}
	return strings.Join(all, ", ")
}

const maxListed = 10
