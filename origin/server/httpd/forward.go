package httpd

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/sightline-dev/sightline/core/api"
)

// In a cluster any node takes a request, and only one answers it:
//
//	client ─▶ Serve ─▶ head, framing ─▶ Forward ─▶ admission ─▶ body ─▶ handler        this server answers
//	                                       └─ Forwarder ─▶ ServeNodes of another node ─▶ Leads ─▶ admission …
//
// The node in the middle checks framing, size, rate and deadlines of the body, and the client's rate of the answer. The answering node does
// everything else: it identifies the caller, counts, and writes all headers of the answer.

// Forwarder sends a request to another node of the cluster, and returns its answer, by the rules of [http.RoundTripper]. r's context ends when
// the client disconnects or this server gives up the call. The server adds no time limit.
//
// r has the client's head without the lines that concern one connection. r.URL.Opaque is the client's request target, and r.Host its Host. The
// Forwarder sets r.URL.Scheme and r.URL.Host. If r has a GetBody or no body, the Forwarder may send r several times. Other bodies arrive while
// they are sent.
//
// An [http.Transport] needs three settings. DisableCompression: the answer belongs to the client. IdleConnTimeout below one minute: the other
// node then closes idle connections. ExpectContinueTimeout of some seconds: the other node refuses a large body before it is sent.
//
// [Unavailable] describes the errors.
type Forwarder func(r *http.Request) (*http.Response, error)

// Unavailable returns an error of Forward, Leads or a Forwarder. The answer has status 503, Retry-After, the code of api.ErrBusy and the given
// details. If such a function returns another error, the server logs it and answers with 503 and its own details.
func Unavailable(details string) error {
	return &refusal{fasthttp.StatusServiceUnavailable, api.ErrBusy, "cluster", details}
}

// ServeNodes answers requests that other nodes of the cluster have forwarded, on l until Drain. It returns the listener's error or nil. l
// must accept only other nodes, such as by mutual TLS.
//
// The handlers and the limits of a request are the same. The server never forwards such a request again: [Options.Leads] decides whether it
// answers. The client is the last address in X-Forwarded-For, whatever the address of the node. MaxConnsPerIP does not apply, and these
// connections are not closed to make room for clients. Other nodes get the handler's header X-Sightline-Applied. Clients never get it.
func (s *Server) ServeNodes(l net.Listener) error {
	s.nodes.Listener = l
	return s.fast.Serve(s.nodes)
}

// headerApplied is a header of answers to other nodes: "0" if the call wrote nothing. Clients neither send nor get it.
const headerApplied = api.HeaderApplied

// followsError is the error of Leads: the server may not answer a request of another node.
type followsError struct{ err error }

func (e *followsError) Error() string { return e.err.Error() }
func (e *followsError) Unwrap() error { return e.err }

// decide returns the Forwarder for a request, or nil if this server answers it.
func (s *Server) decide(ctx *fasthttp.RequestCtx, r *api.Request) (Forwarder, error) {
	if _, ok := operations[r.Path]; ok {
		return nil, nil
	}
	c := connOf(ctx)
	r.Watch = func(parent context.Context) (context.Context, func()) { return s.watchWaiting(c, parent) }
	defer func() { r.Watch = nil }()
	switch {
	case !c.gate.nodes && s.o.Forward != nil:
		forward, err := s.o.Forward(s.ctx, r)
		return forward, s.unavailable(err, errNowhere)
	case c.gate.nodes && s.o.Leads != nil:
		if err := s.o.Leads(s.ctx, r); err != nil {
			return nil, &followsError{s.unavailable(err, errNowhere)}
		}
	}
	return nil, nil
}

// watchWaiting watches the client of a request that waits for a decision. The context also ends when the server begins to drain.
func (s *Server) watchWaiting(c *conn, parent context.Context) (context.Context, func()) {
	c.enter(serving) // the client does not cause the wait
	watched, stop := c.watch(parent)
	waiting, cancel := context.WithCancel(watched)
	unhook := context.AfterFunc(s.live, cancel)
	return waiting, func() {
		unhook()
		cancel()
		stop()
		c.enter(arriving)
	}
}

