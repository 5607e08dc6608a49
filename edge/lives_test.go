package main_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// living is an origin and an edge of it, which a link connects.
type living struct {
	t            *testing.T
	binary, data string
	app, key     string
	hub, edge    *server
	folder       string // of the edge
	way          *link
}

func newLiving(t *testing.T, binary string) *living {
	t.Helper()
	l := &living{t: t, binary: binary, data: filepath.Join(t.TempDir(), "origin"), folder: folder(t, binary)}
	hub := hubOf(t, binary)
	l.app, l.key, _ = owner(t, hub, l.data, "lives")
	l.hub = serve(t, hub, l.data)
	var enrolment struct{ Token string }
	text := command(t, hub, "edge", "create", "north", "--apps", l.app, "--data", l.data, "--json")
	if err := json.Unmarshal([]byte(text), &enrolment); err != nil {
		t.Fatal(err)
	}
	l.way = newLink(t, strings.TrimPrefix(l.hub.base, "http://"))
	l.edge = serve(t, binary, l.folder, "--origin", l.way.base, "--token", enrolment.Token)
	l.until("the edge is current", func() bool { return copies(t, binary, l.folder)[0].Phase == "current" })
	return l
}

func (l *living) until(condition string, so func() bool) {
	l.t.Helper()
	until(l.t, condition, so)
}

// add has a server take an input, which is one operation.
func (l *living) add(srv *server, id string) {
	l.t.Helper()
	srv.as(l.t, l.key).must("POST", "/v2/inputs", object{"inputs": []object{input(id, photo(l.t, photos(l.t)[0]))}})
}

// has reports whether a server has inputs.
func (l *living) has(srv *server, ids ...string) bool {
	l.t.Helper()
	for _, id := range ids {
		status, _, err := srv.as(l.t, l.key).do("GET", "/v2/inputs/"+id, nil)
		if err != nil || status != http.StatusOK {
			return false
		}
	}
	return true
}

// conflicts are the ids of the inputs that a server lists as conflicts.
func (l *living) conflicts(srv *server) map[string]bool {
	l.t.Helper()
	_, out, err := srv.as(l.t, l.key).do("GET", "/v2/sync/conflicts", nil)
	if err != nil {
		l.t.Fatal(err)
	}
	ids := map[string]bool{}
	all, _ := out["conflicts"].([]any)
	for _, c := range all {
		if at(l.t, c, "verdict") != "refused" || at(l.t, c, "kind") != "input_create" {
			l.t.Errorf("conflict %v", c)
		}
		ids[fmt.Sprint(at(l.t, c, "input_id"))] = true
	}
	return ids
}

// rolledBack has an edge's disk go back to an older image, after which it writes as many operations as the origin has of
// it. No acknowledged write of either timeline is lost, and nothing is listed.
func rolledBack(t *testing.T, binary string) {
	l := newLiving(t, binary)
	l.add(l.edge, "before")
	l.until("the origin has the first", func() bool { return l.has(l.hub, "before") })
	l.edge.terminate(t)
	image := filepath.Join(t.TempDir(), "image")
	if err := os.CopyFS(image, os.DirFS(l.folder)); err != nil {
		t.Fatal(err)
	}
	l.edge = serve(t, binary, l.folder)
	for _, id := range []string{"old-1", "old-2", "old-3"} {
		l.add(l.edge, id)
	}
	l.until("the origin has what follows", func() bool { return l.has(l.hub, "old-1", "old-2", "old-3") })
	l.edge.terminate(t)
	if err := os.Rename(l.folder, l.folder+".new"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(image, l.folder); err != nil {
		t.Fatal(err)
	}
	l.way.set(true)
	l.edge = serve(t, binary, l.folder)
	for _, id := range []string{"new-1", "new-2", "new-3", "new-4"} {
		l.add(l.edge, id)
	}
	if l.has(l.edge, "old-1") {
		t.Fatal("the disk was not rolled back")
	}
	l.way.set(false)
	l.until("the edge has nothing to send", func() bool {
		c := copies(t, binary, l.folder)[0]
		return c.Phase == "current" && c.Pending == 0 && l.has(l.edge, "old-1", "old-2", "old-3")
	})
	for _, srv := range []*server{l.hub, l.edge} {
		for _, id := range []string{"before", "old-1", "old-2", "old-3", "new-1", "new-2", "new-3", "new-4"} {
			if !l.has(srv, id) {
				t.Errorf("%s has no %s", srv.base, id)
			}
		}
	}
	if c := copies(t, binary, l.folder)[0]; c.Conflicts > 0 || c.Problem != "" {
		t.Errorf("the edge reports %+v", c)
	}
}

// restoredEdge restores an edge from its backup while the one that was backed up runs. Both write, and nothing of either is lost or listed.
func restoredEdge(t *testing.T, binary string) {
	l := newLiving(t, binary)
	l.add(l.edge, "before")
	l.until("the origin has the first", func() bool { return l.has(l.hub, "before") })
	backup, restored := filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "restored")
	command(t, binary, "backup", backup, "--data", l.folder, "--quiet")
	if info, err := os.Stat(filepath.Join(backup, "edge.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the credential in the backup: %v, %v", info, err)
	}
	l.add(l.edge, "after")
	l.until("the origin has the second", func() bool { return l.has(l.hub, "after") })
	command(t, binary, "restore", backup, "--data", restored, "--quiet")
	newer := serve(t, binary, restored)
	l.add(newer, "newer")
	l.until("the restored edge has joined", func() bool { return l.has(l.hub, "newer") && l.has(newer, "before", "after") })
	l.add(l.edge, "older")
	all := []string{"before", "after", "newer", "older"}
	l.until("all have what both edges wrote", func() bool { return l.has(l.hub, all...) && l.has(newer, all...) && l.has(l.edge, all...) })
	for _, folder := range []string{l.folder, restored} {
		if c := copies(t, binary, folder)[0]; c.Conflicts > 0 || c.Problem != "" {
			t.Errorf("the edge in %s reports %+v", filepath.Base(folder), c)
		}
	}
	if c := l.conflicts(l.hub); len(c) > 0 {
		t.Errorf("the origin lists %v", c)
	}
}

