package program

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/origin/server"
)

// mustRun runs a command that must succeed, and returns its output.
func mustRun(t testing.TB, args ...string) string {
	t.Helper()
	code, stdout, stderr := runCode(t, args...)
	if code != 0 {
		t.Fatalf("sightline %s: exit code %d\n%s%s", strings.Join(args, " "), code, stdout, stderr)
	}
	return stdout
}

func decode(t testing.TB, text string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
}

// createOutput is the output of app create and key create.
type createOutput struct {
	AppID string `json:"app_id"`
	Key   string
}

func TestAppAndKeyWithAndWithoutAServer(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	var first, second, key1, key2 createOutput
	decode(t, mustRun(t, "app", "create", "birds", "--language", "de", "--data", data, "--json"), &first)
	decode(t, mustRun(t, "key", "create", "--app", first.AppID, "--scopes", "All", "--data", data, "--json"), &key1)

	s := testSettings(t)
	s.Data = data
	_, base := startOrigin(t, s) // the folder has a key, so the server creates no other application
	decode(t, mustRun(t, "app", "create", "bees", "--data", data, "--json"), &second)
	decode(t, mustRun(t, "key", "create", "--app", second.AppID, "--scopes", "Predict,Inputs:Get", "--data", data, "--json"), &key2)
	if len(first.AppID) != 32 || len(second.AppID) != 32 || len(key1.Key) != 32 || len(key2.Key) != 32 {
		t.Errorf("made %+v %+v %+v %+v", first, second, key1, key2)
	}
	for _, key := range []string{key1.Key, key2.Key} {
		req, err := http.NewRequest("GET", base+"/v2/inputs", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Key "+key)
		res, err := own(t).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != 200 {
			t.Errorf("key %s: %d", key, res.StatusCode)
		}
	}
	if list := mustRun(t, "app", "list", "--data", data); !strings.Contains(list, first.AppID+"  birds  de") || !strings.Contains(list, second.AppID+"  bees   en") {
		t.Errorf("app list:\n%s", list)
	}
	list := mustRun(t, "key", "list", "--data", data)
	if !strings.Contains(list, "Predict,Inputs_Get") || strings.Contains(list, key1.Key) {
		t.Errorf("key list:\n%s", list)
	}
}

func TestOneWriterAmongManyCommands(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	mustRun(t, "app", "create", "first", "--data", data)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			if code, stdout, stderr := runCode(t, "app", "create", "another", "--data", data); code != 0 {
				t.Errorf("exit code %d: %s%s", code, stdout, stderr)
			}
		})
	}
	wg.Wait()
	if list := mustRun(t, "app", "list", "--data", data); strings.Count(list, "another") != 6 {
		t.Errorf("app list:\n%s", list)
	}
}

func TestAppAndKeyMistakes(t *testing.T) {
	testkit.SkipRace(t)
	data := filepath.Join(t.TempDir(), "data")
	var app createOutput
	decode(t, mustRun(t, "app", "create", "x", "--data", data, "--json"), &app)
	mustRun(t, "app", "create", "y", "--data", data)
	for _, tt := range []struct {
		args    []string
		code    int
		message string
	}{
		{[]string{"app", "create", "x"}, 2, "--data is required"},
		{[]string{"app", "create", "--data", data}, 2, "expected one argument: the name"},
		{[]string{"app", "create", "", "--data", data}, 2, "must have 1 to"},
		{[]string{"app", "create", "x", "--language", "xx", "--data", data}, 2, "xx"},
		{[]string{"app", "make"}, 2, "unknown command"},
		{[]string{"key", "create", "--data", data}, 2, "--app is required"},
		{[]string{"key", "create", "--app", strings.Repeat("0", 32), "--data", data}, 2, "application not found"},
		{[]string{"key", "create", "--app", app.AppID, "--scopes", "Everything", "--data", data}, 2, "no such scope"},
		{[]string{"key", "create", "--data", data + "x"}, 1, "does not exist"},
		{[]string{"app", "list", "--data", data + "x"}, 1, "does not exist"},
	} {
		code, stdout, stderr := runCode(t, tt.args...)
		if code != tt.code || !strings.Contains(stderr, tt.message) || stdout != "" {
			t.Errorf("%q: exit code %d, %q, %q; want %d and %q", tt.args, code, stdout, stderr, tt.code, tt.message)
		}
	}
}

func TestFirstStartPrintsKeyOnce(t *testing.T) {
	s := testSettings(t)
	for start := range 2 {
		srv, err := server.Start(t.Context(), s, discard)
		if err != nil {
			t.Fatal(err)
		}
		var output strings.Builder
		if err := srv.CreateFirstApp(t.Context(), &output, "sightline"); err != nil {
			t.Fatal(err)
		}
		if (printedKey(output.String()) != "") != (start == 0) {
			t.Errorf("start %d tells %q", start, output.String())
		}
		if err := srv.Stop(); err != nil {
			t.Error(err)
		}
	}
}

func TestNewerAndForeignFoldersAreRefused(t *testing.T) {
	s := testSettings(t)
	srv, _ := startOrigin(t, s)
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	rewrite(t, filepath.Join(s.Data, "store", "SIGHTLINE"), "another program's file")
	code, _, stderr := runCode(t, "app", "list", "--data", s.Data)
	if code != 1 || !strings.Contains(stderr, "not a Sightline store") {
		t.Errorf("a foreign folder: exit code %d, %s", code, stderr)
	}
}
