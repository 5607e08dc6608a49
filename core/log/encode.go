package log

import "github.com/sightline-dev/sightline/core/log/field"

// Encode appends the encoding of o to dst and returns the result. It panics if o has no body.
func Encode(dst []byte, o *Op) []byte { return append(dst, encodeOp(dst[len(dst):], o)...) }

// putBody writes the body of o as the field whose number is the body's kind.
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
