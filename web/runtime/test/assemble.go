package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sightline-dev/sightline/core/proof"
	"github.com/sightline-dev/sightline/web/process"
)

// made is the folder that is made by the first test that asks.
var made struct {
	sync.Mutex
	dir string
}

// Forget removes what [Assembled] has made: the end of every TestMain beside a test that asks for it.
func Forget() {
	made.Lock()
	defer made.Unlock()
	if made.dir != "" {
		_ = os.RemoveAll(made.dir)
	}
}

// Assembled is a folder with the runtime that is built from the sources beside this: scripts, module, kernels, bundles.
func Assembled(t *testing.T) string {
	t.Helper()
	made.Lock()
	defer made.Unlock()
	root := proof.Root(t)
	web := filepath.Join(root, "web", "runtime")
	watch(t, web, filepath.Join(root, "models", "general-v1.3"))
	sources(t, root, "./wasm/guest", "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=-tags=lent")
	sources(t, root, "./wasm/simd/cmd")
	if made.dir != "" {
		return filepath.Join(made.dir, "runtime")
	}
	modules(t)
	dir, err := os.MkdirTemp("", "runtime-")
	if err != nil {
		t.Fatal(err)
	}
	run := func(cmd *exec.Cmd) {
		t.Helper()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
		}
	}
	guest, kernels := filepath.Join(dir, "guest.wasm"), filepath.Join(dir, "kernels.wasm")
	build := command("go", root, "build", "-trimpath", "-ldflags", "-s -w", "-tags", "lent", "-buildmode=c-shared", "-o", guest, "./wasm/guest")
	build.Env = append(build.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	run(build)
	run(command("go", root, "run", "./wasm/simd/cmd", kernels))
	scripts := filepath.Join(dir, "scripts")
	run(command("npx", web, "tsc", "-p", "tsconfig.json", "--outDir", scripts))
	run(command("node", web, "tools/assemble.js", filepath.Join(dir, "runtime"), "--scripts", scripts, "--guest", guest, "--kernels", kernels))
	made.dir = dir
	return filepath.Join(dir, "runtime")
}

// modules installs the tools of the pages, where they are not.
func modules(t *testing.T) {
	t.Helper()
	process.Need(t, "npm")
	if out, err := command("make", proof.Root(t), "--no-print-directory", "web/node_modules/.package-lock.json").CombinedOutput(); err != nil {
		t.Fatalf("make: %v\n%s", err, out)
	}
}

func command(program, dir string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	return cmd
}

// listed lists the files of this module that a program is made of, a line each.
const listed = `{{if .Module}}{{if .Module.Main}}{{$dir := .Dir}}{{range .GoFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}{{end}}{{end}}`

// sources looks at what a program is built from, so that go test does not take an answer about other files from its cache.
func sources(t *testing.T, root, program string, env ...string) {
	t.Helper()
	list := command("go", root, "list", "-deps", "-f", listed, program)
	list.Env = append(list.Environ(), env...)
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list %s: %v", program, err)
	}
	for line := range strings.Lines(string(out)) {
		look(t, strings.TrimSpace(line))
	}
}

// watch looks at all files of folders, likewise.
func watch(t *testing.T, folders ...string) {
	t.Helper()
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if entry.Name() == "dist" {
				return filepath.SkipDir
			}
			if !entry.IsDir() {
				look(t, path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func look(t *testing.T, path string) {
	t.Helper()
	if path == "" {
		return
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
}
