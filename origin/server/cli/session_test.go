package cli

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/origin/server/collection"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// answer is an answer of a server in a test.
type answer struct {
	status int // 0: the connection is refused
	wait   int // seconds in Retry-After; 0: no such header
	isCut  bool
}

func (a answer) response(body string) (*http.Response, error) {
	if a.status == 0 {
		return nil, syscall.ECONNREFUSED
	}
	res := &http.Response{StatusCode: a.status, Header: http.Header{"Content-Type": {"image/png"}}, Body: io.NopCloser(strings.NewReader(body))}
	if a.wait > 0 {
		res.Header.Set("Retry-After", strconv.Itoa(a.wait))
	}
	if a.isCut {
		res.Body = io.NopCloser(io.MultiReader(strings.NewReader("par"), failing{}))
	}
	return res, nil
}

// failing is the rest of a body that does not arrive.
type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// fakeServer answers requests in turn, the last answer repeatedly.
type fakeServer struct {
	answers  []answer
	requests int
}

func (s *fakeServer) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	s.requests++
	return s.answers[min(s.requests, len(s.answers))-1].response("picture")
}

func (s *fakeServer) session() *remote {
	return &remote{base: "http://h", client: &http.Client{Transport: s}}
}

// repeat returns n equal answers, followed by others.
func repeat(n int, one answer, others ...answer) []answer {
	var all []answer
	for range n {
		all = append(all, one)
	}
	return append(all, others...)
}

// backoff is the sum of the pauses between attempts if the server names no time.
const backoff = 31750 * time.Millisecond

// TestPictureWaits downloads a picture from a server with limits, failures and damaged pictures. Only an unknown and a damaged picture count
// as missing.
func TestPictureWaits(t *testing.T) {
	ok := answer{status: 200}
	tests := []struct {
		name     string
		answers  []answer
		waits    time.Duration
		requests int
		missing  bool
		failure  string // part of the error; empty: the picture arrives
	}{
		{"limited", repeat(20, answer{status: 429, wait: 7}, ok), 140 * time.Second, 21, false, ""},
		{"busy for an hour, it says", repeat(2, answer{status: 503, wait: 3600}, ok), 2 * time.Minute, 3, false, ""},
		{"busy", repeat(2, answer{status: 503}, ok), 750 * time.Millisecond, 3, false, ""},
		{"always busy", repeat(1, answer{status: 504}), backoff, 8, false, "HTTP status 504"},
		{"restarting", repeat(3, answer{}, ok), 1750 * time.Millisecond, 4, false, ""},
		{"stopped", repeat(1, answer{}), backoff, 8, false, "connection refused"},
		{"cut", repeat(2, answer{status: 200, isCut: true}, ok), 500 * time.Millisecond, 3, false, ""},
		{"cut by a limit", []answer{{status: 200, isCut: true}, {status: 429, isCut: true}, {status: 429, wait: 1}, ok}, 1500 * time.Millisecond, 4, false, ""},
		{"damaged", repeat(1, answer{status: 200, isCut: true}), 500 * time.Millisecond, 3, true, "unexpected EOF"},
		{"unknown", repeat(1, answer{status: 404}), 0, 1, true, "HTTP status 404"},
		{"server error", repeat(1, answer{status: 500}), 0, 1, false, "HTTP status 500"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &fakeServer{answers: tt.answers}
				since := time.Now()
				data, contentType, err := s.session().picture(t.Context(), "http://h/hosted/one", "two")
				if waits := time.Since(since); waits != tt.waits || s.requests != tt.requests {
					t.Errorf("%d requests in %v, want %d in %v", s.requests, waits, tt.requests, tt.waits)
				}
				if tt.failure == "" {
					if string(data) != "picture" || contentType != "image/png" || err != nil {
						t.Errorf("picture = %q, %q, %v", data, contentType, err)
					}
					return
				}
				if missing := new(missingPicture); errors.As(err, &missing) != tt.missing || err == nil || !strings.Contains(err.Error(), tt.failure) {
					t.Errorf("picture = %v, want %q, and missing: %v", err, tt.failure, tt.missing)
				}
			})
		})
	}
}

