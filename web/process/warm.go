//go:build unix

package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
)

// useCache makes the programs that this process starts keep compiled modules in .cache of the project, which all tests and packages share.
// The programs then do not use the folder of the user who runs the tests. A damaged file does no harm, because the programs check the seals.
func useCache(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(testkit.Root(t), ".cache", "code")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Setenv("CACHE_DIRECTORY", dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Warm compiles the modules that program runs, the path of an origin's or an edge's program, unless the tests' cache has them. The programs
// that this process starts later need not compile them.
func Warm(t testing.TB, program string) {
	t.Helper()
	lock := lockFile(t, useCache(t)+".lock") // the first process compiles, and the others wait for it
	defer lock.Close()
	if out, err := exec.Command(program, "precompile").CombinedOutput(); err != nil {
		t.Fatalf("%s precompile: %v\n%s", program, err, out)
	}
}

// ServeWarm is [Serve] for an edge that need not compile its module first.
func ServeWarm(t testing.TB, edge string, args ...string) *Server {
	t.Helper()
	Warm(t, edge)
	return Serve(t, edge, args...)
}
