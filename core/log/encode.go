package log

import (
	"fmt"

	"github.com/sightline-dev/sightline/core/log/field"
)

// An operation's fields:
//
//	1 site, 2 seq, 3 clock (fixed), 4 by, then its body in the field of its kind
//
// and its bodies':
//
//	16 input create      1 id, 2 url, 3 allow duplicate, 4 merge if equal, 5 blob, 6 content type,
//	                     7 hosted, 8 crop, 9 labels, 10 meta, 11 geo
//	17 input fetched     1 input, 2 code, 3 detail, 4 blob, 5 content type
//	18 input labels      1 input, 2 labels
//	19 input meta        1 input, 2 writes (1 path…, 2 action, 3 json)
//	20 input geo         1 input, 2 geo
//	21 input delete      1 input
//	22 input delete all  1 barrier
//	23 outputs patch     1 input, 2 edits (1 concept, 2 value, 3 removed)
//	32 concept create    1 id, 2 name, 3 language
//	33 concept name      1 id, 2 name
//	34 model create      1 id, 2 name, 3 version, 4 concepts…, 5 config (1 name, 2 json)
//	35 model patch       1 model, 2 name (a message: 1 text), 3 config, 4 add…, 5 remove…, 6 version
//	36 model delete      1 model
//	37 model delete all
//	38 version train     1 model, 2 version
//	39 version result    1 model, 2 version, 3 lease, 4 code, 5 detail, 6 manifest
//	40 version delete    1 model, 2 version
//	48 workflow create   1 id, 2 nodes (1 id, 2 model, 3 version)
//	49 workflow delete   1 workflow
//	50 feedback          1 model, 2 version, 3 json
//	51 horizon           1 at (fixed)
//	52 network switch    1 base, 2 versions (1 model, 2 from, 3 version, 4 manifest)
//	53 refused           1 reason
//	54 rules             1 version
//	64 app create        1 id, 2 name, 3 language, 4 default model, 5 owner
//	65 key create        1 hash, 2 app, 3 scopes…, 4 description, 5 replaces
//	66 key delete        1 hash
//	67 app change        1 id, 2 name (a message: 1 text), 3 default model (likewise), 4 max stale (a message: 1 number)
//	68 app delete        1 id
//	69 client set        1 app, 2 id, 3 secret
//	70 tokens revoke     1 app
//	71 edge create       1 id, 2 name, 3 token, 4 apps…, 5 owner
//	72 edge enrolled     1 id, 2 key
//	73 edge revoke       1 id
//	74 site lease        1 site, 2 app, 3 holder, 4 secret, 5 until (fixed)
//	75 sites skip        1 to
//	76 token keys        1 issuer, 2 keys (1 id, 2 key)

// Encode appends the encoding of o to dst. It panics on an operation without a body.
func Encode(dst []byte, o *Op) []byte {
	var e field.Encoder
	e.Reset(dst[len(dst):])
	e.Uint(1, uint64(o.Dot.Site))
	e.Uint(2, o.Dot.Seq)
	e.Fixed64(3, uint64(o.At))
	e.Text(4, o.By)
	at := e.Open(int(o.Body.kind()))
	if u, ok := o.Body.(*Unknown); ok {
		e.Append(u.Data)
	} else {
		encodeBody(&e, o.Body)
		e.Append(o.Extra.Body)
	}
	e.Close(at)
	return append(dst, e.Bytes(o.Extra.Op)...)
}

