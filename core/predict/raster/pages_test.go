//go:build !wasip1

package raster

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
)

// TestPagesKnowSignatures checks that the golden file of the pages' import has a file for each signature.
func TestPagesKnowSignatures(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(testkit.Root(t), "origin", "server", "collection", "testdata", "leftout.json"))
	if err != nil {
		t.Fatal(err)
	}
	var golden struct{ Files []struct{ Hex string } }
	if err := json.Unmarshal(text, &golden); err != nil {
		t.Fatal(err)
	}
	for _, s := range signatures {
		if !slices.ContainsFunc(golden.Files, func(f struct{ Hex string }) bool {
			b, err := hex.DecodeString(f.Hex)
			return err == nil && begins(b, s.magic)
		}) {
			t.Errorf("no file begins with %q: add one to starts in origin/server/collection/golden_test.go", s.magic)
		}
	}
}
