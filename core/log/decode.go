package log

import (
	"github.com/sightline-dev/sightline/core/log/field"
)

// Decode reads an operation, which keeps data. A body of a later version, or one that is
// malformed, becomes an Unknown: whoever folds it does the same everywhere. Errors: field.ErrFormat.
func Decode(data []byte) (Op, error) {
	var o Op
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			o.Dot.Site = Site(d.Uint32())
		case 2:
			o.Dot.Seq = d.Uint()
		case 3:
			o.At = HLC(d.Fixed64())
		case 4:
			o.By = d.Text()
		default:
			if d.Number < int(kindInputCreate) || o.Body != nil {
				d.Keep()
				continue
			}
			o.Body, o.Extra.Body = decodeBody(Kind(d.Number), d.Raw())
		}
	}
	if o.Body == nil {
		d.Malformed("operation without a body")
	}
	o.Extra.Op = d.Extra()
	return o, d.Err()
}

// decodeBody reads a body and returns the fields in it that are unknown.
func decodeBody(kind Kind, data []byte) (Body, []byte) {
	body, read := newBody(kind)
	if body == nil {
		return &Unknown{Kind: kind, Data: data}, nil
	}
	d := field.Fields(data)
	for d.Next() {
		read(d)
	}
	if d.Err() != nil {
		return &Unknown{Kind: kind, Data: data}, nil
	}
	return body, d.Extra()
}

// newBody returns a body of a kind and what reads one of its fields.
func newBody(kind Kind) (Body, func(*field.Decoder)) {
	switch kind {
	case kindInputCreate:
		b := &InputCreate{}
		return b, b.read
	case kindInputFetched:
		b := &InputFetched{}
		return b, b.read
	case kindInputLabels:
		b := &InputLabels{}
		return b, b.read
	case kindInputMeta:
		b := &InputMeta{}
		return b, b.read
	case kindInputGeo:
		b := &InputGeo{}
		return b, b.read
	case kindInputDelete:
		b := &InputDelete{}
		return b, b.read
	case kindInputDeleteAll:
		b := &InputDeleteAll{}
		return b, b.read
	case kindOutputsPatch:
		b := &OutputsPatch{}
		return b, b.read
	case kindFeedback:
		b := &Feedback{}
		return b, b.read
	case kindHorizon:
		b := &Horizon{}
		return b, b.read
	case kindRefused:
		b := &Refused{}
		return b, b.read
	case kindRules:
		b := &Rules{}
		return b, b.read
	}
	return newModelBody(kind)
}

func newModelBody(kind Kind) (Body, func(*field.Decoder)) {
	switch kind {
	case kindConceptCreate:
		b := &ConceptCreate{}
		return b, b.read
	case kindConceptName:
		b := &ConceptName{}
		return b, b.read
	case kindModelCreate:
		b := &ModelCreate{}
		return b, b.read
	case kindModelPatch:
		b := &ModelPatch{}
		return b, b.read
	case kindModelDelete:
		b := &ModelDelete{}
		return b, b.read
	case kindModelDeleteAll:
		return &ModelDeleteAll{}, (*field.Decoder).Keep
	case kindVersionTrain:
		b := &VersionTrain{}
		return b, b.read
	case kindVersionResult:
		b := &VersionResult{}
		return b, b.read
	case kindVersionDelete:
		b := &VersionDelete{}
		return b, b.read
	case kindWorkflowCreate:
		b := &WorkflowCreate{}
		return b, b.read
	case kindWorkflowDelete:
		b := &WorkflowDelete{}
		return b, b.read
	case kindNetworkSwitch:
		b := &NetworkSwitch{}
		return b, b.read
	}
	return newControlBody(kind)
}

func (b *InputCreate) read(d *field.Decoder) {
	switch d.Number {
	case 1:
		b.ID = d.Text()
	case 2:
		b.URL = d.Text()
	case 3:
		b.AllowDuplicate = d.Bool()
	case 4:
		b.MergeIfEqual = d.Bool()
	case 5:
		b.Blob = DecodeBlob(d)
	case 6:
		b.ContentType = d.Text()
	case 7:
		d.Hash(b.Hosted[:])
	case 8:
		b.Crop = DecodeCrop(d.Message())
	case 9:
		b.Labels = append(b.Labels, DecodeLabel(d.Message()))
	case 10:
		b.Meta = d.Raw()
	case 11:
		b.Geo = DecodePoint(d.Message())
	default:
		d.Keep()
	}
}

func (b *InputFetched) read(d *field.Decoder) {
	switch d.Number {
	case 1:
		b.Input = DecodeDot(d.Message())
	case 2:
		b.Code = d.Int()
	case 3:
		b.Detail = d.Text()
	case 4:
		b.Blob = DecodeBlob(d)
	case 5:
		b.ContentType = d.Text()
	default:
		d.Keep()
	}
}

func (b *InputLabels) read(d *field.Decoder) {
	switch d.Number {
	case 1:
		b.Input = DecodeDot(d.Message())
	case 2:
		b.Labels = append(b.Labels, DecodeLabel(d.Message()))
	default:
		d.Keep()
	}
}

func (b *InputMeta) read(d *field.Decoder) {
	switch d.Number {
	case 1:
		b.Input = DecodeDot(d.Message())
	case 2:
		b.Writes = append(b.Writes, decodeWrite(d.Message()))
	default:
		d.Keep()
	}
}

func decodeWrite(d *field.Decoder) (w MetaWrite) {
	for d.Next() {
		switch d.Number {
		case 1:
			w.Path = append(w.Path, d.Text())
		case 2:
			action := d.Uint()
			if action > uint64(MetaAppend) {
				d.Malformed("action")
			}
			w.Action = MetaAction(action)
		case 3:
			w.JSON = d.Raw()
		}
	}
	return w
}

func (b *InputGeo) read(d *field.Decoder) {
	switch d.Number {
	case 1:
		b.Input = DecodeDot(d.Message())
	case 2:
		b.Geo = DecodePoint(d.Message())
	default:
		d.Keep()
	}
}

func (b *InputDelete) read(d *field.Decoder) {
	switch d.Number {
	case 1:
		b.Input = DecodeDot(d.Message())
	default:
		d.Keep()
	}
}

func (b *InputDeleteAll) read(d *field.Decoder) {
	switch d.Number {
	case 1:
		b.Barrier = d.Bool()
	default:
		d.Keep()
	}
}

func (b *OutputsPatch) read(d *field.Decoder) {
	switch d.Number {
	case 1:
		b.Input = DecodeDot(d.Message())
	case 2:
		b.Edits = append(b.Edits, decodeEdit(d.Message()))
	default:
		d.Keep()
	}
}

func decodeEdit(d *field.Decoder) (x OutputEdit) {
	for d.Next() {
		switch d.Number {
		case 1:
			x.Concept = d.Text()
		case 2:
			x.Value = d.Float32()
		case 3:
			x.Removed = d.Bool()
		}
	}
	return x
}

func (b *Feedback) read(d *field.Decoder) {
	switch d.Number {
	case 1:
		b.Model = d.Text()
	case 2:
		b.Version = d.Text()
	case 3:
		b.JSON = d.Raw()
	default:
		d.Keep()
	}
}

func (b *Horizon) read(d *field.Decoder) {
	switch d.Number {
	case 1:
		b.At = HLC(d.Fixed64())
	default:
		d.Keep()
	}
}

func (b *Rules) read(d *field.Decoder) {
	switch d.Number {
	case 1:
		b.Version = d.Uint32()
	default:
		d.Keep()
	}
}

func (b *Refused) read(d *field.Decoder) {
	switch d.Number {
	case 1:
		b.Reason = d.Text()
	default:
		d.Keep()
	}
}
