package testkit

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestReleaseNeedsChangelog checks that make release refuses a version that CHANGELOG.md lacks, before it builds anything.
func TestReleaseNeedsChangelog(t *testing.T) {
	for version, refused := range map[string]bool{
		"v0.1.0":          false,
		"v99.0.0":         true,
		"0.1.0":           true, // without the v of a tag
		"v0.1.0-3-gabcde": true, // three commits after a tag
		"v0.1.0-dirty":    true,
		"abcde":           true, // no tag
	} {
		// A release that is not refused fails too, at its first command.
		cmd := exec.Command("make", "--no-print-directory", "release", "VERSION="+version, "MAKE=false", "GO=false")
		cmd.Dir = Root(t)
		cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "MFLAGS=") })
		out, err := cmd.CombinedOutput()
		if err == nil {
			t.Fatal("make release succeeds without make")
		}
		if got := strings.HasPrefix(string(out), "release: CHANGELOG.md has no section for version "+version+": "); got != refused {
			t.Errorf("%s: make printed %q", version, out)
		}
	}
}
