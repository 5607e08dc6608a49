package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestForce starts this test again for each family. There it forces the family, which starts the test once more, and prints the kernels.
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
		again := exec.Command(os.Args[0], "-test.run=^TestForce$", "-test.v")
		again.Env = append(os.Environ(), "SIGHTLINE_CPU="+name)
		got, err := again.CombinedOutput()
		if !strings.Contains(string(got), want) {
			t.Errorf("SIGHTLINE_CPU=%s: %v: %s\nwant %q", name, err, got, want)
		}
	}
	if err := force("neon"); err == nil || !strings.Contains(err.Error(), "neon") {
		t.Errorf("force(neon) = %v", err)
	}
}
