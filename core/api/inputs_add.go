package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/search"
)

// addition is one input of a call that adds some. It owns its memory.
type addition struct {
	create  log.InputCreate
	data    []byte           // the picture, when it came as base64
	derived *catalog.Derived // of the picture
	thumb   []byte
	known   bool      // both were there when the call began
	held    blob.Hash // to be released when the call is over
	err     error     // why it is not added
}

// wantOfInputs is what is kept of every input's picture.
const wantOfInputs = predict.WantConcepts | predict.WantThumb

// addInputs adds up to 128 inputs, in one write. Each goes its own way: one that cannot be
// added has a status that says why. Pictures sent as base64 are analysed within the call;
// those behind addresses are fetched afterwards.
func addInputs(x *Call) error {
	elements, n, err := x.body.some("inputs", maxInputs, ErrInputs)
	if err != nil {
		return err
	}
	v := x.app.Partition.View()
	defer v.Close()
	added := make([]addition, n)
	var jobs []Job
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
		job := Job{Data: a.data, Crop: a.create.Crop, Keep: true}
		if a.derived == nil {
			job.Want = wantOfInputs
		}
		jobs = append(jobs, job)
	}
	if len(jobs) == 0 {
		return submitAdditions(x, added, nil)
	}
	x.ask(jobs, func(results []Result) error { return submitAdditions(x, added, results) })
	return nil
}

