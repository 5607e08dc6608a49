package program

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/control"
)

// TestLocalOnly: `sightline sync` gets nothing of a local-only application. A folder that has it sends what was written there and is
// emptied, and gets all of it when the application is shared again. Exports and backups contain it.
func TestLocalOnly(t *testing.T) {
	s := testSettings(t)
	srv, base := startOrigin(t, s)
	client := own(t)
	apps, err := control.Apps.Do(t.Context(), srv, control.Nothing{})
	if err != nil {
		t.Fatal(err)
	}
	app, folder := apps[0].ID, filepath.Join(t.TempDir(), "copy")
	if code, _ := callInputs(t, client, "POST", base+"/v2/inputs", byBase64(dots(t, 1, 300))); code != 200 {
		t.Fatalf("POST /v2/inputs = %d", code)
	}
	to := []string{"--data", folder, "--origin", base, "--key", keyOf(strings.TrimPrefix(base, "http://")), "--app", app}
	runSyncCommand(t, server.ExitOK, to...)
	pictures := t.TempDir()
	if err := os.WriteFile(filepath.Join(pictures, "two.jpg"), dots(t, 2, 300), 0o600); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "import", pictures, "--data", folder, "--quiet")
	if got := mustRun(t, "app", "update", app, "--local-only", "--data", s.Data, "--json"); !strings.Contains(got, `"local_only":true`) {
		t.Errorf("app update prints %s", got)
	}

	code, _, errs := runCode(t, append([]string{"sync"}, to...)...)
	if code != server.ExitFailed || !strings.Contains(errs, "local only") {
		t.Errorf("sync = %d %s", code, errs)
	}
	if _, all := callInputs(t, client, "GET", base+"/v2/inputs/status", nil); all.Counts.Processed != 2 {
		t.Errorf("the origin has %+v, want what was written in the copy too", all.Counts)
	}
	checkNoApp := func(folder string) {
		t.Helper()
		if list := mustRun(t, "app", "list", "--data", folder, "--json"); strings.Contains(list, app) {
			t.Errorf("the folder holds %s", list)
		}
	}
	checkNoApp(folder)
	another := filepath.Join(t.TempDir(), "another")
	if code, _, errs := runCode(t, "sync", "--data", another, "--origin", base, "--key", to[5], "--app", app); code != server.ExitFailed || !strings.Contains(errs, "local only") {
		t.Errorf("a first sync = %d %s", code, errs)
	}
	checkNoApp(another)

	backup, restored := filepath.Join(t.TempDir(), "backup.zip"), filepath.Join(t.TempDir(), "restored")
	mustRun(t, "backup", backup, "--data", s.Data, "--quiet")
	mustRun(t, "restore", backup, "--data", restored, "--quiet")
	if list := mustRun(t, "app", "list", "--data", restored, "--json"); !strings.Contains(list, `"local_only":true`) {
		t.Errorf("the backup has %s", list)
	}
	export := filepath.Join(t.TempDir(), "export")
	mustRun(t, "export", export, "--app", app, "--data", s.Data, "--quiet")
	if found, err := filepath.Glob(filepath.Join(export, "pictures", "*")); err != nil || len(found) != 2 {
		t.Errorf("the export has the pictures %v, %v", found, err)
	}

	mustRun(t, "app", "update", app, "--local-only=false", "--data", s.Data)
	if o := runSyncCommand(t, server.ExitOK, to...); o.Cursor == 0 || o.Cursor != o.Head || o.Got != 2 {
		t.Errorf("a sync once it is shared again: %+v", o)
	}
	if theirs, ours := digests(t, srv, app, folder); theirs != ours {
		t.Errorf("digests %x and %x", theirs, ours)
	}
}
