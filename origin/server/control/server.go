package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/sightline-dev/sightline/core/api"
)

// maxBody bounds a request: /v2's largest body.
const maxBody = 96 << 20

// Server offers a service on one listener.
type Server struct {
	service Service
	http    http.Server
}

// NewServer makes a server of s.
func NewServer(s Service) *Server {
	srv := &Server{service: s}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+pathApps, srv.createApp)
	mux.HandleFunc("GET "+pathApps, srv.apps)
	mux.HandleFunc("POST "+pathChange, srv.changeApp)
	mux.HandleFunc("POST "+pathContents, srv.contents)
	mux.HandleFunc("POST "+pathDelete, srv.deleteApp)
	mux.HandleFunc("POST "+pathSecret, srv.replaceSecret)
	mux.HandleFunc("POST "+pathRevoke, srv.revokeTokens)
	mux.HandleFunc("POST "+pathKeys, srv.createKey)
	mux.HandleFunc("POST "+pathKeyDelete, srv.deleteKey)
	mux.HandleFunc("POST "+pathKeyReplace, srv.replaceKey)
	mux.HandleFunc("GET "+pathKeys, srv.keys)
	mux.HandleFunc("POST "+pathEdges, srv.createEdge)
	mux.HandleFunc("GET "+pathEdges, srv.edges)
	mux.HandleFunc("POST "+pathEdgeRevoke, srv.revokeEdge)
	mux.HandleFunc("POST "+pathBackup, srv.backup)
	mux.HandleFunc("POST "+pathCheckpoint, srv.checkpoint)
	mux.HandleFunc("GET "+pathPicture, srv.picture)
	mux.HandleFunc("GET "+pathStatus, srv.status)
	root := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(headerApp) != "" {
			srv.call(w, r) // before the mux, which would tidy the path
			return
		}
		mux.ServeHTTP(w, r)
	})
	srv.http = http.Server{Handler: root, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	return srv
}

