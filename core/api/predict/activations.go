package predict

import (
	"errors"
	"slices"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/api/show"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/train"
)

// Activations answers where in pictures a model sees concepts: the contribution of each cell of the
// network to each requested concept. The request has pictures as in a predict call, or ids of
// stored inputs.
func Activations(x *call.Call) error {
	p, err := show.FindPredictor(x, x.IDs["model_id"], "")
	if err != nil {
		return err
	}
	if p.Kind() != predict.TypeConcept {
		return call.Refusef(call.ErrModelArgument, "model_id '%s' does not support activations.", x.IDs["model_id"])
	}
	places, missing, err := readConcepts(x, &p)
	if err != nil {
		return err
	}
	inputs, jobs, err := activatedPictures(x)
	if err != nil {
		return err
	}
	return x.Ask(jobs, func(results []call.Result) error { return answerActivations(x, &p, places, missing, inputs, results) })
}

// readConcepts reads the ids in concepts. It returns the indices of the model's concepts, and the ids that the model does not have.
func readConcepts(x *call.Call, p *show.Predictor) (places []int, missing []string, err error) {
	v := x.Body.Get("concepts")
	if n := v.Len(); v.Kind() != jsonio.Array || n == 0 || n > call.MaxActivations {
		return nil, nil, call.Refusef(call.ErrModelArgument, "concepts: must be an array of 1 to %d ids.", call.MaxActivations)
	}
	for e := range v.Elems() {
		id, err := e.Str()
		if err != nil {
			return nil, nil, call.Refuse(call.ErrModelArgument, x.Body.Wrap("concepts", err))
		}
		place, ok := p.ConceptIndex(x.Net, id)
		switch {
		case !ok:
			missing = append(missing, id)
		case !slices.Contains(places, place):
			places = append(places, place)
		}
	}
	if len(places) == 0 {
		return nil, nil, call.Refusef(call.ErrModelArgument, "concepts: unknown to this model: %s.", show.AbbreviateList(missing))
	}
	return places, missing, nil
}

// activatedPictures reads inputs. An element with only an id is a stored input.
func activatedPictures(x *call.Call) ([]show.Media, []call.Job, error) {
	elements, n, err := x.Body.LimitedObjects("inputs", call.MaxActivatedInputs, call.ErrPredict)
	if err != nil {
		return nil, nil, err
	}
	inputs := make([]show.Media, 0, n)
	var jobs []call.Job
	for o, malformed := range elements {
		read := show.ReadMedia
		if malformed == nil && o.Has("id") && !o.Has("data") {
			read = storedPicture
		}
		in, err := read(x, o, malformed)
		if err != nil {
			return nil, nil, err
		}
		if in.Video && in.Err == nil {
			in.Err = call.Refusef(call.ErrInput, "%s: this endpoint takes pictures only.", o.MemberPath("data.video"))
		}
		inputs = append(inputs, in)
		if in.Err == nil {
			job := call.Job{Blob: in.Blob, Crop: in.Crop, Want: predict.WantCells}
			if in.Blob.IsZero() {
				job.URL = in.URL
			}
			jobs = append(jobs, job)
		}
	}
	return inputs, jobs, nil
}

// storedPicture returns the picture of a stored input. For a key that may not read inputs, the input is not found.
func storedPicture(x *call.Call, o call.Object, _ error) (in show.Media, err error) {
	if in.ID, in.Err = o.ID("id"); in.Err != nil {
		in.ID, err = x.NewID()
		return in, err
	}
	v := x.View()
	stored, err := v.InputByID(in.ID)
	switch {
	case errors.Is(err, catalog.ErrNotFound) || err == nil && !x.Principal.Scopes.Has(auth.InputsGet):
		in.Err = call.Refusef(call.ErrNoInput, "%s: '%s' not found.", o.MemberPath("id"), in.ID)
	case err != nil:
		return in, err
	case stored.Code != catalog.InputReady:
		in.Err = call.Refusef(call.ErrInput, "%s: the picture of '%s' is not available (yet).", o.MemberPath("id"), in.ID)
	}
	in.Blob, in.Crop = stored.Blob, stored.Crop
	return in, nil
}

// answerActivations answers the call. results belong to the inputs without an error, in order.
func answerActivations(x *call.Call, p *show.Predictor, places []int, missing []string, inputs []show.Media, results []call.Result) error {
	seen, good, err := show.MatchResults(x, inputs, results, nil)
	if err != nil {
		return err
	}
	maps := make([][][]float32, len(inputs))
	for i, r := range seen {
		if r == nil {
			continue
		}
		a := &r.Analysis
		if a.Has&predict.WantCells == 0 {
			return call.ErrNoResult
		}
		if maps[i], err = mapsOf(x, p, &a.Cells, places); err != nil {
			return err
		}
	}
	s, details := show.OverallStatus(good, len(inputs), missing)
	return x.Answer(s, details, func(w *jsonio.Writer) {
		w.Objects("outputs", len(inputs), func(i int) {
			w.Text("input_id", inputs[i].ID)
			inputs[i].WriteStatus(w)
			if r := seen[i]; r != nil {
				writeActivations(x, w, p, &r.Analysis.Cells, places, maps[i])
			}
		})
	})
}

// mapsOf returns the contribution of each cell to the concepts at places.
func mapsOf(x *call.Call, p *show.Predictor, c *predict.Cells, places []int) ([][]float32, error) {
	if p.Public != nil {
		return x.Net.Models.Activations(p.Public, c, places)
	}
	maps := make([][]float32, len(places))
	for k, place := range places {
		maps[k] = c.Support(direction(&p.Head.Head, place))
	}
	return maps, nil
}

// direction returns the direction of a head's concept in the embeddings: its weights. For an exclusive head it subtracts the mean over
// all outputs, which a softmax ignores.
func direction(h *train.Head, place int) []float32 {
	weights := h.Weights[place*predict.Dim:][:predict.Dim]
	if !h.Exclusive {
		return weights
	}
	apart := make([]float32, predict.Dim)
	for i := range apart {
		sum := 0.0
		for o := range h.Bias {
			sum += float64(h.Weights[o*predict.Dim+i])
		}
		apart[i] = float32(float64(weights[i]) - sum/float64(len(h.Bias)))
	}
	return apart
}

func writeActivations(x *call.Call, w *jsonio.Writer, p *show.Predictor, c *predict.Cells, places []int, maps [][]float32) {
	w.ObjectMember("activations")
	w.Floats("box", []float32{float32(c.Box.Top), float32(c.Box.Left), float32(c.Box.Bottom), float32(c.Box.Right)})
	show.WriteInt(w, "width", c.Width)
	show.WriteInt(w, "height", c.Height)
	w.Objects("concepts", len(places), func(k int) {
		place := places[k]
		id, _, _ := p.Concept(x, place, "")
		w.Text("id", id)
		w.Floats("values", maps[k])
	})
	w.End('}')
}
