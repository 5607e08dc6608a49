package synclink_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/origin/server/synclink"
	"github.com/sightline-dev/sightline/sync/compress"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
)

// script is a state machine whose steps a test defines.
type script struct {
	step func(e replica.Event) []replica.Effect
	fail error
}

func (s *script) Step(_ time.Time, e replica.Event) ([]replica.Effect, error) {
	return s.step(e), s.fail
}

func options(server string, m synclink.Stepper) synclink.Options {
	return synclink.Options{
		Origin: server, Machine: m, Now: time.Now, Effect: func(replica.Effect) {},
		Authorize: func(method, path, query string, body []byte) ([]api.Field, error) {
			return []api.Field{
				{Name: "Authorization", Value: fmt.Sprintf("Key %s %s?%s %d", method, path, query, len(body))}, {Name: "Sync-Head", Value: "head"},
			}, nil
		},
	}
}

// run runs a link until its machine is done.
func run(t *testing.T, o synclink.Options) error {
	t.Helper()
	l, err := synclink.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return l.Run(ctx)
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// TestRequest: the link sends a request as the machine asked for it, with a signature, and returns the answer.
func TestRequest(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Sync-Test", r.Header.Get("X-One")+r.Header.Get("Authorization")+r.Header.Get("Sync-Head"))
		w.WriteHeader(202)
		fmt.Fprintf(w, "%s %s %s %s", r.Method, r.URL.Path, r.URL.RawQuery, body)
	})
	var got replica.Answer
	text := ""
	m := &script{}
	m.step = func(e replica.Event) []replica.Effect {
		switch e := e.(type) {
		case replica.Begin:
			return []replica.Effect{replica.Ask{ID: 7, Method: "POST", Path: "/v2/a", Query: "b=c", Body: []byte("hello"), Header: []api.Field{{Name: "X-One", Value: "1"}}}}
		case replica.Answer:
			if e.Status != 0 {
				got = e
			}
			text += string(e.Body)
			if !e.More {
				return []replica.Effect{replica.Purge{Reason: "enough"}}
			}
		}
		return nil
	}
	if err := run(t, options(address+"/", m)); !errors.Is(err, synclink.ErrPurged) || !strings.Contains(err.Error(), "enough") {
		t.Errorf("Run = %v", err)
	}
	if got.ID != 7 || got.Status != 202 || text != "POST /v2/a b=c hello" {
		t.Errorf("answer %+v, %q", got, text)
	}
	found := false
	for _, f := range got.Header {
		found = found || f.Name == "Sync-Test" && f.Value == "1Key POST /v2/a?b=c 5head"
	}
	if !found {
		t.Errorf("header %v", got.Header)
	}
}

// TestStream: the machine gets chunks as the origin writes them, one at a time. A Cancel ends the request.
func TestStream(t *testing.T) {
	ended := make(chan struct{})
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for i := 0; r.Context().Err() == nil; i++ {
			fmt.Fprintf(w, "%d;", i)
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(time.Millisecond):
			}
		}
		close(ended)
	})
	text := ""
	m := &script{}
	m.step = func(e replica.Event) []replica.Effect {
		switch e := e.(type) {
		case replica.Begin:
			return []replica.Effect{replica.Ask{ID: 1, Method: "GET", Path: "/", Stream: true}}
		case replica.Answer:
			if text += string(e.Body); strings.Contains(text, "5;") {
				return []replica.Effect{replica.Cancel{ID: 1}, replica.Purge{}}
			}
		}
		return nil
	}
	if err := run(t, options(address, m)); !errors.Is(err, synclink.ErrPurged) {
		t.Fatal(err)
	}
	if !strings.HasPrefix(text, "0;1;2;3;4;5;") {
		t.Errorf("came: %q", text)
	}
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("the origin was not told that nobody reads")
	}
}

