package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// joinTime is the maximum time in seconds from the start of an edge's process until it searches by similarity among 100,000 inputs of its
// origin: three times the goal.
const joinTime = 30

// TestJoinOfManyInputs joins an edge to an origin of 100,000 inputs, or of N inputs: make soak LAW=JoinOfManyInputs.
func TestJoinOfManyInputs(t *testing.T) {
	if !testkit.Soaking() {
		t.Skip("minutes by itself: make soak LAW=JoinOfManyInputs")
	}
	_, inputs := testkit.Rounds(t, 0, 100_000)
	binary := own(t)
	origin := hubOf(t, binary)
	data := filepath.Join(t.TempDir(), "origin")
	app, key, _ := owner(t, origin, data, "many")
	since := system.Now()
	command(t, origin, "import", parts(t, inputs), "--data", data, "--quiet")
	t.Logf("%d inputs in %.0f s", inputs, system.Now().Sub(since).Seconds())
	hub := serve(t, origin, data)
	var enrolment struct{ Token string }
	if err := json.Unmarshal([]byte(command(t, origin, "edge", "create", "late", "--apps", app, "--data", data, "--json")), &enrolment); err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		dir := folder(t, binary)
		if round > 0 { // an edge is enrolled once, and others join as it did
			text := command(t, origin, "edge", "create", fmt.Sprintf("late %d", round), "--apps", app, "--data", data, "--json")
			if err := json.Unmarshal([]byte(text), &enrolment); err != nil {
				t.Fatal(err)
			}
		}
		since := system.Now()
		c := serve(t, binary, dir, "--origin", hub.base, "--token", enrolment.Token).as(t, key)
		serves := system.Now().Sub(since).Seconds()
		like := object{"query": object{"ands": []object{{"output": object{"input": object{"id": "part-000007"}}}}}}
		until(t, "the edge has all", func() bool {
			status, out, err := c.do("GET", "/v2/inputs/status", nil)
			return err == nil && status == 200 && at(t, out, "counts", "processed") == float64(inputs)
		})
		if id := at(t, c.must("POST", "/v2/searches", like), "hits", 0, "input", "id"); id != "part-000007" {
			t.Errorf("the picture most like part-000007 is %v", id)
		}
		took := system.Now().Sub(since).Seconds()
		t.Logf("searches by likeness among all after %.1f s, of which it took %.1f s to serve", took, serves)
		if took > joinTime && inputs <= 100_000 {
			t.Errorf("an edge has joined after %.1f s, want at most %d", took, joinTime)
		}
	}
}

// parts writes a list of inputs to a file. The inputs are 2,000 different parts of the samples, repeated.
func parts(t testing.TB, inputs int) (file string) {
	t.Helper()
	names := photos(t)
	var lines strings.Builder
	for i := range inputs {
		part := i % 2000
		top, left := float64(part/len(names)%7)/20, float64(part/len(names)/7)/20
		b, err := json.Marshal(object{
			"id": fmt.Sprintf("part-%06d", i), "path": filepath.Join(testkit.Root(t), "web", "samples", names[part%len(names)]),
			"crop": []float64{top, left, top + 0.6, left + 0.6}, "metadata": object{"name": fmt.Sprintf("IMG_%06d.jpg", i)},
		})
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(b, '\n'))
	}
	file = filepath.Join(t.TempDir(), "inputs.jsonl")
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
