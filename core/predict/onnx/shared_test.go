package onnx

import (
	"os"
	"path/filepath"
	"testing"
)

// shared returns the content of a file of the test data beside the project, or skips the test.
func shared(t testing.TB, name string) []byte {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Skip("no go.mod above the test")
		}
		dir = up
	}
	b, err := os.ReadFile(filepath.Join(dir, "..", "shared", name))
	if err != nil {
		t.Skipf("test data is missing: %v", err)
	}
	return b
}
