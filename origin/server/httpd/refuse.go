package httpd

import (
	"errors"
	"net"
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/jsonio"
)

// refusal is an error of this package, with its HTTP status, its meaning in the API and its metric label.
type refusal struct {
	status int
	kind   error  // a row of the API's status table
	reason string // label of the metric
	text   string // text for the client
}

func (r *refusal) Error() string { return r.text }
func (r *refusal) Unwrap() error { return r.kind }

var (
	errFraming     = &refusal{400, jsonio.ErrSyntax, "framing", "ambiguous request"}
	errRequest     = &refusal{400, jsonio.ErrSyntax, "malformed", "The request is not a valid HTTP/1.1 request."}
	errVersion     = &refusal{505, jsonio.ErrSyntax, "version", "This server supports HTTP/1.1 and HTTP/1.0 only."}
	errStream      = &refusal{505, jsonio.ErrSyntax, "version", "This call needs HTTP/1.1."}
	errSocket      = &refusal{400, jsonio.ErrSyntax, "socket", "The WebSocket handshake does not follow RFC 6455."}
	errHeaderSize  = &refusal{431, jsonio.ErrSyntax, "header", "The header is larger than 16 KB."}
	errExpectation = &refusal{417, jsonio.ErrSyntax, "expect", "The only supported value of Expect is 100-continue."}
	errEncoding    = &refusal{415, jsonio.ErrSyntax, "encoding", "Content-Encoding is not supported: send the body uncompressed."}
	errMethod      = &refusal{405, api.ErrMethod, "method", "Allowed methods are GET, HEAD, POST, PUT, PATCH, DELETE and OPTIONS."}
	errReads       = &refusal{405, api.ErrMethod, "method", "Allowed methods are GET and HEAD."}
	errPath        = &refusal{404, api.ErrPath, "path", "Check the url of your request."}
	errLarge       = &refusal{413, jsonio.ErrTooLong, "large", "The body is larger than this server accepts."}
	errChunks      = &refusal{400, jsonio.ErrSyntax, "chunks", "The chunked body is malformed."}
	errSlow        = &refusal{408, api.ErrTimeout, "slow", "The request took too long to arrive."}
	errBudget      = &refusal{503, api.ErrBusy, "budget", "The server is receiving too much data: try again."}
	errSending     = &refusal{503, api.ErrBusy, "answers", "The server is sending too much data: read the earlier answers first, or try again."}
	errBusy        = &refusal{503, api.ErrBusy, "busy", "The server is busy: try again."}
	errPictures    = &refusal{503, api.ErrBusy, "pictures", "The store of pictures does not answer: try again."}
	errNowhere     = &refusal{503, api.ErrBusy, "forward", "No server can answer this call at present: try again."}
	errForward     = &refusal{503, api.ErrBusy, "forward", "The server that answers this call is unreachable. The write may have happened."}
	errPanic       = &refusal{500, api.ErrInternal, "panic", ""}
)

// refusalHeaders has the headers that HTTP requires of some refusals.
var refusalHeaders = map[*refusal]api.Field{
	errMethod:   {Name: "Allow", Value: "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"},
	errReads:    {Name: "Allow", Value: "GET, HEAD"},
	errEncoding: {Name: "Accept-Encoding", Value: "identity"},
}

// refusalOf returns the refusal in err. Any other error is a bug and returns errPanic.
func refusalOf(err error) *refusal {
	var r *refusal
	if errors.As(err, &r) {
		return r
	}
	return errPanic
}

// reject answers a request with a refusal before a handler gets it. b is the part of its body that the server has read.
func (s *Server) reject(ctx *fasthttp.RequestCtx, id string, r *api.Request, b *body, err error) int {
	if !s.discardSmallBody(ctx, b, err) {
		s.linger(ctx) // otherwise the library reads the rest of the body as the next request
	}
	res := s.refuse(r, err)
	return s.write(ctx, id, &res)
}

// refuse returns the error answer of the mount that serves r's path, or of the first mount.
func (s *Server) refuse(r *api.Request, err error) api.Response {
	m := s.mount(r.Path)
	if m == nil {
		m = &s.o.Mounts[0]
	}
	var stranger *callerError
	if errors.As(err, &stranger) {
		s.metrics.refused.WithLabelValues("caller").Inc()
		res := m.Handler.Refuse(r, stranger.err)
		res.Stream = nil
		return res
	}
	why := refusalOf(err)
	s.metrics.refused.WithLabelValues(why.reason).Inc()
	res := m.Handler.Refuse(r, err)
	res.Status, res.Stream = why.status, nil
	if f, ok := refusalHeaders[why]; ok {
		res.Header = append(res.Header, f)
	}
	var elsewhere *followsError
	if errors.As(err, &elsewhere) {
		res.Header = append(res.Header, api.Field{Name: headerApplied, Value: "0"})
	}
	return res
}

// callerError is the error of a mount that cannot identify the caller of a request. The mount's handler answers it, with its status.
type callerError struct{ err error }

func (e *callerError) Error() string { return e.err.Error() }

// onError answers a request that the library could not read. The library's errors contain the client's bytes, so onError neither answers
// with them nor logs them.
func (s *Server) onError(ctx *fasthttp.RequestCtx, err error) {
	var (
		small    *fasthttp.ErrSmallBuffer
		timeout  net.Error
		why      = errRequest
		received = s.now()
	)
	switch {
	case errors.As(err, &small):
		why = errHeaderSize
	case errors.As(err, &timeout) && timeout.Timeout():
		why = errSlow
	}
	s.linger(ctx)
	res := s.refuse(&api.Request{}, why)
	id := s.newID()
	s.write(ctx, id, &res)
	s.finish(ctx, id, &api.Request{Method: "-", Path: "-"}, res.Status, received)
}

// onExpect decides about "Expect: 100-continue" before the client sends its body.
func (s *Server) onExpect(ctx *fasthttp.RequestCtx) (status int) {
	received := s.now()
	var r api.Request
	id := s.newID()
	defer func() {
		if p := recover(); p != nil {
			status = s.answerPanic(ctx, id, &r, p)
		}
	}()
	var forward Forwarder
	err := s.head(ctx, &r)
	if err == nil {
		forward, err = s.decide(ctx, &r)
	}
	switch {
	case err != nil:
	case forward == nil:
		_, err = s.admissible(ctx, &r)
	case int64(ctx.Request.Header.ContentLength()) > s.o.MaxBody:
		err = errLarge
	}
	if err == nil {
		return fasthttp.StatusContinue
	}
	s.linger(ctx)
	res := s.refuse(&r, err)
	s.write(ctx, id, &res)
	s.finish(ctx, id, &r, res.Status, received)
	return res.Status
}

// atOnce returns the bytes that answer a refused connection. The server writes them without the library, before it reads anything. header
// contains further header lines.
func atOnce(status, header, envelope string) []byte {
	body := `{"status":{` + envelope + `}}`
	return []byte("HTTP/1.1 " + status + "\r\n" +
		"Content-Type: application/json; charset=UTF-8\r\nContent-Length: " + strconv.Itoa(len(body)) +
		"\r\n" + header + "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n" + body)
}

var (
	overflowPerIP = atOnce("429 Too Many Requests", "Retry-After: 1\r\n", `"code":11005,"description":"Too Many Requests"`)
	overflowTotal = atOnce("503 Service Unavailable", "Retry-After: 1\r\n", `"code":40030,"description":"Service busy"`)
	overClear     = atOnce("400 Bad Request", "", `"code":11102,"description":"Invalid request","details":"This port needs HTTPS. Your request was not encrypted: replace any API key or token in it, since others may have read it."`)
)
