package log

import "github.com/sightline-dev/sightline/core/log/field"

func (b *ConceptCreate) read(d *field.Decoder) {
	switch d.Number {
	case 1:
		b.ID = d.Text()
	case 2:
		b.Name = d.Text()
	case 3:
		b.Language = d.Text()
	default:
		d.Keep()
	}
}

func (b *ConceptName) read(d *field.Decoder) {
	switch d.Number {
	case 1:
		b.ID = d.Text()
	case 2:
		b.Name = d.Text()
	default:
		d.Keep()
	}
}

func (b *ModelCreate) read(d *field.Decoder) {
	switch d.Number {
	case 1:
		b.ID = d.Text()
	case 2:
		b.Name = d.Text()
	case 3:
		b.Version = d.Text()
	case 4:
		b.Concepts = append(b.Concepts, d.Text())
	case 5:
		b.Config = append(b.Config, decodeSetting(d.Message()))
	default:
		d.Keep()
	}
}

func decodeSetting(d *field.Decoder) (s Setting) {
	for d.Next() {
		switch d.Number {
		case 1:
			s.Name = d.Text()
		case 2:
			s.JSON = d.Raw()
		}
	}
	return s
}

func (b *ModelPatch) read(d *field.Decoder) {
	switch d.Number {
	case 1:
		b.Model = DecodeDot(d.Message())
	case 2:
		b.Name = decodeChange(d.Message())
	case 3:
		b.Config = append(b.Config, decodeSetting(d.Message()))
	case 4:
		b.Add = append(b.Add, d.Text())
	case 5:
		b.Remove = append(b.Remove, d.Text())
	case 6:
		b.Version = d.Text()
	default:
		d.Keep()
	}
}

func (b *ModelDelete) read(d *field.Decoder) {
	switch d.Number {
	case 1:
		b.Model = DecodeDot(d.Message())
	default:
		d.Keep()
	}
}

func (b *VersionTrain) read(d *field.Decoder) {
	switch d.Number {
	case 1:
		b.Model = DecodeDot(d.Message())
	case 2:
		b.Version = d.Text()
	default:
		d.Keep()
	}
}

func (b *VersionResult) read(d *field.Decoder) {
	switch d.Number {
	case 1:
		b.Model = DecodeDot(d.Message())
	case 2:
		b.Version = d.Text()
	case 3:
		b.Lease = d.Uint()
	case 4:
		b.Code = d.Int()
	case 5:
		b.Detail = d.Text()
	case 6:
		b.Manifest = DecodeBlob(d)
	case 7:
		b.Train = DecodeDot(d.Message())
	default:
		d.Keep()
	}
}

func (b *VersionDelete) read(d *field.Decoder) {
	switch d.Number {
	case 1:
		b.Model = DecodeDot(d.Message())
	case 2:
		b.Version = d.Text()
	default:
		d.Keep()
	}
}

func (b *WorkflowCreate) read(d *field.Decoder) {
	switch d.Number {
	case 1:
		b.ID = d.Text()
	case 2:
		b.Nodes = append(b.Nodes, DecodeNode(d.Message()))
	default:
		d.Keep()
	}
}

func (b *WorkflowDelete) read(d *field.Decoder) {
	switch d.Number {
	case 1:
		b.Workflow = DecodeDot(d.Message())
	default:
		d.Keep()
	}
}

func (b *NetworkSwitch) read(d *field.Decoder) {
	switch d.Number {
	case 1:
		d.Hash(b.Base[:])
	case 2:
		b.Versions = append(b.Versions, decodeRenewed(d.Message()))
	default:
		d.Keep()
	}
}

func decodeRenewed(d *field.Decoder) (v Renewed) {
	for d.Next() {
		switch d.Number {
		case 1:
			v.Model = DecodeDot(d.Message())
		case 2:
			v.From = d.Text()
		case 3:
			v.Version = d.Text()
		case 4:
			v.Manifest = DecodeBlob(d)
		}
	}
	return v
}
