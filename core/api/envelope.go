package api

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

const contentType = "application/json; charset=UTF-8"

// Call is one request on its way to its response.
type Call struct {
	s     *Service
	ctx   context.Context
	route *route // nil when the path stands for nothing
	ids   map[string]string
	app   *Application   // whose credential the request has; nil where the need asks for none
	who   auth.Principal // whose credential it is
	until time.Time      // when the credential ends; zero: it does not, or nobody says
	net   *network       // that serves app
	query string
	doc   jsonio.Doc
	body  object
	call  Exchange
	now   time.Time // when the call began

	at                    address        // what the path names, in its long form
	authorization, remote string         // as they came
	header                []Field        // of the answer, beside what every one has
	made                  partition.Span // operations that the call has made so far
	elsewhere             bool           // it has made some that are not the application's

	scratch []byte // one decoded picture, until the next

	earliest map[uint32]string // ids of the earliest inputs with a file, by ordinal

	chosen     bool   // the answer is a page of a list
	loaded     int    // bytes of the records that the answer shows
	blanks     []byte // see blank
	memory     Memory // see Request.Memory; may be nil
	unreserved bool   // the host has no memory for the answer
	brief      bool   // the answer shows ids and statuses alone
}

// parse reads the body, whatever its content type says. An absent body is an empty object.
// Clients that ask for tokens send anything.
func (x *Call) parse(body []byte) error {
	if len(body) == 0 || x.route.method == "GET" || x.route.need.Asks == auth.OfClient {
		return nil
	}
	if err := x.doc.Parse(body, x.s.o.JSON); err != nil {
		return err
	}
	var err error
	if x.body, err = asObject(x.doc.Root(), ""); err != nil {
		return &fault{jsonio.ErrSyntax, "The request body must be a JSON object."}
	}
	return nil
}

// answer ends the call with the envelope: the status, then the members that write makes. It calls write again to measure an answer
// that is too large.
func (x *Call) answer(s status, details string, write func(*jsonio.Writer)) {
	envelope := func(w *jsonio.Writer) {
		w.Object()
		w.Name("status")
		writeStatus(w, s, details)
		write(w)
		w.End('}')
	}
	var w jsonio.Writer
	w.Grow(512)
	if err := x.bounded(&w, envelope); err != nil {
		x.withhold(s, err, write)
		return
	}
	x.call.response = Response{
		Status:      s.http,
		ContentType: contentType,
		Header:      x.headers(),
		Body:        w.Bytes(),
	}
}

// empty writes the list of the route without elements.
func (x *Call) empty(w *jsonio.Writer) {
	if x.route != nil && x.route.list != "" {
		w.Name(x.route.list)
		w.Array()
		w.End(']')
	}
}

// headers are those of an answer. A page of another origin may read what concerns it.
func (x *Call) headers(more ...Field) []Field {
	all := append([]Field{allowOrigin}, x.header...)
	all = append(all, x.durability()...)
	if len(all) > 1 {
		all = append(all, exposeHeaders)
	}
	return append(all, more...)
}

// ok ends the call well.
func (x *Call) ok(write func(*jsonio.Writer)) { x.answer(statusOk, "", write) }

// fail ends the call with an error's status and an empty list.
func (x *Call) fail(err error) {
	s := statusOf(err)
	wait := int64(1)
	if limit := (*auth.RateError)(nil); errors.As(err, &limit) {
		wait = limit.Seconds()
	}
	if s.err == ErrBusy || s.err == auth.ErrRate {
		x.header = append(x.header, Field{"Retry-After", strconv.FormatInt(wait, 10)})
	}
	x.answer(s, detailsOf(err, s), x.empty)
	if s.code == statusInternal.code {
		x.call.response.Err = err
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

// ExposedHeaders are those of answers that pages of other origins may read; a host that adds one of its
// own names it in every answer, beside these.
const ExposedHeaders = "Retry-After, " + headerCallsLeft + ", " + headerDurability + ", " + headerOperations

var exposeHeaders = Field{"Access-Control-Expose-Headers", ExposedHeaders}

// preflight is the answer to OPTIONS, which browsers ask without credentials.
func preflight() Response {
	var x Call
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
func timestamp(t time.Time) string {
	t = t.UTC()
	year, month, day := t.Date()
	if year < 0 || year > 9999 {
		return t.Format("2006-01-02T15:04:05.000000Z")
	}
	hour, minute, second := t.Clock()
	b := []byte("0000-00-00T00:00:00.000000Z")
	decimal(b[:4], year)
	decimal(b[5:7], int(month))
	decimal(b[8:10], day)
	decimal(b[11:13], hour)
	decimal(b[14:16], minute)
	decimal(b[17:19], second)
	decimal(b[20:26], t.Nanosecond()/1000)
	return string(b)
}

// decimal writes n, which is not negative, with as many digits as b has bytes.
func decimal(b []byte, n int) {
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
}

// newID makes an id of 32 lower-case hex digits.
func (x *Call) newID() (string, error) { return log.NewID(x.s.o.Rand) }
