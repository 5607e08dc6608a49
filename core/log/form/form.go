// Package form has the rules for the form of operations: ids, names, URLs, languages, numbers and JSON.
//
//	/v2 ──── its calls, with their own error texts ──┐
//	                                                 ├─▶ form ─▶ log ─▶ fold
//	push ─── Check, for each operation ──────────────┘
//
// Both ways into a log apply the same rules, so a replica can write what a call can write, and nothing else. Check sees one operation and
// no state: the fold decides whether its subject exists, and /v2 whether a public concept or a model does. The fold has wider rules,
// because it also reads logs from before these.
package form

import (
	"math"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// Limits of one operation.
const (
	MaxIDBytes        = 128  // length of an id
	MaxNameBytes      = 1024 // length of a concept's or a model's name
	MaxURLBytes       = 8192 // length of a picture's URL
	MaxDetailBytes    = 1024 // length of the reason for a failed download or training, or for a refusal
	MaxLabels         = 1000 // labels of one input, without removed ones
	MaxModelConcepts  = 5000 // concepts of one custom model
	MaxWorkflowModels = 5    // models of one workflow

	MaxUpto = 8000 // writers of one deletion of all inputs

	MaxFeedbackBytes = 64 << 10 // one piece of feedback

	MaxMetaBytes   = 64 << 10 // metadata of an input
	MaxMetaDepth   = 32       // levels of metadata
	MaxMetaMembers = 2000     // members and elements of metadata together

	maxOldIDBytes = 1024   // length of an id in logs from before MaxIDBytes
	maxRemoved    = 10_000 // labels of an input, or concepts of a model, that one operation removes; the time of a fold grows with its square
)

// Reserved are fixed path segments at positions where other paths have an id. No new thing may have one as its id, since no path
// would lead to it.
var Reserved = []string{"searches", "status", "usage"}

// PublicPrefix is the start of the ids of public concepts.
const PublicPrefix = "ai_"

// IsPublicID reports whether only public concepts can have an id.
func IsPublicID(id string) bool { return strings.HasPrefix(id, PublicPrefix) }

// IsText reports whether s is valid UTF-8 of at most limit bytes without control characters, which a terminal or a log viewer would
// execute.
func IsText(s string, limit int) bool {
	if len(s) > limit {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' { // most texts are printable ASCII
			return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
		}
	}
	return true
}

// Line returns s as a text of at most limit bytes: each control character and each invalid byte becomes a space.
func Line(s string, limit int) string {
	if IsText(s, limit) {
		return s
	}
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, s)
	for len(s) > limit {
		_, n := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-n]
	}
	return s
}

// IsID reports whether a thing can have an id: 1 to MaxIDBytes bytes without control characters.
func IsID(id string) bool { return id != "" && IsText(id, MaxIDBytes) }

// IsUnreserved reports whether a path leads to an id, so that a new thing can have it.
func IsUnreserved(id string) bool { return id != "." && id != ".." && !slices.Contains(Reserved, id) }

// isNewID reports whether a new thing can have an id. Without an id the fold or the call makes one.
func isNewID(id string) bool { return id == "" || IsID(id) && IsUnreserved(id) }

// isOldID reports whether a thing in a log can have an id, also one from before the other rules.
func isOldID(id string) bool { return id != "" && len(id) <= maxOldIDBytes && utf8.ValidString(id) }

// isConcept reports whether a label or a model can name a concept, which exists afterwards. The network decides which public ones do.
func isConcept(id string) bool { return IsID(id) && (IsPublicID(id) || IsUnreserved(id)) }

// IsName reports whether a concept or a model can have a name.
func IsName(name string) bool { return IsText(name, MaxNameBytes) }

