// Package inputs has the calls about an application's pictures. They add, list, change and delete inputs, and read their stored outputs,
// history, thumbnails, renditions and duplicates. A call adds or changes many inputs in one write, and each has a separate status.
// Package show has the code for inputs that other resources use too.
package inputs

import (
	"errors"
	"slices"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/api/show"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// List lists the inputs in the order of their creation. If the download of an input on the page
// failed, the status is Mixed Success, which clients look for.
func List(x *call.Call) error {
	p, err := x.Page()
	if err != nil {
		return err
	}
	v := x.View()
	ords, err := x.App.Partition.Index().At(v.Reader).Page(uint64((p.Number-1)*p.Size), uint64(p.Size))
	if err != nil {
		return err
	}
	inputs, err := show.LoadInputs(x, v, ords)
	if err != nil {
		return err
	}
	s := call.StatusOk
	if slices.ContainsFunc(inputs, func(in catalog.Input) bool { return call.IsFailedDownload(in.Code) }) {
		s = call.StatusMixed
	}
	return show.AnswerInputs(x, v, s, inputs)
}

// Read answers with one input.
func Read(x *call.Call) error {
	v, in, err := inputOfPath(x)
	if err != nil {
		return err
	}
	if err := show.NameSameFile(x, v, &in); err != nil {
		return err
	}
	return answerInput(x, v, &in, nil)
}

func answerInput(x *call.Call, v *partition.View, in *catalog.Input, status *call.Status) error {
	var lines show.ConceptNames
	if err := lines.Read(x, v, in); err != nil {
		return err
	}
	return x.OK(func(w *jsonio.Writer) {
		w.Name("input")
		show.WriteInput(x, w, &lines, in, status)
	})
}

// inputOfPath returns the input in the path, and the view from which it was read.
func inputOfPath(x *call.Call) (*partition.View, catalog.Input, error) {
	id, v := x.IDs["input_id"], x.View()
	in, err := v.InputByID(id)
	return v, in, call.ReplaceNotFound(err, call.UnknownIDError("input_id", id))
}

// Status answers with the numbers of inputs by the results of their downloads.
func Status(x *call.Call) error {
	v := x.View()
	n, err := v.Counts()
	if err != nil {
		return err
	}
	return x.OK(func(w *jsonio.Writer) {
		w.ObjectMember("counts")
		show.WriteInt(w, "processed", n.Processed)
		show.WriteInt(w, "to_process", n.ToProcess)
		show.WriteInt(w, "errors", n.Errors)
		w.End('}')
	})
}

// Delete deletes one input.
func Delete(x *call.Call) error {
	_, in, err := inputOfPath(x)
	if err != nil {
		return err
	}
	return x.Done(&log.InputDelete{Input: in.Dot})
}

// DeleteMany deletes the inputs in the body's ids, or with delete_all all inputs, in one operation.
// It ignores unknown ids. At a replica that is not in sync unknown ids are an
// error, see [call.Call.Absent]. Without ids and delete_all it deletes nothing and returns an error.
func DeleteMany(x *call.Call) error {
	var err error
	all, ids := call.Read(&err, x.Body.Flag, "delete_all"), call.Read(&err, x.Body.Texts, "ids")
	switch {
	case err != nil:
		return call.Refuse(call.ErrInputs, err)
	case all && len(ids) > 0:
		return call.Refusef(call.ErrInputs, "Use either ids or delete_all, not both.")
	case all:
		return x.Audit("inputs.delete_all", x.Done(&log.InputDeleteAll{}))
	case len(ids) == 0:
		return call.Refusef(call.ErrInputs, "Missing ids or \"delete_all\": true.")
	}
	v := x.View()
	bodies := make([]log.Body, 0, len(ids))
	var missing []string
	for _, id := range ids {
		in, err := v.InputByID(id)
		if errors.Is(err, catalog.ErrNotFound) {
			missing = append(missing, id)
			continue
		}
		if err != nil {
			return err
		}
		bodies = append(bodies, &log.InputDelete{Input: in.Dot})
	}
	if err := x.Absent(call.ErrNoInput, missing); err != nil {
		return err
	}
	return x.Done(bodies...)
}
