package show

import (
	"slices"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/predict"
)

// OverallStatus returns the status of a call whose items have separate statuses, and its details. good is the number of successful items.
func OverallStatus(good, all int, missing []string) (call.Status, string) {
	switch {
	case good == 0:
		return call.StatusFailure, ""
	case len(missing) > 0:
		return call.StatusMixed, "Unknown to this model: " + AbbreviateList(missing) + "."
	case good < all:
		return call.StatusMixed, ""
	}
	return call.StatusOk, ""
}

// Approximate sizes in bytes of an output and of one of its concepts, for reserving memory.
const (
	OutputBytes  = 400
	ConceptBytes = 80
)

// Output is a model's result for one input of a call.
type Output struct {
	ID     string
	Input  *Media
	Result *call.Result // nil for a failed input
	Model  []byte       // the model as JSON
}

// WriteOutput writes an output with its status. The output of a failed input has no data.
func WriteOutput(x *call.Call, w *jsonio.Writer, p *Predictor, c *Config, out *Output) {
	w.Object()
	w.Text("id", out.ID)
	out.Input.WriteStatus(w)
	w.Text("created_at", Timestamp(x.Now))
	w.Name("model")
	w.Raw(out.Model)
	w.Name("input")
	out.Input.Write(w)
	w.ObjectMember("data")
	switch {
	case out.Result == nil:
	case out.Input.Video:
		writeFrames(x, w, p, c, out.Result.Frames)
	default:
		writeAnalysis(x, w, p, c, &out.Result.Analysis)
	}
	w.End('}')
	w.End('}')
}

// writeFrames writes the model's output for each frame of a video. It writes index and time even if they are 0, for strict clients.
func writeFrames(x *call.Call, w *jsonio.Writer, p *Predictor, c *Config, frames []call.Frame) {
	w.Objects("frames", len(frames), func(i int) {
		w.ObjectMember("frame_info")
		WriteInt(w, "index", i)
		WriteInt(w, "time", frames[i].TimeMS)
		w.End('}')
		w.ObjectMember("data")
		writeAnalysis(x, w, p, c, &frames[i].Analysis)
		w.End('}')
	})
}

// writeAnalysis writes the model's output for a picture.
func writeAnalysis(x *call.Call, w *jsonio.Writer, p *Predictor, c *Config, a *predict.Analysis) {
	switch p.Kind() {
	case predict.TypeColor:
		c.writeColors(w, p.Public, a.Colors)
	case predict.TypeEmbed:
		writeEmbedding(w, &a.Embedding)
	default:
		writeConcepts(x, w, p, c, p.values(a))
	}
}

// writeConcepts writes the concepts of an output. It writes an empty list if no concept reaches the minimum value.
func writeConcepts(x *call.Call, w *jsonio.Writer, p *Predictor, c *Config, values []float32) {
	var places []int
	if c.selected != nil {
		places = slices.Clone(c.selected)
		p.sort(places, values)
	} else {
		places = p.rank(values, c.MaxConcepts, c.least)
	}
	w.Name("concepts")
	w.Array()
	for n, i := range places {
		if c.MaxConcepts > 0 && n >= c.MaxConcepts || values[i] < c.least {
			break
		}
		id, name, public := p.Concept(x, i, c.language)
		w.Object()
		w.Text("id", id)
		w.Text("name", name)
		WriteFloat32(w, "value", values[i])
		writeApp(x, w, public)
		w.End('}')
	}
	w.End(']')
}

// writeColors writes the colours in the order of the analysis, largest share first.
func (c *Config) writeColors(w *jsonio.Writer, m *predict.Model, shares []predict.ColorShare) {
	w.Name("colors")
	w.Array()
	n := 0
	for i := range shares {
		share := &shares[i]
		chosen := func(place int) bool { return m.Concepts[place].ID == share.W3C.ID }
		if share.Value < c.least || c.selected != nil && !slices.ContainsFunc(c.selected, chosen) {
			continue
		}
		if n++; c.MaxConcepts > 0 && n > c.MaxConcepts {
			break
		}
		w.Object()
		w.Text("raw_hex", share.RawHex)
		w.ObjectMember("w3c")
		w.Text("hex", share.W3C.Hex)
		w.Text("name", share.W3C.Name)
		w.End('}')
		WriteFloat32(w, "value", share.Value)
		w.End('}')
	}
	w.End(']')
}

func writeEmbedding(w *jsonio.Writer, e *predict.Embedding) {
	w.Name("embeddings")
	w.Array()
	w.Object()
	w.Floats("vector", e.Unit(make([]float32, 0, predict.Dim)))
	WriteInt(w, "num_dimensions", predict.Dim)
	w.End('}')
	w.End(']')
}