// restoredOrigin restores an origin from a backup: what an edge wrote since, and was confirmed, comes back, and what it
// deleted stays deleted.
func restoredOrigin(t *testing.T, binary string) {
	l := newLiving(t, binary)
	hub := hubOf(t, binary)
	l.add(l.edge, "first")
	l.until("the origin has the first", func() bool { return l.has(l.hub, "first") })
	backup, restored := filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "restored")
	command(t, hub, "backup", backup, "--data", l.data, "--quiet")
	l.add(l.edge, "second")
	l.edge.as(t, l.key).must("DELETE", "/v2/inputs/first", nil)
	l.until("the edge's writes are confirmed", func() bool {
		return l.has(l.hub, "second") && !l.has(l.hub, "first") && copies(t, binary, l.folder)[0].Pending == 0
	})
	l.hub.terminate(t)
	command(t, hub, "restore", backup, "--data", restored, "--quiet")
	l.hub = serve(t, hub, restored, "--listen", strings.TrimPrefix(l.hub.base, "http://"))
	l.until("the origin has the edge's writes again", func() bool { return l.has(l.hub, "second") && !l.has(l.hub, "first") })
	l.until("the edge has nothing to send", func() bool { return copies(t, binary, l.folder)[0].Pending == 0 })
	if !l.has(l.edge, "second") || l.has(l.edge, "first") || len(l.conflicts(l.edge)) > 0 {
		t.Errorf("the edge lists %v as conflicts", l.conflicts(l.edge))
	}
}