// unavailable returns err if it has a refusal. It logs any other error and returns other.
func (s *Server) unavailable(err error, other *refusal) error {
	var known *refusal
	if err == nil || errors.As(err, &known) {
		return err
	}
	s.o.Log.Warn("the call was not forwarded", "error", err)
	return other
}

// passage is one forwarded call.
type passage struct {
	conn   *conn
	ctx    context.Context // ends when the client disconnects, and with the call
	cancel context.CancelFunc
	upload *upload // the body, if it is sent while it arrives; else nil
	live   bool    // a stream of the mount mostly waits for events
	res    *http.Response

	unwatch func() // nil: nothing watches the client. The mutex of upload guards it until the upload ends
}

// watch ends the call when the client disconnects. The request must have been read to its end.
func (p *passage) watch() {
	watched, stop := p.conn.watch(p.ctx)
	unhook := context.AfterFunc(watched, p.cancel)
	p.unwatch = func() {
		unhook()
		stop()
	}
}

// release returns when nothing reads from the client's connection any more.
func (p *passage) release() {
	if p.upload != nil {
		p.upload.cut()
	}
	if p.unwatch != nil {
		p.unwatch()
		p.unwatch = nil
	}
}

// end ends the call.
func (p *passage) end() {
	p.release()
	p.cancel()
	if p.res != nil {
		_ = p.res.Body.Close() // the answer is complete, or nobody wants the rest
	}
}

// pass answers a request with the answer of another node. It returns the answer's status and the stream that will write its body. It sets id
// to the other node's, so that the log lines of both nodes have the same.
func (s *Server) pass(ctx *fasthttp.RequestCtx, id *string, r *api.Request, b *body, forward Forwarder) (status int, late *stream, err error) {
	base, p := s.ctx, &passage{conn: connOf(ctx)}
	if m := s.mount(r.Path); m != nil && m.Live {
		base, p.live = s.live, true
	}
	p.ctx, p.cancel = context.WithCancel(base)
	defer func() {
		if late == nil {
			p.end()
		}
	}()
	if p.upload, err = s.hold(ctx, r, b); err != nil {
		return 0, nil, err
	}
	if p.upload != nil {
		p.upload.onEnd = p.watch
	} else {
		p.conn.enter(serving)
		p.watch()
	}
	if p.res, err = forward(s.outgoing(ctx, r, b, p)); err != nil {
		return 0, nil, s.passError(p, err)
	}
	if given := p.res.Header.Get(headerRequestID); given != "" {
		*id = given
	}
	if p.res.ContentLength < 0 && r.Method != "HEAD" && !ctx.Request.Header.IsHTTP11() {
		return 0, nil, errStream
	}
	if p.res.StatusCode == fasthttp.StatusSwitchingProtocols {
		late, err = s.tunnel(ctx, *id, p)
		return p.res.StatusCode, late, err
	}
	late = s.newStream(ctx, *id, p.live && p.res.ContentLength < 0, p.copyAnswer, p.end)
	late.gather = liveChunkBytes
	if p.upload != nil && !p.upload.complete.Load() {
		s.linger(ctx) // the rest of the body would be the next request
	}
	describePassed(ctx, p.res)
	late.answer(ctx, int(p.res.ContentLength))
	return p.res.StatusCode, late, nil
}

// repeats is the maximum number of times that a server decides again about a call which wrote nothing. Each time another node may write.
const repeats = 3

// elsewhere answers a call again that this server has answered, but which wrote nothing because another node writes since. b is its body.
func (s *Server) elsewhere(ctx *fasthttp.RequestCtx, id *string, r *api.Request, b *body) (status int, late *stream) {
	c := connOf(ctx)
	for n := 0; c.unapplied && n < repeats; n++ {
		c.unapplied = false
		ctx.Response.Reset()
		if c.answer != nil {
			c.answer.Settle(0)
		}
		forward, err := s.decide(ctx, r)
		switch {
		case err != nil:
		case forward != nil:
			status, late, err = s.pass(ctx, id, r, b, forward)
		default:
			c.enter(serving)
			status, late = s.route(ctx, *id, r)
		}
		if err != nil {
			res := s.refuse(r, err)
			status = s.write(ctx, *id, &res)
		}
	}
	c.unapplied = false
	return status, late
}