// read decodes an input. What is wrong with it stands in its err; the error returned is
// trouble of our own.
func (a *addition) read(x *Call, v *partition.View, o object, malformed error) error {
	a.err = malformed
	if a.err == nil {
		a.err = a.decode(x, o)
	}
	if a.err != nil && statusOf(a.err).http >= 500 {
		return a.err
	}
	if a.create.ID == "" {
		id, err := x.newID()
		if err != nil {
			return err
		}
		a.create.ID = id
	}
	if a.err != nil {
		return nil
	}
	if _, err := io.ReadFull(x.s.o.Rand, a.create.Hosted[:]); err != nil {
		return fmt.Errorf("random source: %w", err)
	}
	if a.data == nil {
		return nil
	}
	in := catalog.Input{Blob: blob.Sum(a.data), Crop: a.create.Crop}
	d, err := v.Derived(x.net.base, &in)
	switch {
	case err == nil && !d.Thumb.IsZero() && len(d.Print) > 0:
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

// decode reads everything that an input says of itself.
func (a *addition) decode(x *Call, o object) error {
	id, err := o.id("id")
	if err != nil {
		return err
	}
	if id != "" {
		if err := checkID(ErrInput, o.at("id"), id); err != nil {
			return err
		}
	}
	a.create.ID = id
	data, err := o.object("data")
	if err != nil {
		return err
	}
	if data.has("video") {
		return ErrVideoKept
	}
	image, err := data.object("image")
	if err != nil {
		return err
	}
	var in input
	if in.downloaded, err = image.flag("downloaded"); err != nil {
		return err
	}
	inline, err := in.address(image)
	if a.create.URL, a.create.Crop = in.url, in.crop; err != nil {
		return err
	}
	if err := refuseRegions(data); err != nil {
		return err
	}
	if a.create.AllowDuplicate, err = image.flag("allow_duplicate_url"); err != nil {
		return err
	}
	if a.create.Labels, err = readLabels(x, data); err != nil {
		return err
	}
	if a.create.Meta, err = readMetadata(data); err != nil {
		return err
	}
	if a.create.Geo, err = readGeo(data); err != nil || !inline {
		return err
	}
	picture, contentType, err := decodeImage(image, nil)
	if err != nil {
		return err
	}
	a.data, a.create.Blob, a.create.ContentType = picture, blob.Sum(picture), contentType
	return nil
}

// submitAdditions submits what can be added and answers. results belong to the additions with a picture
// of their own, in order.
func submitAdditions(x *Call, added []addition, results []Result) error {
	err := takeResults(x, added, results)
	// What the results hold is let go of in the end: the records claim it by then.
	defer releaseHeld(x, added)
	if err == nil {
		err = tryAdditions(x, added)
	}
	if err != nil {
		return err
	}
	var verdicts []fold.Verdict
	bodies, at := creates(added)
	if len(bodies) > 0 {
		if verdicts, err = x.submit(bodies, func(b *kv.Batch) { putDerived(x, b, added) }); err != nil {
			return err
		}
	}
	ords := make([]uint32, len(added))
	for i, verdict := range verdicts {
		added[at[i]].err = errorOf(&verdict)
		ords[at[i]] = verdict.Ord
	}
	return answerAdded(x, added, ords)
}

// creates are the operations of the additions that can be made, and which ones those are.
func creates(added []addition) (bodies []log.Body, at []int) {
	for i := range added {
		if added[i].err == nil {
			bodies = append(bodies, &added[i].create)
			at = append(at, i)
		}
	}
	return bodies, at
}

// tryAdditions has a copy refuse what is refused as things stand here, such as an id that is taken: who
// asked is told so, and nothing of it waits for the origin, to come back as a conflict or to be done after all.
func tryAdditions(x *Call, added []addition) error {
	if !x.app.Partition.Copied() {
		return nil
	}
	bodies, at := creates(added)
	verdicts, err := x.app.Partition.Try(x.who.By, bodies)
	if err != nil {
		return err
	}
	for i, verdict := range verdicts {
		added[at[i]].err = errorOf(&verdict)
	}
	return nil
}

// takeResults gives the additions their results.
func takeResults(x *Call, added []addition, results []Result) error {
	var trouble error
	for i := range added {
		a := &added[i]
		if a.err != nil || a.data == nil {
			continue
		}
		if len(results) == 0 {
			return errNoResult
		}
		r := &results[0]
		results = results[1:]
		a.held, a.data = r.Blob, nil
		switch {
		case r.Err != nil && statusOf(r.Err).http >= 500:
			trouble = errors.Join(trouble, r.Err)
		case r.Err != nil:
			a.err = r.Err
		case r.Blob != a.create.Blob:
			trouble = errors.Join(trouble, errNoResult)
		case a.derived == nil:
			if a.derived, a.err = x.net.derive(&r.Analysis); a.err != nil {
				trouble = errors.Join(trouble, a.err)
			}
			a.thumb = r.Analysis.Thumb
		}
	}
	return trouble
}

// derive is what is kept of an analysis with wantOfInputs.
func (n *network) derive(a *predict.Analysis) (*catalog.Derived, error) {
	general := n.models.General()
	values := general.Values(a)
	if a.Has&wantOfInputs != wantOfInputs || len(values) != len(general.Concepts) {
		return nil, errNoResult
	}
	embedding, err := a.Embedding.MarshalBinary()
	if err != nil {
		return nil, err
	}
	fingerprint, err := search.Fingerprint(raster.NewDecoder(raster.Limits{}), a.Thumb)
	if err != nil {
		return nil, fmt.Errorf("%w: thumbnail: %v", errNoResult, err) // the picture itself was read
	}
	return &catalog.Derived{Embedding: embedding, Values: values, Thumb: blob.Sum(a.Thumb), Print: fingerprint}, nil
}

// putDerived adds what analysing has given to the batch of the records that need it. What was
// there when the call began may have gone with the last input that had it, and is put again then:
// from here on until these inputs are folded nothing is tidied.
func putDerived(x *Call, b *kv.Batch, added []addition) {
	v := x.app.Partition.View()
	defer v.Close()
	for i := range added {
		a := &added[i]
		if a.err != nil || a.derived == nil {
			continue
		}
		there := false
		if a.known {
			_, err := v.DerivedOf(x.net.base, a.create.Blob, a.create.Crop)
			there = err == nil
		}
		if !there {
			catalog.PutDerived(b, x.app.appID(), x.net.base, a.create.Blob, a.create.Crop, *a.derived)
			catalog.PutThumb(b, x.app.appID(), a.create.Blob, a.create.Crop, a.thumb)
		}
	}
}

func releaseHeld(x *Call, added []addition) {
	ctx := context.WithoutCancel(x.ctx)
	for i := range added {
		if h := added[i].held; !h.IsZero() {
			// A blob that cannot be deleted now is tried again by the next sweep.
			_ = x.s.o.Hosted.Release(ctx, h)
		}
	}
}

// errorOf is what a verdict means for the item it is about; nil: it is done.
func errorOf(v *fold.Verdict) error {
	switch v.Code {
	case fold.OK, fold.Superseded:
		return nil
	case fold.Duplicate:
		if v.Detail == "url" {
			return refusef(ErrDuplicate, "An input with this URL already exists. Set allow_duplicate_url to add it again.")
		}
		return refusef(ErrDuplicate, "An input with this %s already exists.", v.Detail)
	case fold.Gone:
		return refusef(ErrNoInput, "The input was deleted.")
	}
	if why, ok := strings.CutPrefix(v.Detail, partition.QuotaRefused); ok {
		return refusef(auth.ErrQuota, "Storage limit: %s.", why)
	}
	return refusef(ErrInput, "%s", v.Detail)
}

// answerAdded answers a call that added inputs.
func answerAdded(x *Call, added []addition, ords []uint32) error {
	items := make([]outcome, len(added))
	for i := range added {
		items[i] = outcome{ord: ords[i], asked: added[i].refused(), err: added[i].err}
		items[i].asked.Code = catalog.InputPending
	}
	return answerOutcomes(x, items, nil)
}

// refused is what can be said of an input that was not added.
func (a *addition) refused() catalog.Input {
	return catalog.Input{ID: a.create.ID, URL: a.create.URL, Crop: a.create.Crop}
}

// readLabels reads data.concepts: each an id, or a name that is one, and whether it is present.
// What says nothing is; the last word on a concept counts.
func readLabels(x *Call, data object) ([]log.Label, error) {
	list, n, err := data.objects("concepts")
	if err != nil || n == 0 {
		return nil, err
	}
	if n > maxLabels {
		return nil, refusef(ErrInput, "%s: at most %d concepts are allowed.", data.at("concepts"), maxLabels)
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

func readLabel(x *Call, o object) (log.Label, error) {
	id, err := conceptRef(x, o)
	if err != nil {
		return log.Label{}, err
	}
	present, err := o.truth("value", true)
	if err != nil {
		return log.Label{}, err
	}
	if present {
		return log.Label{Concept: id, Value: log.True}, nil
	}
	return log.Label{Concept: id, Value: log.False}, nil
}

// conceptRef reads the id of a concept that is labelled with, which may stand as its name.
// An own concept is made by its first use; a public one must be there.
func conceptRef(x *Call, o object) (string, error) {
	id, err := o.id("id")
	if err == nil && id == "" {
		id, err = o.id("name")
	}
	if err != nil {
		return "", err
	}
	if id == "" {
		return "", refusef(ErrInput, "%s is missing.", o.at("id"))
	}
	if _, public := x.net.concepts[id]; public {
		return id, nil
	}
	return id, checkConceptID(ErrInput, o.at("id"), id)
}

// appID is the application's id as records know it.
func (a *Application) appID() catalog.AppID {
	id, _ := catalog.ParseAppID(a.ID) // it is one of ours
	return id
}
