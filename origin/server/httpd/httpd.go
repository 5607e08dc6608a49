// Package httpd serves the interface over HTTP/1.1. It is the only user of fasthttp.
//
//	accept ─▶ gate ─▶ (TLS) ─▶ header ─▶ framing ─▶ admission ─▶ body ─▶ handler ─▶ answer
//	           │      └──── 10 s ────┘   strict     caller,      60 s,     │        request id,
//	           │                                    work         least     │        access log,
//	           └ bounds per client                               rate,     └ one    metrics,
//	             and in all: the longest                         share       recover share,
//	             waiting is closed                                                   least rate
//
// The caller is known before the body is read, so that strangers share a little memory apart from that of others. Bodies and answers take
// memory as they grow, and each caller has a fair share; see package shares.
//
// The library streams bodies and leaves the rest to us: it reserves the declared size when it buffers, accepts ambiguous framing, has no
// defence against slow clients, does not recover panics, and does not read the rest of a body that its handler left. This package does
// all of that, and [TestHostileFraming] checks it with a corpus.
//
// Bytes of a request are invalid after the library's handler, so data that go inward are copied. Answers have the interface's envelope in
// every case. In addition to the mounts the server answers /healthz, /readyz, /metrics and /version. With TLS the same port refuses a
// request in the clear, and never redirects it: its credential has been shown already. There is no HTTP/2 here.
package httpd

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/origin/server/shares"
)

// Handler answers requests. r and its bytes belong to the handler until it returns, the response to the server from then on. It is called
// concurrently.
//
// If a response has a Stream, ctx and r are valid until the stream has returned. The client has writeTimeout to take each chunk of its
// output. A stream needs HTTP/1.1.
type Handler interface {
	Serve(ctx context.Context, r *api.Request) api.Response
	// Refuse is the answer to a request that the server does not let through.
	Refuse(r *api.Request, err error) api.Response
}

// Mount is a handler and the start of the paths that it answers: "/v2" takes /v2 and
// /v2/…, and any number of slashes before them.
type Mount struct {
	Prefix  string
	Handler Handler

	// Own answers are for pages of this server alone: scripts of other sites may not read them.
	// All others are for everybody, since no browser sends a credential along by itself.
	Own bool

	// Caller returns the application or the account that a request speaks for, from its head. The body and the answer take its share of
	// memory. It is empty for a stranger. An error refuses the request before its body is read. nil: all are strangers.
	Caller func(ctx context.Context, r *api.Request) (string, error)

	Static bool // bodies of answers are memory that all requests share, which is not counted

	CallTimeout time.Duration // of the work behind one request, a stream included; 0 means 5 min

	// Live answers are streams that last and mostly wait. Their calls end when the server begins to
	// drain, each piece has stallTimeout, and a client may have one as a WebSocket; see socket.go.
	Live bool
}

// Times and rates that a client must keep.
const (
	headerTimeout = 10 * time.Second // from the first byte to the end of a header
	bodyTimeout   = time.Minute      // of a whole body
	bodyGrace     = 5 * time.Second  // until a body must keep the least rate
	minRate       = 16 << 10         // bytes a second, of a body and of an answer
	writeTimeout  = time.Minute      // until an answer must keep the least rate, and of one piece of a stream
	stallTimeout  = 10 * time.Second // to take a piece of an answer, unless a stream that is not live writes it
	idleTimeout   = time.Minute      // between requests
)

// callTimeout is the time of the work behind one request, where the mount has no other.
const callTimeout = 5 * time.Minute