// TestPictureEndsWithContext cancels a command that waits for a server.
func TestPictureEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		s := &fakeServer{answers: repeat(1, answer{status: 429, wait: 60})}
		since := time.Now()
		_, _, err := s.session().picture(ctx, "http://h/hosted/one", "two")
		if waits := time.Since(since); !errors.Is(err, context.DeadlineExceeded) || waits != 90*time.Second || s.requests != 2 {
			t.Errorf("picture = %v after %v and %d requests", err, waits, s.requests)
		}
	})
}

// TestPersistWaits sends a request to a busy server. The command waits for the time that the server names, up to two minutes in total.
func TestPersistWaits(t *testing.T) {
	tests := []struct {
		name     string
		answers  []answer
		waits    time.Duration
		requests int
		status   int
	}{
		{"limited", repeat(3, answer{status: 429, wait: 3}, answer{status: 200}), 9 * time.Second, 4, 200},
		{"no time", repeat(1, answer{status: 503}), backoff, 8, 503},
		{"a long time", repeat(1, answer{status: 429, wait: 50}), 100 * time.Second, 3, 429},
		{"too long", repeat(1, answer{status: 429, wait: 3600}), 0, 1, 429},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &fakeServer{answers: tt.answers}
				since := time.Now()
				got, err := persist(t.Context(), s.session(), "GET", "/v2/inputs", nil)
				if waits := time.Since(since); err != nil || got.status != tt.status || waits != tt.waits || s.requests != tt.requests {
					t.Errorf("persist = %d, %v after %d requests in %v, want %d after %d in %v", got.status, err, s.requests, waits, tt.status, tt.requests, tt.waits)
				}
			})
		})
	}
}

// limitedAlbum serves an album over HTTP. It refuses the first request for each picture.
type limitedAlbum struct {
	album
	refusal answer
	asked   map[string]bool
}

func (s *limitedAlbum) RoundTrip(r *http.Request) (*http.Response, error) {
	path := strings.Split(r.URL.Path, "/")
	if path[1] != "hosted" {
		res, err := s.Call(r.Context(), "", &api.Request{Path: r.URL.Path})
		if err != nil {
			return nil, err
		}
		return answer{status: res.Status}.response(string(res.Body))
	}
	s.mu.Lock()
	isFirst := !s.asked[path[2]]
	s.asked[path[2]] = true
	s.mu.Unlock()
	if isFirst {
		return s.refusal.response("")
	}
	data, _, err := s.Picture(r.Context(), path[2])
	if err != nil {
		return nil, err
	}
	return answer{status: 200}.response(string(data))
}

// TestExportWaits exports over HTTP from a server with a limit. The export is complete. If the server fails, the export fails too, and does
// not count the picture as missing.
func TestExportWaits(t *testing.T) {
	tests := []struct {
		refusal answer
		missing int
		fails   bool
	}{
		{answer{status: 429, wait: 20}, 0, false},
		{answer{status: 404}, 2, false},
		{answer{status: 500}, 0, true},
	}
	for _, tt := range tests {
		t.Run(strconv.Itoa(tt.refusal.status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &limitedAlbum{album: album{inputs: 2}, refusal: tt.refusal, asked: map[string]bool{}}
				session := &remote{base: "http://h", client: &http.Client{Transport: s}}
				to := collection.Create(collection.NewZip(collection.NopCloser(io.Discard)), system.Spool)
				ex := &exporter{session: session, parallel: ahead, to: to}
				err := ex.run(t.Context(), func(int) { ex.progress = NewProgress(io.Discard, ProgressOptions{Quiet: true}) })
				if (err != nil) != tt.fails || ex.missing != tt.missing {
					t.Errorf("export = %v with %d missing pictures, want %d", err, ex.missing, tt.missing)
				}
			})
		})
	}
}
