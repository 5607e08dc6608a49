package inputs

import (
	"errors"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/api/show"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
)

// outcome is the result of one item of a call that adds or changes inputs.
type outcome struct {
	dot        log.Dot       // operation that created the input, unless err is set
	ord        uint32        // ordinal of the input when it was written
	input      catalog.Input // the known part of an input without a record
	err        error
	deletedErr error // error if the input was deleted meanwhile; nil: none
}

// answerOutcomes answers with each input in its stored state, or with its error. status, if not nil, replaces the status of each
// download.
func answerOutcomes(x *call.Call, items []outcome, status *call.Status) error {
	v := x.View()
	var lines show.ConceptNames
	inputs := make([]catalog.Input, len(items))
	good := 0
	for i := range items {
		item := &items[i]
		inputs[i] = item.input
		if item.err == nil {
			in, err := show.LoadWritten(x, v, item.dot, item.ord)
			switch {
			case err == nil:
				inputs[i] = in
			case errors.Is(err, catalog.ErrNotFound):
				item.err = item.deletedErr
			default:
				return err
			}
		}
		if item.err == nil {
			good++
		}
		if err := lines.Read(x, v, &inputs[i]); err != nil {
			return err
		}
	}
	s, _ := show.OverallStatus(good, len(items), nil)
	return x.Answer(s, "", func(w *jsonio.Writer) {
		w.Grow(len(inputs)*show.InputBytes + x.Loaded)
		w.List("inputs", len(inputs), func(i int) {
			if err := items[i].err; err != nil {
				writeRefused(x, w, &inputs[i], err)
			} else {
				show.WriteInput(x, w, &lines, &inputs[i], status)
			}
		})
	})
}

// writeRefused writes an item that failed: its id, its picture's URL
// if it has one, and the error.
func writeRefused(x *call.Call, w *jsonio.Writer, in *catalog.Input, err error) {
	w.Object()
	w.Text("id", in.ID)
	w.ObjectMember("data")
	show.WriteImage(w, in.URL, in.Crop)
	w.End('}')
	s := call.StatusOf(err)
	call.WriteStatus(w, s, call.DetailsOf(err, s))
	w.End('}')
}