// TestPacked: a compressed answer is decompressed, and the machine gets each chunk as it comes. Pictures are requested without compression.
func TestPacked(t *testing.T) {
	received := make(chan struct{})
	encodings := map[string]string{}
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		encodings[r.URL.Path] = r.Header.Get("Accept-Encoding")
		if r.URL.Path != "/v2/sync/changes" {
			fmt.Fprint(w, "picture")
			return
		}
		w.Header().Set("Content-Encoding", compress.Encoding)
		p := compress.NewWriter(w)
		for i := range 3 {
			fmt.Fprintf(p, "frame %d;", i)
			w.(http.Flusher).Flush()
			select {
			case <-received: // by the machine, before the next one is written
			case <-r.Context().Done():
			}
		}
	})
	text := ""
	m := &script{}
	m.step = func(e replica.Event) []replica.Effect {
		switch e := e.(type) {
		case replica.Begin:
			return []replica.Effect{replica.Ask{ID: 1, Method: "GET", Path: "/v2/sync/changes", Stream: true}}
		case replica.Answer:
			for _, f := range e.Header {
				if f.Name == "Content-Encoding" {
					t.Errorf("the machine is told of a coding, %s", f.Value)
				}
			}
			if text += string(e.Body); len(e.Body) > 0 && e.ID == 1 {
				received <- struct{}{}
			}
			switch {
			case !e.More && e.ID == 1:
				return []replica.Effect{replica.Ask{ID: 2, Method: "GET", Path: "/v2/sync/blobs/aa"}}
			case !e.More:
				return []replica.Effect{replica.Purge{}}
			}
		}
		return nil
	}
	if err := run(t, options(address, m)); !errors.Is(err, synclink.ErrPurged) {
		t.Errorf("Run = %v", err)
	}
	if want := "frame 0;frame 1;frame 2;picture"; text != want {
		t.Errorf("answers %q, want %q", text, want)
	}
	if encodings["/v2/sync/changes"] != "zstd" || encodings["/v2/sync/blobs/aa"] != "identity" {
		t.Errorf("asked for %v", encodings)
	}
}

// TestPlace: a complete chunk of a snapshot is offered to Place if its hash is right. The machine gets a chunk that Place does not store.
func TestPlace(t *testing.T) {
	first, second := strings.Repeat("placed! ", replica.MaxChunkBytes/8), "not placed" // the first has the maximum size
	pieces := map[string]string{blob.Sum([]byte(first)).String(): first, blob.Sum([]byte(second)).String(): second, blob.Sum(nil).String(): "another"}
	encoding := ""
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		encoding = r.Header.Get("Accept-Encoding")
		text, ok := pieces[path.Base(r.URL.Path)]
		if !ok {
			http.NotFound(w, r)
		}
		fmt.Fprint(w, text)
	})
	ask := func(id uint64, of string) []replica.Effect {
		return []replica.Effect{replica.Ask{ID: id, Method: "GET", Path: "/v2/sync/snapshot/" + blob.Sum([]byte(of)).String(), Place: true}}
	}
	m := &script{}
	var answers []replica.Answer
	m.step = func(e replica.Event) []replica.Effect {
		a, ok := e.(replica.Answer)
		if !ok {
			return ask(1, first)
		}
		a.Header, a.Body = nil, bytes.Clone(a.Body)
		answers = append(answers, a)
		switch {
		case a.More:
			return nil
		case a.ID == 1:
			return ask(2, second)
		case a.ID == 2:
			return ask(3, "")
		case a.ID == 3:
			return ask(4, "missing")
		}
		return []replica.Effect{replica.Purge{}}
	}
	o := options(address, m)
	var offered []string
	o.Place = func(_ context.Context, hash blob.Hash, piece []byte) (bool, error) {
		offered = append(offered, string(piece))
		return string(piece) == first && hash == blob.Sum(piece), nil
	}
	if err := run(t, o); !errors.Is(err, synclink.ErrPurged) {
		t.Errorf("Run = %v", err)
	}
	want := []replica.Answer{
		{ID: 1, Status: 200, Sum: blob.Sum([]byte(first)), Placed: true},
		{ID: 2, Status: 200, Body: []byte(second), Sum: blob.Sum([]byte(second))},
		{ID: 3, Status: 200, Body: []byte("another"), Sum: blob.Sum([]byte("another"))},
	}
	if len(answers) < 4 || !reflect.DeepEqual(answers[:3], want) || answers[3].Status != 404 {
		t.Errorf("%d answers: %.300v", len(answers), answers)
	}
	if !slices.Equal(offered, []string{first, second}) {
		t.Errorf("%d pieces were offered", len(offered))
	}
	if encoding != "identity" {
		t.Errorf("on one machine a snapshot was asked for as %q", encoding)
	}
}

