//go:build unix

package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
)

// Warm copies the compiled module of edge, the path of an edge's program, into a data folder. The module is compiled once for all tests
// and packages, into .cache of the project. A damaged copy does no harm, because the program checks the seal of a compiled file.
func Warm(t testing.TB, edge, data string) {
	t.Helper()
	warm(t, "edge", data, func(cacheDir string) *exec.Cmd { return exec.Command(edge, "precompile", "--data", cacheDir) })
}

// WarmDecoder is [Warm] for the module that decodes videos. Both programs use it.
func WarmDecoder(t testing.TB, data string) {
	t.Helper()
	origin, film := Build(t, Origin), filepath.Join(testkit.Root(t), "origin", "server", "video", "testdata", "slides.webm")
	warm(t, "sightline", data, func(cacheDir string) *exec.Cmd {
		cmd := exec.Command(origin, "predict", "--top", "1", film)
		cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+filepath.Dir(cacheDir))
		return cmd
	})
}

// warm runs a command that compiles a module into a folder of .cache, and copies the folder's files to data. The command does not compile
// again if the folder has the module already.
func warm(t testing.TB, folder, data string, command func(cacheDir string) *exec.Cmd) {
	t.Helper()
	cacheDir := filepath.Join(testkit.Root(t), ".cache", folder)
	if err := os.MkdirAll(cacheDir, 0o700); err != nil {
		t.Fatal(err)
	}
	lock := lockFile(t, cacheDir+".lock") // the first process compiles, and the others wait for it
	defer lock.Close()
	if out, err := command(cacheDir).CombinedOutput(); err != nil {
		t.Fatalf("the module of %s is not compiled: %v\n%s", folder, err, out)
	}
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(data, os.DirFS(cacheDir)); err != nil {
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
