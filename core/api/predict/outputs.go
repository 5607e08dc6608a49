// Package predict has the calls that run models on pictures and videos, and the call that locates concepts in a picture.
// It asks the host for the analyses and writes an output for each input. Package show has the form of an output, because workflows
// write it too.
package predict

import (
	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/api/show"
	"github.com/sightline-dev/sightline/core/jsonio"
)

// Outputs runs the inputs of a call through a model. Each input goes its own way:
// the output of a failed input has the input's status and empty data.
func Outputs(x *call.Call) error {
	p, err := show.FindPredictor(x, x.IDs["model_id"], x.IDs["version_id"])
	if err != nil {
		return err
	}
	c, err := show.ReadOutputConfig(x, &p)
	if err != nil {
		return err
	}
	inputs, jobs, err := show.ReadAllMedia(x, call.MaxInputs, p.Want(), c.SampleMS)
	if err != nil {
		return err
	}
	return x.Ask(jobs, func(results []call.Result) error { return answerOutputs(x, &p, &c, inputs, results) })
}

// answerOutputs answers a predict call. results belong to the inputs without an error, in order.
func answerOutputs(x *call.Call, p *show.Predictor, c *show.Config, inputs []show.Media, results []call.Result) error {
	seen, good, err := show.MatchResults(x, inputs, results, []show.Predictor{*p})
	if err != nil {
		return err
	}
	ids, err := x.NewIDs(len(inputs))
	if err != nil {
		return err
	}
	model := show.ModelJSON(x, &p.ModelInfo)
	s, details := show.OverallStatus(good, len(inputs), c.Missing)
	return x.Answer(s, details, func(w *jsonio.Writer) {
		w.Grow(len(inputs) * (len(model) + show.OutputBytes + show.ConceptBytes*c.MaxConcepts))
		w.List("outputs", len(inputs), func(i int) {
			show.WriteOutput(x, w, p, c, &show.Output{ID: ids[i], Input: &inputs[i], Result: seen[i], Model: model})
		})
	})
}
