package collection

import (
	"encoding/json"
	"os"
	"testing"
)

// The pages name pictures by the same rules: web/src/views/inputs/identity.test.ts reads the same file.
func TestIDs(t *testing.T) {
	b, err := os.ReadFile("testdata/ids.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct{ Path, URL, ID string }
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if got := (namer{}).name(&Input{Path: c.Path, URL: c.URL}); got != c.ID {
			t.Errorf("path %q, url %q: the id is %q, want %q", c.Path, c.URL, got, c.ID)
		}
	}
}
