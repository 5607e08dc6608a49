package api

import (
	"context"
	"io"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// Request is one request as it came, its bytes borrowed until the call is done.
type Request struct {
	Method        string
	Path          string // still percent-encoded, without the query: "/v2/models"
	Query         string // after the '?', still encoded
	Authorization string // the header's value
	Session       string // the header X-Clarifai-Session-Token; Authorization is stronger
	App           string // the application, where the host vouches for its owner; empty: Authorization says. Never from the network
	Caller        string // what [Service.Caller] returned, or Remote for a stranger; set for requests with a body. Never from the network
	Remote        string // who asks, for throttling: an IPv4 address, or the /64 of an IPv6 one; empty: nobody is told apart
	Page          bool   // one of our own pages asks, as far as a host can tell that has its callers come with keys. Never from the network
	Body          []byte

	Memory Memory // of the answer; nil: the host does not count it. Never from the network

	// Watch returns a context that ends when the client has disconnected, until stop. nil: nobody can tell.
	Watch func(ctx context.Context) (watched context.Context, stop func())

	// Header returns the first value of any other header, and "" where there is none. The core
	// asks for none; what a host mounts beside /v2 may. nil: there are none.
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
type Field struct{ Name, Value string }

// Response is one answer. It belongs to the caller.
type Response struct {
	Status      int     // HTTP status
	ContentType string  // empty when there is no body
	Header      []Field // other headers, in a fixed order
	Body        []byte

	// Stream writes the body in place of Body, after the header has gone out, and returns when it is
	// whole. The core's answers have none; what a host mounts beside /v2 may. An error cuts the
	// connection off, so that nobody takes a part for the whole. Where w has a method Flush() error, it
	// sends at once what has been written.
	Stream func(w io.Writer) error
	Length int64 // of what Stream writes; 0: it is not known before

	Did Deed // what the host notes in its audit log before it sends the answer; zero: nothing

	Err error // why we failed, where Status is 500: for the host's log, and for nobody else
}

// Deed is something that a call did and that an audit log has.
type Deed struct {
	Action string // such as "inputs.delete_all"
	App    string // the application to which it was done
	By     string // the account that did it, by its ID; empty: the operator
}

// Job is a picture, or a video, that a call, or an input in the background, wants analysed.
type Job struct {
	URL   string      // fetch the picture from here, or
	Data  []byte      // this is the picture, or
	Blob  blob.Hash   // read it from the blobs, when there is neither
	Video Video       // these frames of a video are wanted; zero: it is a picture
	Crop  raster.Crop // part of the upright picture; zero: all of it
	Want  predict.Want
	Base  [32]byte // names the network that analyses it, see predict.Set.Base; zero: the newest
	Keep  bool     // hold the picture in the blobs once it has been analysed; see Result.Blob

	// Caller has the job done: the account of an application, or an application of the operator. Callers share the host's places
	// and turns. The host sets it for the jobs of a call.
	Caller string
}

// Result is what became of the [Job] at the same place.
//
// Err wraps what stopped it: [ErrFetch] for every failure to get the bytes behind a URL,
// package raster's errors for a picture, [ErrBusy] or [ErrTimeout] when the host gives up
// on the whole call. Any other error is an internal one.
type Result struct {
	Analysis predict.Analysis // of a picture
	Frames   []Frame          // of a video, by time, at least one
	Err      error
	Passing  bool // Err is ErrFetch, and the address may answer the next time

	// Of a job with Keep and no error: the picture's blob, durable and held as blob.Hosted
	// holds, and its content type. Whoever takes the result releases it.
	Blob        blob.Hash
	ContentType string
}
