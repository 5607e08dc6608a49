package workflows

import (
	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/api/show"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log/form"
	"github.com/sightline-dev/sightline/core/predict"
)

// Run runs the inputs of a call through every model of a workflow. Each picture is
// analysed once.
func Run(x *call.Call) error {
	f, _, err := workflowOfPath(x)
	if err != nil {
		return err
	}
	if n := len(f.nodes); !form.IsModelCount(n) { // a replica wrote it before the origin checked the number
		return call.Refusef(call.ErrWorkflow, "workflow_id '%s' has %d nodes, but must have 1 to %d.", f.id, n, call.MaxWorkflowModels)
	}
	o, err := x.Body.Object("output_config")
	if err != nil {
		return call.Refuse(call.ErrModelArgument, err)
	}
	run := workflowRun{workflow: f}
	var want predict.Want
	for _, node := range f.nodes {
		p, err := show.FindPredictor(x, node.Model, node.Version)
		if err != nil {
			return err
		}
		c, err := show.ConfigOf(x, o, &p)
		if err != nil {
			return err
		}
		run.models = append(run.models, p)
		run.configs = append(run.configs, c)
		run.missing = append(run.missing, c.Missing...)
		want |= p.Want()
	}
	inputs, jobs, err := show.ReadAllMedia(x, call.MaxWorkflowInputs, want, run.configs[0].SampleMS) // one decoding serves all models
	if err != nil {
		return err
	}
	return x.Ask(jobs, func(results []call.Result) error { return answerResults(x, &run, inputs, results) })
}

// workflowRun is a workflow with its loaded models.
type workflowRun struct {
	workflow
	models  []show.Predictor
	configs []show.Config
	missing []string // selected concepts that none of the models has
}

// answerResults answers a workflow call. It writes a result for each input, with an output of each model.
func answerResults(x *call.Call, run *workflowRun, inputs []show.Media, results []call.Result) error {
	seen, good, err := show.MatchResults(x, inputs, results, run.models)
	if err != nil {
		return err
	}
	ids, err := x.NewIDs(len(inputs) * len(run.models))
	if err != nil {
		return err
	}
	models := make([][]byte, len(run.models))
	for i := range run.models {
		models[i] = show.ModelJSON(x, &run.models[i].ModelInfo)
	}
	s, details := show.OverallStatus(good, len(inputs), run.missing)
	return x.Answer(s, details, func(w *jsonio.Writer) {
		w.Name("workflow")
		writeWorkflow(x, w, &run.workflow, false)
		w.Objects("results", len(inputs), func(i int) {
			inputs[i].WriteStatus(w)
			w.Name("input")
			inputs[i].Write(w)
			w.List("outputs", len(run.models), func(j int) {
				out := &show.Output{ID: ids[i*len(models)+j], Input: &inputs[i], Result: seen[i], Model: models[j]}
				show.WriteOutput(x, w, &run.models[j], &run.configs[j], out)
			})
		})
	})
}