// Options are the settings of a [Server]. All are required, but for those that name a meaning of nil or 0.
type Options struct {
	Mounts []Mount // the first whose prefix fits answers

	// Hosted returns the picture or video of a name at /hosted/. It wraps blob.ErrNotFound for an unknown, malformed or expired name.
	// nil: there are none.
	Hosted func(ctx context.Context, name string) (Picture, error)

	MaxBody       int64 // bytes of one body
	BodyBudget    int64 // bytes of all bodies at once. Those of strangers have a 16th of it besides
	AnswerBudget  int64 // bytes of all answers at once, but for 64 KB of each
	MaxConns      int   // open connections
	MaxConnsPerIP int   // of one client; 0 means no bound

	TLS         *tls.Config // nil: plain HTTP. Its protocols are http/1.1 and, for ACME, acme-tls/1
	Strict      bool        // tells browsers to come over HTTPS alone, for a year
	BehindProxy bool        // a peer on loopback or of a private network names its client in X-Forwarded-For

	Full    func(caller string) error            // an error: no more work of a caller is taken now; asked before a body is read
	Ready   func() error                         // nil or a reason why requests should go elsewhere
	Version string                               // of the program
	Module  string                               // SHA-256 of the module that answers; empty: none does
	Metrics *prometheus.Registry                 // where the server registers its own, and what /metrics shows
	Now     func() time.Time                     // the clock
	Random  io.Reader                            // request ids come from it
	Log     *slog.Logger                         // access log at Info, trouble above
	Pause   func(context.Context, time.Duration) // waits, until its context ends
}

func (o *Options) check() error {
	if len(o.Mounts) == 0 || o.MaxConns == 0 || o.Full == nil || o.Ready == nil || o.Metrics == nil || o.Now == nil || o.Random == nil ||
		o.Log == nil || o.Pause == nil {
		return errors.New("httpd: Mounts, MaxConns, Full, Ready, Metrics, Now, Random, Log and Pause are required")
	}
	if o.MaxBody > o.BodyBudget {
		return fmt.Errorf("httpd: bodies of %d bytes do not fit a budget of %d", o.MaxBody, o.BodyBudget)
	}
	return nil
}

// Server serves mounts until it is drained. It serves one listener, once.
type Server struct {
	o        Options
	fast     *fasthttp.Server
	metrics  *metrics
	gate     *gate
	bodies   *shares.Shares // of callers that are known
	unknown  *shares.Shares // bodies of strangers, by their networks
	answers  *shares.Shares
	draining atomic.Bool

	ctx    context.Context // of all calls; ends when draining gives up on them
	cancel context.CancelFunc
	live   context.Context // of live calls; ends when draining begins
	still  context.CancelFunc

	sockets atomic.Int64 // WebSockets that are open

	randomMu sync.Mutex // guards reads of o.Random
}

// New checks the options.
func New(o Options) (*Server, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	s := &Server{o: o, metrics: newMetrics()}
	s.gate = newGate(&s.o, s.metrics)
	s.bodies = shares.New(o.BodyBudget, o.MaxBody+1)
	s.unknown = shares.New(max(o.BodyBudget/16, maxStrangerBody), 0)
	s.answers = shares.New(o.AnswerBudget, 0)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.live, s.still = context.WithCancel(s.ctx)
	if err := s.metrics.register(o.Metrics, s); err != nil {
		return nil, fmt.Errorf("httpd: %w", err)
	}
	s.fast = &fasthttp.Server{
		Handler:        s.handle,
		ErrorHandler:   s.onError,
		ExpectHandler:  s.onExpect,
		HeaderReceived: s.onHeader,
		ConnState:      onState,
		Logger:         libraryLog{o.Log},

		StreamRequestBody:            true,
		DisablePreParseMultipartForm: true,
		MaxRequestBodySize:           int(o.MaxBody),
		ReadBufferSize:               maxHeaderBytes,
		ReadTimeout:                  headerTimeout,
		WriteTimeout:                 writeTimeout,
		IdleTimeout:                  idleTimeout,
		MaxRequestsPerConn:           10_000,
		Concurrency:                  4*o.MaxConns + 1000, // the gate's bound is the one that counts
		MaxIdleWorkerDuration:        time.Second,
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		SecureErrorLogMessage:        true,
		CloseOnShutdown:              true,
	}
	return s, nil
}

// maxHeaderBytes bounds a request's header; it is the library's read buffer.
const maxHeaderBytes = 8 << 10

// Serve answers on l until Drain, and returns the listener's error or nil.
func (s *Server) Serve(l net.Listener) error {
	s.gate.Listener = l
	return s.fast.Serve(s.gate)
}

