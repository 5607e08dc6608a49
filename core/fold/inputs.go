package fold

import (
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/log"
)

// live returns the input with the dot of its creation, without what the horizon has collected.
func (f *Fold) live(dot log.Dot) (catalog.Input, error) {
	in, err := f.w.InputByDot(dot)
	if err == nil {
		in.DropRemovals(f.h.Horizon)
	}
	return in, err
}

// count adds by to the count of inputs at a code.
func (f *Fold) count(code int, by uint64) {
	switch code {
	case catalog.InputReady:
		f.h.Counts.Processed += by
	case catalog.InputPending:
		f.h.Counts.ToProcess += by
	default:
		f.h.Counts.Errors += by
	}
}

// hasFailed reports whether an input's download or analysis has failed.
func hasFailed(in *catalog.Input) bool {
	return in.Code != catalog.InputReady && in.Code != catalog.InputPending
}

// inputCreate creates an input. The order of the log decides which input gets an id or a URL.
func (f *Fold) inputCreate(b *log.InputCreate) (Verdict, error) {
	if why := createFault(b); why != "" {
		return refusal(why), nil
	}
	if v, err := f.deadInput(); err != nil || v.Code != 0 {
		return v, err
	}
	id := f.idOr(b.ID, "input")
	replaced, v, err := f.inTheWay(id, b)
	if err != nil || v.Code != 0 {
		return v, err
	}
	in, err := f.newInput(id, b)
	if err != nil {
		return refusal("metadata"), nil
	}
	var ok bool
	if in.Ord, ok = f.ord(); !ok {
		return Verdict{Code: Refused, Detail: "quota: ordinals"}, nil
	}
	for i := range replaced {
		if err := f.deleteInput(&replaced[i]); err != nil {
			return Verdict{}, err
		}
	}
	f.count(in.Code, 1)
	if err := f.w.InsertInput(in); err != nil {
		return Verdict{}, err
	}
	f.note(knownID, in.ID)
	f.note(knownURL, in.URL)
	f.changed(Change{After: in})
	for _, l := range b.Labels {
		if err := f.useConcept(l.Concept, l.Value); err != nil {
			return Verdict{}, err
		}
	}
	return Verdict{Code: OK, Ord: in.Ord, Dot: in.Dot, ID: in.ID}, nil
}

// deadInput returns the verdict on the creation of an input that a deletion has named already.
func (f *Fold) deadInput() (Verdict, error) {
	switch deleted, err := f.wasDeleted(); {
	case err != nil:
		return Verdict{}, err
	case deleted:
		return Verdict{Code: Superseded}, nil
	case f.stamp.At < f.h.Barrier:
		return Verdict{Code: Gone}, nil
	}
	n, err := f.namesOf(f.e.Op.Dot.Writer)
	if err != nil || f.e.Op.Dot.Seq > n.DeletedUpTo {
		return Verdict{}, err
	}
	return Verdict{Code: Gone}, nil
}

// createFault returns the reason why a create is invalid, or "".
func createFault(b *log.InputCreate) string {
	switch {
	case !orNone(b.ID):
		return "id"
	case b.URL == "" && b.Blob.IsZero():
		return "no picture"
	case !isCrop(b.Crop):
		return "crop"
	case !isPlace(b.Geo):
		return "geo"
	case !areLabels(b.Labels):
		return "labels"
	}
	return ""
}

// inTheWay returns the failed inputs that a create replaces. If another input has its id or URL, it returns the verdict.
func (f *Fold) inTheWay(id string, b *log.InputCreate) (replaced []catalog.Input, v Verdict, err error) {
	other, err := f.inputByID(id)
	switch {
	case errors.Is(err, catalog.ErrNotFound):
	case err != nil:
		return nil, Verdict{}, err
	case hasFailed(&other):
		replaced = append(replaced, other)
	case b.MergeIfEqual && other.Blob == b.Blob && other.Crop == b.Crop && other.URL == b.URL:
		v, err = f.inputLabels(&log.InputLabels{Input: other.Dot, Labels: b.Labels, Seen: b.Seen})
		return nil, v, err
	default:
		return nil, duplicate("id", &other), nil
	}
	if b.URL != "" && !f.mayExist(knownURL, b.URL) {
		f.w.MarkURLUnused(b.URL)
	}
	if b.URL == "" || b.AllowDuplicate {
		return replaced, Verdict{}, nil
	}
	if free, err := f.w.IsURLUnused(b.URL); free || err != nil {
		return replaced, Verdict{}, err
	}
	ords, err := catalog.Collect(func(yield func(uint32) bool) error { return f.w.InputsWithURL(b.URL, yield) })
	for _, ord := range ords {
		if err != nil {
			break
		}
		if other, err = f.w.Input(ord); err != nil {
			break
		}
		if !hasFailed(&other) {
			return nil, duplicate("url", &other), nil
		}
		if other.ID != id {
			replaced = append(replaced, other)
		}
	}
	return replaced, Verdict{}, err
}

