package main_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// localOnly makes an application local only while one of its edges is cut off and writes. At the next contact the origin gets the writes
// that the edge acknowledged, and all edges delete the application. Once it is shared again, each edge gets all of it, writes, and has it
// after a restart.
func localOnly(t *testing.T, binary string) {
	origin, data := hubOf(t, binary), filepath.Join(t.TempDir(), "origin")
	app, key, _ := owner(t, origin, data, "shared")
	hub := serve(t, origin, data)
	names := photos(t)
	hub.as(t, key).must("POST", "/v2/inputs", object{"inputs": []object{input("at-origin", photo(t, names[0]), "only-the-origin-wrote-this")}})
	answers := func(s *server, id string, want int) func() bool {
		return func() bool {
			status, _, err := s.as(t, key).do("GET", "/v2/inputs/"+id, nil)
			return err == nil && status == want
		}
	}
	way := newLink(t, strings.TrimPrefix(hub.base, "http://"))
	var folders [2]string
	var edges [2]*server
	for i, base := range []string{way.base, hub.base} {
		var enrolment struct{ Token string }
		text := command(t, origin, "edge", "create", "shop", "--apps", app, "--data", data, "--json")
		if err := json.Unmarshal([]byte(text), &enrolment); err != nil {
			t.Fatal(err)
		}
		folders[i] = folder(t, binary)
		edges[i] = serve(t, binary, folders[i], "--origin", base, "--token", enrolment.Token)
		until(t, "the edge has the application", answers(edges[i], "at-origin", 200))
	}

	way.set(true)
	edges[0].as(t, key).must("POST", "/v2/inputs", object{"inputs": []object{input("at-edge", photo(t, names[1]), "north")}})
	until(t, "the other edge has nothing of it", answers(edges[1], "at-edge", 404))
	command(t, origin, "app", "update", app, "--local-only", "--data", data)
	hub.as(t, key).must("POST", "/v2/inputs", object{"inputs": []object{input("secret", photo(t, names[2]), "never-sent-to-an-edge")}})
	way.set(false)
	until(t, "the origin has what the edge wrote", answers(hub, "at-edge", 200))
	for i, edge := range edges {
		until(t, "the application is gone at the edge", answers(edge, "at-origin", 401))
		until(t, "the edge says why", func() bool {
			all := copies(t, binary, folders[i])
			return len(all) == 1 && strings.Contains(all[0].Problem, "local only")
		})
		edge.terminate(t)
		command(t, binary, "doctor", "--data", folders[i])
		if found := find(t, folders[i], []string{"only-the-origin-wrote-this", "never-sent-to-an-edge"}); len(found) > 0 {
			t.Errorf("the folder of edge %d has %q", i, found)
		}
	}

	command(t, origin, "app", "update", app, "--local-only=false", "--data", data)
	for i := range edges { // the first one had written, the second had not
		edge, id := serve(t, binary, folders[i]), fmt.Sprint("later-", i)
		until(t, "the edge has the application again", answers(edge, "secret", 200))
		until(t, "the edge has what the other edge wrote", answers(edge, "at-edge", 200))
		edge.as(t, key).must("POST", "/v2/inputs", object{"inputs": []object{input(id, photo(t, names[3+i]), "north")}})
		until(t, "the origin has what the edge wrote then", answers(hub, id, 200))
		edge.terminate(t)
		edge = serve(t, binary, folders[i])
		until(t, "the edge has the application after a restart", answers(edge, id, 200))
	}
}
