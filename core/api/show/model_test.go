package show

import "testing"

// TestVersionStatuses checks the status text of a version's codes.
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
