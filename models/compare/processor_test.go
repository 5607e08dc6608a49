package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestForce starts this test in another process for each family. That process forces the family, which restarts it once more, and prints
// its kernels.
func TestForce(t *testing.T) {
	const forced = "kernels: "
	if name := os.Getenv("SIGHTLINE_CPU"); name != "" {
		if err := force(name); err != nil {
			t.Fatal(err)
		}
		fmt.Println(forced + kernels())
		return
	}
	for name, f := range families {
		want := forced + f.title
		switch {
		case f.level > level():
			want = "but this program uses"
		case f.level < level():
			want += ", forced"
		}
		cmd := exec.Command(os.Args[0], "-test.run=^TestForce$", "-test.v")
		cmd.Env = append(os.Environ(), "SIGHTLINE_CPU="+name)
		got, err := cmd.CombinedOutput()
		if !strings.Contains(string(got), want) {
			t.Errorf("SIGHTLINE_CPU=%s: %v: %s\nwant %q", name, err, got, want)
		}
	}
	if err := force("neon"); err == nil || !strings.Contains(err.Error(), "neon") {
		t.Errorf("force(neon) = %v", err)
	}
}