// passError returns the refusal for a call without an answer.
func (s *Server) passError(p *passage, err error) error {
	left := p.ctx.Err() != nil
	p.release()
	switch {
	case p.upload != nil && p.upload.refusal() != nil:
		return p.upload.refusal()
	case left:
		return errForward
	}
	return s.unavailable(err, errForward)
}

// copyAnswer writes the answer's body. It sends each part as soon as it arrives.
func (p *passage) copyAnswer(w io.Writer) error {
	size := int64(copyBytes)
	switch n := p.res.ContentLength; {
	case n >= 0:
		size = min(size, n+1) // one byte more finds the end
	case p.live:
		size = tunnelBytes
	}
	err := copyEach(w.(flusher), p.res.Body, make([]byte, size))
	if err != nil && p.ctx.Err() != nil {
		return errLeft
	}
	return err
}

// copyBytes is the maximum size of the buffer of one forwarded answer.
const copyBytes = 16 << 10

// copyEach copies from r to w until the end of r, and flushes w after each read.
func copyEach(w flusher, r io.Reader, buffer []byte) error {
	for {
		n, err := r.Read(buffer)
		if n > 0 {
			if _, err := w.Write(buffer[:n]); err != nil {
				return err
			}
			if err := w.Flush(); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// outgoing returns the request for the other node.
func (s *Server) outgoing(ctx *fasthttp.RequestCtx, r *api.Request, b *body, p *passage) *http.Request {
	target := string(ctx.Request.Header.RequestURI())
	if strings.HasPrefix(target, "//") {
		target = "http://node" + target // net/url would take the first segment for a host
	}
	raw := ctx.Request.Header.RawHeaders()
	out := &http.Request{
		Method: r.Method, URL: &url.URL{Opaque: target}, Host: field(raw, "Host"),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: http.NoBody,
	}
	named := optionsOf(fields(raw, "Connection"))
	for name, value := range lines(raw) {
		if name = textproto.CanonicalMIMEHeaderKey(name); isEndToEnd(name, named) {
			out.Header[name] = append(out.Header[name], value)
		}
	}
	if wantsSocket(ctx) {
		out.Header["Connection"], out.Header["Upgrade"] = []string{"Upgrade"}, []string{"websocket"}
	}
	if _, ok := out.Header["User-Agent"]; !ok {
		out.Header["User-Agent"] = []string{""} // otherwise net/http writes its own
	}
	if a := s.client(ctx); a.IsValid() {
		out.Header[fasthttp.HeaderXForwardedFor] = []string{a.String()}
	}
	switch {
	case p.upload != nil:
		out.Body, out.ContentLength = p.upload, p.upload.length
		if p.upload.length < 0 {
			out.TransferEncoding = []string{"chunked"} // otherwise net/http first reads a byte, for up to 200 ms
		}
		out.Header["Expect"] = []string{"100-continue"} // the other node decides before the body arrives
	case len(b.bytes) > 0:
		held := b.bytes
		out.ContentLength = int64(len(held))
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(held)), nil }
		out.Body, _ = out.GetBody()
	}
	return out.WithContext(p.ctx)
}

// describePassed copies the status and the headers of another node's answer. The other node has written all headers of an answer.
func describePassed(ctx *fasthttp.RequestCtx, res *http.Response) {
	ctx.SetStatusCode(res.StatusCode)
	named := optionsOf(slices.Values(res.Header["Connection"]))
	for name, values := range res.Header {
		if !isEndToEnd(name, named) {
			continue
		}
		for _, value := range values {
			ctx.Response.Header.Add(name, value)
		}
	}
}
