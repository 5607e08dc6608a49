package main_test

import (
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// logged matches a line of the log, with its time.
var logged = regexp.MustCompile(`^time=(\S+) `)

// TestFirstStartTimes measures the first start of an edge and the first video of a user, for whom nothing is compiled, and those of a
// second data folder. The start is never silent for 3 seconds. Run it on an idle machine.
func TestFirstStartTimes(t *testing.T) {
	testkit.RequireTiming(t)
	binary := own(t)
	origin := hubOf(t, binary)
	t.Setenv("CACHE_DIRECTORY", filepath.Join(t.TempDir(), "cache"))
	film := filepath.Join(testkit.Root(t), "origin", "server", "video", "testdata", "slides.webm")
	within := func(name string, limit time.Duration, do func()) {
		t.Helper()
		begun := system.Now()
		do()
		took := system.Now().Sub(begun)
		t.Logf("%s: %.1f s", name, took.Seconds())
		if took > limit {
			t.Errorf("%s took %v, want at most %v", name, took, limit)
		}
	}
	predict := func() { command(t, origin, "predict", "--every", "2s", "--quiet", film) }
	start := func() { // a word at least every 3 s
		last := system.Now()
		srv := serve(t, binary, t.TempDir(), "--video-decoder", "/none")
		srv.mu.Lock()
		lines := srv.lines
		srv.mu.Unlock()
		for _, line := range lines {
			m := logged.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			at, err := time.Parse(time.RFC3339, m[1])
			if err != nil {
				t.Fatal(err)
			}
			if silent := at.Sub(last); silent > 3*time.Second {
				t.Errorf("silent for %v before %s", silent, line)
			}
			last = at
		}
		srv.terminate(t)
	}
	within("first start of an edge", 10*time.Second, start)
	within("start with a second data folder", 3*time.Second, start)
	within("first video", 20*time.Second, predict)
	within("second video", 3*time.Second, predict)
}
