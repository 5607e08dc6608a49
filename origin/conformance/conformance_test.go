package conformance

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/proof"
	"github.com/sightline-dev/sightline/origin/system"
	"github.com/sightline-dev/sightline/wasm/built"
	"github.com/sightline-dev/sightline/web/process"
)

// install makes node_modules as the lock file says, unless that has been done.
func install(t *testing.T) {
	t.Helper()
	lock, err := os.ReadFile("package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	const note = "node_modules/.installed"
	if have, err := os.ReadFile(note); err == nil && string(have) == string(lock) {
		return
	}
	cmd := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	if err := os.WriteFile(note, lock, 0o600); err != nil {
		t.Fatal(err)
	}
}

// client makes an application on the server and returns its client's id and secret.
func client(t *testing.T, binary string, srv *process.Server) (id, secret string) {
	t.Helper()
	cmd := exec.Command(binary, "app", "create", "conformance", "--language", "en", "--json", "--data", srv.Data)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("app create: %v", err)
	}
	var made struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	if err := json.Unmarshal(out, &made); err != nil || made.ID == "" || made.Secret == "" {
		t.Fatalf("app create gives no client: %v", err)
	}
	return made.ID, made.Secret
}

var keyLine = regexp.MustCompile(`^    key     ([0-9a-f]{32})$`)

var failure = regexp.MustCompile(`(?m)^FAIL (\w+) .*$`)

// TestOfficialJavaScriptClient runs the specs of the client's own package: with a key, in the
// form in which app_id is null and in the later one, and with an id and a secret, for which the
// client gets tokens by itself. All that do not need the vendor's vocabulary have to pass; the
// rest is reported.
func TestOfficialJavaScriptClient(t *testing.T) {
	if testing.Short() {
		t.Skip("a minute of specs")
	}
	specs(t, process.Build(t))
}

// TestOfficialJavaScriptClientAtAnEdge is the same with an edge, which answers from the module.
func TestOfficialJavaScriptClientAtAnEdge(t *testing.T) {
	if testing.Short() {
		t.Skip("a minute of specs")
	}
	module := filepath.Join(proof.Root(t), "wasm", "dist", "guest.wasm")
	specs(t, process.BuildWith(t, process.Edge, map[string][]byte{module: built.Guest(t)}))
}

// specs runs the specs against a program.
func specs(t *testing.T, binary string) {
	t.Helper()
	process.Need(t, "node")
	process.Need(t, "npm")
	install(t)
	samples := filepath.Join(proof.Root(t), "web", "samples")
	for name, tt := range map[string]struct {
		args   []string
		tokens bool
	}{
		"null":   {},
		"main":   {args: []string{"--public-app-id", "main"}},
		"tokens": {tokens: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // the specs mostly wait
			srv := process.Serve(t, binary, append(tt.args, "--allow-private-fetch", "--log", "info")...)
			credential := []string{"--api-key", srv.Find(t, keyLine)}
			if tt.tokens {
				id, secret := client(t, binary, srv)
				credential = []string{"--client-id", id, "--client-secret", secret}
			}
			ctx, stop := system.Terminated(t.Context())
			defer stop()
			cmd := exec.CommandContext(ctx, "node", append([]string{
				"js-specs.cjs", "--base-url", srv.URL, "--modules", "node_modules", "--samples-dir", samples, "--verbose",
			}, credential...)...)
			out, err := cmd.CombinedOutput()
			for _, line := range failure.FindAllSubmatch(out, -1) {
				if kind := string(line[1]); kind == "wire" {
					t.Errorf("%s", line[0])
				} else {
					t.Logf("not counted: %s", line[0])
				}
			}
			_, summary, ok := strings.Cut(string(out), "suite js ")
			if !ok || err != nil && !t.Failed() {
				t.Fatalf("the specs did not run to their end: %v\n%s", err, out)
			}
			t.Logf("suite js %s", summary)
		})
	}
}
