package api

import (
	"slices"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/predict"
)

// predictOutputs runs the inputs of a call through a model. Each input goes its own way:
// one that fails is an output with its status and empty data.
func predictOutputs(x *call.Call) error {
	p, err := findPredictor(x, x.IDs["model_id"], x.IDs["version_id"])
	if err != nil {
		return err
	}
	c, err := readOutputConfig(x, &p)
	if err != nil {
		return err
	}
	inputs, jobs, err := readMediaList(x, call.MaxInputs, p.want(), c.sampleMS)
	if err != nil {
		return err
	}
	x.Await(jobs, func(results []call.Result) error { return answerOutputs(x, &p, &c, inputs, results) })
	return nil
}

// readMediaList reads the inputs of a call, 1 to most, and makes a job of each that has no error. Videos give a frame each sampleMS.
func readMediaList(x *call.Call, most int, want predict.Want, sampleMS int) ([]input, []call.Job, error) {
	elements, n, err := x.Body.Some("inputs", most, call.ErrPredict)
	if err != nil {
		return nil, nil, err
	}
	inputs := make([]input, 0, n)
	var jobs []call.Job
	videos := 0
	for o, malformed := range elements {
		in, err := readMedia(x, o, malformed)
		if err != nil {
			return nil, nil, err
		}
		if in.video {
			if videos++; videos > call.MaxVideos {
				return nil, nil, call.Refusef(call.ErrPredict, "Send at most %d videos in one call.", call.MaxVideos)
			}
			if in.err == nil && (sampleMS < call.MinSampleMS || sampleMS > call.MaxSampleMS) {
				in.err = call.Refusef(call.ErrInput, "sample_ms: must be %d to %d, not %d.", call.MinSampleMS, call.MaxSampleMS, sampleMS)
			}
		}
		inputs = append(inputs, in)
		if in.err == nil {
			job := call.Job{Blob: in.blob, Crop: in.crop, Want: want}
			if in.video {
				job.Video.SampleMS = sampleMS
			}
			if in.blob.IsZero() {
				job.URL = in.url
			}
			jobs = append(jobs, job)
		}
	}
	for i := range jobs {
		if jobs[i].Video.SampleMS > 0 {
			jobs[i].Video.MaxFrames = call.MaxFrames / videos
		}
	}
	return inputs, jobs, nil
}

// answerOutputs answers a predict call. results belong to the inputs without an error, in order.
func answerOutputs(x *call.Call, p *predictor, c *config, inputs []input, results []call.Result) error {
	seen, good, err := matchResults(x, inputs, results, []predictor{*p})
	if err != nil {
		return err
	}
	ids, err := x.NewIDs(len(inputs))
	if err != nil {
		return err
	}
	model := modelJSON(x, &p.shown)
	s, details := overall(good, len(inputs), c.missing)
	x.Answer(s, details, func(w *jsonio.Writer) {
		w.Grow(len(inputs) * (len(model) + outputBytes + conceptBytes*c.most))
		w.Name("outputs")
		w.Array()
		for i := range inputs {
			writeOutput(x, w, p, c, &output{ids[i], &inputs[i], seen[i], model})
		}
		w.End(']')
	})
	return nil
}

// matchResults puts results beside their inputs: those without an error, in order. A failed
// result is its input's error, and nil; good counts the others. The error is
// one that ends the call, as for an analysis that lacks what one of the models needs.
func matchResults(x *call.Call, inputs []input, results []call.Result, models []predictor) (seen []*call.Result, good int, err error) {
	seen = make([]*call.Result, len(inputs))
	for i := range inputs {
		if inputs[i].err != nil {
			continue
		}
		if len(results) == 0 {
			return nil, 0, call.ErrNoResult
		}
		r := &results[0]
		results = results[1:]
		if r.Err != nil && call.StatusOf(r.Err).HTTP >= 500 {
			return nil, 0, r.Err
		}
		for j := range models {
			if r.Err == nil && !models[j].completes(r, inputs[i].video) {
				return nil, 0, call.ErrNoResult
			}
		}
		if inputs[i].err = r.Err; r.Err == nil {
			seen[i] = r
			good++
		}
	}
	return seen, good, nil
}

