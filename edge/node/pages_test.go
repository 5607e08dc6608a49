package node

import (
	"testing"

	"github.com/sightline-dev/sightline/core/api"
)

// TestHeaderMarksRequestsOfPages checks that only a request with the header counts as a page's, and that the caller's request does not
// change.
func TestHeaderMarksRequestsOfPages(t *testing.T) {
	headers := func(all map[string]string) func(string) string { return func(name string) string { return all[name] } }
	tests := []struct {
		name   string
		header func(string) string
		want   bool
	}{
		{"a page", headers(map[string]string{"X-Sightline-Page": "1"}), true},
		{"a program", headers(map[string]string{"X-Sightline-App": "1"}), false},
		{"nobody's headers", nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := &api.Request{Method: "GET", Path: "/v2/inputs/a/thumbnail", Authorization: "Key k", Header: tt.header}
			got := markPageRequest(r)
			if got.Page != tt.want || got.Path != r.Path || got.Authorization != r.Authorization {
				t.Errorf("asked = %+v, want a page: %v", got, tt.want)
			}
			if r.Page {
				t.Error("the caller's request was changed")
			}
		})
	}
}
