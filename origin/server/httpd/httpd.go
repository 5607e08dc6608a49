// Package httpd serves the API over HTTP/1.1. It is the only package that uses fasthttp.
//
//	accept ─▶ gate ─▶ (TLS) ─▶ header ─▶ framing ─▶ admission ─▶ body ─▶ handler ─▶ answer
//	           │      └──── 10 s ────┘   strict     caller,      60 s,     │        request id,
//	           │                                    work         least     │        access log,
//	           └ bounds per client                               rate,     └ one    metrics,
//	             and in all: the longest                         share       recover share,
//	             waiting is closed                                                   least rate
//
// The server identifies the caller before it reads the body. So anonymous callers share a small part of the memory and leave the rest to
// others. Bodies and answers take memory as they grow, and each caller has a fair share; see package shares.
//
// In a cluster the server forwards a request to the node that answers, instead of everything after the framing; see [Options.Forward].
//
// The library streams bodies and leaves the rest to this package. The library reserves the declared size when it buffers, accepts ambiguous
// framing, has no defence against slow clients, and does not recover panics. It also does not read the rest of a body that its handler
// left. [TestHostileFraming] checks this package's defences with a corpus.
//
// Bytes of a request are invalid after the library's handler returns, so this package copies data that it passes on. All answers have the
// API's envelope. In addition to the mounts the server answers /healthz and /readyz, and to the operator /metrics and /version. With TLS the same port refuses an
// unencrypted request and never redirects it, because the request has already exposed its credential. HTTP/2 is not supported.
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
	"github.com/sightline-dev/sightline/core/shares"
)

// Handler answers requests. r and its bytes belong to the handler until Serve returns. The response belongs to the server from then on. The
// server calls a handler concurrently.
//
// If a response has a Stream, ctx and r are valid until the stream has returned, and so is the memory that r.Memory reserved. A stream needs
// HTTP/1.1.
type Handler interface {
	Serve(ctx context.Context, r *api.Request) api.Response
	// Refuse returns the answer to a request that the server rejects with err.
	Refuse(r *api.Request, err error) api.Response
}

// Mount is a handler with the prefix of the paths that it answers. The prefix "/v2" matches /v2 and /v2/…, with any number of slashes
// before them.
type Mount struct {
	Prefix  string
	Handler Handler

	// SameOrigin limits the answers to pages of this server: scripts of other sites cannot read them. Scripts of all sites can read the
	// answers of other mounts, since no browser sends a credential there by itself.
	SameOrigin bool

	// Caller returns the application or the account that makes a request, from the request's head. The body and the answer take its share
	// of memory. Caller returns "" for an anonymous request. If it fails, the server refuses the request before reading the body. nil: all
	// requests are anonymous.
	Caller func(ctx context.Context, r *api.Request) (string, error)

	Static bool // bodies of answers are memory shared by all requests, which the server does not count

	CallTimeout time.Duration // time limit of the work behind one request, including a stream; 0 means 5 min

	// Live marks mounts whose streams without a length are long and mostly wait. They have no minimum rate: the client has stallTimeout to
	// take each chunk. It may receive such a stream as a WebSocket; see socket.go. All calls of a live mount end when the server begins to
	// drain.
	Live bool
}

// Time limits and rates for a client.
const (
	headerTimeout = 10 * time.Second // from the first byte to the end of a header
	bodyTimeout   = time.Minute      // for a whole body
	bodyGrace     = 5 * time.Second  // until a body must have the minimum rate
	minRate       = 16 << 10         // bytes a second, for a body and for an answer
	writeTimeout  = time.Minute      // time that a client may take for an answer before it must have the minimum rate
	stallTimeout  = 10 * time.Second // to take one chunk of an answer
	idleTimeout   = time.Minute      // between requests
)

// callTimeout is the default time limit of the work behind one request.
const callTimeout = 5 * time.Minute

