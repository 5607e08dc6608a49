package program

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/origin/server/account"
	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/control"
)

// madeEdge is the output of 'edge create --json'.
type madeEdge struct {
	Token string   `json:"token"`
	ID    string   `json:"edge_id"`
	Name  string   `json:"name"`
	Apps  []string `json:"app_ids"`
}

// listEdges returns the output of 'edge list --json'.
func listEdges(t *testing.T, dir string) (edges []control.Edge) {
	t.Helper()
	lines := json.NewDecoder(strings.NewReader(mustRun(t, "edge", "list", "--data", dir, "--json")))
	for lines.More() {
		var e control.Edge
		if err := lines.Decode(&e); err != nil {
			t.Fatal(err)
		}
		edges = append(edges, e)
	}
	return edges
}

// TestEdgeCommands creates, lists and revokes edges in a folder that no process has open and in a server's folder.
func TestEdgeCommands(t *testing.T) {
	testkit.SkipRace(t)
	s := testSettings(t)
	var a, b createOutput
	decode(t, mustRun(t, "app", "create", "a", "--data", s.Data, "--json"), &a)

	alone := strings.TrimSpace(mustRun(t, "edge", "create", "attic", "--data", s.Data))
	if len(alone) != 64 {
		t.Errorf("the token is %q", alone)
	}
	decode(t, mustRun(t, "app", "create", "b", "--data", s.Data, "--json"), &b)
	srv, _ := startOrigin(t, s)
	var edge madeEdge
	decode(t, mustRun(t, "edge", "create", "cellar", "--apps", a.AppID+","+b.AppID, "--data", s.Data, "--json"), &edge)
	want := []string{a.AppID, b.AppID}
	slices.Sort(want)
	if edge.Name != "cellar" || !slices.Equal(edge.Apps, want) || len(edge.Token) != 64 || len(edge.ID) != 32 {
		t.Errorf("made %+v", edge)
	}
	if _, err := srv.Engine.(native).Register.EnrolEdge(t.Context(), edge.Token, [32]byte{1}); err != nil {
		t.Fatal(err)
	}
	all := listEdges(t, s.Data)
	if len(all) != 2 || all[0].Name != "attic" || all[0].Site != 0 || !all[0].Enrolled.IsZero() || all[1].Site != 2 || all[1].Enrolled.IsZero() {
		t.Errorf("edges %+v", all)
	}
	if table := mustRun(t, "edge", "list", "--data", s.Data); !strings.Contains(table, "not enrolled") || !strings.Contains(table, "enrolled 20") {
		t.Errorf("edges\n%s", table)
	}

	if output := mustRun(t, "edge", "revoke", edge.ID[:8], "--data", s.Data); output != "revoked "+edge.ID+", cellar\n" {
		t.Errorf("revoke says %q", output)
	}
	if e, err := srv.Register.Edge(edge.ID); err != nil || e.Revoked == 0 || e.Replicates(a.AppID) {
		t.Errorf("the server has %+v, %v", e, err)
	}
	events, err := srv.Accounts.Events(account.ByOperator, 0, 4)
	if err != nil || len(events) != 4 {
		t.Fatalf("events %+v, %v", events, err)
	}
	for i, e := range events { // the newest first
		action := []account.Action{"edge.revoke", "edge.create"}[i/2]
		if target := edge.Apps[1-i%2] + "/" + edge.ID; e.Action != action || e.Target != target {
			t.Errorf("event %d is %s of %s, want %s of %s", i, e.Action, e.Target, action, target)
		}
	}
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	var revoked control.Edge
	decode(t, mustRun(t, "edge", "revoke", edge.ID, "--data", s.Data, "--json"), &revoked)
	if revoked.ID != edge.ID || revoked.Revoked.IsZero() {
		t.Errorf("revoked again %+v", revoked)
	}
	checkSecretsAbsent(t, s.Data, alone, edge.Token)
}

