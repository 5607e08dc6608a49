package call

import (
	"context"
	"io"
)

// Request is one request as it came, its bytes borrowed until the call is done.
type Request struct {
	Method        string `wire:"1"`
	Path          string `wire:"2"` // still percent-encoded, without the query: "/v2/models"
	Query         string `wire:"3"` // after the '?', still encoded
	Authorization string `wire:"4"` // the header's value
	Session       string `wire:"5"` // the header X-Clarifai-Session-Token; Authorization is stronger
	App           string `wire:"6"` // the application, where the host vouches for its owner; empty: Authorization says. Never from the network
	Caller        string // what the service's Caller returned, or Remote for a stranger; set for requests with a body. Never from the network
	Remote        string `wire:"7"` // address of the caller, for throttling: IPv4, or the /64 network of IPv6; empty: all callers count as one
	Page          bool   `wire:"8"` // the caller is a page of this program, if a host whose callers show keys knows. Never from the network
	Body          []byte `wire:"15"`

	Memory Memory // of the answer; nil: the host does not count it. Never from the network

	// Watch returns a context that ends when the client has disconnected, until stop. nil: nobody can tell.
	Watch func(ctx context.Context) (watched context.Context, stop func())

	// Header returns the first value of any other header, and "" where there is none. The core
	// asks for none; what a host mounts next to /v2 may. nil: there are none.
	Header func(name string) string
}

// Memory counts the bytes of one answer. The host takes the memory back once the answer is sent.
type Memory interface {
	// Reserve asks for the memory of the answer, which has taken bytes so far. If it returns false, the host has none to spare, and the
	// call is refused with [ErrBusy].
	Reserve(bytes int64) bool
	// Room returns the most bytes that Reserve would grant now.
	Room() int64
}

// Field is one header line of an answer.
type Field struct {
	Name  string `wire:"1"`
	Value string `wire:"2"`
}

// Response is one answer. It belongs to the caller.
type Response struct {
	Status      int     `wire:"1"` // HTTP status
	ContentType string  `wire:"2"` // empty when there is no body
	Header      []Field `wire:"3"` // other headers, in a fixed order
	Body        []byte  `wire:"15"`

	// Stream writes the body instead of Body, after the header was sent, and returns when the body is complete. The core's answers have
	// none; those that a host mounts next to /v2 may. An error closes the connection, so that nobody mistakes a part for the whole. If w
	// has a method Flush() error, it sends the written bytes at once.
	Stream func(w io.Writer) error
	Length int64 // bytes that Stream writes; 0: unknown

	Did AuditEvent `wire:"10"` // what the host notes in its audit log before it sends the answer; zero: nothing

	Err error // why we failed, where Status is 500: for the host's log, and for nobody else
}

// AuditEvent is something that a call did and that an audit log has.
type AuditEvent struct {
	Action string `wire:"1"` // such as "inputs.delete_all"
	App    string `wire:"2"` // the application to which it was done
	By     string `wire:"3"` // the account that did it, by its ID; empty: the operator
}
