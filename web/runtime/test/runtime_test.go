//go:build !wasip1

package test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sightline-dev/sightline/core/proof"
	"github.com/sightline-dev/sightline/web/process"
)

// TestScripts runs the tests of the scripts themselves.
func TestScripts(t *testing.T) {
	process.Need(t, "node")
	modules(t)
	watch(t, "..", "../../../wasm/abi/testdata")
	if out, err := command("npm", "..", "test").CombinedOutput(); err != nil {
		t.Fatalf("npm test: %v\n%s", err, out)
	}
}

// TestPages runs every script of pages, each with a browser of its own.
func TestPages(t *testing.T) {
	if testing.Short() {
		t.Skip("minutes in a browser")
	}
	chromium := process.Need(t, "chromium", "chromium-browser", "google-chrome")
	travel(t, "pages", "CHROMIUM="+chromium)
}

// TestNode runs every script of node.
func TestNode(t *testing.T) { travel(t, "node") }

// TestSame holds Node and a browser to the origin's answers, byte by byte.
func TestSame(t *testing.T) {
	if testing.Short() {
		t.Skip("a server, a browser and a program")
	}
	chromium := process.Need(t, "chromium", "chromium-browser", "google-chrome")
	binary := process.Build(t)
	srv := process.Serve(t, binary)
	tell := func(args ...string) map[string]string {
		t.Helper()
		cmd := exec.Command(binary, append(args, "--json", "--data", srv.Data)...)
		var failure strings.Builder
		cmd.Stderr = &failure
		out, err := cmd.Output()
		said := map[string]string{}
		if err != nil || json.Unmarshal(out, &said) != nil {
			t.Fatalf("sightline %v: %v\n%s%s", args, err, out, failure.String())
		}
		return said
	}
	app := tell("app", "create", "pictures")["app_id"]
	key := tell("key", "create", "--scopes", "Predict", "--app", app)["key"]
	pictures := filepath.Join(proof.Root(t), "..", "shared", "photos")
	if _, err := os.Stat(pictures); err != nil {
		t.Logf("%s is missing: the samples do", pictures)
		pictures = filepath.Join(proof.Root(t), "web", "samples")
	}
	travel(t, "same", "CHROMIUM="+chromium, "ORIGIN="+srv.URL, "KEY="+key, "PICTURES="+pictures)
}

// travel runs the scripts of a folder. They write a line for each step that went well; the one that
// fails is the last, with the reason below it.
func travel(t *testing.T, folder string, env ...string) {
	t.Helper()
	node := process.Need(t, "node")
	scripts, err := filepath.Glob(folder + "/*.js")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts in %s: %v", folder, err)
	}
	env = append(env, "RUNTIME="+assembled(t), "SAMPLES="+filepath.Join(proof.Root(t), "web", "samples"),
		"SHARED="+filepath.Join(proof.Root(t), "..", "shared"))
	for _, script := range scripts {
		name := strings.TrimSuffix(filepath.Base(script), ".js")
		if name == "browser" { // what the others share
			continue
		}
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), node, script)
			cmd.Env = append(os.Environ(), env...)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd.Stderr = cmd.Stdout
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			steps := 0
			var last strings.Builder // what was said since the last step that went well
			for lines := bufio.NewScanner(out); lines.Scan(); {
				step, ok := strings.CutPrefix(lines.Text(), "ok ")
				if !ok {
					last.WriteString(lines.Text() + "\n")
					continue
				}
				t.Log(step)
				steps++
			}
			if err := cmd.Wait(); err != nil || last.Len() > 0 {
				t.Errorf("after %d steps: %v\n%s", steps, err, last.String())
			}
			if steps == 0 && !t.Failed() {
				t.Error("no step was taken")
			}
		})
	}
}

// made is the folder that is made by the first test that asks.
var made struct {
	sync.Mutex
	dir string
}

func TestMain(m *testing.M) {
	code := m.Run()
	if made.dir != "" {
		_ = os.RemoveAll(made.dir)
	}
	os.Exit(code)
}

// assembled is a folder with the runtime that is built from the sources beside this: scripts, module, kernels, bundles.
func assembled(t *testing.T) string {
	t.Helper()
	made.Lock()
	defer made.Unlock()
	root := proof.Root(t)
	watch(t, "..", filepath.Join(root, "models", "general-v1.3"))
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
	run(command("npx", "..", "tsc", "-p", "tsconfig.json", "--outDir", scripts))
	run(command("node", "..", "tools/assemble.js", filepath.Join(dir, "runtime"), "--scripts", scripts, "--guest", guest, "--kernels", kernels))
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