// onHeader gives the library's first read of a body, of at most 8 KB, the grace.
func (s *Server) onHeader(*fasthttp.RequestHeader) fasthttp.RequestConfig {
	return fasthttp.RequestConfig{ReadTimeout: bodyGrace}
}

// handle answers one request.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	var (
		r        api.Request
		b        body
		status   = fasthttp.StatusInternalServerError
		received = s.now()
		id       = s.newID()
		late     *stream // writes the answer's body after all here
	)
	c := connOf(ctx)
	c.phase.CompareAndSwap(silent, arriving) // a pipelined request was read with the one before
	s.metrics.inFlight.Inc()
	defer func() {
		if p := recover(); p != nil {
			status = s.answerPanic(ctx, id, &r, p)
		}
		s.release(&b)
		if s.draining.Load() {
			ctx.SetConnectionClose()
		}
		end := func() {
			s.metrics.inFlight.Dec()
			s.finish(ctx, id, &r, status, received)
		}
		if late != nil && (ctx.Response.IsBodyStream() || ctx.Hijacked()) {
			late.end = end
		} else {
			end()
		}
		c.enter(writing)
		c.pace(late)
	}()

	err := s.head(ctx, &r)
	if err == nil {
		err = s.readBody(ctx, &r, &b)
	}
	if err != nil {
		if !s.discardSmallBody(ctx, err) {
			s.linger(ctx) // the body's rest would be read as the next request
		}
		res := s.refuse(&r, err)
		status = s.write(ctx, id, &res)
		return
	}
	c.enter(serving)
	r.Body = b.bytes
	status, late = s.route(ctx, id, &r)
}

// head reads the header into r, and refuses ambiguous ones.
func (s *Server) head(ctx *fasthttp.RequestCtx, r *api.Request) error {
	h := &ctx.Request.Header
	r.Method, r.Path = string(h.Method()), "/"
	if v := string(h.Protocol()); v != "HTTP/1.1" && v != "HTTP/1.0" {
		return errVersion
	}
	switch r.Method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS":
	default:
		return errMethod
	}
	target := string(h.RequestURI())
	path, query, err := checkTarget(r.Method, target)
	if err != nil {
		return err
	}
	r.Path, r.Query = path, query
	if err := checkFraming(h.RawHeaders(), h.IsHTTP11()); err != nil {
		return err
	}
	raw := h.RawHeaders() // lives as long as the request
	r.Authorization = field(raw, "Authorization")
	r.Session = field(raw, "X-Clarifai-Session-Token")
	r.Remote = network(s.client(ctx))
	r.Header = func(name string) string { return field(raw, name) }
	return nil
}

// route finds who answers r and writes the answer. It returns its status, and the stream
// that is to write its body, if one does.
func (s *Server) route(ctx *fasthttp.RequestCtx, id string, r *api.Request) (int, *stream) {
	if status, done := s.operation(ctx, id, r); done {
		return status, nil
	}
	if name, ok := strings.CutPrefix(r.Path, api.HostedPath); ok && s.o.Hosted != nil {
		return s.serveHostedFile(ctx, id, r, name), nil
	}
	m := s.mount(r.Path)
	if m == nil {
		res := s.refuse(r, errPath)
		return s.write(ctx, id, &res), nil
	}
	base := s.ctx
	if m.Live {
		base = s.live
		authorizeSocket(ctx, r)
	}
	call, cancel := context.WithTimeout(base, cmp.Or(m.CallTimeout, callTimeout))
	var late *stream
	defer func() {
		if late == nil {
			cancel()
		}
	}()
	head := r.Method == "HEAD"
	if head {
		r.Method = "GET"
	}
	c := connOf(ctx)
	if !m.Static {
		c.answer = &share{of: s.answers, caller: func() string {
			caller, _ := m.caller(call, r) // who has none is a stranger
			return caller
		}}
		r.Memory, r.Watch = c.answer, c.watch
	}
	res := m.Handler.Serve(call, r)
	if r.Memory != nil {
		if !r.Memory.Reserve(int64(len(res.Body))) {
			res = s.withhold(r, res)
		}
		c.answer.settle(int64(len(res.Body)))
	}
	if head {
		r.Method = "HEAD"
	}
	if res.Err != nil {
		s.o.Log.Error("request failed", "id", id, "error", res.Err)
	}
	if res.Stream != nil {
		if !ctx.Request.Header.IsHTTP11() {
			res = s.refuse(r, errStream)
		} else {
			late = s.newStream(ctx, id, m, res.Stream, cancel)
		}
	}
	if late != nil && m.Live && wantsSocket(ctx) {
		status, err := s.socket(ctx, id, late, &res)
		if err == nil {
			return status, late
		}
		late = nil
		res = s.refuse(r, err)
	}
	status := s.write(ctx, id, &res)
	if m.Own {
		s.keepToOwn(ctx)
	}
	if late != nil {
		length := -1
		if res.Length > 0 {
			length = int(res.Length)
		}
		ctx.Response.SetBodyStream(late, length)
	}
	return status, late
}