// IsURL reports whether address can be the URL of a picture: an absolute one of http or https.
func IsURL(address string) bool {
	if len(address) > MaxURLBytes || !utf8.ValidString(address) {
		return false
	}
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// IsPicture reports whether a content type is that of a picture.
func IsPicture(contentType string) bool {
	rest, ok := strings.CutPrefix(contentType, "image/")
	return ok && rest != "" && len(rest) < 32 && strings.Trim(rest, "abcdefghijklmnopqrstuvwxyz0123456789.+-") == ""
}

// IsCrop reports whether c is a part of a picture, or the complete picture. NaN is invalid.
func IsCrop(c raster.Crop) bool {
	return c == (raster.Crop{}) || c.Top >= 0 && c.Top < c.Bottom && c.Bottom <= 1 && c.Left >= 0 && c.Left < c.Right && c.Right <= 1
}

// isPlace reports whether p is a place on Earth, or none.
func isPlace(p *log.Point) bool {
	return p == nil || math.Abs(p.Longitude) <= 180 && math.Abs(p.Latitude) <= 90
}

// CheckMetadata returns an error of jsonio for a document that cannot be an input's metadata.
func CheckMetadata(doc []byte) error {
	var d jsonio.Doc
	return d.Parse(doc, jsonio.Limits{Bytes: MaxMetaBytes, Depth: MaxMetaDepth, Members: MaxMetaMembers})
}

// IsReplicaWritable reports whether a replica may write operations with such a body: of inputs, concepts, models, versions, workflows and
// feedback. Only the origin writes horizons, the serving base model, keys and scopes.
func IsReplicaWritable(body log.Body) bool {
	switch body.(type) {
	case *log.InputDeleteAll, *log.ModelDeleteAll, *log.Feedback, *log.Refused:
		return true
	}
	kind, _ := log.SubjectOf(body)
	return kind != log.NoSubject
}

// Check returns the reason why neither a call of /v2 nor another site may write an operation with this body, "schema: …", or "". It allows
// all kinds of bodies that have no rules here.
func Check(body log.Body) (why string) {
	if why = check(body); why != "" {
		why = "schema: " + why
	}
	return why
}

func check(body log.Body) (why string) {
	switch b := body.(type) {
	case *log.InputCreate:
		return checkCreate(b)
	case *log.InputFetched:
		switch {
		case !IsText(b.Detail, MaxDetailBytes):
			return "invalid detail"
		case !fits(b.ContentType, b.Blob.IsZero()):
			return wrongType
		}
	case *log.InputLabels:
		return unless(areLabels(b.Labels), wrongLabels)
	case *log.InputMeta:
		return unless(areMetaWrites(b.Writes), "invalid metadata")
	case *log.InputGeo:
		return unless(isPlace(b.Geo), "invalid place")
	case *log.InputDeleteAll:
		return unless(len(b.Upto) <= MaxUpto, "too many writers")
	case *log.OutputsPatch:
		return unless(areEdits(b.Edits), "invalid concepts of outputs")
	case *log.Feedback:
		return checkFeedback(b)
	case *log.Refused:
		return unless(IsText(b.Reason, MaxDetailBytes), "invalid reason")
	default:
		return checkLearning(body)
	}
	return ""
}

// checkLearning is check for concepts, models, versions and workflows.
func checkLearning(body log.Body) (why string) {
	switch b := body.(type) {
	case *log.ConceptCreate:
		switch {
		case b.ID == "" && b.Name == "" || !isNewID(b.ID) || IsPublicID(b.ID):
			return wrongID
		case !IsName(b.Name):
			return wrongName
		case b.Language != "" && !lang.Valid(b.Language):
			return "unknown language"
		}
	case *log.ConceptName:
		switch {
		case !isOldID(b.ID) || IsPublicID(b.ID):
			return wrongID
		case b.Name == "" || !IsName(b.Name):
			return wrongName
		}
	case *log.ConceptDelete:
		return unless(isOldID(b.ID) && !IsPublicID(b.ID), wrongID)
	case *log.ModelCreate:
		return checkModel(b)
	case *log.ModelPatch:
		return checkPatch(b)
	case *log.VersionTrain:
		return unless(isNewID(b.Version), wrongID)
	case *log.VersionResult:
		switch {
		case !isOldID(b.Version):
			return wrongID
		case !IsText(b.Detail, MaxDetailBytes):
			return "invalid detail"
		}
	case *log.VersionDelete:
		return unless(isOldID(b.Version), wrongID)
	case *log.WorkflowCreate:
		return checkWorkflow(b)
	}
	return ""
}

// Reasons that several kinds of operations have.
const (
	wrongID     = "invalid id"
	wrongName   = "invalid name"
	wrongLabels = "invalid labels"
	wrongType   = "unsupported content type"
)

// unless returns why if ok is false.
func unless(ok bool, why string) string {
	if ok {
		return ""
	}
	return why
}

func checkCreate(b *log.InputCreate) (why string) {
	switch {
	case !isNewID(b.ID):
		return wrongID
	case b.URL == "" && b.Blob.IsZero():
		return "no picture"
	case b.URL != "" && !IsURL(b.URL):
		return "invalid URL"
	case !fits(b.ContentType, b.Blob.IsZero()):
		return wrongType
	case !IsCrop(b.Crop):
		return "invalid crop"
	case !areLabels(b.Labels):
		return wrongLabels
	case b.Meta != nil && CheckMetadata(b.Meta) != nil:
		return "invalid metadata"
	case !isPlace(b.Geo):
		return "invalid place"
	}
	return ""
}

// fits reports whether an operation can have a content type: one of a picture, or none without a picture.
func fits(contentType string, withoutPicture bool) bool {
	return contentType == "" && withoutPicture || IsPicture(contentType) && !withoutPicture
}

// areLabels reports whether an operation can write labels. A removal may name a concept from before the other rules.
func areLabels(labels []log.Label) bool {
	live := 0
	for _, l := range labels {
		switch {
		case l.Value == log.Removed && isOldID(l.Concept):
			continue
		case l.Value == log.Removed || l.Value > log.True || !isConcept(l.Concept):
			return false
		}
		live++
	}
	return live <= MaxLabels && len(labels)-live <= maxRemoved
}

func areEdits(edits []log.OutputEdit) bool {
	for _, e := range edits {
		if !isConcept(e.Concept) || !(e.Value >= 0 && e.Value <= 1) {
			return false
		}
	}
	return len(edits) <= MaxLabels
}

// areMetaWrites reports whether an operation can write parts of metadata. A call writes at most the members and elements of one document.
func areMetaWrites(writes []log.MetaWrite) bool {
	return len(writes) <= MaxMetaMembers && !slices.ContainsFunc(writes, func(w log.MetaWrite) bool { return !isMetaWrite(&w) })
}

// isMetaWrite reports whether a document within the limits can have a value at a path.
func isMetaWrite(w *log.MetaWrite) bool {
	room, depth := MaxMetaBytes, MaxMetaDepth-len(w.Path)
	for _, name := range w.Path {
		if !utf8.ValidString(name) {
			return false
		}
		room -= len(`{"":}`) + len(name)
	}
	if depth < 0 || room < 0 {
		return false
	}
	if w.Action == log.MetaRemove {
		return len(w.JSON) == 0
	}
	var d jsonio.Doc
	limits := jsonio.Limits{Bytes: max(room, 1), Depth: max(depth, 1), Members: MaxMetaMembers - len(w.Path)} // 0 means the default
	if d.Parse(w.JSON, limits) != nil {
		return false
	}
	switch k := d.Root().Kind(); {
	case depth == 0 && (k == jsonio.Object || k == jsonio.Array):
		return false
	case w.Action == log.MetaAppend:
		return k == jsonio.Array
	}
	return w.Action == log.MetaSet
}

// checkFeedback checks the comment on a model's outputs, or without a model the comment on a hit of a search.
func checkFeedback(b *log.Feedback) (why string) {
	if b.Model != "" && !IsID(b.Model) || b.Version != "" && !IsID(b.Version) {
		return wrongID
	}
	var d jsonio.Doc
	if len(b.JSON) > MaxFeedbackBytes || d.Parse(b.JSON, jsonio.Limits{}) != nil || d.Root().Kind() != jsonio.Object {
		return "invalid feedback"
	}
	if b.Model != "" {
		return ""
	}
	id, err := textOf(d.Root().Get("id"))
	info := d.Root().Get("feedback_info")
	return unless(err == nil && IsText(id, MaxIDBytes) && info.Kind() == jsonio.Object && info.Len() > 0, "invalid feedback")
}

func checkModel(b *log.ModelCreate) (why string) {
	switch {
	case !isNewID(b.ID) || !isNewID(b.Version):
		return wrongID
	case !IsName(b.Name):
		return wrongName
	case !areConcepts(b.Concepts):
		return "invalid concepts"
	case !areSettings(b.Config):
		return "invalid settings"
	}
	return ""
}

func checkPatch(b *log.ModelPatch) (why string) {
	switch {
	case !isNewID(b.Version):
		return wrongID
	case b.Name != nil && (*b.Name == "" || !IsName(*b.Name)):
		return wrongName
	case !areConcepts(b.Add) || len(b.Remove) > maxRemoved || slices.ContainsFunc(b.Remove, func(id string) bool { return !isOldID(id) }):
		return "invalid concepts"
	case !areSettings(b.Config):
		return "invalid settings"
	}
	return ""
}

func areConcepts(ids []string) bool {
	return len(ids) <= MaxModelConcepts && !slices.ContainsFunc(ids, func(id string) bool { return !isConcept(id) })
}

func areSettings(settings []log.Setting) bool {
	return !slices.ContainsFunc(settings, func(s log.Setting) bool { return !isSetting(&s) })
}

func checkWorkflow(b *log.WorkflowCreate) (why string) {
	if !isNewID(b.ID) {
		return wrongID
	}
	if !IsModelCount(len(b.Nodes)) {
		return "invalid number of nodes"
	}
	for _, n := range b.Nodes {
		if !IsID(n.ID) || !IsUnreserved(n.ID) || !IsID(n.Model) || n.Version != "" && !IsID(n.Version) {
			return wrongID
		}
	}
	return ""
}

// IsModelCount reports whether a workflow can have n models.
func IsModelCount(n int) bool { return n >= 1 && n <= MaxWorkflowModels }
