package api

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"time"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/jsonio"
)

const contentType = "application/json; charset=UTF-8"

// exchange is one request on its way to its response.
type exchange struct {
	s     *Service
	ctx   context.Context
	route *route // nil when the path stands for nothing
	ids   map[string]string
	app   *Application   // whose credential the request has
	who   auth.Principal // whose credential it is
	net   *network       // that serves app
	query string
	doc   jsonio.Doc
	body  object
	call  Call
	now   time.Time // when the call began

	scratch []byte // one decoded picture, until the next
}

// parse reads the body, whatever its content type says. An absent body is an empty object.
func (x *exchange) parse(body []byte) error {
	if len(body) == 0 || x.route.method == "GET" {
		return nil
	}
	if err := x.doc.Parse(body, x.s.o.JSON); err != nil {
		return err
	}
	var err error
	if x.body, err = asObject(x.doc.Root(), ""); err != nil {
		return &fault{jsonio.ErrSyntax, "The body is no object."}
	}
	return nil
}

// answer ends the call with the envelope: the status, then the members that write makes.
func (x *exchange) answer(s status, details string, write func(*jsonio.Writer)) {
	var w jsonio.Writer
	w.Grow(512)
	w.Object()
	w.Name("status")
	writeStatus(&w, s, details)
	write(&w)
	w.End('}')
	x.call.response = Response{
		Status:      s.http,
		ContentType: contentType,
		Header:      []Field{allowOrigin},
		Body:        w.Bytes(),
	}
}

// ok ends the call well.
func (x *exchange) ok(write func(*jsonio.Writer)) { x.answer(statusOk, "", write) }

// fail ends the call with an error's status and an empty list.
func (x *exchange) fail(err error) {
	s := statusOf(err)
	x.answer(s, detailsOf(err, s), func(w *jsonio.Writer) {
		if x.route != nil && x.route.list != "" {
			w.Name(x.route.list)
			w.Array()
			w.End(']')
		}
	})
	if s.err == ErrBusy {
		x.call.response.Header = append(x.call.response.Header, Field{"Retry-After", "1"})
	}
}

func writeStatus(w *jsonio.Writer, s status, details string) {
	w.Object()
	w.Name("code")
	w.Int(int64(s.code))
	w.Name("description")
	w.String(s.description)
	if details != "" {
		w.Name("details")
		w.String(details)
	}
	w.End('}')
}

// Any page may call us: there are no cookies to steal.
var allowOrigin = Field{"Access-Control-Allow-Origin", "*"}

// preflight is the answer to OPTIONS, which browsers ask without credentials.
func preflight() Response {
	var x exchange
	x.ok(func(*jsonio.Writer) {})
	x.call.response.Header = []Field{
		allowOrigin,
		{"Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE, OPTIONS"},
		{
			"Access-Control-Allow-Headers",
			"authorization, content-type, accept, origin, x-requested-with, X-Clarifai-Client, " +
				"X-Clarifai-Session-Token, X-Clarifai-Application-Id",
		},
		{"Access-Control-Max-Age", "86400"},
	}
	return x.call.response
}

// timestamp is t as answers show it: UTC, six digits.
func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// newID makes an id of 32 lower-case hex digits.
func (x *exchange) newID() (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(x.s.o.Rand, b[:]); err != nil {
		return "", fmt.Errorf("random source: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}