// caller is Caller, or nobody.
func (m *Mount) caller(ctx context.Context, r *api.Request) (string, error) {
	if m.Caller == nil {
		return "", nil
	}
	return m.Caller(ctx, r)
}

// withhold replaces an answer that finds no memory. A call that has written has succeeded all the same.
func (s *Server) withhold(r *api.Request, res api.Response) api.Response {
	if res.Status < 300 && api.Writes(r.Method, r.Path) {
		return api.Withheld(r, res)
	}
	return s.refuse(r, errSending)
}

// mount finds whose path it is.
func (s *Server) mount(path string) *Mount {
	path = "/" + strings.TrimLeft(path, "/")
	for i := range s.o.Mounts {
		if rest, ok := strings.CutPrefix(path, s.o.Mounts[i].Prefix); ok && (rest == "" || rest[0] == '/') {
			return &s.o.Mounts[i]
		}
	}
	return nil
}

// reportPanic reports a panic, from where it is recovered.
func (s *Server) reportPanic(id string, p any) {
	s.metrics.panics.Inc()
	s.o.Log.Error("panic", "id", id, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
}

// answerPanic answers a panic with the interface's internal error.
func (s *Server) answerPanic(ctx *fasthttp.RequestCtx, id string, r *api.Request, p any) int {
	s.reportPanic(id, p)
	ctx.Response.Reset()
	s.linger(ctx)
	res := s.refuse(r, errPanic)
	return s.write(ctx, id, &res)
}

func (s *Server) now() time.Time { return s.o.Now() }

// newID makes a request's id: 32 hex digits.
func (s *Server) newID() string {
	var b [16]byte
	s.randomMu.Lock()
	_, err := io.ReadFull(s.o.Random, b[:])
	s.randomMu.Unlock()
	if err != nil {
		s.o.Log.Error("random source", "error", err)
	}
	return hex.EncodeToString(b[:])
}

// lameDuck is the time for which a draining server still accepts, so that connections that are just being made are answered rather than
// reset.
const lameDuck = 250 * time.Millisecond

// Drain stops the server: readiness ends, every answer closes its connection, the listener closes, accepted requests are answered, idle
// connections close. When ctx ends before that, running calls are cancelled and have [lastMoments] to answer; Drain then returns ctx's
// error.
func (s *Server) Drain(ctx context.Context) error {
	s.draining.Store(true)
	s.still()
	s.o.Pause(ctx, lameDuck)
	silenced := make(chan struct{})
	shut, cancel := context.WithCancel(ctx)
	go func() { // the library waits five seconds for clients that have connected and send nothing
		defer close(silenced)
		for s.o.Pause(shut, lameDuck); shut.Err() == nil; s.o.Pause(shut, lameDuck) {
			s.gate.closeSilent()
		}
	}()
	err := s.fast.ShutdownWithContext(ctx)
	cancel()
	<-silenced
	for s.sockets.Load() > 0 && ctx.Err() == nil { // the library knows nothing of them
		s.o.Pause(ctx, lastMoments/20)
	}
	s.cancel()
	if err != nil {
		last, stop := context.WithTimeout(context.WithoutCancel(ctx), lastMoments)
		defer stop()
		_ = s.fast.ShutdownWithContext(last) // the first error is the one to tell
	}
	return err
}

// lastMoments is the time in which cancelled calls must answer.
const lastMoments = time.Second
