package api

import (
	"testing"

	"github.com/sightline-dev/sightline/core/api/call"
)

// TestVersionStatuses holds that a version shows every code it may have with words.
func TestVersionStatuses(t *testing.T) {
	for code, want := range map[int]string{
		21100: "Model trained successfully", 21102: "Model not yet trained", 21103: "Custom model is in queue for training, waiting on inputs to process.",
		21111: "Model training had no positive examples.", 21199: "Model training had an unknown error.",
	} {
		if s := versionStatus(code); s.Code != code || s.Description != want {
			t.Errorf("%d is shown as %d %q", code, s.Code, s.Description)
		}
	}
}

// TestReservedIDs holds that no thing can be made whose path would be another endpoint's.
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