// Options are the settings of a [Server]. All are required, except those whose comment gives a meaning of nil or 0.
type Options struct {
	Mounts []Mount // the first mount with a matching prefix answers

	// Hosted returns the picture or video with the given name below /hosted/, for the request r. Its error wraps blob.ErrNotFound for an
	// unknown, malformed or expired name. nil: the server has no hosted files.
	Hosted      func(ctx context.Context, r *api.Request, name string) (Picture, error)
	HostedRates HostedRates

	MaxBody       int64 // maximum size of one body
	BodyBudget    int64 // bytes of all bodies at once; bodies of anonymous callers have 1/16 of it in addition
	AnswerBudget  int64 // bytes of all answers at once, without the first 64 KB of each
	MaxConns      int   // maximum number of open connections
	MaxConnsPerIP int   // maximum number of open connections of one client; 0: no limit

	// Forward returns a Forwarder that sends the client's request r to another node of the cluster, or nil if this server answers r. The server
	// calls it after it has checked the head of r, and before it reads the body. It does not call it for the operator's paths. r has no body
	// and no memory, and is valid until the Forwarder has returned. nil: the server answers all requests.
	//
	// If Forward waits, it must call r.Watch first. The watched context ends when the client disconnects and when the server begins to drain.
	// ctx ends when the server stops its calls. [Unavailable] describes the errors.
	Forward func(ctx context.Context, r *api.Request) (Forwarder, error)

	// Leads returns nil if this server may answer r, which another node has forwarded. After an error the server refuses r, with the header
	// X-Sightline-Applied: 0. Leads must not wait for another primary. ctx, r and the errors are those of Forward. nil: the server answers all
	// requests of other nodes.
	Leads func(ctx context.Context, r *api.Request) error

	TLS         *tls.Config // nil: plain HTTP. Its protocols are http/1.1 and, for ACME, acme-tls/1
	HSTS        bool        // requires browsers to use only HTTPS, for a year (HSTS)
	BehindProxy bool        // a peer on loopback or in a private network names its client in X-Forwarded-For

	Full     func(caller string) error // returns an error if no more work of caller is accepted; called before a body is read
	Ready    func() error              // returns nil, or a reason why requests should go elsewhere
	Activity func() string             // returns what the server does besides its calls, for /readyz; "" means nothing, nil likewise
	Version  string                    // version of the program
	Module   string                    // SHA-256 of the answering WebAssembly module; empty: the core runs natively
	Metrics  *prometheus.Registry      // registry for the server's metrics, which /metrics shows

	OpenMetrics  bool          // everyone may read /metrics and /version; else only clients on this machine or with the token
	MetricsToken func() string // returns the token for /metrics and /version; nil or empty: none

	Now    func() time.Time                     // the clock
	Random io.Reader                            // source of request ids
	Log    *slog.Logger                         // access log at Info, problems above
	Pause  func(context.Context, time.Duration) // waits for a duration or until the context ends
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

// Server serves mounts until Drain. It serves one listener for clients and one for other nodes of its cluster, each once.
type Server struct {
	o        Options
	fast     *fasthttp.Server
	metrics  *metrics
	gate     *gate          // of clients
	nodes    *gate          // of other nodes
	bodies   *shares.Shares // memory of bodies of identified callers
	unknown  *shares.Shares // memory of bodies of anonymous callers, by network
	answers  *shares.Shares
	hosted   hostedLimiters
	draining atomic.Bool

	ctx    context.Context // parent of all calls' contexts; ends when Drain gives up on them
	cancel context.CancelFunc
	live   context.Context // parent of live calls' contexts; ends when Drain begins
	still  context.CancelFunc

	sockets atomic.Int64 // number of open WebSockets

	randomMu sync.Mutex // guards reads of o.Random
}

// New returns a server, or an error if the options are invalid.
func New(o Options) (*Server, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	s := &Server{o: o, metrics: newMetrics()}
	s.gate, s.nodes = newGate(&s.o, s.metrics), newNodeGate(&s.o, s.metrics)
	s.bodies = shares.New(o.BodyBudget, o.MaxBody+1)
	s.unknown = shares.New(max(o.BodyBudget/16, maxStrangerBody), 0)
	s.answers = shares.New(o.AnswerBudget, 0)
	s.hosted = newHostedLimiters(o.HostedRates)
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
		Concurrency:                  4*o.MaxConns + 1000, // only the gate's limit has an effect
		MaxIdleWorkerDuration:        time.Second,
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		SecureErrorLogMessage:        true,
		CloseOnShutdown:              true,
	}
	return s, nil
}

// maxHeaderBytes is the maximum size of a request's header. It is the size of the library's read buffer.
const maxHeaderBytes = 8 << 10

// Serve answers requests on l until Drain. It returns the listener's error or nil.
func (s *Server) Serve(l net.Listener) error {
	s.gate.Listener = l
	return s.fast.Serve(s.gate)
}

// onHeader limits the library's first read of a body, of at most 8 KB, to bodyGrace.
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
		late     *stream // writes the answer's body after handle has returned
	)
	c := connOf(ctx)
	c.phase.CompareAndSwap(silent, arriving) // a pipelined request was read with the previous one
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

	var forward Forwarder
	err := s.head(ctx, &r)
	if err == nil {
		forward, err = s.decide(ctx, &r)
	}
	switch {
	case err != nil:
	case forward != nil:
		status, late, err = s.pass(ctx, &id, &r, &b, forward)
	default:
		err = s.readBody(ctx, &r, &b)
	}
	switch {
	case err != nil:
		status = s.reject(ctx, id, &r, &b, err)
	case forward == nil:
		c.enter(serving)
		r.Body = b.bytes
		if status, late = s.route(ctx, id, &r); c.unapplied {
			status, late = s.elsewhere(ctx, &id, &r, &b)
		}
	}
}

