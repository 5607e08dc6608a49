//go:build !wasip1

package journeys

import (
	"bufio"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/proof"
	"github.com/sightline-dev/sightline/web/process"
)

// served are the scripts that need a server, and how it is started; demonstrations are those that start theirs themselves.
var (
	served = map[string][]string{
		"account.js": nil, "demo.js": {"--demo"}, "grid.js": {"--demo"}, "keys.js": {"--demo"}, "kill.js": {"--demo"}, "look.js": {"--demo"},
		"sweep.js": {"--demo"},
	}
	demonstrations = []string{"edge.js", "second.js", "studio.js"}
)

// run lists the scripts that [TestJourneys] runs.
func run() []string { return append(slices.Sorted(maps.Keys(served)), demonstrations...) }

// TestJourneys builds the pages, where something has changed, and the programs, and runs every script.
func TestJourneys(t *testing.T) {
	if testing.Short() {
		t.Skip("a minute in a browser")
	}
	node := process.Need(t, "node")
	for _, program := range []string{"npm", "make", "bash", "curl"} {
		process.Need(t, program)
	}
	chromium := process.Need(t, "chromium", "chromium-browser", "google-chrome")
	pages := exec.Command("make", "--no-print-directory", "web")
	pages.Dir = proof.Root(t)
	if out, err := pages.CombinedOutput(); err != nil {
		t.Fatalf("make web: %v\n%s", err, out)
	}
	scripts, err := filepath.Glob("*.js")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(scripts, "../package-lock.json") {
		if _, err := os.Stat(path); err != nil { // as process.Build looks at what it builds from
			t.Fatal(err)
		}
	}
	binary := process.Build(t)
	edge := process.BuildWith(t, process.Edge, nil)
	t.Run("programs", func(t *testing.T) { static(t, binary, edge) })
	for script, args := range served {
		t.Run(strings.TrimSuffix(script, ".js"), func(t *testing.T) {
			t.Parallel() // one waits while the other draws
			var more []string
			if script == "look.js" {
				edge := process.ServeWarm(t, edge)
				more = []string{"EDGE=" + edge.URL, "EDGE_KEY=" + edge.Find(t, firstKey)}
			}
			if script == "sweep.js" { // the pages of who is not signed in
				more = []string{"DOOR=" + process.Serve(t, binary).URL}
			}
			travel(t, process.Serve(t, binary, args...), node, script, chromium, more...)
		})
	}
	// A demonstration has its edges' program beside its own.
	if err := os.Symlink(edge, filepath.Join(filepath.Dir(binary), "sightline-edge")); err != nil {
		t.Fatal(err)
	}
	film := filmed(t)
	warm := t.TempDir()
	process.Warm(t, edge, warm)
	for _, script := range demonstrations {
		t.Run(strings.TrimSuffix(script, ".js"), func(t *testing.T) {
			t.Parallel()
			more := []string{"PROGRAM=" + binary, "CAMERA=" + film}
			if script != "studio.js" { // a newcomer's edge compiles its module
				more = append(more, "WARM="+warm)
			}
			travel(t, nil, node, script, chromium, more...)
		})
	}
}

// firstKey is the key that a new folder is told.
var firstKey = regexp.MustCompile(`^\s+key\s+([0-9a-f]{32})$`)

// travel runs a script, with more in its environment. It reads on its standard input what the server says, where it does not start
// its own (srv is nil), and writes a line for each of its steps; the one that fails is the last, with the reason below it.
func travel(t *testing.T, srv *process.Server, node, script, chromium string, more ...string) {
	t.Helper()
	shots := filepath.Join(proof.Root(t), ".cache", "journeys")
	cmd := exec.CommandContext(t.Context(), node, script)
	cmd.Env = append(append(os.Environ(), "CHROMIUM="+chromium, "SHOTS="+shots), more...)
	if srv != nil {
		cmd.Env = append(cmd.Env, "ORIGIN="+srv.URL)
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended, told := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(told)
		if srv != nil {
			srv.Follow(stdin, ended)
		}
	}()
	steps := 0
	var last strings.Builder // what was said since the last step that went well
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		step, ok := strings.CutPrefix(lines.Text(), "ok ")
		if !ok {
			last.WriteString(lines.Text() + "\n")
			continue
		}
		t.Log(step)
		steps++
	}
	close(ended)
	if err := cmd.Wait(); err != nil || last.Len() > 0 {
		t.Errorf("after %d steps: %v\n%s", steps, err, last.String())
	}
	<-told
	if steps == 0 && !t.Failed() {
		t.Error("no step was taken")
	}
}
