//go:build unix

package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
)

// Warm copies the compiled module of an edge's program into a data folder. The module is compiled once for all tests and packages, into
// .cache of the project. The copy is safe, because the program checks the seal of a compiled file.
func Warm(t testing.TB, edge, data string) {
	t.Helper()
	kept := filepath.Join(testkit.Root(t), ".cache", "edge")
	if err := os.MkdirAll(kept, 0o700); err != nil {
		t.Fatal(err)
	}
	lock := lockFile(t, kept+".lock") // the first process compiles, and the others wait for it
	defer lock.Close()
	if out, err := exec.Command(edge, "warm", "--data", kept).CombinedOutput(); err != nil {
		t.Fatalf("warm: %v\n%s", err, out)
	}
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(data, os.DirFS(kept)); err != nil {
		t.Fatal(err)
	}
}

// ServeWarm is [Serve] for an edge that need not compile its module first.
func ServeWarm(t testing.TB, edge string, args ...string) *Server {
	t.Helper()
	data := t.TempDir()
	Warm(t, edge, data)
	return ServeIn(t, edge, data, args...)
}
