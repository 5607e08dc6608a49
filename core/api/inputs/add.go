package inputs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/api/show"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict/raster/exif"
)

// addition is one input of a call that adds inputs. It owns its memory.
type addition struct {
	create  log.InputCreate
	data    []byte               // bytes of the picture, if sent as base64
	derived *catalog.DerivedData // result of analysing the picture
	thumb   []byte
	known   bool      // the store had derived and thumb when the call began
	pinned  blob.Hash // blob to unpin at the end of the call
	err     error     // reason why it is not added
}

// Add adds up to 128 inputs in one write. Each input succeeds or fails separately: the status of a failed input has the reason. Pictures
// sent as base64 are analysed during the call, pictures at URLs are fetched afterwards.
func Add(x *call.Call) error {
	elements, n, err := x.Body.LimitedObjects("inputs", call.MaxInputs, call.ErrInputs)
	if err != nil {
		return err
	}
	v := x.View()
	added := make([]addition, n)
	var jobs []call.Job
	i := 0
	for o, malformed := range elements {
		a := &added[i]
		i++
		if err := a.read(x, v, o, malformed); err != nil {
			return err
		}
		if a.err != nil || a.data == nil {
			continue
		}
		job := call.Job{Data: a.data, Crop: a.create.Crop, Keep: true}
		if a.derived == nil {
			job.Want = call.WantOfInputs
		}
		jobs = append(jobs, job)
	}
	return x.Ask(jobs, func(results []call.Result) error { return submitAdditions(x, added, results) })
}

// read decodes an input. It stores a fault of the input in a.err. The returned error is internal.
func (a *addition) read(x *call.Call, v *partition.View, o call.Object, malformed error) error {
	a.err = malformed
	if a.err == nil {
		a.err = a.decode(x, o)
	}
	if a.err != nil && call.StatusOf(a.err).HTTP >= 500 {
		return a.err
	}
	if a.create.ID == "" {
		id, err := x.NewID()
		if err != nil {
			return err
		}
		a.create.ID = id
	}
	if a.err != nil {
		return nil
	}
	if _, err := io.ReadFull(x.Host.Rand, a.create.Hosted[:]); err != nil {
		return fmt.Errorf("random source: %w", err)
	}
	if a.data == nil {
		return nil
	}
	in := catalog.Input{Blob: blob.Sum(a.data), Crop: a.create.Crop}
	d, err := v.DerivedOfInput(x.Net.Base, &in)
	switch {
	case err == nil && !d.Thumb.IsZero() && len(d.Fingerprint) > 0 && d.Read >= exif.Version:
		a.thumb, err = v.Thumb(in.Blob, in.Crop)
		if err == nil {
			a.derived, a.known = &d, true
		} else if !errors.Is(err, catalog.ErrNotFound) {
			return err
		}
	case err != nil && !errors.Is(err, catalog.ErrNotFound):
		return err
	}
	return nil
}

// decode reads all members of an input.
func (a *addition) decode(x *call.Call, o call.Object) error {
	id, err := o.ID("id")
	if err != nil {
		return err
	}
	if id != "" {
		if err := call.CheckID(call.ErrInput, o.MemberPath("id"), id); err != nil {
			return err
		}
	}
	a.create.ID = id
	data, err := o.Object("data")
	if err != nil {
		return err
	}
	if data.Has("video") {
		return call.ErrVideoInput
	}
	image, err := data.Object("image")
	if err != nil {
		return err
	}
	var in show.Media
	if in.Downloaded, err = image.Flag("downloaded"); err != nil {
		return err
	}
	inline, err := in.ReadAddress(image)
	if a.create.URL, a.create.Crop = in.URL, in.Crop; err != nil {
		return err
	}
	if err := refuseRegions(data); err != nil {
		return err
	}
	if a.create.AllowDuplicate, err = image.Flag("allow_duplicate_url"); err != nil {
		return err
	}
	if a.create.Labels, err = readLabels(x, data); err != nil {
		return err
	}
	if a.create.Meta, err = readMetadata(data); err != nil {
		return err
	}
	if a.create.Geo, err = readGeo(data); err != nil {
		return err
	}
	if a.create.ReadEXIF, err = image.Flag("read_exif"); err != nil {
		return err
	}
	a.create.ReadEXIF = a.create.ReadEXIF && a.create.Geo == nil
	if inline {
		return a.decodePicture(image)
	}
	return nil
}

// decodePicture reads the picture of an image in base64. With ReadEXIF the input gets the place of the picture's file.
func (a *addition) decodePicture(image call.Object) error {
	picture, contentType, err := show.DecodeImage(image, nil)
	if err != nil {
		return err
	}
	if a.create.ReadEXIF {
		a.create.ReadEXIF, a.create.Geo = false, call.PointOf(exif.Read(picture).Place)
	}
	a.data, a.create.Blob, a.create.ContentType = picture, blob.Sum(picture), contentType
	return nil
}

