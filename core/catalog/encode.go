package catalog

import (
	"fmt"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
)

// The fields of the records. A stamp that is the one of the record's creation is left out.
//
//	header    1 seq, 2 fold version, 3 next ordinal, 4 processed, 5 to process, 6 errors,
//	          7 horizon, 8 barrier, 9 clock, 10 concepts, 11 base, 12 sites
//	input     1 ord, 2 dot, 3 id, 4 created, 5 modified, 6 by, 7 url, 8 blob, 9 content type,
//	          10 hosted, 11 crop, 12 code, 13 detail, 14 labels, 15 meta, 16 geo, 17 geo at, 18 edits
//	 label    1 concept, 2 value, 3 at          meta   1 path…, 2 json, 3 removed, 4 at
//	 edit     1 concept, 2 value, 3 removed, 4 at
//	concept   1 dot, 2 seq, 3 id, 4 name, 5 name at, 6 created, 7 updated, 8 language
//	model     1 dot, 2 seq, 3 id, 4 name, 5 name at, 6 created, 7 config, 8 concepts, 9 newest
//	 setting  1 name, 2 json, 3 at              member 1 concept, 2 in, 3 at
//	version   1 model, 2 seq, 3 id, 4 created, 5 code, 6 detail, 7 concepts…, 8 config, 9 manifest
//	workflow  1 dot, 2 seq, 3 id, 4 created, 5 nodes (1 id, 2 model, 3 version)
//	feedback  1 dot, 2 seq, 3 created, 4 by, 5 model, 6 version, 7 json
//	app       1 dot, 2 id, 3 name, 4 language, 5 default model, 6 created, 7 owner, 8 seq
//	key       1 hash, 2 app, 3 scopes…, 4 description, 5 created, 6 by
//	client    1 id, 2 app, 3 secret, 4 generation, 5 created
//	edge      1 id, 2 name, 3 apps…, 4 owner, 5 token, 6 key, 7 site, 8 created, 9 enrolled, 10 revoked
//	site      1 site, 2 edge, 3 app, 4 holder, 5 secret, 6 created, 7 until
//	derived   1 embedding, 2 values (floats of 4 bytes), 3 thumb

// encodeInput encodes in into buf's memory.
func encodeInput(buf []byte, in *Input) []byte {
	var e field.Encoder
	e.Reset(buf)
	born := log.Stamp{At: in.Created, Site: in.Dot.Site}
	e.Uint(1, uint64(in.Ord))
	log.EncodeDot(&e, 2, in.Dot)
	e.Text(3, in.ID)
	e.Fixed64(4, uint64(in.Created))
	e.Fixed64(5, uint64(in.Modified))
	e.Text(6, in.By)
	e.Text(7, in.URL)
	e.Hash(8, in.Blob[:])
	e.Text(9, in.ContentType)
	e.Hash(10, in.Hosted[:])
	log.EncodeCrop(&e, 11, in.Crop)
	e.Uint(12, uint64(in.Code))
	e.Text(13, in.Detail)
	for i := range in.Labels {
		l := &in.Labels[i]
		at := e.Open(14)
		e.Text(1, l.Concept)
		e.Uint(2, uint64(l.Value))
		encodeStamp(&e, 3, l.At, born)
		e.Close(at)
	}
	for i := range in.Meta {
		p := &in.Meta[i]
		at := e.Open(15)
		for _, name := range p.Path {
			e.Element(1, name)
		}
		e.Raw(2, p.JSON)
		e.Bool(3, p.Removed)
		encodeStamp(&e, 4, p.At, born)
		e.Close(at)
	}
	log.EncodePoint(&e, 16, in.Geo)
	encodeStamp(&e, 17, in.GeoAt, log.Stamp{})
	for i := range in.Edits {
		x := &in.Edits[i]
		at := e.Open(18)
		e.Text(1, x.Concept)
		e.Float32(2, x.Value)
		e.Bool(3, x.Removed)
		encodeStamp(&e, 4, x.At, born)
		e.Close(at)
	}
	return e.Bytes(in.Extra)
}

// RecordSize returns the bytes of the input's record.
func (in *Input) RecordSize() int { return len(encodeInput(nil, in)) }

func encodeStamp(e *field.Encoder, number int, s, usual log.Stamp) {
	if s != usual {
		log.EncodeStamp(e, number, s)
	}
}

