package call

import (
	"strings"
	"testing"
)

// TestPageErrorIsAlwaysTheSame checks that a request with two invalid numbers gets the same error each time and on each host.
func TestPageErrorIsAlwaysTheSame(t *testing.T) {
	for range 32 {
		x := Call{Query: "per_page=y&page=x"}
		if _, err := x.Page(); err == nil || !strings.HasPrefix(err.Error(), `page: "x"`) {
			t.Fatalf("%v, want an error about page", err)
		}
	}
}
