package api

import (
	"testing"

	"github.com/sightline-dev/sightline/core/api/call"
)

// TestReservedIDs checks that no object can have an id whose path would be that of another endpoint.
func TestReservedIDs(t *testing.T) {
	for _, r := range routes {
		parts := segments("/v2" + r.Path)
		if len(parts) < 2 || parts[1][0] == '{' {
			continue
		}
		switch parts[0] {
		case "models", "concepts", "workflows", "inputs":
			if err := call.CheckID(call.ErrModelQuery, "id", parts[1]); err == nil {
				t.Errorf("%s: %q can be an id", r.Path, parts[1])
			}
		}
	}
}
