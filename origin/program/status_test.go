package program

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/control"
)

// TestStatus requests the status of a running server and of a stopped one.
func TestStatus(t *testing.T) {
	s := testSettings(t)
	srv, base := startOrigin(t, s)
	code, out, stderr := run(t, nil, "status", "--data", s.Data, "--json")
	var got control.Status
	if err := json.Unmarshal([]byte(out), &got); code != 0 || err != nil || stderr != "" {
		t.Fatalf("status = %d, %q, %q, %v", code, out, stderr, err)
	}
	if got.Program != "sightline" || got.Version != server.Version || got.URL != base || got.Apps != 1 || got.Module != nil || got.FreeBytes <= 0 || got.Since.IsZero() {
		t.Errorf("status = %+v", got)
	}
	_, out, _ = run(t, nil, "status", "--data", s.Data)
	for _, want := range []string{"program         sightline ", "URL             " + base, "accepts writes  yes", "applications    1"} {
		if !slices.ContainsFunc(strings.Split(out, "\n"), func(line string) bool { return strings.HasPrefix(line, want) }) {
			t.Errorf("status says\n%swithout %q", out, want)
		}
	}
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	if code, out, stderr := run(t, nil, "status", "--data", s.Data); code != 1 || out != "" || !strings.Contains(stderr, "no server is running on ") {
		t.Errorf("status of a stopped server = %d, %q, %q", code, out, stderr)
	}
	if code, _, _ := run(t, nil, "status"); code != 2 {
		t.Errorf("status without a folder = %d, want 2", code)
	}
}
