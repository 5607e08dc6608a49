//go:build !wasip1

package journeys

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/web/process"
)

// journey is a script and its requirements.
type journey struct {
	script string
	serve  []string // the arguments of the server that the script uses; nil: the script starts its own server, a demonstration
	always bool     // make test runs it too, not only make nightly
}

var journeys = []journey{
	{script: "account.js", serve: []string{}},
	{script: "adding.js", serve: []string{"--demo"}},
	{script: "alone.js", always: true},
	{script: "demo.js", serve: []string{"--demo"}, always: true},
	{script: "draw.js", serve: []string{"--demo"}},
	{script: "edge.js", always: true},
	{script: "grid.js", serve: []string{"--demo"}},
	{script: "keys.js", serve: []string{"--demo"}, always: true},
	{script: "kill.js", serve: []string{"--demo"}},
	{script: "leaving.js", serve: []string{}, always: true},
	{script: "look.js", serve: []string{"--demo"}},
	{script: "salvage.js", serve: []string{"--demo"}},
	{script: "second.js"},
	{script: "states.js", serve: []string{"--demo"}},
	{script: "studio.js"},
	{script: "sweep.js", serve: []string{"--demo"}},
	{script: "video.js", serve: []string{"--demo"}},
}

// TestJourneys runs the scripts in a browser, five of them in make test and all in make nightly. THROTTLE=4 makes the browser's pages
// four times slower.
func TestJourneys(t *testing.T) {
	if testing.Short() {
		t.Skip("a minute in a browser")
	}
	b := build(t)
	t.Run("programs", func(t *testing.T) { static(t, b.origin, b.edge) })
	for _, j := range journeys {
		t.Run(strings.TrimSuffix(j.script, ".js"), func(t *testing.T) {
			if !j.always {
				testkit.Nightly(t)
			}
			t.Parallel() // while one journey waits, another uses the processor
			b.travel(t, j)
		})
	}
}

// TestJourneyTimes runs the scripts that compare waiting times with limits.
func TestJourneyTimes(t *testing.T) {
	testkit.RequireTiming(t)
	b := build(t)
	for _, j := range journeys {
		if slices.Contains([]string{"grid.js", "look.js", "studio.js"}, j.script) {
			t.Run(strings.TrimSuffix(j.script, ".js"), func(t *testing.T) { b.travel(t, j) })
		}
	}
}

// scriptPaths holds paths that the scripts use: programs, and a film for the browser's camera.
type scriptPaths struct{ node, chromium, origin, edge, film string }

func build(t *testing.T) scriptPaths {
	t.Helper()
	for _, program := range []string{"npm", "make", "bash", "curl"} {
		process.Need(t, program)
	}
	b := scriptPaths{
		node:     process.Need(t, "node"),
		chromium: process.Need(t, "chromium", "chromium-browser", "google-chrome"),
		origin:   process.Build(t, process.Origin),
		edge:     process.Build(t, process.Edge),
		film:     writeFilm(t),
	}
	process.Warm(t, b.edge)
	// A demonstration finds the edges' program next to its own.
	if err := os.Symlink(b.edge, filepath.Join(filepath.Dir(b.origin), "sightline-edge")); err != nil {
		t.Fatal(err)
	}
	return b
}

// travel runs the script of a journey.
func (b *scriptPaths) travel(t *testing.T, j journey) {
	t.Helper()
	if j.serve == nil {
		more := []string{"PROGRAM=" + b.origin, "CAMERA=" + b.film}
		if j.script == "studio.js" { // the newcomer's edge must compile its module
			more = append(more, "CACHE_DIRECTORY="+t.TempDir())
		}
		travel(t, nil, b.node, j.script, b.chromium, more...)
		return
	}
	var more []string
	switch j.script {
	case "look.js":
		edge := process.ServeWarm(t, b.edge)
		more = []string{"EDGE=" + edge.URL, "EDGE_KEY=" + edge.Find(t, firstKey)}
	case "sweep.js": // the pages of a server where nobody is signed in
		more = []string{"SIGN_IN=" + process.Serve(t, b.origin).URL}
	}
	travel(t, process.Serve(t, b.origin, j.serve...), b.node, j.script, b.chromium, more...)
}

// firstKey matches the line in which the server prints the key of a new data folder.
var firstKey = regexp.MustCompile(`^\s+key\s+([0-9a-f]{32})$`)

// travel runs a script, with more in its environment. If srv is not nil, the script reads the server's output on its standard input;
// otherwise it starts its own server. The script prints a line for each step. If a step fails, its line is the last one, followed by
// the reason.
func travel(t *testing.T, srv *process.Server, node, script, chromium string, more ...string) {
	t.Helper()
	shots := filepath.Join(testkit.Root(t), ".cache", "journeys")
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
	ended, followDone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(followDone)
		if srv != nil {
			srv.Follow(stdin, ended)
		}
	}()
	steps := 0
	var last strings.Builder // output since the last step that succeeded
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
	<-followDone
	if steps == 0 && !t.Failed() {
		t.Error("no step was taken")
	}
}
