//go:build !wasip1

package test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/web/process"
)

// TestScripts runs npm test: the unit tests of the scripts.
func TestScripts(t *testing.T) {
	testkit.SkipRace(t)
	process.Need(t, "node")
	process.Make(t, "web")
	if out, err := command("npm", "..", "test").CombinedOutput(); err != nil {
		t.Fatalf("npm test: %v\n%s", err, out)
	}
}

// TestPages runs every script of folder pages, each with its own browser.
func TestPages(t *testing.T) {
	testkit.Nightly(t)
	chromium := process.Need(t, "chromium", "chromium-browser", "google-chrome")
	travel(t, "pages/*.js", "CHROMIUM="+chromium)
}

// TestPageTimes runs the scripts that compare a page's waiting times with limits.
func TestPageTimes(t *testing.T) {
	testkit.RequireTiming(t)
	chromium := process.Need(t, "chromium", "chromium-browser", "google-chrome")
	travel(t, "pages/many.js", "CHROMIUM="+chromium)
	travel(t, "pages/speed.js", "CHROMIUM="+chromium)
}

// TestNode runs every script of folder node.
func TestNode(t *testing.T) { travel(t, "node/*.js") }

// TestFilms decodes all test films in Node, and compares their planes and status.
func TestFilms(t *testing.T) {
	testkit.Nightly(t)
	travel(t, "films/*.js")
}

// TestSame compares the answers of an edge, Node and a browser with the origin's, byte by byte, and replicas in pages with the origin's
// log.
func TestSame(t *testing.T) {
	testkit.Nightly(t)
	chromium := process.Need(t, "chromium", "chromium-browser", "google-chrome")
	env := []string{"CHROMIUM=" + chromium}
	origin, edge := process.Build(t, process.Origin), process.Build(t, process.Edge)
	for name, srv := range map[string]*process.Server{"ORIGIN": process.Serve(t, origin), "EDGE": process.ServeWarm(t, edge)} {
		binary := map[string]string{"ORIGIN": origin, "EDGE": edge}[name]
		env = append(env, name+"="+srv.URL, name+"_KEY="+key(t, binary, srv.Data), name+"_BINARY="+binary, name+"_DATA="+srv.Data)
	}
	pictures := filepath.Join(testkit.Root(t), "..", "shared", "photos")
	if _, err := os.Stat(pictures); err != nil {
		t.Logf("%s is missing: the samples do", pictures)
		pictures = filepath.Join(testkit.Root(t), "web", "samples")
	}
	travel(t, "same/*.js", append(env, "PICTURES="+pictures)...)
}

// key creates an application in a server's data folder, and returns a key of it that may predict.
func key(t *testing.T, binary, data string) string {
	t.Helper()
	runJSON := func(args ...string) map[string]string {
		t.Helper()
		cmd := exec.Command(binary, append(args, "--json", "--data", data)...)
		var failure strings.Builder
		cmd.Stderr = &failure
		out, err := cmd.Output()
		output := map[string]string{}
		if err != nil || json.Unmarshal(out, &output) != nil {
			t.Fatalf("%s %v: %v\n%s%s", binary, args, err, out, failure.String())
		}
		return output
	}
	app := runJSON("app", "create", "pictures")["app_id"]
	return runJSON("key", "create", "--scopes", "Predict", "--app", app)["key"]
}

// travel runs the scripts whose paths match a pattern. A script prints a line for each successful step. If a step fails, its line is the
// last one, followed by the reason.
func travel(t *testing.T, pattern string, env ...string) {
	t.Helper()
	node := process.Need(t, "node")
	scripts, err := filepath.Glob(pattern)
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts %s: %v", pattern, err)
	}
	env = append(env, "RUNTIME="+AssembleRuntime(t), "SAMPLES="+filepath.Join(testkit.Root(t), "web", "samples"),
		"SHARED="+filepath.Join(testkit.Root(t), "..", "shared"), "FILMS="+filepath.Join(testkit.Root(t), "origin", "server", "video", "testdata"))
	for _, script := range scripts {
		name := strings.TrimSuffix(filepath.Base(script), ".js")
		if name == "browser" { // library of the other scripts
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
			var last strings.Builder // output since the last step that succeeded
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

func TestMain(m *testing.M) {
	code := m.Run()
	Forget()
	os.Exit(code)
}
