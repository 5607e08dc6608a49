package token

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
)

// refuser maps errors to HTTP statuses.
type refuser struct{}

func (refuser) Refuse(_ *api.Request, err error) api.Response {
	status := 500
	switch {
	case errors.Is(err, api.ErrPath):
		status = 404
	case errors.Is(err, api.ErrMethod):
		status = 405
	}
	return api.Response{Status: status}
}

func TestPublished(t *testing.T) {
	w := newWorld(t, 30)
	p := JWKSHandler{w.open(t, nil), refuser{}}
	for _, tt := range []struct {
		method, path string
		status       int
		substring    string
	}{
		{"GET", Path, 200, `"kty":"OKP"`},
		{"POST", Path, 405, ""},
		{"GET", Path + "/x", 404, ""},
	} {
		res := p.Serve(context.Background(), &api.Request{Method: tt.method, Path: tt.path})
		if res.Status != tt.status || !strings.Contains(string(res.Body), tt.substring) {
			t.Errorf("%s %s = %d %s, want %d with %s", tt.method, tt.path, res.Status, res.Body, tt.status, tt.substring)
		}
		if strings.Contains(string(res.Body), `"d"`) {
			t.Errorf("private halves are published: %s", res.Body)
		}
	}
	left := 0
	w = newWorld(t, 31)
	w.files = refusing{w.files, &left}
	if res := (JWKSHandler{w.open(t, nil), refuser{}}).Serve(context.Background(), &api.Request{Method: "GET", Path: Path}); res.Status != 500 {
		t.Errorf("without a key: %d, want 500", res.Status)
	}
}
