//go:build unix

package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sightline-dev/sightline/core/proof"
)

// Warm makes a data folder one for which an edge's program has compiled its module: once for all tests and packages, into
// .cache of the project, from where each folder gets it. The seal on what is compiled makes that safe.
func Warm(t testing.TB, edge, data string) {
	t.Helper()
	kept := filepath.Join(proof.Root(t), ".cache", "edge")
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

// ServeWarm is [Serve] of an edge whose module need not be compiled first.
func ServeWarm(t testing.TB, edge string, args ...string) *Server {
	t.Helper()
	data := t.TempDir()
	Warm(t, edge, data)
	return ServeIn(t, edge, data, args...)
}
