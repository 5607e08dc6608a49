package show

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/lang"
)

// Config is what a predict call asks of its outputs.
type Config struct {
	language string
	Most     int     // concepts of an output; 0: all that were selected
	least    float32 // value of a concept, reached or passed
	SampleMS int     // milliseconds from one frame of a video to the next, unchecked
	selected []int   // places in the model's concepts; nil: those that rank highest
	Missing  []string
}

// ReadOutputConfig reads model.output_info.output_config.
func ReadOutputConfig(x *call.Call, p *Predictor) (Config, error) {
	o := x.Body
	for _, name := range []string{"model", "output_info", "output_config"} {
		var err error
		if o, err = o.Object(name); err != nil {
			return Config{}, call.Refuse(call.ErrModelArgument, err)
		}
	}
	return ConfigOf(x, o, p)
}

// ConfigOf reads what a call asks of a model's outputs. What it leaves open, an own model's
// settings say. All errors but the language's are ErrModelArgument.
func ConfigOf(x *call.Call, o call.Object, p *Predictor) (Config, error) {
	c, err := readConfig(x, o, p)
	if err != nil && call.StatusOf(err).Code != codeModelArgument {
		err = call.Refuse(call.ErrModelArgument, err)
	}
	return c, err
}

const codeModelArgument = 21202

func readConfig(x *call.Call, o call.Object, p *Predictor) (Config, error) {
	var c Config
	asked, err := o.Text("language")
	if err != nil {
		return c, err
	}
	if c.language, err = lang.Choose(asked, x.App.Language, p.languages()); err != nil {
		return c, err
	}
	var base call.Object
	if p.Own != nil && len(p.Own.Config) > 0 {
		if base, err = settingsOf(p.Own.Config).object(new(jsonio.Doc)); err != nil {
			return c, err
		}
	}
	most, err := readCount(pick(o, base, "max_concepts"), "max_concepts")
	if err != nil {
		return c, err
	}
	least, err := readShare(pick(o, base, "min_value"), "min_value")
	if err != nil {
		return c, err
	}
	c.Most, c.least = most, float32(least)
	if c.SampleMS, err = readSample(pick(o, base, "sample_ms"), "sample_ms"); err != nil {
		return c, err
	}
	if err := selectConcepts(x, &c, pick(o, base, "select_concepts"), p); err != nil {
		return c, err
	}
	if c.Most == 0 && c.selected == nil {
		c.Most = call.ShownConcepts
	}
	return c, nil
}

// pick is the object that has a member: what the call says, else the model's settings.
func pick(o, base call.Object, name string) call.Object {
	if o.Has(name) {
		return o
	}
	return base
}

// readCount reads a number of concepts, 0 when absent.
func readCount(o call.Object, name string) (int, error) {
	n, err := o.Integer(name)
	if err == nil && (n < 0 || n > call.MaxConcepts) {
		err = call.Refusef(call.ErrModelArgument, "%s: must be 1 to %d; 0 means %d.", o.At(name), call.MaxConcepts, call.ShownConcepts)
	}
	return int(n), err
}

// readSample reads a number of milliseconds, the default when absent. Only videos are held to its range.
func readSample(o call.Object, name string) (int, error) {
	if !o.Has(name) {
		return call.DefaultSampleMS, nil
	}
	n, err := o.Integer(name)
	return int(min(max(n, math.MinInt32), math.MaxInt32)), err
}

// readShare reads a number from 0 to 1, 0 when absent.
func readShare(o call.Object, name string) (float64, error) {
	f, err := o.Number(name)
	if err == nil && (f < 0 || f > 1) {
		err = call.Refusef(call.ErrModelArgument, "%s: must be a number from 0 to 1.", o.At(name))
	}
	return f, err
}

// selectConcepts reads select_concepts: ids, or names in the call's language, compared
// exactly. All unknown is an error; some unknown are remembered.
func selectConcepts(x *call.Call, c *Config, o call.Object, p *Predictor) error {
	refs, n, err := o.Objects("select_concepts")
	if err != nil {
		return err
	}
	if n == 0 {
		return nil
	}
	if n > call.MaxSelected {
		return call.Refusef(call.ErrModelArgument, "%s: at most %d concepts are allowed.", o.At("select_concepts"), call.MaxSelected)
	}
	var names map[string]int
	for ref, err := range refs {
		if err != nil {
			return err
		}
		id, err := ref.Text("id")
		if err != nil {
			return err
		}
		name, err := ref.Text("name")
		if err != nil {
			return err
		}
		var place int
		var ok bool
		if id != "" {
			place, ok = p.Place(x.Net, id)
		} else {
			if names == nil {
				names = namesOf(x, p, c.language)
			}
			place, ok = names[name]
			id = name
		}
		switch {
		case !ok:
			c.Missing = append(c.Missing, id)
		case !slices.Contains(c.selected, place):
			c.selected = append(c.selected, place)
		}
	}
	if len(c.selected) == 0 {
		return call.Refusef(call.ErrModelArgument, "%s: unknown to this model: %s.", o.At("select_concepts"), Listed(c.Missing))
	}
	return nil
}

// namesOf are the places of the concepts by their names.
func namesOf(x *call.Call, p *Predictor, language string) map[string]int {
	names := make(map[string]int, p.size())
	for i := range p.size() {
		_, name, _ := p.Concept(x, i, language)
		names[name] = i
	}
	return names
}

// Listed is the beginning of a list, for an error.
func Listed(all []string) string {
	if n := len(all) - mostListed; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:mostListed], ", "), n)
	}
	return strings.Join(all, ", ")
}

const mostListed = 10
