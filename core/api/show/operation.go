package show

import (
	"encoding/base64"
	"encoding/hex"
	"slices"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// OpWriter writes operations for users: author, time, subject and complete content. The caller must pass each operation to Learn first.
type OpWriter struct {
	X     *call.Call
	View  *partition.View
	names map[log.Dot]string // ids of the subjects, by the dot of the operation
	lines ConceptNames
}

// Learn looks up the names in an operation. id is the id of its subject, or empty if the caller does not know it.
func (t *OpWriter) Learn(op *log.Op, id string) (err error) {
	if id == "" {
		if id, err = t.X.App.Partition.SubjectID(op.Body); err != nil {
			return err
		}
	}
	if id != "" {
		if t.names == nil {
			t.names = map[log.Dot]string{}
		}
		t.names[op.Dot] = id
	}
	t.lines.X = t.X
	for _, concept := range conceptsOf(op.Body) {
		if err := t.lines.LookUp(t.View, concept); err != nil {
			return err
		}
	}
	return nil
}

// conceptsOf returns the ids of the concepts in a body.
func conceptsOf(body log.Body) (ids []string) {
	labels := func(list []log.Label) {
		for i := range list {
			ids = append(ids, list[i].Concept)
		}
	}
	switch b := body.(type) {
	case *log.InputCreate:
		labels(b.Labels)
	case *log.InputLabels:
		labels(b.Labels)
	case *log.OutputsPatch:
		for i := range b.Edits {
			ids = append(ids, b.Edits[i].Concept)
		}
	case *log.ModelCreate:
		ids = b.Concepts
	case *log.ModelPatch:
		ids = append(append(ids, b.Add...), b.Remove...)
	}
	return ids
}

// Write writes the members of an operation.
func (t *OpWriter) Write(w *jsonio.Writer, op *log.Op) {
	WriteText(w, "writer", op.Dot.Writer.String())
	if op.Dot.Seq > 0 {
		WriteInt(w, "seq", op.Dot.Seq)
	}
	WriteTime(w, "at", op.At.Time())
	WriteText(w, "by", op.By)
	WriteText(w, "kind", log.KindOf(op.Body).String())
	t.subject(w, op)
	w.ObjectMember("content")
	t.content(w, op)
	w.End('}')
}

// subject writes the ids of an operation's subject.
func (t *OpWriter) subject(w *jsonio.Writer, op *log.Op) {
	kind, _ := log.SubjectOf(op.Body)
	id, version := t.names[op.Dot], ""
	switch b := op.Body.(type) {
	case *log.InputCreate:
		id = b.ID
	case *log.ConceptCreate:
		id = b.ID
	case *log.ConceptName:
		id = b.ID
	case *log.ConceptDelete:
		id = b.ID
	case *log.ModelCreate:
		id, version = b.ID, b.Version
	case *log.ModelPatch:
		version = b.Version
	case *log.VersionTrain:
		version = b.Version
	case *log.VersionResult:
		version = b.Version
	case *log.VersionDelete:
		version = b.Version
	case *log.WorkflowCreate:
		id = b.ID
	case *log.Feedback:
		kind, id, version = log.ModelSubject, b.Model, b.Version
	}
	if kind != log.NoSubject {
		WriteText(w, string(kind)+"_id", id)
		WriteText(w, "version_id", version)
	}
}

// content writes the content of a body without its subject. It writes a body of another log or of a later version as stored.
func (t *OpWriter) content(w *jsonio.Writer, op *log.Op) {
	switch b := op.Body.(type) {
	case *log.InputCreate:
		t.newInput(w, b)
	case *log.InputFetched:
		t.result(w, b.Code, b.Detail)
		picture(w, b.Blob, b.ContentType)
	case *log.InputLabels:
		t.labels(w, b.Labels)
	case *log.InputMeta:
		writes(w, b.Writes)
	case *log.InputGeo:
		if b.Geo == nil {
			w.Name("geo")
			w.Null()
		} else {
			writeGeo(w, b.Geo)
		}
	case *log.InputDelete, *log.ModelDelete, *log.ModelDeleteAll, *log.VersionTrain, *log.VersionDelete, *log.WorkflowDelete,
		*log.ConceptDelete:
	case *log.InputDeleteAll:
		WriteTrue(w, "barrier", b.Barrier)
	case *log.OutputsPatch:
		t.edits(w, b.Edits)
	case *log.ConceptCreate:
		WriteText(w, "name", b.Name)
		WriteText(w, "language", b.Language)
	case *log.ConceptName:
		WriteText(w, "name", b.Name)
	case *log.ModelCreate:
		WriteText(w, "name", b.Name)
		t.concepts(w, "concepts", b.Concepts)
		outputConfig(w, b.Config)
	case *log.ModelPatch:
		if b.Name != nil {
			w.Text("name", *b.Name)
		}
		t.concepts(w, "added_concepts", b.Add)
		t.concepts(w, "removed_concepts", b.Remove)
		outputConfig(w, b.Config)
	case *log.VersionResult:
		t.result(w, b.Code, b.Detail)
		hash(w, "manifest", b.Manifest)
	case *log.WorkflowCreate:
		nodes(w, b.Nodes)
	case *log.Feedback:
		raw(w, "feedback", b.JSON)
	case *log.Refused:
		WriteText(w, "reason", b.Reason)
	default:
		WriteInt(w, "number", uint64(log.KindOf(b)))
		WriteText(w, "data", base64.StdEncoding.EncodeToString(log.Encode(nil, op)))
		return
	}
	if (len(op.Extra.Body) > 0 || len(op.Extra.Op) > 0) && t.X.Shows(auth.ConceptsGet) { // content of a later version
		WriteText(w, "data", base64.StdEncoding.EncodeToString(log.Encode(nil, op)))
	}
}

func (t *OpWriter) newInput(w *jsonio.Writer, b *log.InputCreate) {
	WriteText(w, "url", b.URL)
	if !b.Blob.IsZero() {
		WriteText(w, "hosted", HostedAddress(t.X, b.Hosted))
	}
	picture(w, b.Blob, b.ContentType)
	writeCrop(w, b.Crop)
	t.labels(w, b.Labels)
	raw(w, "metadata", b.Meta)
	if b.Geo != nil {
		writeGeo(w, b.Geo)
	}
	WriteTrue(w, "allow_duplicate_url", b.AllowDuplicate)
	WriteTrue(w, "read_exif", b.ReadEXIF)
	WriteTrue(w, "merge_if_equal", b.MergeIfEqual)
}

// labels writes labels of concepts: 1 or 0, and null for a removed label.
func (t *OpWriter) labels(w *jsonio.Writer, labels []log.Label) {
	if len(labels) == 0 || !t.X.Shows(auth.ConceptsGet) {
		return
	}
	w.List("concepts", len(labels), func(i int) {
		t.concept(w, labels[i].Concept)
		w.Name("value")
		if labels[i].Value == log.Removed {
			w.Null()
		} else {
			w.Int(int64(labels[i].Value - log.False))
		}
		w.End('}')
	})
}

// concept opens the object of a concept and writes its id and name.
func (t *OpWriter) concept(w *jsonio.Writer, id string) {
	w.Object()
	w.Text("id", id)
	WriteText(w, "name", t.lines.known[id].name)
}

func (t *OpWriter) concepts(w *jsonio.Writer, name string, ids []string) {
	if len(ids) == 0 {
		return
	}
	w.List(name, len(ids), func(i int) {
		id := ids[i]
		t.concept(w, id)
		w.End('}')
	})
}

func (t *OpWriter) edits(w *jsonio.Writer, edits []log.OutputEdit) {
	if !t.X.Shows(auth.ConceptsGet) {
		return
	}
	w.List("concepts", len(edits), func(i int) {
		t.concept(w, edits[i].Concept)
		w.Name("value")
		if edits[i].Removed {
			w.Null()
		} else {
			w.Float32(edits[i].Value)
		}
		w.End('}')
	})
}

// result writes the result of a download or a training.
func (t *OpWriter) result(w *jsonio.Writer, code int, detail string) {
	call.WriteStatus(w, versionStatus(code), detail)
}

// metaActions are the names of the actions on a path.
var metaActions = map[log.MetaAction]string{log.MetaSet: "set", log.MetaRemove: "remove", log.MetaAppend: "append"}

func writes(w *jsonio.Writer, list []log.MetaWrite) {
	w.Objects("metadata", len(list), func(i int) {
		WriteText(w, "action", metaActions[list[i].Action])
		w.Texts("path", list[i].Path)
		raw(w, "value", list[i].JSON)
	})
}

func outputConfig(w *jsonio.Writer, list []log.Setting) {
	if len(list) == 0 {
		return
	}
	w.Objects("output_config", len(list), func(i int) {
		w.Text("name", shownName(list[i].Name, list[i].JSON))
		w.Name("value")
		if list[i].JSON == nil {
			w.Null() // back to the default
		} else {
			w.Raw(valid(list[i].JSON))
		}
	})
}

func nodes(w *jsonio.Writer, list []log.WorkflowNode) {
	w.Objects("nodes", len(list), func(i int) {
		WriteText(w, "id", list[i].ID)
		WriteText(w, "model_id", list[i].Model)
		WriteText(w, "version_id", list[i].Version)
	})
}

// raw writes JSON unchanged. It writes nothing if value is empty.
func raw(w *jsonio.Writer, name string, value []byte) {
	if len(value) > 0 {
		w.Name(name)
		w.Raw(valid(value))
	}
}

// valid returns valid JSON unchanged. It returns other bytes, which a refused operation may contain, as a JSON string.
func valid(value []byte) []byte {
	var doc jsonio.Doc
	if doc.Parse(value, jsonio.Limits{}) == nil {
		return value
	}
	var w jsonio.Writer
	w.String(string(value))
	return w.Bytes()
}

func picture(w *jsonio.Writer, h blob.Hash, contentType string) {
	hash(w, "sha256", h)
	WriteText(w, "content_type", contentType)
}

func hash(w *jsonio.Writer, name string, h blob.Hash) {
	if !h.IsZero() {
		WriteText(w, name, hex.EncodeToString(h[:]))
	}
}

// weighConfig returns settings after it has counted them for the answer.
func weighConfig(x *call.Call, list []log.Setting) []log.Setting {
	list = slices.Clone(list)
	for i := range list {
		list[i].JSON = x.ReservePart(list[i].JSON)
	}
	return list
}

// ReserveOp counts the bytes of an operation that the answer shows.
func ReserveOp(x *call.Call, op *log.Op) {
	switch b := op.Body.(type) {
	case *log.InputCreate:
		body := *b
		body.Meta = x.ReservePart(b.Meta)
		op.Body = &body
	case *log.InputMeta:
		body := *b
		body.Writes = slices.Clone(b.Writes)
		for i := range body.Writes {
			body.Writes[i].JSON = x.ReservePart(body.Writes[i].JSON)
		}
		op.Body = &body
	case *log.ModelCreate:
		body := *b
		body.Config = weighConfig(x, b.Config)
		op.Body = &body
	case *log.ModelPatch:
		body := *b
		body.Config = weighConfig(x, b.Config)
		op.Body = &body
	case *log.Feedback:
		body := *b
		body.JSON = x.ReservePart(b.JSON)
		op.Body = &body
	}
}
