package httpd

import (
	"encoding/json"
	"runtime"
	"runtime/debug"

	"github.com/valyala/fasthttp"

	"github.com/sightline-dev/sightline/core/api"
)

// operations answers what an operator asks: is the process alive, should it get requests,
// what does it measure, what is it.
func (s *Server) operations(ctx *fasthttp.RequestCtx, id string, r *api.Request) (status int, done bool) {
	var answer func() int
	switch r.Path {
	case "/healthz":
		answer = func() int { return s.text(ctx, id, 200, "ok\n") }
	case "/readyz":
		answer = func() int { return s.readiness(ctx, id) }
	case "/metrics":
		answer = func() int { return s.exposition(ctx, id) }
	case "/version":
		answer = func() int { return s.version(ctx, id) }
	default:
		return 0, false
	}
	if r.Method != "GET" && r.Method != "HEAD" {
		res := s.refuse(r, errMethod)
		res.Header = append(res.Header, api.Field{Name: "Allow", Value: "GET, HEAD"})
		return s.write(ctx, id, &res), true
	}
	return answer(), true
}

func (s *Server) text(ctx *fasthttp.RequestCtx, id string, status int, text string) int {
	return s.write(ctx, id, &api.Response{Status: status, ContentType: "text/plain; charset=utf-8", Body: []byte(text)})
}

// readiness says 503 while draining, while not even a new caller finds a place for work, and while Ready has
// a reason.
func (s *Server) readiness(ctx *fasthttp.RequestCtx, id string) int {
	if s.draining.Load() {
		return s.text(ctx, id, 503, "draining\n")
	}
	if err := s.o.Full(""); err != nil {
		return s.text(ctx, id, 503, err.Error()+"\n")
	}
	if err := s.o.Ready(); err != nil {
		return s.text(ctx, id, 503, err.Error()+"\n")
	}
	return s.text(ctx, id, 200, "ready\n")
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
		panic(err) // strings always encode
	}
	return s.write(ctx, id, &api.Response{Status: 200, ContentType: "application/json", Body: append(body, '\n')})
}
