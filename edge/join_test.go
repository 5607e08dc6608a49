package main_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/origin/control"
	"github.com/sightline-dev/sightline/origin/system"
	"github.com/sightline-dev/sightline/web/process"
)

// until asks again and again until it is so.
func until(t testing.TB, what string, so func() bool) {
	t.Helper()
	for begun := system.Now(); !so(); system.Pause(t.Context(), 20*time.Millisecond) {
		if system.Now().Sub(begun) > 2*time.Minute {
			t.Fatalf("never: %s", what)
		}
	}
}

// holds is what a server lists of an application's inputs, in its order; hosted addresses without the server.
func (c *client) holds() string {
	status, out, err := c.do("GET", "/v2/inputs?per_page=100", nil)
	if err != nil || status != 200 {
		return fmt.Sprintf("%d, %v", status, err)
	}
	text, err := json.Marshal(out["inputs"])
	if err != nil {
		c.t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), c.s.base, "")
}

// copies is what an edge says of what it was lent.
func copies(t testing.TB, binary, data string) []control.Copy {
	t.Helper()
	var s control.Status
	if err := json.Unmarshal([]byte(command(t, binary, "status", "--data", data, "--json")), &s); err != nil {
		t.Fatal(err)
	}
	return s.Copies
}

// joined is an origin with two edges, which all write while each in turn is cut off, killed and back:
// afterwards all hold the same, nothing that was acknowledged is lost and nothing that was deleted is there. Then the
// origin takes the application away.
func joined(t *testing.T, binary string) {
	origin, data := process.Build(t), filepath.Join(t.TempDir(), "origin")
	app, key, _ := owner(t, origin, data, "shared")
	hub := serve(t, origin, data)
	at0 := hub.as(t, key)

	names := photos(t)
	at0.must("POST", "/v2/inputs", object{"inputs": []object{input("before", photo(t, names[0]), "north")}})
	var folders [2]string
	var edges [2]*client
	for i := range edges {
		var made struct{ Token string }
		text := command(t, origin, "edge", "create", fmt.Sprintf("edge %d", i), "--apps", app, "--data", data, "--json")
		if err := json.Unmarshal([]byte(text), &made); err != nil {
			t.Fatal(err)
		}
		folders[i] = folder(t, binary)
		edges[i] = serve(t, binary, folders[i], "--origin", hub.base, "--token", made.Token).as(t, key)
	}
	all := append([]*client{at0}, edges[:]...)
	same := func() bool {
		return all[0].holds() == all[1].holds() && all[1].holds() == all[2].holds()
	}
	until(t, "the edges hold what the origin did before", same)

	for i, c := range all {
		c.must("POST", "/v2/inputs", object{"inputs": []object{
			input(fmt.Sprintf("first-%d", i), photo(t, names[1+i]), "north"), input(fmt.Sprintf("doomed-%d", i), photo(t, names[4+i]), "south"),
		}})
	}
	until(t, "all hold what each wrote", same)

	// Without the origin.
	if err := hub.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-hub.ended
	for i, c := range edges {
		c.must("POST", "/v2/inputs", object{"inputs": []object{
			input(fmt.Sprintf("alone-%d", i), photo(t, names[7+i]), "south"), input(fmt.Sprintf("more-%d", i), photo(t, names[9+i]), "north"),
		}})
		c.must("PATCH", "/v2/inputs", object{"action": "merge", "inputs": []object{
			{"id": fmt.Sprintf("first-%d", 1-i), "data": object{"concepts": []object{{"id": fmt.Sprintf("seen-%d", i), "value": 1}}}},
		}})
		c.must("DELETE", fmt.Sprintf("/v2/inputs/doomed-%d", i), nil)
	}
	found := edges[0].must("POST", "/v2/searches", object{"query": object{"ands": []object{{"output": object{"input": object{"data": object{"image": object{"base64": photo(t, names[7])}}}}}}}})
	if id := at(t, found, "hits", 0, "input", "id"); id != "alone-0" {
		t.Errorf("alone, the picture most like alone-0 is %v", id)
	}
	edges[1].must("POST", "/v2/models", object{"model": object{"id": "way", "name": "way", "output_info": object{"data": object{"concepts": []object{{"id": "north"}, {"id": "south"}}}}}})
	edges[1].must("POST", "/v2/models/way/versions", nil)
	trained := func(c *client) (version string) {
		status, out, err := c.do("GET", "/v2/models/way", nil)
		if err != nil || status != 200 || at(t, out, "model", "model_version", "status", "code") != float64(21100) {
			return ""
		}
		return at(t, out, "model", "model_version", "id").(string)
	}
	until(t, "an edge trains alone", func() bool { return trained(edges[1]) != "" })
	version := trained(edges[1])
	if err := syscall.Kill(edges[0].s.child(t), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	edges[0].s.find(t, serving, 2)
	for _, folder := range folders {
		until(t, "an edge tells of writes that the origin cannot have", func() bool {
			c := copies(t, binary, folder)
			return len(c) == 1 && c[0].Pending > 0 && c[0].Phase != "current"
		})
	}

	// With it.
	hub = serve(t, origin, data, "--listen", strings.TrimPrefix(hub.base, "http://"))
	all[0] = hub.as(t, key)
	all[0].must("POST", "/v2/inputs", object{"inputs": []object{input("after", photo(t, names[11]), "north")}})
	until(t, "the edges have no writes of their own", func() bool {
		a, b := copies(t, binary, folders[0]), copies(t, binary, folders[1])
		return a[0].Pending+b[0].Pending == 0
	})
	until(t, "all hold the same", same)
	held := all[0].holds()
	for _, id := range []string{"before", "after", "first-0", "first-1", "first-2", "alone-0", "alone-1", "more-0", "more-1", "doomed-2", "seen-0", "seen-1"} {
		if !strings.Contains(held, `"id":"`+id+`"`) {
			t.Errorf("%s was acknowledged and is lost", id)
		}
	}
	for _, id := range []string{"doomed-0", "doomed-1"} {
		if strings.Contains(held, `"id":"`+id+`"`) {
			t.Errorf("%s was deleted and is there", id)
		}
	}
	for i, c := range all {
		until(t, "the version that was trained alone is everywhere", func() bool { return trained(c) == version })
		c.must("POST", "/v2/models/way/outputs", object{"inputs": []object{{"data": object{"image": object{"base64": photo(t, names[i])}}}}})
	}

	command(t, origin, "app", "delete", app, "--data", data, "--yes")
	for i, c := range edges {
		until(t, "the application is gone at the edges", func() bool {
			status, _, err := c.do("GET", "/v2/inputs", nil)
			return err == nil && status == 401
		})
		c.s.terminate(t)
		command(t, binary, "doctor", "--data", folders[i])
	}
}