// TestNoConnection: a failed connection is an answer with an error. The link does not follow a redirect.
func TestNoConnection(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	away := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://example.invalid/", http.StatusTemporaryRedirect)
	})
	for address, want := range map[string]int{closed.URL: 0, away: 307} {
		var got replica.Answer
		m := &script{}
		m.step = func(e replica.Event) []replica.Effect {
			switch e := e.(type) {
			case replica.Begin:
				return []replica.Effect{replica.Ask{ID: 1, Method: "GET", Path: "/"}}
			case replica.Answer:
				if e.Status != 0 || e.Err != nil {
					got = e
				}
				if !e.More {
					return []replica.Effect{replica.Purge{}}
				}
			}
			return nil
		}
		if err := run(t, options(address, m)); !errors.Is(err, synclink.ErrPurged) {
			t.Fatal(err)
		}
		if got.Status != want || (got.Err == nil) != (want != 0) {
			t.Errorf("%s: %+v", address, got)
		}
	}
}

// TestWakeAndEvents: the link wakes the machine at the requested time, and passes the host's events to it.
func TestWakeAndEvents(t *testing.T) {
	var events []string
	m := &script{}
	local := make(chan struct{}, 1)
	var l *synclink.Link
	m.step = func(e replica.Event) []replica.Effect {
		events = append(events, fmt.Sprintf("%T", e))
		switch e.(type) {
		case replica.Begin:
			return []replica.Effect{replica.WakeAt{At: time.Now().Add(time.Hour)}, replica.WakeAt{At: time.Now().Add(-time.Hour)}}
		case replica.Wake:
			if !l.Send(t.Context(), replica.Online{}) {
				t.Error("not told")
			}
		case replica.Online:
			local <- struct{}{}
		case replica.LocalWrite:
			m.fail = errors.New("store")
		}
		return nil
	}
	o := options("http://127.0.0.1:1", m)
	o.Local = local
	var err error
	if l, err = synclink.New(o); err != nil {
		t.Fatal(err)
	}
	if err := l.Run(t.Context()); err == nil || err.Error() != "store" {
		t.Errorf("Run = %v", err)
	}
	if got := strings.Join(events, " "); got != "replica.Begin replica.Wake replica.Online replica.LocalWrite" {
		t.Errorf("events %s", got)
	}
}

// TestEnd: when the context ends, the link stops the machine in order, even during a request.
func TestEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	address := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	stopped := false
	m := &script{}
	m.step = func(e replica.Event) []replica.Effect {
		switch e.(type) {
		case replica.Begin:
			return []replica.Effect{replica.Ask{ID: 1, Method: "GET", Path: "/"}}
		case replica.Stop:
			stopped = true
			return []replica.Effect{replica.Cancel{ID: 1}}
		}
		return nil
	}
	l, err := synclink.New(options(address, m))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Run(ctx); err != nil || !stopped {
		t.Errorf("Run = %v, stopped %v", err, stopped)
	}
	for range 1000 {
		if !l.Send(ctx, replica.Online{}) {
			return
		}
	}
	t.Error("told after the end, again and again")
}

