package inputs

import (
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/api/show"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// Patch changes labels, metadata and geo points of up to 128 inputs, in one write.
func Patch(x *call.Call) error {
	action, err := show.ReadAction(x, show.Actions)
	if err != nil {
		return err
	}
	elements, n, err := x.Body.LimitedObjects("inputs", call.MaxInputs, call.ErrInputs)
	if err != nil {
		return err
	}
	v := x.View()
	p := patch{x: x, v: v, action: action, inputs: map[string]*catalog.Input{}}
	items := make([]patchItem, 0, n)
	for o, malformed := range elements {
		item, err := p.item(o, malformed)
		if err != nil {
			return err
		}
		items = append(items, item)
	}
	if err := p.submit(items); err != nil {
		return err
	}
	return answerPatched(x, items)
}

// PatchConcepts changes the labels of one input. It is the form of PATCH from 2016.
func PatchConcepts(x *call.Call) error {
	action, err := show.ReadAction(x, show.ConceptActions)
	if err != nil {
		return err
	}
	v, in, err := inputOfPath(x)
	if err != nil {
		return err
	}
	p := patch{x: x, v: v, action: action}
	bodies, err := p.labels(&in, x.Body)
	if err != nil {
		return err
	}
	items := []patchItem{{id: in.ID, dot: in.Dot, ord: in.Ord, bodies: bodies}}
	if err := p.submit(items); err != nil {
		return err
	}
	if err := items[0].err; err != nil {
		return err
	}
	if v, in, err = inputOfPath(x); err != nil {
		return err
	}
	return answerInput(x, v, &in, &call.StatusModified)
}

// patch is a running PATCH. Its inputs include the changes of earlier items, so that an input that is listed twice
// is changed twice.
type patch struct {
	x      *call.Call
	v      *partition.View
	action show.Action
	inputs map[string]*catalog.Input // by id
}

// patchItem is one item of a PATCH.
type patchItem struct {
	id     string
	dot    log.Dot // operation that created the input
	ord    uint32
	bodies []log.Body
	err    error // reason why it is not changed
}

// item reads the changes of an element. It stores a fault of the element in err of the item. The returned error is internal.
func (p *patch) item(o call.Object, malformed error) (patchItem, error) {
	if malformed != nil {
		return patchItem{err: malformed}, nil
	}
	item := patchItem{}
	if item.id, item.err = o.ID("id"); item.err != nil {
		return item, nil
	}
	in, err := p.input(item.id)
	switch {
	case errors.Is(err, catalog.ErrNotFound):
		item.err = call.Refusef(call.ErrNoInput, "%s: input '%s' not found.", o.MemberPath("id"), item.id)
		return item, nil
	case err != nil:
		return item, err
	}
	item.dot, item.ord = in.Dot, in.Ord
	data, err := o.Object("data")
	if err == nil {
		item.bodies, err = p.changes(in, data)
	}
	if item.err = err; err != nil {
		item.bodies = nil
	}
	return item, nil
}

func (p *patch) input(id string) (*catalog.Input, error) {
	if in, ok := p.inputs[id]; ok {
		return in, nil
	}
	in, err := p.v.InputByID(id)
	if err != nil {
		return nil, err
	}
	p.inputs[id] = &in
	return &in, nil
}

// changes returns the operations that data requires.
func (p *patch) changes(in *catalog.Input, data call.Object) ([]log.Body, error) {
	if err := p.samePicture(in, data); err != nil {
		return nil, err
	}
	after := *in
	bodies, err := p.labels(&after, data)
	if err != nil {
		return nil, err
	}
	if data.Has("metadata") {
		writes, err := p.metadata(&after, data)
		if err != nil {
			return nil, err
		}
		if len(writes) > 0 {
			bodies = append(bodies, &log.InputMeta{Input: in.Dot, Writes: writes})
		}
	}
	at, err := readGeo(data)
	if err != nil {
		return nil, err
	}
	if at != nil {
		if p.action == show.Remove {
			at = nil
		}
		bodies = append(bodies, &log.InputGeo{Input: in.Dot, Geo: at})
	}
	*in = after
	return bodies, nil
}

// samePicture returns an error for data that would change the picture of an input. Clients may repeat the url and the crop in an answer.
func (p *patch) samePicture(in *catalog.Input, data call.Object) error {
	if data.Has("video") {
		return call.Refusef(call.ErrInput, "%s: stored inputs have pictures; a picture cannot become a video.", data.MemberPath("video"))
	}
	var err error
	image := call.Read(&err, data.Object, "image")
	address := call.Read(&err, image.Text, "url")
	if err != nil {
		return err
	}
	crop, err := show.ReadCrop(image, "crop")
	if err != nil {
		return err
	}
	fixed := func(o call.Object, name string) error {
		return call.Refusef(call.ErrInput, "%s: a stored picture cannot be changed; add the new picture as another input.", o.MemberPath(name))
	}
	address = strings.TrimSpace(address)
	switch {
	case address != "" && address != show.AddressOf(p.x, in):
		return fixed(image, "url")
	case show.IsInline(image):
		return fixed(image, "base64")
	case crop != (raster.Crop{}) && crop != in.Crop:
		return fixed(image, "crop")
	}
	return refuseRegions(data)
}

// labels returns the operation that data.concepts requires, or none if it lists no concepts.
func (p *patch) labels(in *catalog.Input, data call.Object) ([]log.Body, error) {
	labels, err := readLabels(p.x, data)
	if err != nil {
		return nil, err
	}
	switch p.action {
	case show.Remove:
		for i := range labels {
			labels[i].Value = log.Removed
		}
	case show.Overwrite:
		if !data.Has("concepts") {
			return nil, nil
		}
		for i := range in.Labels {
			of := func(l log.Label) bool { return l.Concept == in.Labels[i].Concept }
			if in.Labels[i].Value != log.Removed && !slices.ContainsFunc(labels, of) {
				labels = append(labels, log.Label{Concept: in.Labels[i].Concept, Value: log.Removed})
			}
		}
	}
	if len(labels) == 0 {
		return nil, nil
	}
	in.Labels = slices.Clone(in.Labels)
	live := 0
	for _, label := range labels {
		of := func(l catalog.Label) bool { return l.Concept == label.Concept }
		if i := slices.IndexFunc(in.Labels, of); i >= 0 {
			in.Labels[i].Value = label.Value
		} else {
			in.Labels = append(in.Labels, catalog.Label{Label: label})
		}
	}
	for i := range in.Labels {
		if in.Labels[i].Value != log.Removed {
			live++
		}
	}
	if live > call.MaxLabels {
		return nil, call.Refusef(call.ErrInput, "%s: an input can have at most %d concepts.", data.MemberPath("concepts"), call.MaxLabels)
	}
	return []log.Body{&log.InputLabels{Input: in.Dot, Labels: labels}}, nil
}

// metadata returns the writes that data.metadata requires. It returns an error if their result exceeds the limits.
func (p *patch) metadata(in *catalog.Input, data call.Object) ([]log.MetaWrite, error) {
	v := data.Get("metadata")
	if err := checkMeta(v.Raw()); err != nil {
		return nil, data.Wrap("metadata", err)
	}
	translate := [...]func(stored, patch []byte) ([]log.MetaWrite, error){
		show.Merge: catalog.MergeWrites, show.Remove: catalog.RemoveWrites, show.Overwrite: catalog.OverwriteWrites,
	}[p.action]
	writes, err := translate(in.Meta.JSON(), v.Raw())
	if err != nil {
		return nil, data.Wrap("metadata", call.Refuse(call.ErrInput, err))
	}
	meta := slices.Clone(in.Meta)
	for _, w := range writes {
		if _, err := meta.Write(w, log.Stamp{At: math.MaxUint64}); err != nil {
			return nil, data.Wrap("metadata", call.Refuse(call.ErrInput, err))
		}
	}
	if doc := meta.JSON(); doc != nil {
		if err := checkMeta(doc); err != nil {
			return nil, data.Wrap("metadata", err)
		}
	}
	in.Meta = meta
	return writes, nil
}

// submit submits the operations of all items in one write, and sets the errors of refused items.
func (p *patch) submit(items []patchItem) error {
	var bodies []log.Body
	for i := range items {
		bodies = append(bodies, items[i].bodies...)
	}
	if len(bodies) == 0 {
		return nil
	}
	verdicts, err := p.x.Submit(nil, bodies...)
	if err != nil {
		return err
	}
	for i := range items {
		for range items[i].bodies {
			if err := show.VerdictError(&verdicts[0]); err != nil {
				items[i].err = err
			}
			verdicts = verdicts[1:]
		}
	}
	return nil
}

// answerPatched answers a PATCH with the inputs after the changes.
func answerPatched(x *call.Call, items []patchItem) error {
	deletedErr := show.VerdictError(&fold.Verdict{Code: fold.Gone})
	all := make([]outcome, len(items))
	for i := range items {
		all[i] = outcome{dot: items[i].dot, ord: items[i].ord, input: catalog.Input{ID: items[i].id}, err: items[i].err, deletedErr: deletedErr}
	}
	return answerOutcomes(x, all, &call.StatusModified)
}