// head reads the request's header into r, and refuses ambiguous headers.
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
	raw := h.RawHeaders() // valid as long as the request
	r.Authorization = field(raw, "Authorization")
	r.Session = field(raw, "X-Clarifai-Session-Token")
	r.Known = field(raw, "If-None-Match")
	r.Client = field(raw, "X-Clarifai-Client")
	r.Remote = network(s.client(ctx))
	r.Header = func(name string) string { return field(raw, name) }
	return nil
}

// route finds the handler for r and writes the answer. It returns the answer's status, and the stream that will write its body or nil.
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
		readOffers(ctx, r)
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
			caller, _ := m.caller(call, r) // without a caller the request is anonymous
			return caller
		}}
		r.Memory, r.Watch = c.answer, c.watch
	}
	res := m.Handler.Serve(call, r)
	if r.Memory != nil && res.Stream == nil { // a stream keeps its memory until it ends
		res = s.admit(m, r, res)
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
			late = s.newStream(ctx, id, m.Live && res.Length == 0, res.Stream, cancel)
		}
	}
	if late != nil && late.live && wantsSocket(ctx) {
		status, err := s.socket(ctx, id, late, &res)
		if err == nil {
			return status, late
		}
		late = nil
		res = s.refuse(r, err)
	}
	status := s.write(ctx, id, &res)
	if m.SameOrigin {
		s.keepToOwn(ctx)
	}
	if late != nil {
		length := -1
		if res.Length > 0 {
			length = int(res.Length)
		}
		late.answer(ctx, length)
	}
	return status, late
}

// caller returns the caller of r, or "" if the mount has no Caller.
func (m *Mount) caller(ctx context.Context, r *api.Request) (string, error) {
	if m.Caller == nil {
		return "", nil
	}
	return m.Caller(ctx, r)
}

// admit takes the memory of an answer, and compresses it. Without memory it returns another answer.
func (s *Server) admit(m *Mount, r *api.Request, res api.Response) api.Response {
	if !r.Memory.Reserve(int64(len(res.Body))) {
		res = s.withhold(r, res)
	}
	m.encode(r, &res)
	r.Memory.Settle(int64(len(res.Body)))
	return res
}

// withhold replaces an answer for which no memory is left. A successful write still gets a success status.
func (s *Server) withhold(r *api.Request, res api.Response) api.Response {
	if res.Status < 300 && api.Writes(r.Method, r.Path) {
		return api.WithoutBody(r, res)
	}
	return s.refuse(r, errSending)
}

// mount returns the mount that answers path, or nil.
func (s *Server) mount(path string) *Mount {
	path = "/" + strings.TrimLeft(path, "/")
	for i := range s.o.Mounts {
		if rest, ok := strings.CutPrefix(path, s.o.Mounts[i].Prefix); ok && (rest == "" || rest[0] == '/') {
			return &s.o.Mounts[i]
		}
	}
	return nil
}

// reportPanic counts and logs a panic with its stack. The recovering function calls it.
func (s *Server) reportPanic(id string, p any) {
	s.metrics.panics.Inc()
	s.o.Log.Error("panic", "id", id, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
}

// answerPanic answers a panic with the API's internal error.
func (s *Server) answerPanic(ctx *fasthttp.RequestCtx, id string, r *api.Request, p any) int {
	s.reportPanic(id, p)
	ctx.Response.Reset()
	s.linger(ctx)
	res := s.refuse(r, errPanic)
	return s.write(ctx, id, &res)
}

func (s *Server) now() time.Time { return s.o.Now() }

// newID returns a random request id of 32 hex digits.
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

// lameDuck is the time for which a draining server still accepts connections, so that connections in progress get an answer and no reset.
const lameDuck = 250 * time.Millisecond

// Drain stops the server. Readiness ends, every answer closes its connection, and the listeners close. Accepted requests get their answers,
// and idle connections close. If ctx ends before that, Drain cancels running calls, gives them [lastMoments] to answer and returns ctx's
// error.
func (s *Server) Drain(ctx context.Context) error {
	s.draining.Store(true)
	s.still()
	s.o.Pause(ctx, lameDuck)
	silenced := make(chan struct{})
	shut, cancel := context.WithCancel(ctx)
	go func() { // the library waits five seconds for clients that connect and send nothing
		defer close(silenced)
		for s.o.Pause(shut, lameDuck); shut.Err() == nil; s.o.Pause(shut, lameDuck) {
			s.gate.closeSilent()
			s.nodes.closeSilent()
		}
	}()
	err := s.fast.ShutdownWithContext(ctx)
	cancel()
	<-silenced
	for s.sockets.Load() > 0 && ctx.Err() == nil { // the library does not track them
		s.o.Pause(ctx, lastMoments/20)
	}
	s.cancel()
	if err != nil {
		last, stop := context.WithTimeout(context.WithoutCancel(ctx), lastMoments)
		defer stop()
		_ = s.fast.ShutdownWithContext(last) // return the first error
	}
	return err
}

// lastMoments is the time that cancelled calls have to answer.
const lastMoments = time.Second
