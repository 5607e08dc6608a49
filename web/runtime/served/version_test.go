package served_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
)

// TestVersion: the package has the version of the newest release of the product.
func TestVersion(t *testing.T) {
	root := testkit.Root(t)
	var p struct{ Version string }
	text, err := os.ReadFile(filepath.Join(root, "web", "runtime", "package.json"))
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	changes, failed := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	release := regexp.MustCompile(`(?m)^## \[([0-9.]+)\]`).FindSubmatch(changes)
	if release == nil || p.Version != string(release[1]) {
		t.Errorf("package.json has version %q, CHANGELOG.md has %q", p.Version, release)
	}
}
