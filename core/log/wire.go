package log

import (
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// EncodeDot writes a dot, unless it is zero.
func EncodeDot(e *field.Encoder, number int, d Dot) {
	if d != (Dot{}) {
		at := e.Open(number)
		putDot(e, &d)
		e.Close(at)
	}
}

// DecodeDot reads a dot.
func DecodeDot(d *field.Decoder) (dot Dot) {
	getDot(d, &dot)
	return dot
}

// EncodeLabel writes a label.
func EncodeLabel(e *field.Encoder, number int, l Label) {
	at := e.Open(number)
	putLabel(e, &l)
	e.Close(at)
}

// DecodeLabel reads a label.
func DecodeLabel(d *field.Decoder) (l Label) {
	getLabel(d, &l)
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
	putStamp(e, &s)
	e.Close(at)
}

// DecodeStamp reads a stamp.
func DecodeStamp(d *field.Decoder) (s Stamp) {
	getStamp(d, &s)
	return s
}

// EncodeCrop writes a crop, unless it is the whole picture.
func EncodeCrop(e *field.Encoder, number int, c raster.Crop) {
	if c != (raster.Crop{}) {
		at := e.Open(number)
		putRasterCrop(e, &c)
		e.Close(at)
	}
}

// DecodeCrop reads a crop.
func DecodeCrop(d *field.Decoder) (c raster.Crop) {
	getRasterCrop(d, &c)
	return c
}

// EncodePoint writes a point, unless there is none.
func EncodePoint(e *field.Encoder, number int, p *Point) {
	if p != nil {
		at := e.Open(number)
		putPoint(e, p)
		e.Close(at)
	}
}

// DecodePoint reads a point.
func DecodePoint(d *field.Decoder) *Point {
	p := &Point{}
	getPoint(d, p)
	return p
}

// DecodeBlob reads a hash.
func DecodeBlob(d *field.Decoder) (h blob.Hash) {
	d.Hash(h[:])
	return h
}

// EncodeNode writes a step of a workflow.
func EncodeNode(e *field.Encoder, number int, n WorkflowNode) {
	at := e.Open(number)
	putWorkflowNode(e, &n)
	e.Close(at)
}

// DecodeNode reads a step of a workflow.
func DecodeNode(d *field.Decoder) (n WorkflowNode) {
	getWorkflowNode(d, &n)
	return n
}

// EncodeKeys writes keys, each as a message within the message.
func EncodeKeys(e *field.Encoder, number int, keys []PublicKey) {
	for i := range keys {
		at := e.Open(number)
		putPublicKey(e, &keys[i])
		e.Close(at)
	}
}

// DecodeKey reads a key.
func DecodeKey(d *field.Decoder) (k PublicKey) {
	getPublicKey(d, &k)
	return k
}
