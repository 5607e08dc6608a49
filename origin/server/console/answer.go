package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/origin/server/account"
)

// Errors of requests.
var (
	errMissing     = errors.New("Check the url of your request.") //lint:ignore ST1005 the words of /v2
	errMethod      = errors.New("method not allowed")
	errHost        = errors.New("unknown host name; use the URL in --public-url")
	errOrigin      = errors.New("cross-site request refused")
	errCSRF        = errors.New("the page is out of date: reload it")
	errContentType = errors.New("Content-Type must be application/json")
	errSignIn      = errors.New("not signed in")
	errName        = errors.New("the name does not match the application's name")
	errBody        = errors.New("malformed request")
	errOwner       = errors.New("the account still has applications: delete them first (export them to keep a copy)")
	errMany        = errors.New("limit reached")
	errExport      = errors.New("an export of this account is still running")
	errClient      = errors.New("this application has no client secret yet; create one first")
)

// status is the JSON form of an error. Pages choose their text by reason. Details are in English.
type status struct {
	err         error
	http        int
	code        int
	description string
	reason      string
}

// statuses lists the errors that are not in /v2's table. /v2's table answers all others.
var statuses = []status{
	{errMissing, 404, 11101, "Resource does not exist", "missing"},
	{register.ErrApplication, 404, 11101, "Resource does not exist", "missing"},
	{register.ErrNoKey, 404, 11101, "Resource does not exist", "missing"},
	{account.ErrUnknown, 404, 11101, "Resource does not exist", "missing"},
	{errMethod, 405, 11103, "Method not allowed", ""},
	{errHost, 403, 11102, "Invalid request", "host"},
	{errOrigin, 403, 11102, "Invalid request", "origin"},
	{errCSRF, 403, 11102, "Invalid request", "csrf"},
	{errContentType, 415, 11102, "Invalid request", "content_type"},
	{errSignIn, 401, 11001, "Invalid authentication token", "sign_in"},
	{auth.ErrLogin, 401, 11002, "Invalid credentials", "login"},
	{errExport, 429, 11005, "Too Many Requests", "export"},
	{auth.ErrRate, 429, 11005, "Too Many Requests", "rate"},
	{jsonio.ErrTooLong, 413, 40033, "Request too large", ""},
	{errBody, 400, 11100, "Bad request format", ""},
	{errName, 400, 11102, "Invalid request", "app_name"},
	{errOwner, 400, 11102, "Invalid request", "owner"},
	{errMany, 400, 11102, "Invalid request", "many"},
	{errClient, 400, 11102, "Invalid request", "client"},
	{account.ErrName, 400, 11102, "Invalid request", "name"},
	{account.ErrEmail, 400, 11102, "Invalid request", "email"},
	{account.ErrTaken, 400, 11102, "Invalid request", "taken"},
	{account.ErrPassword, 400, 11102, "Invalid request", "password"},
	{account.ErrWrongPassword, 400, 11102, "Invalid request", "wrong_password"},
	{account.ErrCode, 400, 11102, "Invalid request", "code"},
	{account.ErrLink, 400, 11102, "Invalid request", "link"},
	{account.ErrSignUp, 403, 11102, "Invalid request", "sign_up"},
	{register.ErrName, 400, 11102, "Invalid request", "text"},
	{register.ErrDefaultModel, 400, 11102, "Invalid request", "model"},
	{lang.ErrUnknown, 400, 11102, "Invalid request", "language"},
	{auth.ErrScope, 400, 11102, "Invalid request", "scope"},
}

// envelope is the status of an answer.
type envelope struct {
	Code        int    `json:"code"`
	Description string `json:"description"`
	Details     string `json:"details,omitempty"`
	Reason      string `json:"reason,omitempty"`
}

const contentType = "application/json; charset=UTF-8"

// stream is an answer that is not JSON.
type stream struct {
	contentType, name string
	write             func(w io.Writer) error
}

// answer returns the answer for the result of a route.
func (c *call) answer(v any, err error) api.Response {
	var res api.Response
	switch s, streams := v.(*stream); {
	case err != nil:
		res = c.refuse(err)
	case streams:
		res = api.Response{Status: 200, ContentType: s.contentType, Stream: s.write, Header: []api.Field{
			{Name: "Content-Disposition", Value: `attachment; filename="` + s.name + `"`},
		}}
	default:
		res = respond(200, envelope{Code: 10000, Description: "Ok"}, v)
	}
	res.Header = append(res.Header, api.Field{Name: "Cache-Control", Value: "no-store"})
	if c.set {
		res.Header = append(res.Header, c.setCookie())
	}
	return res
}

// refuse answers an error by the table statuses, or as /v2 does.
func (c *call) refuse(err error) api.Response {
	for _, s := range statuses {
		if !errors.Is(err, s.err) {
			continue
		}
		details := err.Error()
		if s.code == 11101 {
			details = errMissing.Error() // the same text for missing objects and for those of another account
		}
		res := respond(s.http, envelope{s.code, s.description, details, s.reason}, nil)
		var wait *auth.RateError
		if errors.As(err, &wait) {
			res.Header = append(res.Header, api.Field{Name: "Retry-After", Value: strconv.FormatInt(wait.Seconds(), 10)})
		}
		if s.err == errMethod {
			res.Header = append(res.Header, api.Field{Name: "Allow", Value: c.allow})
		}
		return res
	}
	from := c.o.Refuse(c.r, err)
	res := api.Response{Status: from.Status, ContentType: from.ContentType, Body: from.Body, Err: from.Err}
	for _, f := range from.Header {
		if f.Name == "Retry-After" || f.Name == "Allow" {
			res.Header = append(res.Header, f)
		}
	}
	return res
}

// respond returns an answer with a status and the members of v. v is an object or nil.
func respond(http int, s envelope, v any) api.Response {
	b, err := json.Marshal(struct {
		Status envelope `json:"status"`
	}{s})
	if err == nil && v != nil {
		var rest []byte
		if rest, err = json.Marshal(v); err == nil && len(rest) > 2 {
			b = append(append(b[:len(b)-1], ','), rest[1:]...)
		}
	}
	if err != nil {
		panic(err) // answers always encode
	}
	return api.Response{Status: http, ContentType: contentType, Body: b}
}

// maxBody is the maximum size of a request's body.
const maxBody = 64 << 10

// read decodes a request's body into v. The body must not have members that v lacks. An empty body counts as an empty object.
func (c *call) read(v any) error {
	body := bytes.TrimSpace(c.r.Body)
	if len(body) > maxBody {
		return jsonio.ErrTooLong
	}
	if len(body) == 0 {
		return nil
	}
	if body[0] != '{' {
		return errBody
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if d.Decode(v) != nil {
		return errBody // the decoder's error repeats the request's text
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errBody
	}
	return nil
}

// timestamp returns t in the form of answers: UTC, six decimals.
func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }
