package main_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/origin/control"
	"github.com/sightline-dev/sightline/wasm/built"
)

// runs is what an edge says of its module.
func runs(t testing.TB, binary, data string) control.Module {
	t.Helper()
	var s control.Status
	if err := json.Unmarshal([]byte(command(t, binary, "status", "--data", data, "--json")), &s); err != nil {
		t.Fatal(err)
	}
	if s.Module == nil {
		return control.Module{}
	}
	return *s.Module
}

// released has an edge follow the modules that its origin releases: to another one while it serves, on with that
// when the origin is gone, and back to its own when the origin is.
func released(t *testing.T, binary string) {
	origin, data := hubOf(t, binary), filepath.Join(t.TempDir(), "origin")
	app, key, _ := owner(t, origin, data, "released")
	release := func(name string, module []byte) (file, hash string) {
		file = filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, module, 0o600); err != nil {
			t.Fatal(err)
		}
		return file, fmt.Sprintf("%x", sha256.Sum256(module))
	}
	own, ownHash := release("own.wasm", built.Guest(t))
	another, hash := release("other.wasm", other(built.Guest(t)))
	hub := serve(t, origin, data, "--edge-module", another)
	hub.as(t, key).must("POST", "/v2/inputs", object{"inputs": []object{input("before", photo(t, photos(t)[0]))}})
	var made struct{ Token string }
	if err := json.Unmarshal([]byte(command(t, origin, "edge", "create", "follower", "--apps", app, "--data", data, "--json")), &made); err != nil {
		t.Fatal(err)
	}

	where := folder(t, binary)
	edge := serve(t, binary, where, "--origin", hub.base, "--token", made.Token)
	until(t, "the edge runs the module that its origin has released", func() bool {
		m := runs(t, binary, where)
		return m.SHA256 == hash && !m.BuiltIn && !m.Deadlines && m.Release != nil && m.Release.Version > 0 && m.Release.Problem == ""
	})
	version := runs(t, binary, where).Release.Version
	until(t, "the edge answers with it", func() bool { return strings.Contains(edge.as(t, key).holds(), `"before"`) })
	if text := command(t, binary, "status", "--data", where); !strings.Contains(text, fmt.Sprintf("stable %d, of program", version)) {
		t.Errorf("status says\n%s", text)
	}

	hub.terminate(t)
	edge.terminate(t)
	edge = serve(t, binary, where)
	if m := runs(t, binary, where); m.SHA256 != hash || m.Compiled {
		t.Errorf("alone after a start it runs %+v, want %s, compiled before", m, hash)
	}
	edge.terminate(t)

	hub = serve(t, origin, data, "--listen", strings.TrimPrefix(hub.base, "http://"), "--edge-module", own)
	edge = serve(t, binary, where)
	until(t, "the edge runs its own module again", func() bool {
		m := runs(t, binary, where)
		return m.SHA256 == ownHash && m.BuiltIn && m.Release.Version > version
	})
	edge.as(t, key).must("GET", "/v2/inputs/before", nil)
	edge.terminate(t)
	edge = serve(t, binary, where, "--releases", "off")
	if m := runs(t, binary, where); m.SHA256 != ownHash || m.Release != nil {
		t.Errorf("with --releases off it runs %+v", m)
	}
	edge.terminate(t)
	hub.terminate(t)
}
