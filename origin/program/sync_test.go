package program

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/control"
	"github.com/sightline-dev/sightline/origin/server/data"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// runSyncCommand runs a sync that must exit with code want, and returns its outcome.
func runSyncCommand(t testing.TB, want int, args ...string) outcome {
	t.Helper()
	code, stdout, stderr := runCode(t, append([]string{"sync", "--json", "--timeout", "10s"}, args...)...)
	if code != want {
		t.Fatalf("sync %v = %d\n%s%s", args, code, stdout, stderr)
	}
	var o outcome
	if stdout != "" {
		if err := json.Unmarshal([]byte(stdout), &o); err != nil {
			t.Fatalf("%v: %s", err, stdout)
		}
	}
	return o
}

// digests returns the digests of an application's state at the origin and in a replica's folder.
func digests(t testing.TB, srv *server.Server, app, folder string) (theirs, ours [32]byte) {
	t.Helper()
	id, err := catalog.ParseAppID(app)
	if err != nil {
		t.Fatal(err)
	}
	if theirs, err = fold.Digest(srv.Folder.Store, id); err != nil {
		t.Fatal(err)
	}
	copied, err := data.Open(folder, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if ours, err = fold.Digest(copied.Store, id); err != nil {
		t.Fatal(err)
	}
	if err := copied.Close(); err != nil {
		t.Fatal(err)
	}
	return theirs, ours
}

// TestSyncOfReplica makes a folder a replica, changes it without the server, and syncs again. Then both have the same state.
func TestSyncOfReplica(t *testing.T) {
	srv, base := startOrigin(t, testSettings(t))
	client := own(t)
	apps, err := control.Apps.Do(t.Context(), srv, control.Nothing{})
	if err != nil {
		t.Fatal(err)
	}
	app, folder := apps[0].ID, filepath.Join(t.TempDir(), "copy")
	if code, sent := callInputs(t, client, "POST", base+"/v2/inputs", byBase64(dots(t, 1, 300), dots(t, 2, 300))); code != 200 || len(sent.Inputs) != 2 {
		t.Fatalf("POST /v2/inputs = %d", code)
	}
	to := []string{"--data", folder, "--origin", base, "--key", keyOf(strings.TrimPrefix(base, "http://")), "--name", "laptop"}
	if o := runSyncCommand(t, server.ExitOK, append(to, "--app", app)...); o.Cursor == 0 || o.Cursor != o.Head || o.Got != 2 || o.Pending != 0 {
		t.Errorf("first sync: %+v", o)
	}

	pictures := t.TempDir()
	if err := os.WriteFile(filepath.Join(pictures, "three.jpg"), dots(t, 3, 300), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := runCode(t, "import", pictures, "--data", folder, "--quiet"); code != server.ExitOK {
		t.Fatalf("import into the copy = %d\n%s%s", code, out, errs)
	}
	if o := runSyncCommand(t, server.ExitOK, to...); o.Confirmed == 0 || o.Pending != 0 || o.Sent != 1 || len(o.Conflicts) != 0 {
		t.Errorf("second sync: %+v", o)
	}
	if _, all := callInputs(t, client, "GET", base+"/v2/inputs/status", nil); all.Counts.Processed != 3 {
		t.Errorf("the origin has %+v", all.Counts)
	}
	if theirs, ours := digests(t, srv, app, folder); theirs != ours {
		t.Errorf("digests %x and %x", theirs, ours)
	}
	edge, err := control.CreateEdge.Do(t.Context(), srv, control.NewEdge{Name: "cabin", Apps: []string{app}})
	if err != nil {
		t.Fatal(err)
	}
	origin, err := srv.Engine.(native).Origin(app)
	if err != nil {
		t.Fatal(err)
	}
	head := origin.Log().Head()
	want := []string{
		fmt.Sprintf("origin at %d with contact", head), fmt.Sprintf("edge cabin %s at 0", edge.Record.ID), fmt.Sprintf("folder laptop at %d with contact", head),
	}
	if diff := cmp.Diff(want, devicesAt(t, client, base)); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
	if o := runSyncCommand(t, server.ExitOK, to...); o.Pulled != 0 || o.Sent != 0 || o.Got != 0 {
		t.Errorf("a sync with nothing to do: %+v", o)
	}
}

// devicesAt returns the devices that a server lists, one line each.
func devicesAt(t testing.TB, client *http.Client, base string) (lines []string) {
	t.Helper()
	res, err := client.Get(base + "/v2/sync/devices")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var got struct {
		Devices []struct {
			ID, Name, Kind, Contact string
			Position                uint64
		}
	}
	if err := json.NewDecoder(res.Body).Decode(&got); err != nil || res.StatusCode != 200 {
		t.Fatalf("GET /v2/sync/devices = %d, %v", res.StatusCode, err)
	}
	for _, d := range got.Devices {
		line := d.Kind
		if d.Kind != "origin" {
			line += " " + d.Name
		}
		if d.Kind == "edge" {
			line += " " + d.ID
		}
		line += fmt.Sprintf(" at %d", d.Position)
		if d.Contact != "" {
			line += " with contact"
		}
		lines = append(lines, line)
	}
	return lines
}

// TestSyncListsContradictions labels a picture at the origin and in a folder without contact. The next sync lists both labels and ends with
// ExitPartial, later ones list them until somebody decides, and --dismiss decides nothing.
func TestSyncListsContradictions(t *testing.T) {
	srv, base := startOrigin(t, testSettings(t))
	client := own(t)
	apps, err := control.Apps.Do(t.Context(), srv, control.Nothing{})
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "copy")
	_, sent := callInputs(t, client, "POST", base+"/v2/inputs", byBase64(dots(t, 1, 300)))
	to := []string{"--data", folder, "--origin", base, "--key", keyOf(strings.TrimPrefix(base, "http://"))}
	runSyncCommand(t, server.ExitOK, append(to, "--app", apps[0].ID)...)
	label := func(value int) string {
		return fmt.Sprintf(`{"action":"merge","inputs":[{"id":%q,"data":{"concepts":[{"id":"town","value":%d}]}}]}`, sent.Inputs[0].ID, value)
	}
	if code, _ := callInputs(t, client, "PATCH", base+"/v2/inputs", json.RawMessage(label(1))); code != 200 {
		t.Fatalf("PATCH at the origin = %d", code)
	}
	if code, answer := inCopy(t, folder, "PATCH", "/v2/inputs", label(0)); code != 200 {
		t.Fatalf("PATCH in the folder = %d %s", code, answer)
	}
	o := runSyncCommand(t, server.ExitPartial, to...)
	if len(o.Conflicts) != 1 || o.Conflicts[0].Field != "label" || strings.Count(string(o.Conflicts[0].Values), `"value"`) != 2 {
		t.Errorf("the sync lists %+v, want both labels", o.Conflicts)
	}
	if o = runSyncCommand(t, server.ExitOK, append(to, "--dismiss")...); len(o.Conflicts) != 1 || o.Pending != 0 {
		t.Errorf("the next sync: %+v, want the same contradiction and nothing pending", o)
	}
	if _, out, errs := runCode(t, append([]string{"sync", "--timeout", "10s"}, to...)...); !strings.Contains(out+errs, "label of input") {
		t.Errorf("the sync prints %q and %q", out, errs)
	}
	inCopy(t, folder, "DELETE", "/v2/sync/conflicts/"+o.Conflicts[0].ID, "")
	if o = runSyncCommand(t, server.ExitOK, to...); len(o.Conflicts) != 0 {
		t.Errorf("after the decision the sync lists %+v", o.Conflicts)
	}
}

// TestSyncRefusals: sync reports a fault at once, or after its timeout, and loses nothing.
func TestSyncRefusals(t *testing.T) {
	_, base := startOrigin(t, testSettings(t))
	key := keyOf(strings.TrimPrefix(base, "http://"))
	dir := t.TempDir()
	for name, tt := range map[string]struct {
		args    []string
		code    int
		message string
	}{
		"no folder":      {[]string{"--origin", base, "--key", key}, server.ExitUsage, "--data"},
		"no origin":      {[]string{"--data", dir, "--key", key}, server.ExitUsage, "--origin"},
		"no key":         {[]string{"--data", dir, "--origin", base}, server.ExitUsage, "--key"},
		"bad origin":     {[]string{"--data", dir, "--origin", "nowhere", "--key", key}, server.ExitUsage, "--origin"},
		"both":           {[]string{"--data", dir, "--origin", base, "--key", key, "--once", "--watch"}, server.ExitUsage, "--once"},
		"no app":         {[]string{"--data", dir, "--origin", base, "--key", key}, server.ExitUsage, "--app"},
		"pictures":       {[]string{"--data", dir, "--origin", base, "--key", key, "--pictures", "some"}, server.ExitUsage, "--pictures"},
		"another app":    {[]string{"--data", dir, "--origin", base, "--key", key, "--app", strings.Repeat("ab", 16)}, server.ExitFailed, base},
		"a wrong key":    {[]string{"--data", dir, "--origin", base, "--key", strings.Repeat("ab", 16), "--app", strings.Repeat("ab", 16)}, server.ExitFailed, base},
		"nobody listens": {[]string{"--data", dir, "--origin", "http://127.0.0.1:1", "--key", key, "--app", strings.Repeat("ab", 16)}, server.ExitFailed, "127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := runCode(t, append([]string{"sync"}, tt.args...)...)
			if code != tt.code || !strings.Contains(errs, tt.message) {
				t.Errorf("sync = %d\n%s%s", code, out, errs)
			}
		})
	}
}

