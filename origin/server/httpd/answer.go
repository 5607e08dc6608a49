package httpd

import (
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sightline-dev/sightline/core/api"
)

// protection are headers of every answer. Unless a handler says otherwise nothing here is a
// page, so nothing may run, frame or sniff it; and any page may read it, since the interface has
// no cookies to abuse.
var protection = []api.Field{
	{Name: "X-Content-Type-Options", Value: "nosniff"},
	{Name: "Referrer-Policy", Value: "no-referrer"},
	{Name: "Cross-Origin-Resource-Policy", Value: "cross-origin"},
	{Name: "Access-Control-Allow-Origin", Value: "*"},
	{Name: exposeHeaders, Value: ownExposed + api.ExposedHeaders},
}

// exposeHeaders names the headers that scripts of other sites may read: ours, and those of the answer.
const (
	exposeHeaders = "Access-Control-Expose-Headers"
	ownExposed    = "X-Request-Id, "
)

// strict is a year of HTTPS alone.
const strict = "max-age=31536000"

const (
	apiPolicy    = "default-src 'none'; frame-ancestors 'none'"
	hostedPolicy = "sandbox; default-src 'none'; frame-ancestors 'none'"
	// A browser that opens a video makes a page of it, which loads the video from its own origin: sandbox alone would give the page another
	// one. No script runs in that page.
	videoPolicy = "sandbox allow-same-origin; default-src 'none'; media-src 'self'; frame-ancestors 'none'"
)

// write turns an answer into the library's, and returns its status.
func (s *Server) write(ctx *fasthttp.RequestCtx, id string, res *api.Response) int {
	h := &ctx.Response.Header
	ctx.SetStatusCode(res.Status)
	if res.ContentType != "" {
		h.SetContentType(res.ContentType)
	}
	s.common(ctx, id)
	h.Set("Content-Security-Policy", apiPolicy)
	h.Set("Cache-Control", "no-store")
	for _, f := range res.Header {
		if f.Name == exposeHeaders {
			f.Value = ownExposed + f.Value
		}
		h.Set(f.Name, f.Value)
	}
	ctx.Response.SetBodyRaw(res.Body)
	return res.Status
}

// common sets the headers of every answer.
func (s *Server) common(ctx *fasthttp.RequestCtx, id string) {
	h := &ctx.Response.Header
	h.Set("X-Request-Id", id)
	for _, f := range protection {
		h.Set(f.Name, f.Value)
	}
	if s.o.Strict {
		h.Set("Strict-Transport-Security", strict)
	}
}

// keepToOwn takes back that scripts of other sites may read an answer.
func (s *Server) keepToOwn(ctx *fasthttp.RequestCtx) {
	h := &ctx.Response.Header
	h.Del("Access-Control-Allow-Origin")
	h.Del(exposeHeaders)
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// finish counts and logs an answer. The query is not logged: people put keys there.
func (s *Server) finish(ctx *fasthttp.RequestCtx, id string, r *api.Request, status int, received time.Time) {
	took := s.now().Sub(received)
	s.metrics.requests.WithLabelValues(methodLabel(r.Method), strconv.Itoa(status)).Inc()
	s.metrics.duration.Observe(took.Seconds())
	level := slog.LevelInfo
	if r.Path == "/healthz" || r.Path == "/readyz" || r.Path == "/metrics" {
		level = slog.LevelDebug
	}
	if !s.o.Log.Enabled(s.ctx, level) {
		return
	}
	s.o.Log.Log(s.ctx, level, "request",
		"id", id,
		"remote", s.client(ctx).String(),
		"method", r.Method,
		"path", redactedPath(r.Path),
		"status", status,
		"received", len(r.Body), // bytes
		"took", took,
	)
}

// methodLabel keeps strangers from inventing labels.
func methodLabel(method string) string {
	switch method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS":
		return method
	}
	return "other"
}

// redactedPath returns the part of a client's path for a log line: its start, with every part that may be a secret cut to eight letters. The
// names of hosted pictures give access, and people put keys where an id belongs; eight digits of an id still identify it.
func redactedPath(path string) string {
	const most, shown = 200, 8
	parts := strings.Split(path[:min(len(path), most)], "/")
	for i, part := range parts {
		if len(part) >= 32 && strings.Trim(part, "0123456789abcdefABCDEF") == "" || len(part) > shown && strings.HasPrefix(part, "eyJ") {
			parts[i] = part[:shown] + "…"
		}
	}
	if len(path) > most {
		parts = append(parts, "…")
	}
	return strings.Join(parts, "/")
}

// libraryLog is the library's logger: its messages are about connections, none is worth
// more than Debug to an operator, and all carry addresses.
type libraryLog struct{ log *slog.Logger }

// Printf implements fasthttp.Logger.
func (l libraryLog) Printf(format string, args ...any) {
	if strings.Contains(format, "Permanent error") {
		l.log.Error("connection", "format", format, "args", args)
		return
	}
	l.log.Debug("connection", "format", format, "args", args)
}
