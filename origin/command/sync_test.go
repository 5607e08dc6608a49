package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/origin/data"
)

// synced runs a sync and returns what it tells.
func synced(t testing.TB, want int, args ...string) outcome {
	t.Helper()
	code, stdout, stderr := runCode(t, append([]string{"sync", "--json", "--patience", "10s"}, args...)...)
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

// digests are those of an application's state at the origin and in a copy's folder.
func digests(t testing.TB, srv *Server, app, folder string) (theirs, ours [32]byte) {
	t.Helper()
	id, err := catalog.ParseAppID(app)
	if err != nil {
		t.Fatal(err)
	}
	if theirs, err = fold.Digest(srv.folder.Store, id); err != nil {
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

// TestSyncCopies: a folder becomes a copy, is worked on without the server, and both agree again.
func TestSyncCopies(t *testing.T) {
	srv, base := startOrigin(t, testSettings(t))
	client := own(t)
	apps, err := srv.Apps(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	app, folder := apps[0].ID, filepath.Join(t.TempDir(), "copy")
	if code, sent := callInputs(t, client, "POST", base+"/v2/inputs", byBase64(dots(t, 1, 300), dots(t, 2, 300))); code != 200 || len(sent.Inputs) != 2 {
		t.Fatalf("POST /v2/inputs = %d", code)
	}
	to := []string{"--data", folder, "--origin", base, "--key", keyOf(strings.TrimPrefix(base, "http://"))}
	if o := synced(t, exitOK, append(to, "--app", app)...); o.Cursor == 0 || o.Cursor != o.Head || o.Got != 2 || o.Pending != 0 {
		t.Errorf("first sync: %+v", o)
	}

	pictures := t.TempDir()
	if err := os.WriteFile(filepath.Join(pictures, "three.jpg"), dots(t, 3, 300), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := runCode(t, "import", pictures, "--data", folder, "--quiet"); code != exitOK {
		t.Fatalf("import into the copy = %d\n%s%s", code, out, errs)
	}
	if o := synced(t, exitOK, to...); o.Confirmed == 0 || o.Pending != 0 || o.Sent != 1 || len(o.Conflicts) != 0 {
		t.Errorf("second sync: %+v", o)
	}
	if _, all := callInputs(t, client, "GET", base+"/v2/inputs/status", nil); all.Counts.Processed != 3 {
		t.Errorf("the origin has %+v", all.Counts)
	}
	if theirs, ours := digests(t, srv, app, folder); theirs != ours {
		t.Errorf("digests %x and %x", theirs, ours)
	}
	if o := synced(t, exitOK, to...); o.Pulled != 0 || o.Sent != 0 || o.Got != 0 {
		t.Errorf("a sync with nothing to do: %+v", o)
	}
}

// TestSyncRefusals: what is wrong is said at once, or after the patience, and nothing is lost.
func TestSyncRefusals(t *testing.T) {
	_, base := startOrigin(t, testSettings(t))
	key := keyOf(strings.TrimPrefix(base, "http://"))
	dir := t.TempDir()
	for name, tt := range map[string]struct {
		args []string
		code int
		say  string
	}{
		"no folder":      {[]string{"--origin", base, "--key", key}, exitUsage, "--data"},
		"no origin":      {[]string{"--data", dir, "--key", key}, exitUsage, "--origin"},
		"no key":         {[]string{"--data", dir, "--origin", base}, exitUsage, "--key"},
		"bad origin":     {[]string{"--data", dir, "--origin", "nowhere", "--key", key}, exitUsage, "--origin"},
		"both":           {[]string{"--data", dir, "--origin", base, "--key", key, "--once", "--watch"}, exitUsage, "--once"},
		"no app":         {[]string{"--data", dir, "--origin", base, "--key", key}, exitUsage, "--app"},
		"pictures":       {[]string{"--data", dir, "--origin", base, "--key", key, "--pictures", "some"}, exitUsage, "--pictures"},
		"another app":    {[]string{"--data", dir, "--origin", base, "--key", key, "--app", strings.Repeat("ab", 16)}, exitFailed, base},
		"a wrong key":    {[]string{"--data", dir, "--origin", base, "--key", strings.Repeat("ab", 16), "--app", strings.Repeat("ab", 16)}, exitFailed, base},
		"nobody listens": {[]string{"--data", dir, "--origin", "http://127.0.0.1:1", "--key", key, "--app", strings.Repeat("ab", 16)}, exitFailed, "127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			code, out, errs := runCode(t, append([]string{"sync"}, tt.args...)...)
			if code != tt.code || !strings.Contains(errs, tt.say) || time.Since(start) > 20*time.Second {
				t.Errorf("sync = %d after %v\n%s%s", code, time.Since(start), out, errs)
			}
		})
	}
}