// inCopy makes one call on a replica, through the process that has its folder open.
func inCopy(t testing.TB, folder, method, path, body string) (status int, answer []byte) {
	t.Helper()
	env := server.Env{Environ: func() []string { return nil }, Options: New().Server}
	f, done, err := server.Attach(t.Context(), folder, &env, server.Use{Background: true})
	if err != nil {
		t.Fatal(err)
	}
	apps, err := control.Apps.Do(t.Context(), f, control.Nothing{})
	if err != nil || len(apps) != 1 {
		t.Fatalf("applications = %v, %v", apps, err)
	}
	path, query, _ := strings.Cut(path, "?")
	res, err := f.Call(t.Context(), apps[0].ID, &api.Request{Method: method, Path: path, Query: query, Body: []byte(body)})
	if err := errors.Join(err, done()); err != nil {
		t.Fatal(err)
	}
	return res.Status, res.Body
}

// TestSyncReportsConflicts: a change of an input that was deleted at the origin meanwhile is reported once as news, and stored.
func TestSyncReportsConflicts(t *testing.T) {
	srv, base := startOrigin(t, testSettings(t))
	client := own(t)
	apps, err := control.Apps.Do(t.Context(), srv, control.Nothing{})
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "copy")
	code, sent := callInputs(t, client, "POST", base+"/v2/inputs", byBase64(dots(t, 1, 300)))
	if code != 200 {
		t.Fatalf("POST /v2/inputs = %d", code)
	}
	id := sent.Inputs[0].ID
	to := []string{"--data", folder, "--origin", base, "--key", keyOf(strings.TrimPrefix(base, "http://"))}
	runSyncCommand(t, server.ExitOK, append(to, "--app", apps[0].ID)...)
	deletion, err := http.NewRequestWithContext(t.Context(), "DELETE", base+"/v2/inputs/"+id, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Do(deletion)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	for name, want := range map[string]string{
		"X-Sightline-Durability": "origin", "X-Sightline-Operations": "",
		"Access-Control-Expose-Headers": "X-Request-Id, Retry-After, X-Sightline-Calls-Left, X-Sightline-Durability, X-Sightline-Operations, X-Sightline-Notice",
	} {
		if got := res.Header.Get(name); res.StatusCode != 200 || got != want {
			t.Errorf("DELETE = %d, %s: %q, want %q", res.StatusCode, name, got, want)
		}
	}
	if code, answer := inCopy(t, folder, "PATCH", "/v2/inputs", `{"inputs":[{"id":"`+id+`","data":{"concepts":[{"id":"spotted","value":true}]}}],"action":"merge"}`); code != 200 {
		t.Fatalf("PATCH in the copy = %d %s", code, answer)
	}
	if code, answer := inCopy(t, folder, "GET", "/v2/sync/outbox", ""); code != 200 || !strings.Contains(string(answer), `"state":"queued"`) {
		t.Errorf("outbox of the copy: %d %s", code, answer)
	}
	for i, want := range []int{server.ExitPartial, server.ExitOK, server.ExitOK} {
		if i == 2 {
			to = append(to, "--dismiss")
		}
		o := runSyncCommand(t, want, to...)
		if len(o.Conflicts) != 1 || o.Conflicts[0].Verdict != "gone" || o.Conflicts[0].Kind != "input_labels" || o.Conflicts[0].Input != id || string(o.Conflicts[0].Content) != `{"concepts":[{"id":"spotted","name":"spotted","value":1}]}` || o.Pending != 0 {
			t.Errorf("sync %d: %+v", i, o)
		}
	}
	if o := runSyncCommand(t, server.ExitOK, to...); len(o.Conflicts) != 0 {
		t.Errorf("after they were dismissed: %+v", o)
	}
	for _, path := range []string{"status", "outbox"} {
		code, kind, answer := get(t, client, base+"/v2/sync/"+path)
		if code != 404 || kind != "application/json; charset=UTF-8" || !strings.Contains(string(answer), "is not a replica") {
			t.Errorf("%s at the origin: %d %s %s", path, code, kind, answer)
		}
	}
}

