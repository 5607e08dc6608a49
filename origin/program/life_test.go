package program

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/control"
)

// client is the output of app create and app rotate-secret.
type client struct {
	AppID  string `json:"app_id"`
	ID     string `json:"client_id"`
	Secret string `json:"client_secret"`
}

// statusWithKey returns the status of a request with a key.
func statusWithKey(t testing.TB, base, key string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", base+"/v2/inputs", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Key "+key)
	res, err := own(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode
}

// TestLifeOfAnApplication goes through all commands, on a folder that a server has open and on one
// that nobody has.
func TestLifeOfAnApplication(t *testing.T) {
	for _, served := range []bool{true, false} {
		t.Run(map[bool]string{true: "served", false: "alone"}[served], func(t *testing.T) {
			data := filepath.Join(t.TempDir(), "data")
			base := ""
			if served {
				s := testSettings(t)
				s.Data = data
				_, base = startOrigin(t, s)
			} else {
				mustRun(t, "app", "create", "stays", "--data", data)
			}
			may := func(key string, want int) {
				t.Helper()
				if served {
					if got := statusWithKey(t, base, key); got != want {
						t.Errorf("a request is answered with %d, want %d", got, want)
					}
				}
			}
			var app, secret client
			decode(t, mustRun(t, "app", "create", "birds", "--language", "de", "--default-model", colorID, "--data", data, "--json"), &app)
			if len(app.AppID) != 32 || len(app.ID) != 32 || len(app.Secret) != 64 {
				t.Errorf("app create prints %+v", app)
			}
			decode(t, mustRun(t, "app", "rotate-secret", app.AppID, "--data", data, "--json"), &secret)
			if secret.ID != app.ID || len(secret.Secret) != 64 || secret.Secret == app.Secret {
				t.Errorf("app rotate-secret prints %+v after %+v", secret, app)
			}
			mustRun(t, "app", "revoke-tokens", app.AppID, "--data", data)
			if got := mustRun(t, "app", "update", app.AppID, "--local-only", "--data", data); !strings.Contains(got, "local_only     true") {
				t.Errorf("app update prints %s", got)
			}
			mustRun(t, "app", "change", app.AppID, "--local-only=false", "--max-stale", "48h", "--data", data) // the names of version 0.1.0
			if help := mustRun(t, "app", "update", "--help"); strings.Contains(help, "max-stale") || strings.Contains(help, "Aliases") {
				t.Errorf("the help shows old names:\n%s", help)
			}
			if got := mustRun(t, "app", "update", app.AppID, "--name", "bees", "--default-model", "", "--data", data, "--json"); !strings.Contains(got, `"name":"bees","language":"de","default_model":""`) || !strings.Contains(got, app.ID) {
				t.Errorf("app update prints %s", got)
			}

			var key, replacement struct {
				Key, AppID string
				ID         string `json:"key_id"`
			}
			decode(t, mustRun(t, "key", "create", "--app", app.AppID, "--scopes", "Inputs_Get", "--description", "x", "--data", data, "--json"), &key)
			may(key.Key, 200)
			decode(t, mustRun(t, "key", "rotate", key.Key, "--data", data, "--json"), &replacement)
			may(key.Key, 401)
			may(replacement.Key, 200)
			if list := mustRun(t, "key", "list", "--app", app.AppID, "--data", data); strings.Count(list, app.AppID) != 1 || !strings.Contains(list, replacement.ID+"  "+app.AppID) || !strings.Contains(list, "Inputs_Get  x") {
				t.Errorf("key list:\n%s", list)
			}
			if got := mustRun(t, "key", "delete", replacement.ID[:8], "--data", data); !strings.Contains(got, replacement.ID) {
				t.Errorf("key delete prints %s", got)
			}
			may(replacement.Key, 401)
			last := strings.TrimSpace(mustRun(t, "key", "create", "--app", app.AppID, "--data", data))
			may(last, 200)

			code, _, stderr := runCode(t, "app", "delete", app.AppID, "--data", data)
			if code != server.ExitUsage || !strings.Contains(stderr, `this would delete "bees" with 0 inputs, 0 concepts, 0 models, 0 model versions, 0 workflows and 1 key; pass --yes to confirm`) {
				t.Errorf("app delete without --yes: exit code %d, %s", code, stderr)
			}
			may(last, 200)
			if got := mustRun(t, "app", "delete", app.AppID, "--yes", "--data", data, "--json"); !strings.Contains(got, `"name":"bees","inputs":0`) {
				t.Errorf("app delete prints %s", got)
			}
			may(last, 401)
			if list := mustRun(t, "app", "list", "--data", data) + mustRun(t, "key", "list", "--data", data); strings.Contains(list, app.AppID) {
				t.Errorf("after the deletion:\n%s", list)
			}
			if code, _, stderr := runCode(t, "doctor", "--data", data); code != 0 {
				t.Errorf("doctor: exit code %d, %s", code, stderr)
			}
		})
	}
}