// submitAdditions submits the valid additions and answers. results belong to the additions with a picture in the request, in order.
func submitAdditions(x *call.Call, added []addition, results []call.Result) error {
	err := takeResults(x, added, results)
	// The holds of the results are released at the end: the records claim the pictures by then.
	defer releasePictures(x, added)
	if err == nil {
		err = tryAdditions(x, added)
	}
	if err != nil {
		return err
	}
	var verdicts []fold.Verdict
	bodies, at := creates(added)
	if len(bodies) > 0 {
		if verdicts, err = x.Submit(func(b *kv.Batch) { putDerived(x, b, added) }, bodies...); err != nil {
			return err
		}
	}
	items := make([]outcome, len(added))
	for i, verdict := range verdicts {
		added[at[i]].err = show.VerdictError(&verdict)
		items[at[i]].dot, items[at[i]].ord = verdict.Dot, verdict.Ord
	}
	for i := range added {
		c := &added[i].create
		items[i].input = catalog.Input{ID: c.ID, URL: c.URL, Crop: c.Crop, Code: catalog.InputPending}
		items[i].err = added[i].err
	}
	return answerOutcomes(x, items, nil)
}

// creates returns the operations of the additions without an error, and their indices in added.
func creates(added []addition) (bodies []log.Body, at []int) {
	for i := range added {
		if added[i].err == nil {
			bodies = append(bodies, &added[i].create)
			at = append(at, i)
		}
	}
	return bodies, at
}

// tryAdditions makes a replica reject additions that its state rejects, for example because the id is taken. So the caller gets the
// reason. If the addition waited for the origin instead, it could become a conflict or succeed there.
func tryAdditions(x *call.Call, added []addition) error {
	if x.App.Replica == nil {
		return nil
	}
	bodies, at := creates(added)
	verdicts, err := x.App.Replica.Try(x.Principal.By, bodies)
	if err != nil {
		return err
	}
	for i, verdict := range verdicts {
		added[at[i]].err = show.VerdictError(&verdict)
	}
	return nil
}

// takeResults assigns the results to the additions with a picture in the request, in order.
func takeResults(x *call.Call, added []addition, results []call.Result) error {
	var trouble error
	for i := range added {
		a := &added[i]
		if a.err != nil || a.data == nil {
			continue
		}
		if len(results) == 0 {
			return call.ErrNoResult
		}
		r := &results[0]
		results = results[1:]
		a.pinned, a.data = r.Blob, nil
		switch {
		case r.Err != nil && call.StatusOf(r.Err).HTTP >= 500:
			trouble = errors.Join(trouble, r.Err)
		case r.Err != nil:
			a.err = r.Err
		case r.Blob != a.create.Blob:
			trouble = errors.Join(trouble, call.ErrNoResult)
		case a.derived == nil:
			if a.derived, a.err = x.Net.Derive(&r.Analysis); a.err != nil {
				trouble = errors.Join(trouble, a.err)
			}
			a.thumb = r.Analysis.Thumb
		}
	}
	return trouble
}

// putDerived adds the results of analyses to the batch of the records that need them. A record that existed when the call began may have
// been deleted with its last input; then putDerived adds it again. From here until these inputs are folded, no cleanup runs.
func putDerived(x *call.Call, b *kv.Batch, added []addition) {
	v := x.View()
	for i := range added {
		a := &added[i]
		if a.err != nil || a.derived == nil {
			continue
		}
		exists := false
		if a.known {
			_, err := v.DerivedOf(x.Net.Base, a.create.Blob, a.create.Crop)
			exists = err == nil
		}
		if !exists {
			catalog.PutDerived(b, x.App.AppID(), x.Net.Base, a.create.Blob, a.create.Crop, *a.derived)
			catalog.PutThumb(b, x.App.AppID(), a.create.Blob, a.create.Crop, a.thumb)
		}
	}
}

func releasePictures(x *call.Call, added []addition) {
	ctx := context.WithoutCancel(x.Ctx)
	for i := range added {
		if h := added[i].pinned; !h.IsZero() {
			// The next sweep tries again to delete a blob that cannot be deleted now.
			_ = x.Host.Hosted.Unpin(ctx, h)
		}
	}
}

// readLabels reads data.concepts. Each element has an id, or a name that is the id, and a value that is true if absent. If a concept is
// repeated, its last element counts.
func readLabels(x *call.Call, data call.Object) ([]log.Label, error) {
	list, n, err := data.Objects("concepts")
	if err != nil || n == 0 {
		return nil, err
	}
	if n > call.MaxLabels {
		return nil, call.Refusef(call.ErrInput, "%s: at most %d concepts are allowed.", data.MemberPath("concepts"), call.MaxLabels)
	}
	labels := make([]log.Label, 0, n)
	for o, err := range list {
		if err != nil {
			return nil, err
		}
		label, err := readLabel(x, o)
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(labels, func(l log.Label) bool { return l.Concept == label.Concept }); i >= 0 {
			labels[i] = label
		} else {
			labels = append(labels, label)
		}
	}
	return labels, nil
}

func readLabel(x *call.Call, o call.Object) (log.Label, error) {
	id, err := conceptRef(x, o)
	if err != nil {
		return log.Label{}, err
	}
	label := log.Label{Concept: id, Value: log.False}
	present, err := o.FlagOrTrue("value")
	if present {
		label.Value = log.True
	}
	return label, err
}

// conceptRef reads the id of a label's concept. If the id is absent, the name is the id. The first use of a custom concept creates it. A
// public concept must exist.
func conceptRef(x *call.Call, o call.Object) (string, error) {
	id, err := o.ID("id")
	if err == nil && id == "" {
		id, err = o.ID("name")
	}
	if err != nil {
		return "", err
	}
	if id == "" {
		return "", call.Refusef(call.ErrInput, "%s is missing.", o.MemberPath("id"))
	}
	if _, public := x.Net.Concepts[id]; public {
		return id, nil
	}
	return id, call.CheckConceptID(call.ErrInput, o.MemberPath("id"), id)
}