// inputByID returns the live input with an id.
func (f *Fold) inputByID(id string) (catalog.Input, error) {
	if !f.mayExist(knownID, id) {
		return catalog.Input{}, catalog.ErrNotFound
	}
	return f.w.InputByID(id)
}

func duplicate(of string, other *catalog.Input) Verdict {
	return Verdict{Code: Duplicate, Detail: of, Ord: other.Ord, Dot: other.Dot, ID: other.ID}
}

// newInput returns the record of a create. It returns an error for invalid metadata.
func (f *Fold) newInput(id string, b *log.InputCreate) (*catalog.Input, error) {
	op := &f.e.Op
	in := &catalog.Input{
		Dot: op.Dot, ID: id, Created: op.At, Made: op.Made, Modified: op.At, By: op.By,
		URL: b.URL, Blob: b.Blob, ContentType: b.ContentType, Hosted: b.Hosted, Crop: b.Crop,
		Code: catalog.InputPending, Geo: b.Geo, ReadEXIF: b.ReadEXIF && f.inForce(rulesOfEXIF),
	}
	if !b.Blob.IsZero() {
		in.Code = catalog.InputReady
	}
	if b.Geo != nil {
		in.GeoAt = f.stamp
	}
	if len(b.Labels) > 0 {
		in.Labels = make([]catalog.Label, 0, len(b.Labels))
	}
	for _, l := range b.Labels {
		if l.Value != log.Removed {
			setLabel(in, l, f.stamp)
		}
	}
	if b.Meta != nil {
		if _, err := in.Meta.Write(log.MetaWrite{JSON: b.Meta}, f.stamp); err != nil {
			return nil, err
		}
	}
	return in, nil
}

// deleteInput deletes an incarnation for ever.
func (f *Fold) deleteInput(in *catalog.Input) error {
	f.count(in.Code, math.MaxUint64) // one less
	f.changed(Change{Before: in})
	if err := f.w.DeleteContradictionsOf(&f.h, in.Dot); err != nil {
		return err
	}
	return f.w.DeleteInput(in)
}

// setLabel writes a label. It returns false if the write is superseded.
func setLabel(in *catalog.Input, l log.Label, at log.Stamp) bool {
	return put(&in.Labels, catalog.Label{Label: l, At: at}, func(l catalog.Label) (string, log.Stamp) { return l.Concept, l.At })
}

// put writes an entry into a list in the order of its entries' keys. It returns false if the write is superseded.
func put[E any](list *[]E, e E, of func(E) (key string, at log.Stamp)) bool {
	key, at := of(e)
	i, ok := slices.BinarySearchFunc(*list, key, func(have E, key string) int {
		has, _ := of(have)
		return strings.Compare(has, key)
	})
	if !ok {
		*list = slices.Insert(*list, i, e)
		return true
	}
	if _, written := of((*list)[i]); at.Less(written) {
		return false
	}
	(*list)[i] = e
	return true
}

// inputFetched ends a download. It changes an input at 30001, and an unread one as reads reports.
func (f *Fold) inputFetched(b *log.InputFetched) (Verdict, error) {
	if b.Code <= 0 || b.Code == catalog.InputPending || (b.Code == catalog.InputReady) == b.Blob.IsZero() {
		return refusal("code"), nil
	}
	return f.change(b.Input, func(in *catalog.Input) (bool, error) {
		if in.Code != catalog.InputPending && !f.reads(in, b) {
			return false, nil
		}
		f.count(in.Code, math.MaxUint64)
		f.count(b.Code, 1)
		in.Code, in.Detail, in.Blob, in.ContentType = b.Code, b.Detail, b.Blob, b.ContentType
		return true, nil
	})
}

// reads reports whether a download makes an input ready that ended as unread. It does so once, so anyone may try again. By rules before
// [RulesOfNames] only an origin may.
func (f *Fold) reads(in *catalog.Input, b *log.InputFetched) bool {
	if !in.IsUnreadable() || b.Code != catalog.InputReady {
		return false
	}
	return f.inForce(RulesOfNames) || f.e.Op.Dot.Writer.IsOrigin() && f.inForce(rulesOfUnread)
}

// write is change for writes of fields, which are stale below the horizon.
func (f *Fold) write(dot log.Dot, edit func(in *catalog.Input) (bool, error)) (Verdict, error) {
	if !f.stale() {
		return f.change(dot, edit)
	}
	in, err := f.live(dot)
	if err != nil {
		return missingVerdict(err)
	}
	return Verdict{Code: Stale, Ord: in.Ord, Dot: in.Dot, ID: in.ID}, nil
}