// TestEdgesNeedAVerifiedAccount creates an edge for an account with a verified email address. An account without one cannot create an edge.
func TestEdgesNeedAVerifiedAccount(t *testing.T) {
	s := testSettings(t)
	srv, base := startOrigin(t, s)
	op, ada := visit(t, base), visit(t, base)
	op.must("POST", "/accounts", cli.Object{"name": "Op", "email": "op@x.example", "password": aPassword, "setup": setup(t, srv)})
	ada.must("POST", "/accounts", cli.Object{"name": "Ada", "email": "ada@x.example", "password": aPassword})
	for owner, want := range map[*visitor]string{op: "", ada: "must verify its email address"} {
		app := owner.must("POST", "/apps", cli.Object{"name": "Birds", "language": "en", "default_model": ""}).App.ID
		code, out, stderr := runCode(t, "edge", "create", "attic", "--apps", app, "--data", s.Data)
		if (code == 0) != (want == "") || (out == "") != (want != "") || !strings.Contains(stderr, want) {
			t.Errorf("edge create ends with %d and says %q %q, want %q", code, out, stderr, want)
		}
	}
	if edges := listEdges(t, s.Data); len(edges) != 1 {
		t.Errorf("edges %+v, want the operator's", edges)
	}
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
}

// checkSecretsAbsent checks that no file of a folder contains one of the secrets.
func checkSecretsAbsent(t *testing.T, dir string, secrets ...string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		for _, secret := range secrets {
			if bytes.Contains(data, []byte(secret)) {
				t.Errorf("%s has a token in it", path)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestEdgeMistakes(t *testing.T) {
	testkit.SkipRace(t)
	dir := filepath.Join(t.TempDir(), "data")
	var app createOutput
	decode(t, mustRun(t, "app", "create", "x", "--data", dir, "--json"), &app)
	mustRun(t, "app", "create", "y", "--data", dir)
	mustRun(t, "edge", "create", "one", "--apps", app.AppID, "--data", dir)
	for _, tt := range []struct {
		args    []string
		code    int
		message string
	}{
		{[]string{"edge", "create", "x"}, 2, "--data is required"},
		{[]string{"edge", "create", "--data", dir}, 2, "expected one argument: the name"},
		{[]string{"edge", "create", "x", "--data", dir}, 2, "--apps is required"},
		{[]string{"edge", "create", "", "--apps", app.AppID, "--data", dir}, 2, "must have 1 to"},
		{[]string{"edge", "create", "x", "--apps", strings.Repeat("0", 32), "--data", dir}, 2, "no such application"},
		{[]string{"edge", "create", "x", "--apps", app.AppID + ",", "--data", dir}, 2, "no such application"},
		{[]string{"edge", "make"}, 2, "unknown command"},
		{[]string{"edge", "revoke", "--data", dir}, 2, "expected one argument: the edge_id"},
		{[]string{"edge", "revoke", "attic", "--data", dir}, 2, "not an edge ID"},
		{[]string{"edge", "revoke", strings.Repeat("f", 32), "--data", dir}, 2, "no edge with ID"},
		{[]string{"edge", "revoke", strings.Repeat("f", 64), "--data", dir}, 2, "not an edge ID"},
		{[]string{"edge", "list", "--data", dir + "x"}, 1, "does not exist"},
	} {
		code, stdout, stderr := runCode(t, tt.args...)
		if code != tt.code || !strings.Contains(stderr, tt.message) || stdout != "" || strings.Contains(stderr, strings.Repeat("f", 64)) {
			t.Errorf("%q: exit code %d, %q, %q; want %d and %q", tt.args, code, stdout, stderr, tt.code, tt.message)
		}
	}
	if all := listEdges(t, dir); len(all) != 1 || all[0].Name != "one" {
		t.Errorf("edges %+v", all)
	}
}

func TestChosenEdge(t *testing.T) {
	edges := []control.Edge{{ID: "0123456789abcdef" + strings.Repeat("0", 16)}, {ID: "0123456789abcdef" + strings.Repeat("1", 16)}}
	for text, want := range map[string]int{"0123456789abcdef0": 0, " 0123456789ABCDEF1 ": 1} {
		if e, err := chosenEdge(edges, text); err != nil || e.ID != edges[want].ID {
			t.Errorf("%q: %+v, %v", text, e, err)
		}
	}
	for _, text := range []string{"01234567", "0123456", "", "01234567890"} {
		if e, err := chosenEdge(edges, text); err == nil {
			t.Errorf("%q: %+v", text, e)
		}
	}
}
