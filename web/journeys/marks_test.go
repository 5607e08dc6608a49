//go:build !wasip1

package journeys

import (
	"fmt"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/web/process"
	runtime "github.com/sightline-dev/sightline/web/runtime/test"
)

// TestMarks runs random programs at a browser, an edge and an origin, which stop and lose their connections. After each step it compares
// the marks that the pages show with the origin's log and with the lists of their hosts, and the contradictions with those that follow
// from the program. The pages' code runs in Node.
func TestMarks(t *testing.T) {
	if testing.Short() {
		t.Skip("a minute of programs")
	}
	runPrograms(t, "")
}

// TestDrawnMarks is like TestMarks, with the marks that the pages draw in Chromium.
func TestDrawnMarks(t *testing.T) {
	testkit.Nightly(t)
	chromium := process.Need(t, "chromium", "chromium-browser", "google-chrome")
	runPrograms(t, chromium)
}

// runPrograms runs rounds of programs, each with an origin. chromium: the path of the browser; empty: the pages' code runs in Node.
func runPrograms(t *testing.T, chromium string) {
	t.Helper()
	from, rounds := testkit.Rounds(t, 20, 200)
	programs := 1 // in a round
	if chromium == "" {
		programs = testkit.Size(t, 1, 1, 9, 9)
	}
	process.Need(t, "npm")
	node := process.Need(t, "node")
	origin, edge := process.Build(t, process.Origin), process.Build(t, process.Edge)
	process.Warm(t, edge)
	t.Cleanup(runtime.Forget)
	travel(t, nil, node, "marks/run.js", chromium,
		"PROGRAM="+origin, "EDGE_PROGRAM="+edge, "RUNTIME="+runtime.AssembleRuntime(t),
		fmt.Sprint("FROM=", from), fmt.Sprint("ROUNDS=", rounds), fmt.Sprint("PROGRAMS=", programs))
}