// completes reports whether a result of a picture or of a video has what the model's outputs are made from.
func (p *predictor) completes(r *call.Result, video bool) bool {
	if !video {
		return p.complete(&r.Analysis)
	}
	incomplete := func(f call.Frame) bool { return !p.complete(&f.Analysis) }
	return len(r.Frames) > 0 && !slices.ContainsFunc(r.Frames, incomplete)
}

// overall is the status of a call whose items have their own.
func overall(good, all int, missing []string) (call.Status, string) {
	switch {
	case good == 0:
		return call.StatusFailure, ""
	case len(missing) > 0:
		return call.StatusMixed, "Unknown to this model: " + listed(missing) + "."
	case good < all:
		return call.StatusMixed, ""
	}
	return call.StatusOk, ""
}

// What an output and one of its concepts come to, about: room made at once.
const (
	outputBytes  = 400
	conceptBytes = 80
)

type output struct {
	id    string
	input *input
	seen  *call.Result // nil for a failed input
	model []byte       // as JSON
}

func writeOutput(x *call.Call, w *jsonio.Writer, p *predictor, c *config, out *output) {
	w.Object()
	w.Name("id")
	w.String(out.id)
	w.Name("status")
	out.input.writeStatus(w)
	w.Name("created_at")
	w.String(timestamp(x.Now))
	w.Name("model")
	w.Raw(out.model)
	w.Name("input")
	out.input.write(w)
	w.Name("data")
	w.Object()
	switch {
	case out.seen == nil:
	case out.input.video:
		writeFrames(x, w, p, c, out.seen.Frames)
	default:
		writeAnalysis(x, w, p, c, &out.seen.Analysis)
	}
	w.End('}')
	w.End('}')
}

// writeFrames writes what the model gives for each frame of a video. Strict clients read index and time also when they are 0.
func writeFrames(x *call.Call, w *jsonio.Writer, p *predictor, c *config, frames []call.Frame) {
	w.Name("frames")
	w.Array()
	for i := range frames {
		w.Object()
		w.Name("frame_info")
		w.Object()
		w.Name("index")
		w.Int(int64(i))
		w.Name("time")
		w.Int(frames[i].TimeMS)
		w.End('}')
		w.Name("data")
		w.Object()
		writeAnalysis(x, w, p, c, &frames[i].Analysis)
		w.End('}')
		w.End('}')
	}
	w.End(']')
}

// writeAnalysis writes what the model gives for a picture.
func writeAnalysis(x *call.Call, w *jsonio.Writer, p *predictor, c *config, a *predict.Analysis) {
	switch p.kind() {
	case predict.TypeColor:
		c.writeColors(w, p.public, a.Colors)
	case predict.TypeEmbed:
		writeEmbedding(w, &a.Embedding)
	default:
		writeConcepts(x, w, p, c, p.values(a))
	}
}

// writeConcepts writes what the values come to: the list is there even when nothing passes.
func writeConcepts(x *call.Call, w *jsonio.Writer, p *predictor, c *config, values []float32) {
	var places []int
	if c.selected != nil {
		places = slices.Clone(c.selected)
		p.sort(places, values)
	} else {
		places = p.rank(values, c.most, c.least)
	}
	w.Name("concepts")
	w.Array()
	for n, i := range places {
		if c.most > 0 && n >= c.most || values[i] < c.least {
			break
		}
		id, name, public := p.concept(x, i, c.language)
		w.Object()
		w.Name("id")
		w.String(id)
		w.Name("name")
		w.String(name)
		w.Name("value")
		w.Float32(values[i])
		w.Name("app_id")
		writeApp(x, w, public)
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