func TestAddress(t *testing.T) {
	for _, s := range []string{"", "example.org", "ftp://example.org", "http://", "http://u:p@example.org", "http://example.org/?a", "http://example.org", "http://192.0.2.1:80"} {
		if _, err := synclink.New(synclink.Options{Origin: s}); !errors.Is(err, synclink.ErrAddress) {
			t.Errorf("New(%q) = %v", s, err)
		}
	}
	for _, s := range []string{"https://example.org/", "http://localhost:80", "http://127.0.0.1", "http://[::1]:8080"} {
		if got, err := synclink.ParseAddress(s); err != nil || strings.HasSuffix(got, "/") {
			t.Errorf("Address(%q) = %q, %v", s, got, err)
		}
	}
}

// TestJoin: the link requests only the app record.
func TestJoin(t *testing.T) {
	const app = "0123456789abcdef0123456789abcdef"
	r := wire.AppRecord{App: app, Seq: 5, Data: []byte("register")}
	another := wire.AppRecord{App: app[:31] + "0", Seq: 5, Data: []byte("register")}
	refusal := wire.Refusal{Code: wire.RefusedScope, Detail: "not yours"}
	for name, tt := range map[string]struct {
		status int
		kind   string
		body   []byte
		want   string
	}{
		"register": {200, wire.ContentType, r.Encode(), ""},
		"another":  {200, wire.ContentType, another.Encode(), "the record of application"},
		"noise":    {200, wire.ContentType, []byte("<html><body>"), "invalid answer of the origin"},
		"refusal":  {403, wire.ContentType, refusal.Encode(), "not yours"},
		"proxy":    {502, "text/html", []byte("<html>"), "HTTP status 502"},
	} {
		t.Run(name, func(t *testing.T) {
			address := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Get("app") != app || r.Header.Get("Authorization") == "" {
					t.Errorf("%s", r.URL)
				}
				w.Header().Set("Content-Type", tt.kind)
				w.WriteHeader(tt.status)
				_, _ = w.Write(tt.body)
			})
			seq, data, err := synclink.Join(t.Context(), options(address, nil), app)
			switch {
			case tt.want == "" && (err != nil || seq != 5 || string(data) != "register"):
				t.Errorf("Join = %d, %q, %v", seq, data, err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("Join: %v, want %q", err, tt.want)
			}
		})
	}
}

// TestGreet: BeginSession requests a session in addition to the machine's with a message, and decodes the answer.
func TestGreet(t *testing.T) {
	offered := wire.SessionReply{Protocol: 1, Grants: []wire.Grant{{App: "a", Do: wire.DoTail, Over: 9}}}
	refusal := wire.Refusal{Code: wire.RefusedScope, Detail: "not yours"}
	for name, tt := range map[string]struct {
		status int
		kind   string
		body   []byte
		want   string
	}{
		"offered": {200, wire.ContentType, offered.Encode(), ""},
		"noise":   {200, wire.ContentType, []byte("<html><body>"), "malformed"},
		"refusal": {403, wire.ContentType, refusal.Encode(), "not yours"},
		"proxy":   {502, "text/html", []byte("<html>"), "HTTP status 502"},
	} {
		t.Run(name, func(t *testing.T) {
			address := serve(t, func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if m, failed := wire.DecodeSession(body); err != nil || failed != nil || m.Name != "edge" || r.Header.Get("Authorization") == "" || r.Header.Get("Content-Type") != wire.ContentType {
					t.Errorf("%s: %+v, %v, %v", r.URL, m, err, failed)
				}
				w.Header().Set("Content-Type", tt.kind)
				w.WriteHeader(tt.status)
				_, _ = w.Write(tt.body)
			})
			out, err := synclink.BeginSession(t.Context(), options(address, nil), &wire.Session{Name: "edge"})
			switch {
			case tt.want == "" && (err != nil || len(out.Grants) != 1 || out.Grants[0].Over != 9):
				t.Errorf("Greet = %+v, %v", out, err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("Greet: %v, want %q", err, tt.want)
			}
		})
	}
	if _, err := synclink.BeginSession(t.Context(), options("nowhere", nil), &wire.Session{}); !errors.Is(err, synclink.ErrAddress) {
		t.Errorf("an address that is none: %v", err)
	}
}