// decodeInput reads an input's record, whose bytes the input keeps.
func decodeInput(data []byte) (Input, error) {
	var in Input
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			in.Ord = d.Uint32()
		case 2:
			in.Dot = log.DecodeDot(d.Message())
		case 3:
			in.ID = d.Text()
		case 4:
			in.Created = log.HLC(d.Fixed64())
		case 5:
			in.Modified = log.HLC(d.Fixed64())
		case 6:
			in.By = d.Text()
		case 7:
			in.URL = d.Text()
		case 8:
			in.Blob = log.DecodeBlob(d)
		case 9:
			in.ContentType = d.Text()
		case 10:
			d.Hash(in.Hosted[:])
		case 11:
			in.Crop = log.DecodeCrop(d.Message())
		case 12:
			in.Code = d.Int()
		case 13:
			in.Detail = d.Text()
		case 14:
			in.Labels = append(in.Labels, decodeLabel(d.Message()))
		case 15:
			in.Meta = append(in.Meta, decodeMeta(d.Message()))
		case 16:
			in.Geo = log.DecodePoint(d.Message())
		case 17:
			in.GeoAt = log.DecodeStamp(d.Message())
		case 18:
			in.Edits = append(in.Edits, decodeEdit(d.Message()))
		default:
			d.Keep()
		}
	}
	in.Extra = d.Extra()
	born := log.Stamp{At: in.Created, Site: in.Dot.Site}
	for i := range in.Labels {
		orBorn(&in.Labels[i].At, born)
	}
	for i := range in.Meta {
		orBorn(&in.Meta[i].At, born)
	}
	for i := range in.Edits {
		orBorn(&in.Edits[i].At, born)
	}
	return in, named(d.Err(), "input")
}

func orBorn(s *log.Stamp, born log.Stamp) {
	if *s == (log.Stamp{}) {
		*s = born
	}
}

func named(err error, what string) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func decodeLabel(d *field.Decoder) (l Label) {
	for d.Next() {
		switch d.Number {
		case 1:
			l.Concept = d.Text()
		case 2:
			l.Value = log.DecodeValue(d)
		case 3:
			l.At = log.DecodeStamp(d.Message())
		}
	}
	return l
}

func decodeMeta(d *field.Decoder) (p MetaPart) {
	for d.Next() {
		switch d.Number {
		case 1:
			p.Path = append(p.Path, d.Text())
		case 2:
			p.JSON = d.Raw()
		case 3:
			p.Removed = d.Bool()
		case 4:
			p.At = log.DecodeStamp(d.Message())
		}
	}
	return p
}

func decodeEdit(d *field.Decoder) (x Edit) {
	for d.Next() {
		switch d.Number {
		case 1:
			x.Concept = d.Text()
		case 2:
			x.Value = d.Float32()
		case 3:
			x.Removed = d.Bool()
		case 4:
			x.At = log.DecodeStamp(d.Message())
		}
	}
	return x
}

func encodeConcept(c *Concept) []byte {
	var e field.Encoder
	log.EncodeDot(&e, 1, c.Dot)
	e.Uint(2, c.Seq)
	e.Text(3, c.ID)
	e.Text(4, c.Name)
	encodeStamp(&e, 5, c.NameAt, log.Stamp{At: c.Created, Site: c.Dot.Site})
	e.Fixed64(6, uint64(c.Created))
	e.Fixed64(7, uint64(c.Updated))
	e.Text(8, c.Language)
	return e.Bytes(c.Extra)
}

func decodeConcept(data []byte) (Concept, error) {
	var c Concept
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			c.Dot = log.DecodeDot(d.Message())
		case 2:
			c.Seq = d.Uint()
		case 3:
			c.ID = d.Text()
		case 4:
			c.Name = d.Text()
		case 5:
			c.NameAt = log.DecodeStamp(d.Message())
		case 6:
			c.Created = log.HLC(d.Fixed64())
		case 7:
			c.Updated = log.HLC(d.Fixed64())
		case 8:
			c.Language = d.Text()
		default:
			d.Keep()
		}
	}
	c.Extra = d.Extra()
	orBorn(&c.NameAt, log.Stamp{At: c.Created, Site: c.Dot.Site})
	return c, named(d.Err(), "concept")
}

func encodeModel(m *Model) []byte {
	var e field.Encoder
	born := log.Stamp{At: m.Created, Site: m.Dot.Site}
	log.EncodeDot(&e, 1, m.Dot)
	e.Uint(2, m.Seq)
	e.Text(3, m.ID)
	e.Text(4, m.Name)
	encodeStamp(&e, 5, m.NameAt, born)
	e.Fixed64(6, uint64(m.Created))
	for i := range m.Config {
		encodeSetting(&e, 7, &m.Config[i], born)
	}
	for i := range m.Concepts {
		c := &m.Concepts[i]
		at := e.Open(8)
		e.Text(1, c.Concept)
		e.Bool(2, c.In)
		encodeStamp(&e, 3, c.At, born)
		e.Close(at)
	}
	e.Text(9, m.Newest)
	return e.Bytes(m.Extra)
}

