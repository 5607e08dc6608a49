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

// maxBody is the maximum size of a request's body: /v2's largest body.
const maxBody = 96 << 20

// Server offers a folder on one listener.
type Server struct {
	folder Folder
	http   http.Server
}

// NewServer returns a server of f. operation returns pointers to an operation's argument and result; see [Table.New].
// over, unless it is nil, returns a handler over that of the folder, which may send an operation elsewhere.
func NewServer(f Folder, operation func(name string) (in, out any, ok bool), over func(local http.Handler) http.Handler) *Server {
	srv := &Server{folder: f}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+pathBackup, srv.backup)
	mux.HandleFunc("GET "+pathPicture, srv.picture)
	mux.HandleFunc("POST /{name}", func(w http.ResponseWriter, r *http.Request) {
		in, out, ok := operation(r.PathValue("name"))
		if !ok {
			http.NotFound(w, r)
			return
		}
		srv.operate(w, r, in, out)
	})
	var root http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(headerApp) != "" {
			srv.call(w, r) // before the mux, which would clean the path
			return
		}
		mux.ServeHTTP(w, r)
	})
	if over != nil {
		root = over(root)
	}
	srv.http = http.Server{Handler: root, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	return srv
}

// Serve answers requests on l until Close, and closes l.
func (s *Server) Serve(l net.Listener) error {
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Close stops listening and waits for the calls in progress. When ctx ends, it cuts them off.
func (s *Server) Close(ctx context.Context) error {
	if err := s.http.Shutdown(ctx); err != nil {
		return errors.Join(err, s.http.Close())
	}
	return nil
}

func (s *Server) picture(w http.ResponseWriter, r *http.Request) {
	data, contentType, err := s.folder.Picture(r.Context(), r.URL.Query().Get("name"))
	if err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", contentType)
	_, _ = w.Write(data) // a client that has closed the connection reads no error either
}

// operate runs an operation.
func (s *Server) operate(w http.ResponseWriter, r *http.Request, in, out any) {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20))
	d.DisallowUnknownFields()
	err := d.Decode(in)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrArgument, err)
	} else {
		err = s.folder.Do(r.Context(), r.PathValue("name"), in, out)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out) // a client that has closed the connection reads no error either
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnprocessableEntity)
	_ = json.NewEncoder(w).Encode(failureOf(err))
}

// backup answers with lines of progress. The last line has the result.
func (s *Server) backup(w http.ResponseWriter, r *http.Request) {
	var in Target
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&in); err != nil {
		refuse(w, fmt.Errorf("%w: %w", ErrArgument, err))
		return
	}
	w.Header().Set("Content-Type", "application/jsonl")
	lines, flush := json.NewEncoder(w), http.NewResponseController(w)
	send := func(l step) {
		_ = lines.Encode(l) // r.Context() ends if the client closes the connection
		_ = flush.Flush()
	}
	copied, err := s.folder.Backup(r.Context(), in.To, func(done, total BackupStats) { send(step{Copied: done, Total: total}) })
	last := step{Copied: copied, Total: copied, Done: err == nil}
	if err != nil {
		last.Error = failureOf(err)
	}
	send(last)
}

// call answers a /v2 request.
func (s *Server) call(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		refuse(w, fmt.Errorf("%w: %w", ErrArgument, err))
		return
	}
	res, err := s.folder.Call(r.Context(), r.Header.Get(headerApp), &api.Request{
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
	h.Set(headerApp, r.Header.Get(headerApp)) // marks this as /v2's answer
	w.WriteHeader(res.Status)
	_, _ = w.Write(res.Body)
}
