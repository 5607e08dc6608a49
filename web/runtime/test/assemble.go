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

// made is the folder that is made by the first test that asks.
var made struct {
	sync.Mutex
	dir string
}

// Forget removes the folder that [AssembleRuntime] has made. The next call of it makes another.
func Forget() {
	made.Lock()
	defer made.Unlock()
	if made.dir != "" {
		_ = os.RemoveAll(made.dir)
		made.dir = ""
	}
}

// AssembleRuntime returns a folder with the runtime as make builds it: scripts, module, kernels, bundles and the decoding module.
func AssembleRuntime(t *testing.T) string {
	t.Helper()
	made.Lock()
	defer made.Unlock()
	if made.dir != "" {
		return filepath.Join(made.dir, "runtime")
	}
	process.Need(t, "npm")
	process.Make(t, "web")
	process.Make(t, "bin/ffmpreg.wasm.gz")
	dir, err := os.MkdirTemp("", "runtime-")
	if err != nil {
		t.Fatal(err)
	}
	web := filepath.Join(testkit.Root(t), "web", "runtime")
	film := filepath.Join(testkit.Root(t), "bin", "ffmpreg.wasm.gz")
	if out, err := command("node", web, "tools/assemble.js", filepath.Join(dir, "runtime"), "--video-module", film).CombinedOutput(); err != nil {
		t.Fatalf("assemble.js: %v\n%s", err, out)
	}
	made.dir = dir
	return filepath.Join(dir, "runtime")
}

func command(program, dir string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	return cmd
}
