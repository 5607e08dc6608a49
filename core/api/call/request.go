package call

import (
	"context"
	"io"
)

// Request is one request. Its bytes are borrowed until the call ends.
type Request struct {
	Method        string `wire:"1"`
	Path          string `wire:"2"` // still percent-encoded, without the query: "/v2/models"
	Query         string `wire:"3"` // after the '?', still encoded
	Authorization string `wire:"4"` // value of the header
	Session       string `wire:"5"` // value of the header X-Clarifai-Session-Token; ignored if Authorization is set
	App           string `wire:"6"` // application, if the host vouches for its owner; empty: that of the credential. Never from the network
	Caller        string // result of the service's Caller, or Remote for a stranger; set for requests with a body. Never from the network
	Remote        string `wire:"7"`  // address of the caller, for rate limits: IPv4, or the /64 network of IPv6; empty: all count as one
	Page          bool   `wire:"8"`  // the caller is a page of this program, if a host whose callers show keys knows. Never from the network
	Known         string `wire:"10"` // value of the header If-None-Match: entity tags of the answers that the caller's cache has
	Client        string `wire:"11"` // value of the header X-Clarifai-Client: name and version of the caller's library
	Body          []byte `wire:"15"`

	Memory Memory // memory of the answer; nil: the host does not count it. Never from the network

	// Watch returns a context that ends when the client disconnects or stop is called. nil: the host cannot detect that.
	Watch func(ctx context.Context) (watched context.Context, stop func())

	// Header returns the first value of any other header, or "" if the request has none. The core
	// does not use it, but handlers that a host mounts next to /v2 may. nil: the request has no other headers.
	Header func(name string) string
}

// Memory counts the bytes of one answer. The host frees the memory after it has sent the answer.
type Memory interface {
	// Reserve requests memory for the answer. bytes is the total so far. If Reserve returns false, the host has no memory left, and
	// the call fails with [ErrBusy].
	Reserve(bytes int64) bool
	// Room returns the maximum bytes that Reserve would grant now.
	Room() int64
	// Settle gives back the memory beyond bytes in total.
	Settle(bytes int64)
}

// Field is one header line of an answer.
type Field struct {
	Name  string `wire:"1"`
	Value string `wire:"2"`
}

// Response is one answer. The caller owns it.
type Response struct {
	Status      int     `wire:"1"` // HTTP status
	ContentType string  `wire:"2"` // empty if there is no body
	Header      []Field `wire:"3"` // other headers, in a fixed order
	Body        []byte  `wire:"15"`

	// Stream replaces Body. It writes the body after the host has sent the header, and returns when the body is complete. Answers of
	// the core have no Stream; answers of handlers that a host mounts next to /v2 may. If it returns an error, the host closes the
	// connection, so that clients notice the incomplete body. If w has a method Flush() error, Flush sends the written bytes at once.
	Stream func(w io.Writer) error
	Length int64 // number of bytes that Stream writes; 0: unknown

	Did AuditEvent `wire:"10"` // entry that the host writes to its audit log before it sends the answer; zero: none

	Err error // cause of a Status 500; for the host's log only, never for a client
}

// AuditEvent is an action of a call for the audit log.
type AuditEvent struct {
	Action string `wire:"1"` // for example "inputs.delete_all"
	App    string `wire:"2"` // application that was changed
	By     string `wire:"3"` // id of the account that acted; empty for the operator
}
