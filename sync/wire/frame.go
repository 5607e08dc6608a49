package wire

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/sightline-dev/sightline/core/log/field"
)

// ErrFormat is returned for bytes that are not a valid frame, block or message of the sync protocol.
var ErrFormat = field.ErrFormat

// ErrTooLarge is returned for a frame or a message that exceeds MaxBody or MaxMessage.
var ErrTooLarge = errors.New("frame too large")

// Limits of a stream.
const (
	MaxBody    = 256 << 10 // maximum bytes of one frame's body
	MaxMessage = 16 << 20  // maximum bytes of a message that is sent in several frames
	HeaderSize = 5         // bytes of a frame before its body
)

// Type is the kind of a frame's body. A reader skips an unknown type if it is at least [Optional]; otherwise it ends the stream.
type Type uint8

// The types.
const (
	TypePart       Type = 1 + iota // the body continues in the next frame
	TypeDerived                    // [Derived]
	TypeObject                     // [Object]
	TypeAppRecord                  // [AppRecord]
	TypeEntries                    // [Entries]
	TypeCheckpoint                 // [Checkpoint]
	TypeKeepalive                  // [Keepalive]
	TypeEnd                        // [End]

	Optional Type = 0x80
)

var typeNames = [...]string{"", "part", "derived", "object", "register", "entries", "checkpoint", "keepalive", "end"}

// String returns the type's name, such as "entries".
func (t Type) String() string {
	if t > 0 && int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// Frame is one message of a stream.
type Frame struct {
	Type Type
	Body []byte // the message's encoding
}

// AppendFrame appends a message as one frame, or as several if body exceeds MaxBody. It panics if body exceeds MaxMessage; the callers
// check that.
func AppendFrame(dst []byte, t Type, body []byte) []byte {
	if len(body) > MaxMessage {
		panic(fmt.Sprintf("wire: %v of %d bytes", t, len(body)))
	}
	for len(body) > MaxBody {
		dst = append(appendHeader(dst, TypePart, MaxBody), body[:MaxBody]...)
		body = body[MaxBody:]
	}
	return append(appendHeader(dst, t, len(body)), body...)
}

func appendHeader(dst []byte, t Type, n int) []byte {
	return append(binary.LittleEndian.AppendUint32(dst, uint32(n)), byte(t))
}

// Reader splits a stream into messages. The caller may write the stream in pieces of any size. The zero value is ready. Memory: the bytes
// of one incomplete message and the last Write.
type Reader struct {
	in   []byte // received bytes
	at   int    // bytes of in that were read
	part []byte // body of an incomplete message
	err  error
}

// Write adds received bytes. It copies p, and its error is always nil.
func (r *Reader) Write(p []byte) (int, error) {
	if r.at > 0 {
		r.in, r.at = r.in[:copy(r.in, r.in[r.at:])], 0
	}
	r.in = append(r.in, p...)
	return len(p), nil
}

// Next returns the next message, or false if it is incomplete. The caller owns the body. After an error, every call returns the same error.
// Errors: ErrFormat, ErrTooLarge.
func (r *Reader) Next() (Frame, bool, error) {
	for r.err == nil && len(r.in)-r.at >= HeaderSize {
		rest := r.in[r.at:]
		n, t := int(binary.LittleEndian.Uint32(rest)), Type(rest[4])
		switch {
		case n > MaxBody:
			r.err = fmt.Errorf("%w: %v of %d bytes", ErrTooLarge, t, n)
		case len(r.part)+n > MaxMessage:
			r.err = fmt.Errorf("%w: message of more than %d bytes", ErrTooLarge, MaxMessage)
		case t == 0 || t == TypePart && n == 0:
			r.err = fmt.Errorf("%w: frame of type %d and %d bytes", ErrFormat, t, n)
		}
		if r.err != nil || len(rest) < HeaderSize+n {
			break
		}
		body := append(r.part, rest[HeaderSize:HeaderSize+n]...)
		r.part = nil
		r.at += HeaderSize + n
		if t != TypePart {
			return Frame{Type: t, Body: body}, true, nil
		}
		r.part = body
	}
	return Frame{}, false, r.err
}

// Idle reports whether the reader is between two messages without an error. A stream that ends elsewhere was truncated.
func (r *Reader) Idle() bool { return r.err == nil && r.at == len(r.in) && len(r.part) == 0 }
