package log

import "github.com/sightline-dev/sightline/core/log/field"

// Encode appends the encoding of o to dst. It panics on an operation without a body.
func Encode(dst []byte, o *Op) []byte { return append(dst, encodeOp(dst[len(dst):], o)...) }

// putBody writes the body in the field of its kind.
func putBody(e *field.Encoder, o *Op) {
	at := e.Open(int(o.Body.kind()))
	if u, ok := o.Body.(*Unknown); ok {
		e.Append(u.Data)
	} else {
		putKind(e, o.Body)
		e.Append(o.Extra.Body)
	}
	e.Close(at)
}
