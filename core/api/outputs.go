package api

import (
	"errors"
	"slices"

	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/predict"
)

// predictOutputs runs the inputs of a call through a model. Each input goes its own way:
// one that fails is an output with its status and empty data.
func predictOutputs(x *exchange) error {
	m, err := x.model()
	if err != nil {
		return err
	}
	c, err := x.outputConfig(m)
	if err != nil {
		return err
	}
	elements, n, err := x.body.objects("inputs")
	if err != nil {
		return refuse(ErrPredict, err)
	}
	if n == 0 || n > maxInputs {
		return refusef(ErrPredict, "1 to %d inputs are needed, not %d.", maxInputs, n)
	}
	inputs := make([]input, 0, n)
	var jobs []Job
	for o, malformed := range elements {
		in, err := x.picture(o, malformed)
		if err != nil {
			return err
		}
		inputs = append(inputs, in)
		if in.err == nil {
			job := Job{Blob: in.blob, Crop: in.crop, Want: m.Want()}
			if in.blob.IsZero() {
				job.URL = in.url
			}
			jobs = append(jobs, job)
		}
	}
	finish := func(results []Result) { x.outputs(m, &c, inputs, results) }
	if len(jobs) == 0 {
		finish(nil)
		return nil
	}
	x.call.jobs = jobs
	x.call.resume = func(results []Result) Response {
		finish(results)
		return x.call.response
	}
	return nil
}

// outputs answers a predict call. results belong to the inputs without an error, in order.
func (x *exchange) outputs(m *predict.Model, c *config, inputs []input, results []Result) {
	analyses := make([]*predict.Analysis, len(inputs))
	good := 0
	for i := range inputs {
		if inputs[i].err != nil {
			continue
		}
		if len(results) == 0 {
			x.fail(errNoResult)
			return
		}
		r := &results[0]
		results = results[1:]
		if r.Err != nil && statusOf(r.Err).http >= 500 {
			x.fail(r.Err)
			return
		}
		if r.Err == nil && (r.Analysis.Has&m.Want() != m.Want() || m.Type == predict.TypeConcept && len(m.Values(&r.Analysis)) != len(m.Concepts)) {
			x.fail(errNoResult)
			return
		}
		if inputs[i].err = r.Err; r.Err == nil {
			analyses[i] = &r.Analysis
			good++
		}
	}
	ids := make([]string, len(inputs))
	for i := range ids {
		var err error
		if ids[i], err = x.newID(); err != nil {
			x.fail(err)
			return
		}
	}
	var model jsonio.Writer
	x.writeModel(&model, m, message)
	s, details := overall(good, len(inputs), c.missing)
	x.answer(s, details, func(w *jsonio.Writer) {
		w.Grow(len(inputs) * (len(model.Bytes()) + outputBytes + conceptBytes*c.most))
		w.Name("outputs")
		w.Array()
		for i := range inputs {
			x.writeOutput(w, m, c, &output{ids[i], &inputs[i], analyses[i], model.Bytes()})
		}
		w.End(']')
	})
}

// overall is the status of a call whose items have their own.
func overall(good, all int, missing []string) (status, string) {
	switch {
	case good == 0:
		return statusFailure, ""
	case len(missing) > 0:
		return statusMixed, "The model does not have " + listed(missing) + "."
	case good < all:
		return statusMixed, ""
	}
	return statusOk, ""
}

// What an output and one of its concepts come to, about: room made at once.
const (
	outputBytes  = 400
	conceptBytes = 80
)

type output struct {
	id       string
	input    *input
	analysis *predict.Analysis // nil for a failed input
	model    []byte            // as JSON
}

func (x *exchange) writeOutput(w *jsonio.Writer, m *predict.Model, c *config, out *output) {
	w.Object()
	w.Name("id")
	w.String(out.id)
	w.Name("status")
	if err := out.input.err; err != nil {
		s := statusOf(err)
		writeStatus(w, s, detailsOf(err, s))
	} else {
		writeStatus(w, statusOk, "")
	}
	w.Name("created_at")
	w.String(timestamp(x.now))
	w.Name("model")
	w.Raw(out.model)
	w.Name("input")
	out.input.write(w)
	w.Name("data")
	w.Object()
	if out.analysis != nil {
		switch m.Type {
		case predict.TypeColor:
			c.writeColors(w, m, out.analysis.Colors)
		case predict.TypeEmbed:
			writeEmbedding(w, &out.analysis.Embedding)
		default:
			x.writeConcepts(w, m, c, m.Values(out.analysis))
		}
	}
	w.End('}')
	w.End('}')
}

// writeConcepts writes what the values come to: the list is there even when nothing passes.
func (x *exchange) writeConcepts(w *jsonio.Writer, m *predict.Model, c *config, values []float32) {
	var places []int
	if c.selected != nil {
		places = slices.Clone(c.selected)
		m.Sort(places, values)
	} else {
		places = m.Rank(nil, values)
	}
	w.Name("concepts")
	w.Array()
	for n, i := range places {
		if c.most > 0 && n >= c.most || values[i] < c.least {
			break
		}
		w.Object()
		w.Name("id")
		w.String(m.Concepts[i].ID)
		w.Name("name")
		w.String(x.conceptName(&m.Concepts[i], c.language))
		w.Name("value")
		w.Float32(values[i])
		w.Name("app_id")
		x.writePublicApp(w)
		w.End('}')
	}
	w.End(']')
}

// writeColors writes the colours, largest share first as the analysis has them.
func (c *config) writeColors(w *jsonio.Writer, m *predict.Model, shares []predict.ColorShare) {
	w.Name("colors")
	w.Array()
	n := 0
	for i := range shares {
		share := &shares[i]
		chosen := func(place int) bool { return m.Concepts[place].ID == share.W3C.ID }
		if share.Value < c.least || c.selected != nil && !slices.ContainsFunc(c.selected, chosen) {
			continue
		}
		if n++; c.most > 0 && n > c.most {
			break
		}
		w.Object()
		w.Name("raw_hex")
		w.String(share.RawHex)
		w.Name("w3c")
		w.Object()
		w.Name("hex")
		w.String(share.W3C.Hex)
		w.Name("name")
		w.String(share.W3C.Name)
		w.End('}')
		w.Name("value")
		w.Float32(share.Value)
		w.End('}')
	}
	w.End(']')
}

func writeEmbedding(w *jsonio.Writer, e *predict.Embedding) {
	w.Name("embeddings")
	w.Array()
	w.Object()
	w.Name("vector")
	w.Array()
	for _, v := range e.Unit(make([]float32, 0, predict.Dim)) {
		w.Float32(v)
	}
	w.End(']')
	w.Name("num_dimensions")
	w.Int(predict.Dim)
	w.End('}')
	w.End(']')
}

// errNoResult is for a host that answers fewer jobs than it was given, or less than was wanted.
var errNoResult = errors.New("a job without its result")