func encodeSetting(e *field.Encoder, number int, s *Setting, born log.Stamp) {
	at := e.Open(number)
	e.Text(1, s.Name)
	e.Raw(2, s.JSON)
	encodeStamp(e, 3, s.At, born)
	e.Close(at)
}

func decodeModel(data []byte) (Model, error) {
	var m Model
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			m.Dot = log.DecodeDot(d.Message())
		case 2:
			m.Seq = d.Uint()
		case 3:
			m.ID = d.Text()
		case 4:
			m.Name = d.Text()
		case 5:
			m.NameAt = log.DecodeStamp(d.Message())
		case 6:
			m.Created = log.HLC(d.Fixed64())
		case 7:
			m.Config = append(m.Config, decodeSetting(d.Message()))
		case 8:
			m.Concepts = append(m.Concepts, decodeMember(d.Message()))
		case 9:
			m.Newest = d.Text()
		default:
			d.Keep()
		}
	}
	m.Extra = d.Extra()
	born := log.Stamp{At: m.Created, Site: m.Dot.Site}
	orBorn(&m.NameAt, born)
	for i := range m.Config {
		orBorn(&m.Config[i].At, born)
	}
	for i := range m.Concepts {
		orBorn(&m.Concepts[i].At, born)
	}
	return m, named(d.Err(), "model")
}

func decodeSetting(d *field.Decoder) (s Setting) {
	for d.Next() {
		switch d.Number {
		case 1:
			s.Name = d.Text()
		case 2:
			s.JSON = d.Raw()
		case 3:
			s.At = log.DecodeStamp(d.Message())
		}
	}
	return s
}

func decodeMember(d *field.Decoder) (m Member) {
	for d.Next() {
		switch d.Number {
		case 1:
			m.Concept = d.Text()
		case 2:
			m.In = d.Bool()
		case 3:
			m.At = log.DecodeStamp(d.Message())
		}
	}
	return m
}

func encodeVersion(v *Version) []byte {
	var e field.Encoder
	log.EncodeDot(&e, 1, v.Model)
	e.Uint(2, v.Seq)
	e.Text(3, v.ID)
	e.Fixed64(4, uint64(v.Created))
	e.Uint(5, uint64(v.Code))
	e.Text(6, v.Detail)
	for _, c := range v.Concepts {
		e.Element(7, c)
	}
	for i := range v.Config {
		encodeSetting(&e, 8, &v.Config[i], log.Stamp{})
	}
	e.Hash(9, v.Manifest[:])
	return e.Bytes(v.Extra)
}

func decodeVersion(data []byte) (Version, error) {
	var v Version
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			v.Model = log.DecodeDot(d.Message())
		case 2:
			v.Seq = d.Uint()
		case 3:
			v.ID = d.Text()
		case 4:
			v.Created = log.HLC(d.Fixed64())
		case 5:
			v.Code = d.Int()
		case 6:
			v.Detail = d.Text()
		case 7:
			v.Concepts = append(v.Concepts, d.Text())
		case 8:
			v.Config = append(v.Config, decodeSetting(d.Message()))
		case 9:
			v.Manifest = log.DecodeBlob(d)
		default:
			d.Keep()
		}
	}
	v.Extra = d.Extra()
	return v, named(d.Err(), "version")
}

func encodeDerived(x *Derived) []byte {
	var e field.Encoder
	e.Raw(1, x.Embedding)
	e.Raw(2, floatBytes(x.Values))
	e.Hash(3, x.Thumb[:])
	e.Raw(4, x.Print)
	return e.Bytes(x.Extra)
}

func decodeDerived(data []byte) (Derived, error) {
	var x Derived
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			x.Embedding = d.Raw()
		case 2:
			if b := d.Raw(); len(b)%4 == 0 {
				x.Values = bytesFloat(b)
			} else {
				d.Malformed("values")
			}
		case 3:
			x.Thumb = log.DecodeBlob(d)
		case 4:
			x.Print = d.Raw()
		default:
			d.Keep()
		}
	}
	x.Extra = d.Extra()
	return x, named(d.Err(), "derived record")
}
