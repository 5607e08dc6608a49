package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/proof"
	"github.com/sightline-dev/sightline/web/process"
)

// TestUnits has systemd read the units of both programs, and every sandboxing option that they have.
func TestUnits(t *testing.T) {
	analyze := process.Need(t, "systemd-analyze")
	root, dir := proof.Root(t), t.TempDir()
	var units []string
	for _, pattern := range []string{"origin/systemd/*", "edge/systemd/*"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(found) != 2 {
			t.Fatalf("%s: %d units, %v, want a service and its socket", pattern, len(found), err)
		}
		for _, unit := range found {
			text, err := os.ReadFile(unit)
			if err != nil {
				t.Fatal(err)
			}
			// Programs that are not installed here are a mistake to it.
			installed := strings.NewReplacer("/usr/local/bin/sightline-edge", os.Args[0], "/usr/local/bin/sightline", os.Args[0]).Replace(string(text))
			if installed == string(text) && filepath.Ext(unit) == ".service" {
				t.Errorf("%s starts nothing of ours", unit)
			}
			copied := filepath.Join(dir, filepath.Base(unit))
			if err := os.WriteFile(copied, []byte(installed), 0o600); err != nil {
				t.Fatal(err)
			}
			units = append(units, copied)
		}
	}
	out, err := exec.Command(analyze, append([]string{"verify", "--man=no"}, units...)...).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}
