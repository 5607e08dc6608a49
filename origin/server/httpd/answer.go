package httpd

import (
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sightline-dev/sightline/core/api"
)

// protection lists the headers of every answer. Unless a handler sets other headers, an answer is not a page, so browsers must not run,
// frame or sniff it. Any page may read it, since the API has no cookies to abuse.
var protection = []api.Field{
	{Name: "X-Content-Type-Options", Value: "nosniff"},
	{Name: "Referrer-Policy", Value: "no-referrer"},
	{Name: "Cross-Origin-Resource-Policy", Value: "cross-origin"},
	{Name: "Access-Control-Allow-Origin", Value: "*"},
	{Name: exposeHeaders, Value: ownExposed + api.ExposedHeaders},
}

// headerRequestID is the header with the id of a request.
const headerRequestID = "X-Request-Id"

// exposeHeaders is the header that names the headers readable by scripts of other sites: this package's and the answer's.
const (
	exposeHeaders = "Access-Control-Expose-Headers"
	ownExposed    = headerRequestID + ", "
)

// strict requires HTTPS for a year.
const strict = "max-age=31536000"

const (
	apiPolicy    = "default-src 'none'; frame-ancestors 'none'"
	hostedPolicy = "sandbox; default-src 'none'; frame-ancestors 'none'"
	// A browser shows a video in a page that it creates, and that page loads the video from its own origin. With sandbox alone the page
	// would have another origin. No script runs in that page.
	videoPolicy = "sandbox allow-same-origin; default-src 'none'; media-src 'self'; frame-ancestors 'none'"
)

// write copies an answer into the library's response, and returns its status.
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
		switch {
		case f.Name == headerApplied && !isFromNode(ctx):
			connOf(ctx).unapplied = f.Value == "0" && s.o.Forward != nil
			continue
		case f.Name == exposeHeaders:
			f.Value = ownExposed + f.Value
		}
		h.Set(f.Name, f.Value)
	}
	ctx.Response.SetBodyRaw(res.Body)
	return res.Status
}

// common sets the headers that every answer has.
func (s *Server) common(ctx *fasthttp.RequestCtx, id string) {
	h := &ctx.Response.Header
	h.Set(headerRequestID, id)
	for _, f := range protection {
		h.Set(f.Name, f.Value)
	}
	if s.o.HSTS {
		h.Set("Strict-Transport-Security", strict)
	}
}

// keepToOwn removes the permission for scripts of other sites to read an answer.
func (s *Server) keepToOwn(ctx *fasthttp.RequestCtx) {
	h := &ctx.Response.Header
	h.Del("Access-Control-Allow-Origin")
	h.Del(exposeHeaders)
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// finish counts and logs an answer. It does not log the query, because users put keys there.
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

// methodLabel returns the metric label of a method. It maps unknown methods to "other", so that clients cannot add labels.
func methodLabel(method string) string {
	switch method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS":
		return method
	}
	return "other"
}

// redactedPath returns the start of a client's path for a log line. It cuts every segment that may be a secret to eight characters: names
// of hosted pictures give access, and users write keys where ids belong. Eight digits still identify an id.
func redactedPath(path string) string {
	const maxLen, prefixLen = 200, 8
	parts := strings.Split(path[:min(len(path), maxLen)], "/")
	for i, part := range parts {
		if len(part) >= 32 && strings.Trim(part, "0123456789abcdefABCDEF") == "" || len(part) > prefixLen && strings.HasPrefix(part, "eyJ") {
			parts[i] = part[:prefixLen] + "…"
		}
	}
	if len(path) > maxLen {
		parts = append(parts, "…")
	}
	return strings.Join(parts, "/")
}

// libraryLog is the library's logger. Its messages concern connections and contain addresses. Most are logged only at Debug.
type libraryLog struct{ log *slog.Logger }

// Printf implements fasthttp.Logger.
func (l libraryLog) Printf(format string, args ...any) {
	if strings.Contains(format, "Permanent error") {
		l.log.Error("connection", "format", format, "args", args)
		return
	}
	l.log.Debug("connection", "format", format, "args", args)
}
