package api

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/predict"
)

// config is what a predict call asks of its outputs.
type config struct {
	language string
	most     int     // concepts of an output; 0: all that were selected
	least    float32 // value of a concept, reached or passed
	selected []int   // places in the model's concepts; nil: those that rank highest
	missing  []string
}

// outputConfig reads model.output_info.output_config. All errors but the language's are
// ErrModelArgument.
func (x *exchange) outputConfig(m *predict.Model) (config, error) {
	o := x.body
	for _, name := range []string{"model", "output_info", "output_config"} {
		var err error
		if o, err = o.object(name); err != nil {
			return config{}, refuse(ErrModelArgument, err)
		}
	}
	c, err := x.readConfig(o, m)
	if err != nil && statusOf(err).code != codeModelArgument {
		err = refuse(ErrModelArgument, err)
	}
	return c, err
}

const codeModelArgument = 21202

func (x *exchange) readConfig(o object, m *predict.Model) (config, error) {
	var c config
	asked, err := o.text("language")
	if err != nil {
		return c, err
	}
	if c.language, err = lang.Choose(asked, x.s.o.DefaultLanguage, m.Languages); err != nil {
		return c, err
	}
	most, err := o.integer("max_concepts")
	if err != nil {
		return c, err
	}
	if most < 0 || most > maxConcepts {
		return c, refusef(ErrModelArgument, "%s: 1 to %d; 0 means %d.", o.at("max_concepts"), maxConcepts, shownConcepts)
	}
	least, err := o.number("min_value")
	if err != nil {
		return c, err
	}
	if least < 0 || least > 1 {
		return c, refusef(ErrModelArgument, "%s: a number from 0 to 1.", o.at("min_value"))
	}
	c.most, c.least = int(most), float32(least)
	if err := x.selectConcepts(&c, o, m); err != nil {
		return c, err
	}
	if c.most == 0 && c.selected == nil {
		c.most = shownConcepts
	}
	return c, nil
}

// selectConcepts reads select_concepts: ids, or names in the call's language, compared
// exactly. All unknown is an error; some unknown are remembered.
func (x *exchange) selectConcepts(c *config, o object, m *predict.Model) error {
	refs, n, err := o.objects("select_concepts")
	if err != nil {
		return err
	}
	if n == 0 {
		return nil
	}
	if n > maxSelected {
		return refusef(ErrModelArgument, "%s: at most %d.", o.at("select_concepts"), maxSelected)
	}
	var names map[string]int
	for ref, err := range refs {
		if err != nil {
			return err
		}
		id, err := ref.text("id")
		if err != nil {
			return err
		}
		name, err := ref.text("name")
		if err != nil {
			return err
		}
		var place int
		var ok bool
		if id != "" {
			place, ok = x.s.places[m][id]
		} else {
			if names == nil {
				names = x.namesOf(m, c.language)
			}
			place, ok = names[name]
			id = name
		}
		switch {
		case !ok:
			c.missing = append(c.missing, id)
		case !slices.Contains(c.selected, place):
			c.selected = append(c.selected, place)
		}
	}
	if len(c.selected) == 0 {
		return refusef(ErrModelArgument, "%s: the model has none of %s.", o.at("select_concepts"), listed(c.missing))
	}
	return nil
}

// namesOf are the places in m's concepts of their names.
func (x *exchange) namesOf(m *predict.Model, language string) map[string]int {
	names := make(map[string]int, len(m.Concepts))
	for i := range m.Concepts {
		names[x.conceptName(&m.Concepts[i], language)] = i
	}
	return names
}

// listed is the beginning of a list, for an error.
func listed(all []string) string {
	if n := len(all) - mostListed; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:mostListed], ", "), n)
	}
	return strings.Join(all, ", ")
}

const mostListed = 10
