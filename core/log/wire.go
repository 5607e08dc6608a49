package log

import (
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// What operations and records have in common, as messages:
//
//	dot     1 site, 2 seq
//	label   1 concept, 2 value
//	crop    1 top, 2 left, 3 bottom, 4 right        doubles
//	point   1 longitude, 2 latitude                 doubles
//	stamp   1 clock (fixed), 2 site

// EncodeDot writes a dot, unless it is zero.
func EncodeDot(e *field.Encoder, number int, d Dot) {
	if d == (Dot{}) {
		return
	}
	at := e.Open(number)
	e.Uint(1, uint64(d.Site))
	e.Uint(2, d.Seq)
	e.Close(at)
}

// DecodeDot reads a dot.
func DecodeDot(d *field.Decoder) Dot {
	var dot Dot
	for d.Next() {
		switch d.Number {
		case 1:
			dot.Site = Site(d.Uint32())
		case 2:
			dot.Seq = d.Uint()
		}
	}
	return dot
}

// EncodeLabel writes a label.
func EncodeLabel(e *field.Encoder, number int, l Label) {
	at := e.Open(number)
	e.Text(1, l.Concept)
	e.Uint(2, uint64(l.Value))
	e.Close(at)
}

// DecodeLabel reads a label.
func DecodeLabel(d *field.Decoder) Label {
	var l Label
	for d.Next() {
		switch d.Number {
		case 1:
			l.Concept = d.Text()
		case 2:
			l.Value = DecodeValue(d)
		}
	}
	return l
}

// DecodeValue reads the value of a label. One that this version does not know is malformed.
func DecodeValue(d *field.Decoder) Value {
	v := d.Uint()
	if v > uint64(True) {
		d.Malformed("value of a label")
		return Removed
	}
	return Value(v)
}

// EncodeStamp writes a stamp.
func EncodeStamp(e *field.Encoder, number int, s Stamp) {
	at := e.Open(number)
	e.Fixed64(1, uint64(s.At))
	e.Uint(2, uint64(s.Site))
	e.Close(at)
}

// DecodeStamp reads a stamp.
func DecodeStamp(d *field.Decoder) Stamp {
	var s Stamp
	for d.Next() {
		switch d.Number {
		case 1:
			s.At = HLC(d.Fixed64())
		case 2:
			s.Site = Site(d.Uint32())
		}
	}
	return s
}

// EncodeCrop writes a crop, unless it is the whole picture.
func EncodeCrop(e *field.Encoder, number int, c raster.Crop) {
	if c == (raster.Crop{}) {
		return
	}
	at := e.Open(number)
	e.Float(1, c.Top)
	e.Float(2, c.Left)
	e.Float(3, c.Bottom)
	e.Float(4, c.Right)
	e.Close(at)
}

// DecodeCrop reads a crop.
func DecodeCrop(d *field.Decoder) raster.Crop {
	var c raster.Crop
	for d.Next() {
		switch d.Number {
		case 1:
			c.Top = d.Float()
		case 2:
			c.Left = d.Float()
		case 3:
			c.Bottom = d.Float()
		case 4:
			c.Right = d.Float()
		}
	}
	return c
}

// EncodePoint writes a point, unless there is none.
func EncodePoint(e *field.Encoder, number int, p *Point) {
	if p == nil {
		return
	}
	at := e.Open(number)
	e.Float(1, p.Longitude)
	e.Float(2, p.Latitude)
	e.Close(at)
}

// DecodePoint reads a point.
func DecodePoint(d *field.Decoder) *Point {
	p := &Point{}
	for d.Next() {
		switch d.Number {
		case 1:
			p.Longitude = d.Float()
		case 2:
			p.Latitude = d.Float()
		}
	}
	return p
}

// DecodeBlob reads a hash.
func DecodeBlob(d *field.Decoder) blob.Hash {
	var h blob.Hash
	d.Hash(h[:])
	return h
}

// EncodeNode writes a step of a workflow: 1 id, 2 model, 3 version.
func EncodeNode(e *field.Encoder, number int, n WorkflowNode) {
	at := e.Open(number)
	e.Text(1, n.ID)
	e.Text(2, n.Model)
	e.Text(3, n.Version)
	e.Close(at)
}

// DecodeNode reads a step of a workflow.
func DecodeNode(d *field.Decoder) WorkflowNode {
	var n WorkflowNode
	for d.Next() {
		switch d.Number {
		case 1:
			n.ID = d.Text()
		case 2:
			n.Model = d.Text()
		case 3:
			n.Version = d.Text()
		}
	}
	return n
}
