//go:build !wasip1

package journeys

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/web/process"
)

// TestGrid checks the page of inputs with 100,000 inputs, created on many days: how it scrolls, how soon it appears and how much memory
// it needs. It takes half an hour: make soak LAW=Grid, with N for another number. TestJourneys runs grid.js with a few inputs.
func TestGrid(t *testing.T) {
	if !testkit.Soaking() {
		t.Skip("half an hour by itself: make soak LAW=Grid")
	}
	_, inputs := testkit.Rounds(t, 0, 100_000)
	node, chromium := process.Need(t, "node"), process.Need(t, "chromium", "chromium-browser", "google-chrome")
	binary := process.Build(t, process.Origin)
	data := filepath.Join(t.TempDir(), "data")
	fillDays(t, data, inputs, 150)
	travel(t, process.Serve(t, binary, "--demo", "--data", data), node, "grid.js", chromium, "INPUTS="+strconv.Itoa(inputs))
}

// fillDays fills a data folder with inputs: 2,000 different parts of the samples, with names, locations and, for one in three, a concept.
// It adds them on the days before today, in random numbers from a fixed seed.
func fillDays(t *testing.T, data string, inputs, days int) {
	t.Helper()
	clock := earlier(t)
	run := func(daysAgo int, args ...string) {
		cmd := exec.CommandContext(t.Context(), clock, append(args, "--data", data)...)
		cmd.Env = append(os.Environ(), "DAYS_AGO="+strconv.Itoa(daysAgo))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%d days ago: %v\n%s", daysAgo, err, out)
		}
	}
	run(days, "app", "create", "Many")
	samples, err := filepath.Abs("../samples")
	if err != nil {
		t.Fatal(err)
	}
	pictures, err := filepath.Glob(filepath.Join(samples, "*.jpg"))
	if err != nil || len(pictures) == 0 {
		t.Fatal(pictures, err)
	}
	rng := rand.New(rand.NewPCG(8, 8))
	concepts := []string{"harbour", "red door", "to print", "Ada"}
	list := filepath.Join(t.TempDir(), "inputs.jsonl")
	for day, done := days, 0; done < inputs; day-- {
		limit := inputs - done
		if day > 1 {
			limit = min(limit, 2*inputs/days)
		}
		var lines strings.Builder
		n := limit
		if day > 1 {
			n = 1 + rng.IntN(limit)
		}
		for range n {
			part := done % 2000
			top, left := float64(part/len(pictures)%7)/20, float64(part/len(pictures)/7)/20
			line := map[string]any{
				"id": fmt.Sprintf("g%06d", done), "path": pictures[part%len(pictures)],
				"crop":     []float64{top, left, top + 0.6, left + 0.6},
				"metadata": map[string]any{"name": fmt.Sprintf("IMG_%06d.jpg", done)},
				"geo":      map[string]float64{"latitude": float64(rng.IntN(12000))/100 - 50, "longitude": float64(rng.IntN(34000))/100 - 170},
			}
			if done%3 == 0 {
				line["concepts"] = []string{concepts[done/3%len(concepts)]}
			}
			b, err := json.Marshal(line)
			if err != nil {
				t.Fatal(err)
			}
			lines.Write(append(b, '\n'))
			done++
		}
		if err := os.WriteFile(list, []byte(lines.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		run(day-1, "import", list, "--quiet")
	}
}

// earlier builds the program with a clock that is DAYS_AGO days behind, and returns its path.
func earlier(t *testing.T) string {
	t.Helper()
	path := filepath.Join(testkit.Root(t), "origin", "server", "system", "system.go")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const now = "func Now() time.Time { return time.Now() }"
	const then = "func Now() time.Time { days, _ := strconv.Atoi(os.Getenv(\"DAYS_AGO\")); return time.Now().AddDate(0, 0, -days) }"
	if !strings.Contains(string(text), now) {
		t.Fatalf("%s has another clock", path)
	}
	return process.BuildWith(t, process.Origin, map[string][]byte{path: []byte(strings.Replace(string(text), now, then, 1))})
}