func encodeBody(e *field.Encoder, body Body) {
	switch b := body.(type) {
	case *InputCreate:
		encodeInputCreate(e, b)
	case *InputFetched:
		EncodeDot(e, 1, b.Input)
		e.Uint(2, uint64(b.Code))
		e.Text(3, b.Detail)
		e.Hash(4, b.Blob[:])
		e.Text(5, b.ContentType)
	case *InputLabels:
		EncodeDot(e, 1, b.Input)
		encodeLabels(e, 2, b.Labels)
	case *InputMeta:
		EncodeDot(e, 1, b.Input)
		encodeWrites(e, 2, b.Writes)
	case *InputGeo:
		EncodeDot(e, 1, b.Input)
		EncodePoint(e, 2, b.Geo)
	case *InputDelete:
		EncodeDot(e, 1, b.Input)
	case *InputDeleteAll:
		e.Bool(1, b.Barrier)
	case *OutputsPatch:
		EncodeDot(e, 1, b.Input)
		encodeEdits(e, 2, b.Edits)
	case *Feedback:
		e.Text(1, b.Model)
		e.Text(2, b.Version)
		e.Raw(3, b.JSON)
	case *Horizon:
		e.Fixed64(1, uint64(b.At))
	case *Refused:
		e.Text(1, b.Reason)
	case *Rules:
		e.Uint(1, uint64(b.Version))
	default:
		encodeModelBody(e, body)
	}
}

// encodeControlBody encodes the operations of the control log.
func encodeControlBody(e *field.Encoder, body Body) {
	switch b := body.(type) {
	case *AppCreate:
		e.Text(1, b.ID)
		e.Text(2, b.Name)
		e.Text(3, b.Language)
		e.Text(4, b.DefaultModel)
		e.Text(5, b.Owner)
		e.Bool(6, b.LocalOnly)
	case *AppChange:
		e.Text(1, b.ID)
		encodeChange(e, 2, b.Name)
		encodeChange(e, 3, b.DefaultModel)
		if b.MaxStale != nil {
			at := e.Open(4)
			e.Uint(1, *b.MaxStale)
			e.Close(at)
		}
		if b.LocalOnly != nil {
			at := e.Open(5)
			e.Bool(1, *b.LocalOnly)
			e.Close(at)
		}
	case *AppDelete:
		e.Text(1, b.ID)
	case *KeyCreate:
		e.Hash(1, b.Hash[:])
		e.Text(2, b.App)
		encodeTexts(e, 3, b.Scopes)
		e.Text(4, b.Description)
		e.Hash(5, b.Replaces[:])
	case *KeyDelete:
		e.Hash(1, b.Hash[:])
	case *ClientSet:
		e.Text(1, b.App)
		e.Text(2, b.ID)
		e.Hash(3, b.Secret[:])
	case *TokensRevoke:
		e.Text(1, b.App)
	default:
		encodeEdgeBody(e, body)
	}
}

// encodeEdgeBody encodes the operations of the control log on edges and sites.
func encodeEdgeBody(e *field.Encoder, body Body) {
	switch b := body.(type) {
	case *EdgeCreate:
		e.Text(1, b.ID)
		e.Text(2, b.Name)
		e.Hash(3, b.Token[:])
		encodeTexts(e, 4, b.Apps)
		e.Text(5, b.Owner)
	case *EdgeEnrolled:
		e.Text(1, b.ID)
		e.Hash(2, b.Key[:])
	case *EdgeRevoke:
		e.Text(1, b.ID)
	case *SiteLease:
		e.Uint(1, uint64(b.Site))
		e.Text(2, b.App)
		e.Text(3, b.Holder)
		e.Hash(4, b.Secret[:])
		e.Fixed64(5, uint64(b.Until))
		e.Text(6, b.Edge)
		e.Fixed64(7, b.Life)
	case *SitesSkip:
		e.Uint(1, uint64(b.To))
	case *TokenKeys:
		e.Text(1, b.Issuer)
		EncodeKeys(e, 2, b.Keys)
	default:
		panic(fmt.Sprintf("log: no encoding of %T", body))
	}
}

// EncodeKeys writes keys, each as a message within the message: 1 id, 2 key.
func EncodeKeys(e *field.Encoder, number int, keys []PublicKey) {
	for i := range keys {
		at := e.Open(number)
		e.Text(1, keys[i].ID)
		e.Hash(2, keys[i].Key[:])
		e.Close(at)
	}
}