func TestAppAndKeyCommandsRefuse(t *testing.T) {
	testkit.SkipRace(t)
	data := filepath.Join(t.TempDir(), "data")
	var app client
	decode(t, mustRun(t, "app", "create", "x", "--data", data, "--json"), &app)
	key := strings.TrimSpace(mustRun(t, "key", "create", "--data", data))
	missingID := strings.Repeat("a", 32)
	for _, tt := range []struct {
		args    []string
		message string
	}{
		{[]string{"app", "create", "y", "--default-model", "none"}, "no such model"},
		{[]string{"app", "update", app.AppID}, "nothing to change: give --name"},
		{[]string{"app", "update", app.AppID, "--name", ""}, "must have 1 to"},
		{[]string{"app", "update", missingID, "--name", "y"}, "no such application"},
		{[]string{"app", "delete", missingID, "--yes"}, "no such application"},
		{[]string{"app", "delete", app.AppID}, "pass --yes to confirm"},
		{[]string{"app", "rotate-secret", missingID}, "no such application"},
		{[]string{"app", "revoke-tokens", "x"}, "no such application"},
		{[]string{"app", "rotate-secret"}, "expected one argument: the app_id"},
		{[]string{"key", "delete", missingID}, "key not found in this folder"},
		{[]string{"key", "delete", "0123abcd"}, "no key with ID 0123abcd in this folder"},
		{[]string{"key", "delete", "0123"}, "not a key or key ID"},
		{[]string{"key", "delete", key[:31] + "x"}, "not a key or key ID"},
		{[]string{"key", "rotate", missingID}, "key not found in this folder"},
		{[]string{"key", "delete"}, "expected one argument: an API key or key_id"},
	} {
		code, stdout, stderr := runCode(t, append(tt.args, "--data", data)...)
		if code != server.ExitUsage || !strings.Contains(stderr, tt.message) || stdout != "" || strings.Contains(stderr, key[:31]) || strings.Contains(stderr, missingID) && tt.args[0] == "key" {
			t.Errorf("%q: exit code %d, %q, %q; want %q", tt.args, code, stdout, stderr, tt.message)
		}
	}
}

// TestDeletedKeysAtOrigin deletes keys through the command line while callers use them over HTTP: one key, a replaced key, all
// keys of an application. Once the command has ended, no request with such a key is accepted.
func TestDeletedKeysAtOrigin(t *testing.T) {
	const callers = 4
	s := testSettings(t)
	srv, base := startOrigin(t, s)
	accepted, refused := 0, 0
	for seed := range testkit.Seeds(t, 12, 1000) {
		r := rand.New(rand.NewPCG(seed, 19))
		newApp, err := control.CreateApp.Do(t.Context(), srv, register.NewApp{Name: "x", Language: "en"})
		if err != nil {
			t.Fatal(err)
		}
		created, err := control.CreateKey.Do(t.Context(), srv, register.NewKey{App: newApp.App.ID, Scopes: []string{"All"}})
		if err != nil {
			t.Fatal(err)
		}
		app, key, record := newApp.App, created.Key, created.Record
		var (
			dead   atomic.Bool
			served atomic.Int64
			late   atomic.Int64
			wg     sync.WaitGroup
		)
		for range callers {
			wg.Go(func() {
				for after := 0; after < 10; {
					was := dead.Load()
					got := statusWithKey(t, base, key)
					switch {
					case got != 200 && got != 401:
						t.Errorf("during the deletion a request is answered with %d", got)
						return
					case was && got != 401:
						t.Errorf("seed %d: after the deletion was acknowledged a request is answered with %d", seed, got)
						return
					case was:
						after++
						late.Add(1)
					case got == 200:
						served.Add(1)
					}
				}
			})
		}
		for want := int64(1 + r.IntN(40)); served.Load() < want && !t.Failed(); {
			runtime.Gosched()
		}
		switch r.IntN(3) {
		case 0:
			mustRun(t, "key", "delete", record.ID, "--data", s.Data)
		case 1:
			mustRun(t, "key", "rotate", key, "--data", s.Data)
		default:
			mustRun(t, "app", "delete", app.ID, "--yes", "--data", s.Data)
		}
		dead.Store(true)
		wg.Wait()
		accepted += int(served.Load())
		refused += int(late.Load())
	}
	t.Logf("%d requests served before their key was deleted, %d refused after it was; none was let in after", accepted, refused)
}

// TestDeletedApplicationLeavesNothingOnDisk scans the files of a folder for the data of an application after the command that deletes it
// has ended.
func TestDeletedApplicationLeavesNothingOnDisk(t *testing.T) {
	const marker = "zebrafinch"
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	mustRun(t, "app", "create", "stays", "--data", data)
	var app client
	decode(t, mustRun(t, "app", "create", marker, "--data", data, "--json"), &app)
	mustRun(t, "key", "create", "--app", app.AppID, "--description", marker, "--data", data)
	picture := append(slices.Clone(sample(t, "01-canal-in-venice.jpg")), marker...)
	inputs := filepath.Join(dir, "inputs.jsonl")
	rewrite(t, inputs, fmt.Sprintf(`{"id":"%[1]s","base64":%[2]q,"concepts":[%[1]q],"metadata":{%[1]q:1}}`, marker, base64.StdEncoding.EncodeToString(picture))+"\n")
	mustRun(t, "import", inputs, "--app", app.AppID, "--data", data, "-q")
	with := func() (files []string) {
		t.Helper()
		err := filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			content, err := os.ReadFile(path)
			if bytes.Contains(content, []byte(marker)) {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	if len(with()) < 2 {
		t.Fatal("the application is not on the disk")
	}
	if got := mustRun(t, "app", "delete", app.AppID, "--yes", "--data", data); !strings.Contains(got, "1 input, 1 concept") {
		t.Errorf("app delete prints %s", got)
	}
	if files := with(); len(files) > 0 {
		t.Errorf("files hold what was deleted: %v", files)
	}
}
