package httpd

import (
	"cmp"
	"encoding/json"
	"runtime"
	"runtime/debug"

	"github.com/valyala/fasthttp"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
)

// operation answers a request for one of the operator's paths.
type operation struct {
	answer    func(s *Server, ctx *fasthttp.RequestCtx, id string) int
	isPrivate bool // only for clients that may watch the server
}

// operations has the operator's paths: whether the process is alive, whether it should get requests, its metrics, and its version.
var operations = map[string]operation{
	"/healthz": {answer: (*Server).health}, "/readyz": {answer: (*Server).readiness},
	"/metrics": {(*Server).exposition, true}, "/version": {(*Server).version, true},
}

// operation answers a request for one of the operator's paths. done is false for other paths. A private path does not exist for a client that
// may not read it.
func (s *Server) operation(ctx *fasthttp.RequestCtx, id string, r *api.Request) (status int, done bool) {
	o, ok := operations[r.Path]
	if !ok {
		return 0, false
	}
	if o.isPrivate && !s.mayWatch(ctx, r) {
		res := s.refuse(r, errPath)
		return s.write(ctx, id, &res), true
	}
	if r.Method != "GET" && r.Method != "HEAD" {
		res := s.refuse(r, errReads)
		return s.write(ctx, id, &res), true
	}
	status = o.answer(s, ctx, id)
	if o.isPrivate && !s.o.OpenMetrics {
		s.keepToOwn(ctx)
	}
	return status, true
}

// mayWatch reports whether the client may read the private paths: all may, or it is on this machine, or it has the token.
func (s *Server) mayWatch(ctx *fasthttp.RequestCtx, r *api.Request) bool {
	if s.o.OpenMetrics || s.isLocal(ctx) {
		return true
	}
	sent, ok := auth.Bearer(r.Authorization)
	if !ok || s.o.MetricsToken == nil {
		return false
	}
	token := s.o.MetricsToken()
	return token != "" && auth.Same(auth.HashKey(sent), auth.HashKey(token))
}

func (s *Server) health(ctx *fasthttp.RequestCtx, id string) int { return s.text(ctx, id, 200, "ok\n") }

func (s *Server) text(ctx *fasthttp.RequestCtx, id string, status int, text string) int {
	return s.write(ctx, id, &api.Response{Status: status, ContentType: "text/plain; charset=utf-8", Body: []byte(text)})
}

// readiness answers 503 in three cases: the server is draining, even a new caller would find no place for work, or Ready returns a reason.
func (s *Server) readiness(ctx *fasthttp.RequestCtx, id string) int {
	if s.draining.Load() {
		return s.text(ctx, id, 503, "draining\n")
	}
	if err := cmp.Or(s.o.Full(""), s.o.Ready()); err != nil {
		return s.text(ctx, id, 503, err.Error()+"\n")
	}
	text := "ready\n"
	if s.o.Activity != nil {
		if doing := s.o.Activity(); doing != "" {
			text += doing + "\n"
		}
	}
	return s.text(ctx, id, 200, text)
}

func (s *Server) version(ctx *fasthttp.RequestCtx, id string) int {
	v := struct {
		Version  string `json:"version"`
		Go       string `json:"go"`
		Platform string `json:"platform"`
		Revision string `json:"revision,omitempty"`
		Module   string `json:"module,omitempty"`
	}{Version: s.o.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Module: s.o.Module}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				v.Revision = setting.Value
			}
		}
	}
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // a struct of strings always encodes
	}
	return s.write(ctx, id, &api.Response{Status: 200, ContentType: "application/json", Body: append(body, '\n')})
}