// change edits an input. edit gets a copy with its own slices and reports whether anything changed. An error of edit makes the operation
// refused.
func (f *Fold) change(dot log.Dot, edit func(in *catalog.Input) (bool, error)) (Verdict, error) {
	before, err := f.live(dot)
	if err != nil {
		return missingVerdict(err)
	}
	after := before
	after.Labels, after.Edits = slices.Clone(before.Labels), slices.Clone(before.Edits)
	after.Meta = slices.Clone(before.Meta)
	changed, err := edit(&after)
	if err != nil {
		return refusal(err.Error()), nil
	}
	v := Verdict{Code: OK, Ord: before.Ord, Dot: before.Dot, ID: before.ID}
	if !changed {
		v.Code = Superseded
		return v, nil
	}
	after.Modified = max(after.Modified, f.stamp.At)
	f.w.UpdateInput(&before, &after)
	f.changed(Change{Before: &before, After: &after})
	return v, nil
}

func (f *Fold) inputLabels(b *log.InputLabels) (Verdict, error) {
	if !areLabels(b.Labels) {
		return refusal("labels"), nil
	}
	var met []meeting
	v, err := f.write(b.Input, func(in *catalog.Input) (changed bool, err error) {
		for i, l := range b.Labels {
			met = append(met, ofLabel(in, l, b.Seen.Of(i)))
			changed = setLabel(in, l, f.stamp) || changed
		}
		return changed, nil
	})
	if err == nil {
		err = f.meetAll(v, met)
	}
	if err != nil || v.Code != OK {
		return v, err
	}
	for _, l := range b.Labels {
		if err := f.useConcept(l.Concept, l.Value); err != nil {
			return Verdict{}, err
		}
	}
	return v, nil
}

func (f *Fold) inputMeta(b *log.InputMeta) (Verdict, error) {
	var met []meeting
	v, err := f.write(b.Input, func(in *catalog.Input) (changed bool, err error) {
		for i, w := range b.Writes {
			met = append(met, ofMeta(in, w, b.Seen.Of(i))...)
			did, err := in.Meta.Write(w, f.stamp)
			if err != nil {
				return false, err
			}
			changed = changed || did
		}
		return changed, nil
	})
	if err == nil {
		err = f.meetAll(v, met)
	}
	return v, err
}

func (f *Fold) inputGeo(b *log.InputGeo) (Verdict, error) {
	if !isPlace(b.Geo) {
		return refusal("geo"), nil
	}
	var met []meeting
	v, err := f.write(b.Input, func(in *catalog.Input) (bool, error) {
		met = ofPlace(in, b.Geo, b.Seen)
		if f.stamp.Less(in.GeoAt) {
			return false, nil
		}
		in.Geo, in.GeoAt = b.Geo, f.stamp
		return true, nil
	})
	if err == nil {
		err = f.meetAll(v, met)
	}
	return v, err
}

func (f *Fold) outputsPatch(b *log.OutputsPatch) (Verdict, error) {
	if !areEdits(b.Edits) {
		return refusal("outputs"), nil
	}
	v, err := f.write(b.Input, func(in *catalog.Input) (changed bool, err error) {
		for _, x := range b.Edits {
			changed = setEdit(in, x, f.stamp) || changed
		}
		return changed, nil
	})
	if err != nil || v.Code != OK || !f.inForce(rulesOfConcepts) {
		return v, err
	}
	for _, x := range b.Edits {
		if x.Removed {
			continue
		}
		if err := f.useConcept(x.Concept, log.True); err != nil {
			return Verdict{}, err
		}
	}
	return v, nil
}

// setEdit writes an edit of a prediction. It returns false if the write is superseded.
func setEdit(in *catalog.Input, x log.OutputEdit, at log.Stamp) bool {
	return put(&in.Edits, catalog.Edit{OutputEdit: x, At: at}, func(x catalog.Edit) (string, log.Stamp) { return x.Concept, x.At })
}

func (f *Fold) inputDelete(b *log.InputDelete) (Verdict, error) {
	in, err := f.live(b.Input)
	if err != nil {
		// The caller who deletes the input again has seen the record of its deletion.
		if dismissed, failed := f.forget(catalog.Register{Kind: catalog.DeletionRegister, Dot: b.Input}); dismissed || failed != nil {
			return Verdict{Code: OK, Dot: b.Input}, failed
		}
		return f.deleteMissing(b.Input, err)
	}
	if err := errors.Join(f.deleteInput(&in), f.meetDeletion(&in, b.Seen)); err != nil {
		return Verdict{}, err
	}
	return Verdict{Code: OK, Dot: in.Dot, ID: in.ID}, nil
}

func (f *Fold) inputDeleteAll(b *log.InputDeleteAll) (Verdict, error) {
	if f.inForce(RulesOfNames) && len(b.Upto) > 0 {
		return f.deleteAll(b)
	}
	if b.Barrier {
		f.h.Barrier = max(f.h.Barrier, f.stamp.At)
	}
	return Verdict{Code: OK}, f.deleteOthers(nil)
}
