package log

import "github.com/sightline-dev/sightline/core/log/field"

// Decode reads an operation, which keeps data. A body of a later version, or one that is
// malformed, becomes an Unknown, which the fold treats the same everywhere. Errors: field.ErrFormat.
func Decode(data []byte) (Op, error) {
	var o Op
	d := field.Decode(data)
	getOp(d, &o)
	if o.Body == nil {
		d.Malformed("operation without a body")
	}
	return o, d.Err()
}

// getBody reads the body: the first field whose number is at least 16.
func getBody(d *field.Decoder, o *Op) {
	if d.Number < int(kindInputCreate) || o.Body != nil {
		d.Keep()
		return
	}
	o.Body, o.Extra.Body = decodeBody(Kind(d.Number), d.Raw())
}

// decodeBody reads a body and returns the fields in it that are unknown.
func decodeBody(kind Kind, data []byte) (Body, []byte) {
	d := field.Fields(data)
	body := getKind(kind, d)
	if body == nil || d.Err() != nil {
		return &Unknown{Kind: kind, Data: data}, nil
	}
	return body, d.Extra()
}
