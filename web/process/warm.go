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
	warm(t, "edge", data, func(kept string) *exec.Cmd { return exec.Command(edge, "precompile", "--data", kept) })
}

// WarmDecoder is [Warm] for the compiled decoding module of videos, of both programs.
func WarmDecoder(t testing.TB, data string) {
	t.Helper()
	origin, film := Build(t, Origin), filepath.Join(testkit.Root(t), "origin", "server", "video", "testdata", "slides.webm")
	warm(t, "sightline", data, func(kept string) *exec.Cmd {
		cmd := exec.Command(origin, "predict", "--top", "1", film)
		cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+filepath.Dir(kept))
		return cmd
	})
}

// warm runs a command that compiles a module into a folder of .cache, unless an earlier run has done so, and copies the folder's files to
// data.
func warm(t testing.TB, folder, data string, command func(kept string) *exec.Cmd) {
	t.Helper()
	kept := filepath.Join(testkit.Root(t), ".cache", folder)
	if err := os.MkdirAll(kept, 0o700); err != nil {
		t.Fatal(err)
	}
	lock := lockFile(t, kept+".lock") // the first process compiles, and the others wait for it
	defer lock.Close()
	if out, err := command(kept).CombinedOutput(); err != nil {
		t.Fatalf("the module of %s is not compiled: %v\n%s", folder, err, out)
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
