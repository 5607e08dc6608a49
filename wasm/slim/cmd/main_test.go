package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnknownRelease checks that the module of a release of Go that slim does not know is copied, with one line that names the release.
func TestUnknownRelease(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "linked"), filepath.Join(dir, "module")
	const linked = "\x00asm\x01\x00\x00\x00\x00\x11\x09producers\x06go1.99"
	if err := os.WriteFile(from, []byte(linked), 0o644); err != nil {
		t.Fatal(err)
	}
	var notes strings.Builder
	if err := run(from, to, &notes); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(to); err != nil || string(got) != linked {
		t.Errorf("%q, %v, want the linked module", got, err)
	}
	if got := notes.String(); !strings.HasPrefix(got, "build: ") || !strings.Contains(got, "go1.99 linked it") || strings.Count(got, "\n") != 1 {
		t.Errorf("it printed %q", got)
	}
	if err := run(from+".missing", to, &notes); err == nil {
		t.Error("a missing file is not an error")
	}
}