func encodeModelBody(e *field.Encoder, body Body) {
	switch b := body.(type) {
	case *ConceptCreate:
		e.Text(1, b.ID)
		e.Text(2, b.Name)
		e.Text(3, b.Language)
	case *ConceptName:
		e.Text(1, b.ID)
		e.Text(2, b.Name)
	case *ModelCreate:
		e.Text(1, b.ID)
		e.Text(2, b.Name)
		e.Text(3, b.Version)
		encodeTexts(e, 4, b.Concepts)
		encodeSettings(e, 5, b.Config)
	case *ModelPatch:
		encodeModelPatch(e, b)
	case *ModelDelete:
		EncodeDot(e, 1, b.Model)
	case *ModelDeleteAll:
	case *VersionTrain:
		EncodeDot(e, 1, b.Model)
		e.Text(2, b.Version)
	case *VersionResult:
		EncodeDot(e, 1, b.Model)
		e.Text(2, b.Version)
		e.Uint(3, b.Lease)
		e.Uint(4, uint64(b.Code))
		e.Text(5, b.Detail)
		e.Hash(6, b.Manifest[:])
		EncodeDot(e, 7, b.Train)
	case *VersionDelete:
		EncodeDot(e, 1, b.Model)
		e.Text(2, b.Version)
	case *WorkflowCreate:
		e.Text(1, b.ID)
		for _, n := range b.Nodes {
			EncodeNode(e, 2, n)
		}
	case *WorkflowDelete:
		EncodeDot(e, 1, b.Workflow)
	case *NetworkSwitch:
		e.Hash(1, b.Base[:])
		for _, v := range b.Versions {
			at := e.Open(2)
			EncodeDot(e, 1, v.Model)
			e.Text(2, v.From)
			e.Text(3, v.Version)
			e.Hash(4, v.Manifest[:])
			e.Close(at)
		}
	default:
		encodeControlBody(e, body)
	}
}

func encodeInputCreate(e *field.Encoder, b *InputCreate) {
	e.Text(1, b.ID)
	e.Text(2, b.URL)
	e.Bool(3, b.AllowDuplicate)
	e.Bool(4, b.MergeIfEqual)
	e.Hash(5, b.Blob[:])
	e.Text(6, b.ContentType)
	e.Hash(7, b.Hosted[:])
	EncodeCrop(e, 8, b.Crop)
	encodeLabels(e, 9, b.Labels)
	e.Raw(10, b.Meta)
	EncodePoint(e, 11, b.Geo)
}

func encodeModelPatch(e *field.Encoder, b *ModelPatch) {
	EncodeDot(e, 1, b.Model)
	encodeChange(e, 2, b.Name)
	encodeSettings(e, 3, b.Config)
	encodeTexts(e, 4, b.Add)
	encodeTexts(e, 5, b.Remove)
	e.Text(6, b.Version)
}

// encodeChange writes a text that is to replace another; nil: nothing is to.
func encodeChange(e *field.Encoder, number int, s *string) {
	if s != nil {
		at := e.Open(number)
		e.Text(1, *s)
		e.Close(at)
	}
}

func encodeTexts(e *field.Encoder, number int, list []string) {
	for _, s := range list {
		e.Element(number, s)
	}
}

func encodeLabels(e *field.Encoder, number int, labels []Label) {
	for _, l := range labels {
		EncodeLabel(e, number, l)
	}
}

func encodeWrites(e *field.Encoder, number int, writes []MetaWrite) {
	for _, w := range writes {
		at := e.Open(number)
		encodeTexts(e, 1, w.Path)
		e.Uint(2, uint64(w.Action))
		e.Raw(3, w.JSON)
		e.Close(at)
	}
}

func encodeEdits(e *field.Encoder, number int, edits []OutputEdit) {
	for _, x := range edits {
		at := e.Open(number)
		e.Text(1, x.Concept)
		e.Float32(2, x.Value)
		e.Bool(3, x.Removed)
		e.Close(at)
	}
}

func encodeSettings(e *field.Encoder, number int, settings []Setting) {
	for _, s := range settings {
		at := e.Open(number)
		e.Text(1, s.Name)
		e.Raw(2, s.JSON)
		e.Close(at)
	}
}