// TestSyncOfADeletedApplication: sync removes an application from the replica after it was deleted at the origin. A key of another
// application removes nothing.
func TestSyncOfADeletedApplication(t *testing.T) {
	srv, base := startOrigin(t, testSettings(t))
	ctx := t.Context()
	newApp, err := control.CreateApp.Do(ctx, srv, register.NewApp{Name: "short-lived", Language: "en"})
	if err != nil {
		t.Fatal(err)
	}
	app := newApp.App.ID
	key, err := control.CreateKey.Do(ctx, srv, register.NewKey{App: app, Scopes: []string{"All"}, Description: "copy"})
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "copy")
	runSyncCommand(t, server.ExitOK, "--data", folder, "--origin", base, "--key", key.Key, "--app", app)
	other := keyOf(strings.TrimPrefix(base, "http://"))
	runSyncCommand(t, server.ExitFailed, "--data", folder, "--origin", base, "--key", other)
	if code, answer := inCopy(t, folder, "GET", "/v2/inputs/status", ""); code != 200 {
		t.Fatalf("after a sync with another application's key the copy answers %d %s", code, answer)
	}
	if _, err := control.DeleteApp.Do(ctx, srv, control.ID{ID: app}); err != nil {
		t.Fatal(err)
	}
	runSyncCommand(t, server.ExitFailed, "--data", folder, "--origin", base, "--key", key.Key)
	code, out, errs := runCode(t, "app", "list", "--data", folder)
	if code != server.ExitOK || strings.Contains(out, app) {
		t.Errorf("app list = %d\n%s%s", code, out, errs)
	}
}

