package log

import "github.com/sightline-dev/sightline/core/log/field"

// Decode decodes an operation, which shares the memory of data. A body of an unknown kind and a malformed body become an [Unknown], which
// every replica folds alike. Errors: field.ErrFormat.
func Decode(data []byte) (Op, error) {
	var o Op
	d := field.Decode(data)
	getOp(d, &o)
	if o.Body == nil {
		d.Malformed("operation without a body")
	}
	return o, d.Err()
}

// getBody reads the body of o: the first field whose number is at least that of the first kind, 16. It stores other fields in d as unknown.
func getBody(d *field.Decoder, o *Op) {
	if d.Number < int(kindInputCreate) || o.Body != nil {
		d.Keep()
		return
	}
	o.Body, o.Extra.Body = decodeBody(Kind(d.Number), d.Raw())
}

// decodeBody decodes a body and returns the fields in it that this version does not know.
func decodeBody(kind Kind, data []byte) (Body, []byte) {
	d := field.Fields(data)
	body := getKind(kind, d)
	if body == nil || d.Err() != nil {
		return &Unknown{Kind: kind, Data: data}, nil
	}
	return body, d.Extra()
}
