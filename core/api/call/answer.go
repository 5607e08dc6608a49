package call

import (
	"errors"
	"strconv"
	"strings"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/kv"
)

const contentType = "application/json; charset=UTF-8"

// Answer ends the call with the envelope: the status, then the members that write writes. If the answer is too large, it calls write
// again to measure it. It always returns nil, so that a handler can return its result, like those of OK and Send.
func (x *Call) Answer(s Status, details string, write func(*jsonio.Writer)) error {
	envelope := func(w *jsonio.Writer) {
		w.Object()
		WriteStatus(w, s, details)
		write(w)
		w.End('}')
	}
	var w jsonio.Writer
	w.Grow(512)
	if err := x.writeBounded(&w, envelope); err != nil {
		x.withhold(s, err, write)
		return nil
	}
	if s.HTTP >= 300 {
		x.notices = nil
	}
	x.Exchange.response = Response{
		Status:      s.HTTP,
		ContentType: contentType,
		Header:      x.headers(),
		Body:        w.Bytes(),
	}
	return nil
}

// empty writes the list of the route without elements.
func (x *Call) empty(w *jsonio.Writer) {
	if x.Route != nil && x.Route.List != "" {
		w.Texts(x.Route.List, nil)
	}
}

// headers returns the headers of an answer. They permit pages of other origins to read the answer.
func (x *Call) headers(more ...Field) []Field {
	all := append([]Field{allowOrigin}, x.Header...)
	all = append(all, x.durability()...)
	all = append(all, x.noticed()...)
	if len(all) > 1 {
		all = append(all, exposeHeaders)
	}
	return append(all, more...)
}

// OK ends the call with success. write writes the members of the answer.
func (x *Call) OK(write func(*jsonio.Writer)) error { return x.Answer(StatusOk, "", write) }

// Send ends the call with success and a body that is not JSON.
func (x *Call) Send(contentType string, body []byte, header ...Field) error {
	x.Exchange.response = Response{Status: 200, ContentType: contentType, Header: x.headers(header...), Body: body}
	return nil
}

// personal are the headers of an answer that a browser may store for the credential that it belongs to. The browser must ask before each
// use, since the credential or the picture may have been deleted.
var personal = []Field{{"Cache-Control", "private, no-cache"}, {"Vary", "Authorization, X-Clarifai-Session-Token"}}

// SendTagged is like Send, for a body that a browser may store. tag is the entity tag of body. If the caller has the body, the answer is 304.
func (x *Call) SendTagged(contentType string, body []byte, tag string) error {
	header := append([]Field{{"ETag", tag}}, personal...)
	if !MatchesTag(x.Known, tag) {
		return x.Send(contentType, body, header...)
	}
	x.Exchange.response = Response{Status: 304, Header: x.headers(header...)}
	return nil
}

// MatchesTag reports whether known, a value of If-None-Match, contains an entity tag or *. A weak tag matches, too (RFC 9110, section
// 13.1.2).
func MatchesTag(known, tag string) bool {
	for one := range strings.SplitSeq(known, ",") {
		if one = strings.TrimSpace(one); one == "*" || strings.TrimPrefix(one, "W/") == tag {
			return true
		}
	}
	return false
}

// NoStore prevents caches between this host and the caller from storing an answer with a secret. It returns err.
func (x *Call) NoStore(err error) error {
	x.Exchange.response.Header = append(x.Exchange.response.Header, Field{"Cache-Control", "no-store"})
	return err
}

// HeaderApplied has the value "0" in an answer with kv.ErrFollows if the call wrote nothing. Then another node may repeat the call at the
// machine that writes. Hosts remove the header before clients see the answer. A call that counted against a quota still has the header.
const HeaderApplied = "X-Sightline-Applied"

// End ends a call that failed with err. It marks the answer if the call wrote nothing because another machine writes.
func (x *Call) End(err error) {
	if errors.Is(err, kv.ErrFollows) && len(x.durability()) == 0 {
		x.Header = append(x.Header, Field{HeaderApplied, "0"})
	}
	x.Fail(err)
}

// Fail ends the call with an error's status and an empty list.
func (x *Call) Fail(err error) {
	s := StatusOf(err)
	wait := int64(1)
	if limit := (*auth.RateError)(nil); errors.As(err, &limit) {
		wait = limit.Seconds()
	}
	switch s.err {
	case ErrBusy, blob.ErrUnavailable, auth.ErrRate, kv.ErrFollows:
		x.Header = append(x.Header, Field{"Retry-After", strconv.FormatInt(wait, 10)})
	}
	if other := (*MethodError)(nil); errors.As(err, &other) {
		x.Header = append(x.Header, Field{"Allow", other.allow()})
	}
	_ = x.Answer(s, DetailsOf(err, s), x.empty)
	if s.Code == statusInternal.Code {
		x.Exchange.response.Err = err
	}
}

// WriteStatus writes the member status. details may be empty.
func WriteStatus(w *jsonio.Writer, s Status, details string) {
	w.ObjectMember("status")
	w.Name("code")
	w.Int(int64(s.Code))
	w.Text("description", s.Description)
	if details != "" {
		w.Text("details", details)
	}
	w.End('}')
}

// HeaderCallsLeft is the header with the number of calls that an account with a limit has left.
const HeaderCallsLeft = "X-Sightline-Calls-Left"

// Pages of every origin may call the service, since there are no cookies to steal.
var allowOrigin = Field{"Access-Control-Allow-Origin", "*"}

// ExposedHeaders are the headers of answers that pages of other origins may read. A host that adds a header
// lists it after these in every answer.
const ExposedHeaders = "Retry-After, " + HeaderCallsLeft + ", " + headerDurability + ", " + headerOperations + ", " + HeaderNotice

var exposeHeaders = Field{"Access-Control-Expose-Headers", ExposedHeaders}

// Preflight returns the answer to OPTIONS, which browsers send without credentials.
func Preflight() Response {
	var x Call
	_ = x.OK(func(*jsonio.Writer) {})
	x.Exchange.response.Header = []Field{
		allowOrigin,
		{"Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE, OPTIONS"},
		{
			"Access-Control-Allow-Headers",
			"authorization, content-type, accept, origin, x-requested-with, X-Clarifai-Client, " +
				"X-Clarifai-Session-Token, X-Clarifai-Application-Id",
		},
		{"Access-Control-Max-Age", "86400"},
	}
	return x.Exchange.response
}
