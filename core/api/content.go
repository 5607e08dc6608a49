package api

import (
	"encoding/base64"
	"encoding/hex"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// content writes what a body says besides what it is about. A body that is none of an application's,
// or of a later version, is shown as it is kept.
func (t *tell) content(w *jsonio.Writer, op *log.Op) {
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
	case *log.InputDelete, *log.ModelDelete, *log.ModelDeleteAll, *log.VersionTrain, *log.VersionDelete, *log.WorkflowDelete:
	case *log.InputDeleteAll:
		flag(w, "barrier", b.Barrier)
	case *log.OutputsPatch:
		t.edits(w, b.Edits)
	case *log.ConceptCreate:
		member(w, "name", b.Name)
		member(w, "language", b.Language)
	case *log.ConceptName:
		member(w, "name", b.Name)
	case *log.ModelCreate:
		member(w, "name", b.Name)
		t.concepts(w, "concepts", b.Concepts)
		outputConfig(w, b.Config)
	case *log.ModelPatch:
		if b.Name != nil {
			w.Name("name")
			w.String(*b.Name)
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
		member(w, "reason", b.Reason)
	default:
		count(w, "number", uint64(log.KindOf(b)))
		member(w, "data", base64.StdEncoding.EncodeToString(log.Encode(nil, op)))
		return
	}
	if (len(op.Extra.Body) > 0 || len(op.Extra.Op) > 0) && t.x.Shows(auth.ConceptsGet) { // of a later version, and not to be read
		member(w, "data", base64.StdEncoding.EncodeToString(log.Encode(nil, op)))
	}
}

func (t *tell) newInput(w *jsonio.Writer, b *log.InputCreate) {
	member(w, "url", b.URL)
	if !b.Blob.IsZero() {
		member(w, "hosted", hostedAddress(t.x, b.Hosted))
	}
	picture(w, b.Blob, b.ContentType)
	if b.Crop != (raster.Crop{}) {
		w.Name("crop")
		w.Array()
		for _, edge := range []float64{b.Crop.Top, b.Crop.Left, b.Crop.Bottom, b.Crop.Right} {
			w.Float(edge)
		}
		w.End(']')
	}
	t.labels(w, b.Labels)
	raw(w, "metadata", b.Meta)
	if b.Geo != nil {
		writeGeo(w, b.Geo)
	}
	flag(w, "allow_duplicate_url", b.AllowDuplicate)
	flag(w, "merge_if_equal", b.MergeIfEqual)
}

// labels writes what is said of concepts: 1 or 0, and null where a label is taken off.
func (t *tell) labels(w *jsonio.Writer, labels []log.Label) {
	if len(labels) == 0 || !t.x.Shows(auth.ConceptsGet) {
		return
	}
	w.Name("concepts")
	w.Array()
	for i := range labels {
		t.concept(w, labels[i].Concept)
		w.Name("value")
		if labels[i].Value == log.Removed {
			w.Null()
		} else {
			w.Int(int64(labels[i].Value - log.False))
		}
		w.End('}')
	}
	w.End(']')
}

// concept opens the object of a concept: its id and its name.
func (t *tell) concept(w *jsonio.Writer, id string) {
	w.Object()
	w.Name("id")
	w.String(id)
	member(w, "name", t.lines.known[id].name)
}

func (t *tell) concepts(w *jsonio.Writer, name string, ids []string) {
	if len(ids) == 0 {
		return
	}
	w.Name(name)
	w.Array()
	for _, id := range ids {
		t.concept(w, id)
		w.End('}')
	}
	w.End(']')
}

func (t *tell) edits(w *jsonio.Writer, edits []log.OutputEdit) {
	if !t.x.Shows(auth.ConceptsGet) {
		return
	}
	w.Name("concepts")
	w.Array()
	for i := range edits {
		t.concept(w, edits[i].Concept)
		w.Name("value")
		if edits[i].Removed {
			w.Null()
		} else {
			w.Float32(edits[i].Value)
		}
		w.End('}')
	}
	w.End(']')
}

// result writes what a download or a training came to.
func (t *tell) result(w *jsonio.Writer, code int, detail string) {
	w.Name("status")
	s := call.StatusOfCode(code)
	if s.Description == "" {
		s = versionStatus(code)
	}
	call.WriteStatus(w, s, detail)
}

// metaActions are what may be done at a path, as people are told.
var metaActions = map[log.MetaAction]string{log.MetaSet: "set", log.MetaRemove: "remove", log.MetaAppend: "append"}

func writes(w *jsonio.Writer, list []log.MetaWrite) {
	w.Name("metadata")
	w.Array()
	for i := range list {
		w.Object()
		member(w, "action", metaActions[list[i].Action])
		w.Name("path")
		w.Array()
		for _, part := range list[i].Path {
			w.String(part)
		}
		w.End(']')
		raw(w, "value", list[i].JSON)
		w.End('}')
	}
	w.End(']')
}

func outputConfig(w *jsonio.Writer, list []log.Setting) {
	if len(list) == 0 {
		return
	}
	w.Name("output_config")
	w.Array()
	for i := range list {
		w.Object()
		w.Name("name")
		w.String(list[i].Name)
		w.Name("value")
		if list[i].JSON == nil {
			w.Null() // back to the default
		} else {
			w.Raw(valid(list[i].JSON))
		}
		w.End('}')
	}
	w.End(']')
}

func nodes(w *jsonio.Writer, list []log.WorkflowNode) {
	w.Name("nodes")
	w.Array()
	for i := range list {
		w.Object()
		member(w, "id", list[i].ID)
		member(w, "model_id", list[i].Model)
		member(w, "version_id", list[i].Version)
		w.End('}')
	}
	w.End(']')
}

func flag(w *jsonio.Writer, name string, set bool) {
	if set {
		w.Name(name)
		w.Bool(true)
	}
}

// raw writes JSON as it came, unless there is none.
func raw(w *jsonio.Writer, name string, value []byte) {
	if len(value) > 0 {
		w.Name(name)
		w.Raw(valid(value))
	}
}

// valid is JSON as it came; what is none, as an operation that was refused for it may hold, as a string.
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
	member(w, "content_type", contentType)
}

func hash(w *jsonio.Writer, name string, h blob.Hash) {
	if !h.IsZero() {
		member(w, name, hex.EncodeToString(h[:]))
	}
}
