package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/web/process"
)

// assembly holds the folder that the first call of AssembleRuntime creates, and that later calls share.
var assembly struct {
	sync.Mutex
	dir string
}

// Forget removes the folder that [AssembleRuntime] has created. The next call of AssembleRuntime creates a new folder.
func Forget() {
	assembly.Lock()
	defer assembly.Unlock()
	if assembly.dir != "" {
		_ = os.RemoveAll(assembly.dir)
		assembly.dir = ""
	}
}

// AssembleRuntime returns a folder with the runtime that make builds: scripts, module, kernels, bundles and the decoding module. All tests
// share the folder. The race detector does not see into Node, so make race leaves out the test.
func AssembleRuntime(t *testing.T) string {
	t.Helper()
	testkit.SkipRace(t)
	assembly.Lock()
	defer assembly.Unlock()
	if assembly.dir != "" {
		return filepath.Join(assembly.dir, "runtime")
	}
	process.Need(t, "npm")
	process.Make(t, "web")
	process.Make(t, "bin/ffmpreg.wasm.gz")
	process.Make(t, "bin/jpegxl.wasm.gz")
	dir, err := os.MkdirTemp("", "runtime-")
	if err != nil {
		t.Fatal(err)
	}
	web := filepath.Join(testkit.Root(t), "web", "runtime")
	bin := filepath.Join(testkit.Root(t), "bin")
	film, jxl := filepath.Join(bin, "ffmpreg.wasm.gz"), filepath.Join(bin, "jpegxl.wasm.gz")
	if out, err := command("node", web, "tools/assemble.js", filepath.Join(dir, "runtime"), "--video-module", film, "--jxl-module", jxl).CombinedOutput(); err != nil {
		t.Fatalf("assemble.js: %v\n%s", err, out)
	}
	assembly.dir = dir
	return filepath.Join(dir, "runtime")
}

func command(program, dir string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	return cmd
}