// Serve answers on l until Close, and closes l.
func (s *Server) Serve(l net.Listener) error {
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Close stops listening and waits for the calls under way until ctx ends; then it cuts them off.
func (s *Server) Close(ctx context.Context) error {
	if err := s.http.Shutdown(ctx); err != nil {
		return errors.Join(err, s.http.Close())
	}
	return nil
}

func (s *Server) createApp(w http.ResponseWriter, r *http.Request) {
	answer(w, r, func(in *NewApp) (any, error) {
		app, client, err := s.service.CreateApp(r.Context(), *in)
		return createdApp{app, client}, err
	})
}

func (s *Server) changeApp(w http.ResponseWriter, r *http.Request) {
	answer(w, r, func(in *changeApp) (any, error) { return s.service.ChangeApp(r.Context(), in.ID, in.Change) })
}

func (s *Server) contents(w http.ResponseWriter, r *http.Request) {
	answer(w, r, func(in *named) (any, error) { return s.service.Contents(r.Context(), in.ID) })
}

func (s *Server) deleteApp(w http.ResponseWriter, r *http.Request) {
	answer(w, r, func(in *named) (any, error) { return struct{}{}, s.service.DeleteApp(r.Context(), in.ID) })
}

func (s *Server) replaceSecret(w http.ResponseWriter, r *http.Request) {
	answer(w, r, func(in *named) (any, error) { return s.service.ReplaceSecret(r.Context(), in.ID) })
}

func (s *Server) revokeTokens(w http.ResponseWriter, r *http.Request) {
	answer(w, r, func(in *named) (any, error) { return struct{}{}, s.service.RevokeTokens(r.Context(), in.ID) })
}

func (s *Server) apps(w http.ResponseWriter, r *http.Request) {
	answer(w, r, func(*struct{}) (any, error) { return s.service.Apps(r.Context()) })
}

func (s *Server) createKey(w http.ResponseWriter, r *http.Request) {
	answer(w, r, func(in *NewKey) (any, error) {
		key, record, err := s.service.CreateKey(r.Context(), *in)
		return createdKey{key, record}, err
	})
}

func (s *Server) deleteKey(w http.ResponseWriter, r *http.Request) {
	answer(w, r, func(in *named) (any, error) { return struct{}{}, s.service.DeleteKey(r.Context(), in.ID) })
}

func (s *Server) replaceKey(w http.ResponseWriter, r *http.Request) {
	answer(w, r, func(in *named) (any, error) {
		key, record, err := s.service.ReplaceKey(r.Context(), in.ID)
		return createdKey{key, record}, err
	})
}

func (s *Server) keys(w http.ResponseWriter, r *http.Request) {
	answer(w, r, func(*struct{}) (any, error) { return s.service.Keys(r.Context(), r.URL.Query().Get("app_id")) })
}

func (s *Server) createEdge(w http.ResponseWriter, r *http.Request) {
	answer(w, r, func(in *NewEdge) (any, error) {
		token, record, err := s.service.CreateEdge(r.Context(), *in)
		return createdEdge{token, record}, err
	})
}

func (s *Server) edges(w http.ResponseWriter, r *http.Request) {
	answer(w, r, func(*struct{}) (any, error) { return s.service.Edges(r.Context()) })
}

func (s *Server) revokeEdge(w http.ResponseWriter, r *http.Request) {
	answer(w, r, func(in *named) (any, error) { return s.service.RevokeEdge(r.Context(), in.ID) })
}

func (s *Server) checkpoint(w http.ResponseWriter, r *http.Request) {
	answer(w, r, func(in *target) (any, error) { return struct{}{}, s.service.Checkpoint(r.Context(), in.To) })
}

func (s *Server) status(w http.ResponseWriter, r *http.Request) {
	answer(w, r, func(*struct{}) (any, error) { return s.service.Status(r.Context()) })
}

func (s *Server) picture(w http.ResponseWriter, r *http.Request) {
	data, contentType, err := s.service.Picture(r.Context(), r.URL.Query().Get("name"))
	if err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", contentType)
	_, _ = w.Write(data) // a client that is gone reads no error either
}

// answer decodes a request, calls do, and encodes what it returns.
func answer[T any](w http.ResponseWriter, r *http.Request, do func(*T) (any, error)) {
	var in T
	if r.Method == http.MethodPost {
		d := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20))
		d.DisallowUnknownFields()
		if err := d.Decode(&in); err != nil {
			refuse(w, fmt.Errorf("%w: %w", ErrArgument, err))
			return
		}
	}
	out, err := do(&in)
	if err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out) // a client that is gone reads no error either
}

// refuse answers an error.
func refuse(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnprocessableEntity)
	_ = json.NewEncoder(w).Encode(failureOf(err))
}

// backup answers with lines of progress, the last of which says how it ended.
func (s *Server) backup(w http.ResponseWriter, r *http.Request) {
	var in target
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&in); err != nil {
		refuse(w, fmt.Errorf("%w: %w", ErrArgument, err))
		return
	}
	w.Header().Set("Content-Type", "application/jsonl")
	lines, flush := json.NewEncoder(w), http.NewResponseController(w)
	tell := func(l step) {
		_ = lines.Encode(l) // a client that is gone ends r.Context()
		_ = flush.Flush()
	}
	copied, err := s.service.Backup(r.Context(), in.To, func(done, total Copied) { tell(step{Copied: done, Total: total}) })
	last := step{Copied: copied, Total: copied, Done: err == nil}
	if err != nil {
		last.Error = failureOf(err)
	}
	tell(last)
}

// call passes a /v2 request on.
func (s *Server) call(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		refuse(w, fmt.Errorf("%w: %w", ErrArgument, err))
		return
	}
	res, err := s.service.Call(r.Context(), r.Header.Get(headerApp), &api.Request{
		Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Body: body,
	})
	if err != nil {
		refuse(w, err)
		return
	}
	h := w.Header()
	for _, f := range res.Header {
		h.Set(f.Name, f.Value)
	}
	if res.ContentType != "" {
		h.Set("Content-Type", res.ContentType)
	}
	h.Set(headerApp, r.Header.Get(headerApp)) // tells the client that this is /v2's answer
	w.WriteHeader(res.Status)
	_, _ = w.Write(res.Body)
}
