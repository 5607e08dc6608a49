package catalog

import (
	"encoding/binary"
	"errors"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// Writer changes one application's records together with all the keys that lead to them. It reads its own writes. Only the fold may write
// records: any other writer breaks the state's digest.
type Writer struct {
	Reader
	tx      *kv.Overlay
	buf     []byte // scratch for a record
	scratch []byte // scratch for a key
	freeURL string // URL that no live input has
}

// Write returns a writer of app into tx.
func Write(tx *kv.Overlay, app AppID) *Writer { return &Writer{Reader: Read(tx, app), tx: tx} }

// PutHeader writes the header.
func (w *Writer) PutHeader(h *Header) { w.tx.Put(w.app.key(tableHeader, 0), encodeHeader(nil, h)) }

// key begins a key in a table. It is valid until the next call.
func (w *Writer) key(table byte) []byte {
	w.scratch = append(append(append(w.scratch[:0], tableApp), w.app[:]...), table)
	return w.scratch
}

// InsertInput writes a new input.
func (w *Writer) InsertInput(in *Input) error {
	ord := binary.BigEndian.AppendUint32(make([]byte, 0, 4), in.Ord)
	w.putInput(in)
	w.tx.Put(append(w.key(tableInputID), in.ID...), ord)
	w.tx.Put(in.Dot.AppendKey(w.key(tableInputDot)), ord)
	if !in.Blob.IsZero() {
		w.tx.Put(append(appendPicture(w.key(tableBlob), in.Blob, in.Crop), ord...), nil)
	}
	if in.Code == InputPending {
		w.tx.Put(append(w.key(tablePending), ord...), nil)
	}
	if in.Hosted != [16]byte{} {
		w.scratch = append(append(append(w.scratch[:0], tableHosted), in.Hosted[:]...), w.app[:]...)
		w.tx.Put(w.scratch, ord)
	}
	return w.insertURL(in.URL, ord)
}

// insertURL records that the newest input has a URL. For most URLs one key shows whether the URL is free, or which input has it. Reading
// this key is cheaper than reading a range.
func (w *Writer) insertURL(url string, ord []byte) error {
	if url == "" {
		return nil
	}
	free, err := w.IsURLUnused(url)
	if err != nil {
		return err
	}
	w.freeURL = ""
	if key := appendURL(w.key(tableURL), url); free {
		w.tx.Put(key, ord)
	} else {
		w.tx.Put(append(key, ord...), nil)
	}
	return nil
}

// IsURLUnused reports whether no live input has a URL.
func (w *Writer) IsURLUnused(url string) (bool, error) {
	if url == w.freeURL {
		return true, nil
	}
	_, err := w.tx.Get(w.app.url(url))
	if !errors.Is(err, kv.ErrNotFound) {
		return false, err
	}
	w.freeURL = url
	return true, nil
}

// MarkURLUnused records that no live input has a URL, so that the insert of the next input with this URL does not look it up.
func (w *Writer) MarkURLUnused(url string) { w.freeURL = url }

// deleteURL records that an input no longer has a URL. The oldest other input with the URL inherits it.
func (w *Writer) deleteURL(url string, ord uint32) error {
	if url == "" {
		return nil
	}
	var heirs []uint32
	err := w.InputsWithURL(url, func(other uint32) bool {
		heirs = append(heirs, other)
		return len(heirs) < 2
	})
	if err != nil {
		return err
	}
	key := w.app.url(url)
	switch {
	case len(heirs) > 0 && heirs[0] != ord:
		w.tx.Delete(binary.BigEndian.AppendUint32(key, ord))
	case len(heirs) > 1:
		heir := binary.BigEndian.AppendUint32(nil, heirs[1])
		w.tx.Put(key, heir)
		w.tx.Delete(append(key, heir...))
	default:
		w.tx.Delete(key)
	}
	return nil
}

func hostedKey(name [16]byte, app AppID) []byte {
	k := append(make([]byte, 0, 33), tableHosted)
	return append(append(k, name[:]...), app[:]...)
}

func (w *Writer) putInput(in *Input) {
	w.buf = encodeInput(w.buf, in)
	w.tx.Put(binary.BigEndian.AppendUint32(w.key(tableInput), in.Ord), w.buf)
}

// UpdateInput replaces the record before by after, of the same input. Ordinal, dot, id, URL, crop and public name are unchanged, and so
// is an existing picture.
func (w *Writer) UpdateInput(before, after *Input) {
	w.putInput(after)
	if before.Blob != after.Blob {
		ord := binary.BigEndian.AppendUint32(nil, after.Ord)
		w.tx.Put(append(w.app.picture(tableBlob, after.Blob, after.Crop, 4), ord...), nil)
	}
	if before.Code == InputPending && after.Code != InputPending {
		w.tx.Delete(w.app.uint32Key(tablePending, after.Ord))
	}
}

// DeleteInput removes an input and schedules the deletion of the data derived from its picture.
func (w *Writer) DeleteInput(in *Input) error {
	ord := binary.BigEndian.AppendUint32(nil, in.Ord)
	w.tx.Delete(w.app.uint32Key(tableInput, in.Ord))
	w.tx.Delete(w.app.stringKey(tableInputID, in.ID))
	w.tx.Delete(w.app.dotKey(tableInputDot, in.Dot, 0))
	if !in.Blob.IsZero() {
		w.tx.Delete(append(w.app.picture(tableBlob, in.Blob, in.Crop, 4), ord...))
		w.scheduleDerivedCleanup(in)
	}
	if in.Code == InputPending {
		w.tx.Delete(w.app.uint32Key(tablePending, in.Ord))
	}
	if in.Hosted != [16]byte{} {
		w.tx.Delete(hostedKey(in.Hosted, w.app))
	}
	return w.deleteURL(in.URL, in.Ord)
}

// inputTables are the tables that hold inputs.
var inputTables = [...]byte{tableInput, tableInputID, tableInputDot, tableURL, tableBlob, tablePending}

// DeleteInputs removes all inputs, at a cost that does not depend on their number.
func (w *Writer) DeleteInputs() {
	w.deleteTables(inputTables[:])
	w.scheduleFullCleanup()
}

func (w *Writer) deleteTables(tables []byte) {
	for _, t := range tables {
		prefix := w.app.key(t, 0)
		kv.DeletePrefix(w.tx, prefix)
	}
}

// PutConcept writes a concept and its place in the order of creation.
func (w *Writer) PutConcept(c *Concept) {
	w.tx.Put(w.app.stringKey(tableConcept, c.ID), encodeConcept(nil, c))
	w.tx.Put(w.app.uint64Key(tableConceptSeq, c.Seq), []byte(c.ID))
}

// DeleteConcept removes a concept.
func (w *Writer) DeleteConcept(c *Concept) {
	w.tx.Delete(w.app.stringKey(tableConcept, c.ID))
	w.tx.Delete(w.app.uint64Key(tableConceptSeq, c.Seq))
}

// PutModel writes a model.
func (w *Writer) PutModel(m *Model) {
	w.tx.Put(w.app.stringKey(tableModel, m.ID), encodeModel(nil, m))
	w.tx.Put(w.app.uint64Key(tableModelSeq, m.Seq), []byte(m.ID))
	w.tx.Put(w.app.dotKey(tableModelDot, m.Dot, 0), []byte(m.ID))
}

// DeleteModel removes a model and its versions.
func (w *Writer) DeleteModel(m *Model) error {
	err := w.Versions(m.Dot, func(v Version) bool {
		w.DeleteVersion(&v)
		return true
	})
	w.tx.Delete(w.app.stringKey(tableModel, m.ID))
	w.tx.Delete(w.app.uint64Key(tableModelSeq, m.Seq))
	w.tx.Delete(w.app.dotKey(tableModelDot, m.Dot, 0))
	return err
}

// modelTables are the tables that hold models and versions.
var modelTables = [...]byte{tableModel, tableModelSeq, tableModelDot, tableVersion, tableVersionID, tableTraining}

// DeleteModels removes all models and versions.
func (w *Writer) DeleteModels() {
	w.deleteTables(modelTables[:])
	w.scheduleObjectCleanup()
}

// PutVersion writes a version of a live model. For a version at 21103 it also writes the entry of appendRequest.
func (w *Writer) PutVersion(v *Version) {
	w.tx.Put(w.app.version(v.Model, v.Seq), encodeVersion(nil, v))
	w.tx.Put(append(w.app.dotKey(tableVersionID, v.Model, len(v.ID)), v.ID...), appendUint64(nil, v.Seq))
	training := w.app.uint64Key(tableTraining, v.Seq)
	if v.Code == VersionQueued {
		w.tx.Put(training, appendRequest(v))
	} else {
		w.tx.Delete(training)
	}
}

// appendRequest returns the entry by which a version at 21103 is found: its model and, if known, the operation that requested it.
func appendRequest(v *Version) []byte {
	value := v.Model.AppendKey(make([]byte, 0, 24))
	if v.RequestedAt != (log.Dot{}) {
		value = v.RequestedAt.AppendKey(value)
	}
	return value
}

// DeleteVersion removes a version.
func (w *Writer) DeleteVersion(v *Version) {
	w.tx.Delete(w.app.version(v.Model, v.Seq))
	w.tx.Delete(append(w.app.dotKey(tableVersionID, v.Model, len(v.ID)), v.ID...))
	if v.Code == VersionQueued {
		w.tx.Delete(w.app.uint64Key(tableTraining, v.Seq))
	}
	if !v.Manifest.IsZero() {
		w.scheduleObjectCleanup()
	}
}

// PutWorkflow writes a workflow.
func (w *Writer) PutWorkflow(f *Workflow) {
	w.tx.Put(w.app.stringKey(tableWorkflow, f.ID), encodeWorkflow(nil, f))
	w.tx.Put(w.app.uint64Key(tableWorkflowSeq, f.Seq), []byte(f.ID))
	w.tx.Put(w.app.dotKey(tableWorkflowDot, f.Dot, 0), []byte(f.ID))
}

// DeleteWorkflow removes a workflow.
func (w *Writer) DeleteWorkflow(f *Workflow) {
	w.tx.Delete(w.app.stringKey(tableWorkflow, f.ID))
	w.tx.Delete(w.app.uint64Key(tableWorkflowSeq, f.Seq))
	w.tx.Delete(w.app.dotKey(tableWorkflowDot, f.Dot, 0))
}

// PutFeedback writes the feedback of a user.
func (w *Writer) PutFeedback(f *Feedback) {
	w.tx.Put(w.app.uint64Key(tableFeedback, f.Seq), encodeFeedback(nil, f))
}