// testTakeBack restores an origin from a backup: what was written at the origin since, and an edge has pulled, comes back with the same places
// in the log, and what was deleted stays deleted. After a second restore the origin is written to before the edge finds it: everything
// comes back behind that, and the origin lists what conflicts with it, with its content.
func testTakeBack(t *testing.T, binary string) {
	l := newLiving(t, binary)
	hub := hubOf(t, binary)
	names := photos(t)
	c := l.hub.as(t, l.key)
	var inputs []object
	for i, name := range names[:8] {
		inputs = append(inputs, input(fmt.Sprintf("in-%d", i), photo(t, name), []string{"north", "south"}[i%2]))
	}
	c.must("POST", "/v2/inputs", object{"inputs": inputs})
	c.settle(8)
	backup := filepath.Join(t.TempDir(), "backup")
	command(t, hub, "backup", backup, "--data", l.data, "--quiet")

	trainAndPredict(t, c, names)
	c.must("POST", "/v2/concepts", object{"concepts": []object{{"id": "late", "name": "late"}}})
	c.must("POST", "/v2/inputs", object{"inputs": []object{input("late", photo(t, names[9]), "late")}})
	c.must("DELETE", "/v2/inputs/in-7", nil)
	l.add(l.edge, "of-edge")
	l.until("the edge has all", func() bool {
		at := copies(t, binary, l.folder)[0]
		return at.Phase == "current" && at.Pending == 0 && l.has(l.edge, "late", "of-edge") && l.has(l.hub, "of-edge") && !l.has(l.edge, "in-7")
	})
	head := copies(t, binary, l.folder)[0].Cursor
	late := photo(t, names[9])
	if l.picture(l.edge, "late") != late { // which the edge has then
		t.Error("the picture at the edge is another")
	}
	isRestored := func(more ...string) bool {
		for _, srv := range []*server{l.hub, l.edge} {
			if !l.has(srv, append(more, "in-0", "late", "of-edge")...) || l.has(srv, "in-7") {
				return false
			}
		}
		at := copies(t, binary, l.folder)[0]
		return at.Phase == "current" && at.Pending == 0
	}
	restore := func(name string) {
		l.way.set(true)
		l.hub.terminate(t)
		data := filepath.Join(t.TempDir(), name)
		command(t, hub, "restore", backup, "--data", data, "--quiet")
		l.data = data
		l.hub = serve(t, hub, data, "--listen", strings.TrimPrefix(l.hub.base, "http://"))
		if l.has(l.hub, "late") || !l.has(l.hub, "in-7") {
			t.Fatal("the backup was not restored")
		}
	}

	restore("first")
	l.way.set(false)
	l.until("everything is back", func() bool { return isRestored() })
	c = l.hub.as(t, l.key)
	if code := at(t, c.must("GET", "/v2/models/halves", nil), "model", "model_version", "status", "code"); code != 21100.0 {
		t.Errorf("the version that was trained is at %v", code)
	}
	c.must("POST", "/v2/models/halves/outputs", object{"inputs": []object{{"data": object{"image": object{"base64": photo(t, names[0])}}}}})
	c.must("GET", "/v2/concepts/late", nil)
	if bytes := l.picture(l.hub, "late"); bytes != late {
		t.Errorf("the picture that came back has %d bytes", len(bytes))
	}
	if x := copies(t, binary, l.folder)[0]; x.Conflicts > 0 || x.Cursor < head {
		t.Errorf("the edge reports %+v, and was at %d", x, head)
	}
	if x := l.listConflicts(l.hub); len(x) > 0 {
		t.Errorf("the origin lists %v", x)
	}
	l.sameDigests()

	restore("second")
	c = l.hub.as(t, l.key)
	c.must("POST", "/v2/inputs", object{"inputs": []object{input("late", photo(t, names[10]), "other"), input("new", photo(t, names[11]))}})
	l.way.set(false)
	l.until("everything is back", func() bool { return isRestored("new") && len(l.listConflicts(l.hub)) > 0 })
	if x := l.listConflicts(l.hub); len(x) != 1 || at(t, x[0], "kind") != "input_create" || at(t, x[0], "input_id") != "late" || !strings.Contains(fmt.Sprint(x[0]), "late") {
		t.Errorf("the origin lists %v", x)
	}
	l.sameDigests()
}

// listConflicts returns the conflicts that a server lists.
func (l *living) listConflicts(srv *server) []any {
	l.t.Helper()
	_, out, err := srv.as(l.t, l.key).do("GET", "/v2/sync/conflicts", nil) // 404 at an origin that has none
	if err != nil {
		l.t.Fatal(err)
	}
	all, _ := out["conflicts"].([]any)
	return all
}

// picture is the picture of an input at a server, as base64.
func (l *living) picture(srv *server, id string) string {
	l.t.Helper()
	image := fmt.Sprint(at(l.t, srv.as(l.t, l.key).must("GET", "/v2/inputs/"+id, nil), "input", "data", "image", "url"))
	res, err := asking.Get(image)
	if err != nil {
		l.t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		l.t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(data)
}

// sameDigests compares the states of the origin and the edge, which stop for it.
func (l *living) sameDigests() {
	l.t.Helper()
	l.edge.terminate(l.t)
	l.hub.terminate(l.t)
	if origin, edge := digestOf(l.t, l.data, l.app), digestOf(l.t, l.folder, l.app); origin != edge {
		l.t.Errorf("digests %s of the origin and %s of the edge", origin, edge)
	}
	l.hub = serve(l.t, hubOf(l.t, l.binary), l.data, "--listen", strings.TrimPrefix(l.hub.base, "http://"))
	l.edge = serve(l.t, l.binary, l.folder)
	l.until("the edge is current", func() bool { return copies(l.t, l.binary, l.folder)[0].Phase == "current" })
}