// TestSyncWatches: while sync watches, a change on one side soon reaches the other, and other commands can use the replica. When the
// context ends, sync exits without an error.
func TestSyncWatches(t *testing.T) {
	srv, base := startOrigin(t, testSettings(t))
	client := own(t)
	apps, err := control.Apps.Do(t.Context(), srv, control.Nothing{})
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "copy")
	ctx, stop := contextThatEnds(t)
	ended := make(chan int)
	go func() {
		ended <- cli.Run(ctx, New(), server.Env{
			Args:  []string{"sync", "--watch", "--data", folder, "--origin", base, "--key", keyOf(strings.TrimPrefix(base, "http://")), "--app", apps[0].ID},
			Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard, Environ: func() []string { return nil },
		})
	}()
	soon := func(condition string, is func() bool) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); !is(); {
			if time.Now().After(end) {
				t.Fatalf("%s: not within 30 s", condition)
			}
			system.Pause(t.Context(), 20*time.Millisecond)
		}
	}
	soon("the folder", func() bool {
		_, err := os.Stat(filepath.Join(folder, control.Socket))
		return err == nil
	})
	if code, _ := callInputs(t, client, "POST", base+"/v2/inputs", byBase64(dots(t, 1, 300))); code != 200 {
		t.Fatalf("POST /v2/inputs = %d", code)
	}
	count := func() int {
		var in inputs
		_, answer := inCopy(t, folder, "GET", "/v2/inputs/status", "")
		if err := json.Unmarshal(answer, &in); err != nil {
			t.Fatal(err)
		}
		return in.Counts.Processed
	}
	soon("the copy", func() bool {
		_, out, _ := runCode(t, "app", "list", "--data", folder)
		return strings.Contains(out, apps[0].ID)
	})
	soon("the origin's picture in the copy", func() bool { return count() == 1 })
	picture := filepath.Join(t.TempDir(), "two.jpg")
	if err := os.WriteFile(picture, dots(t, 2, 300), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := runCode(t, "import", filepath.Dir(picture), "--data", folder, "--quiet"); code != server.ExitOK {
		t.Fatalf("import = %d\n%s%s", code, out, errs)
	}
	soon("the copy's picture at the origin", func() bool {
		_, all := callInputs(t, client, "GET", base+"/v2/inputs/status", nil)
		return all.Counts.Processed == 2
	})
	soon("the copy tells that it has all", func() bool {
		code, answer := inCopy(t, folder, "GET", "/v2/sync/status", "")
		return code == 200 && strings.Contains(string(answer), `"origin":"`+base+`","phase":"current"`) && strings.Contains(string(answer), `"queued":0,"sent":0,"conflicts":0`)
	})
	stop()
	if code := <-ended; code != server.ExitOK {
		t.Errorf("sync --watch = %d", code)
	}
	runSyncCommand(t, server.ExitOK, "--data", folder, "--origin", base, "--key", keyOf(strings.TrimPrefix(base, "http://")))
	if theirs, ours := digests(t, srv, apps[0].ID, folder); theirs != ours {
		t.Errorf("digests %x and %x", theirs, ours)
	}
}
