package conformance

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/proof"
	"github.com/sightline-dev/sightline/origin/system"
)

// needNode skips where Node or npm is missing, but in CI, where both have to be.
func needNode(t *testing.T) {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("%s is missing: %v", program, err)
			}
			t.Skipf("%s is missing, and the official client needs it: %v", program, err)
		}
	}
}

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

// origin is a server in a process of its own.
type origin struct{ url, key, binary, data string }

// client makes an application on the server and returns its client's id and secret.
func (o *origin) client(t *testing.T) (id, secret string) {
	t.Helper()
	cmd := exec.Command(o.binary, "app", "create", "conformance", "--language", "en", "--json", "--data", o.data)
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

var (
	keyLine     = regexp.MustCompile(`^    key     ([0-9a-f]{32})$`)
	addressLine = regexp.MustCompile(`msg=serving address=(\S+)`)
)

// find sends what the pattern finds first in r's lines, of which each gets all, and closes at r's end.
func find(r io.Reader, pattern *regexp.Regexp, each func(line string)) <-chan string {
	found := make(chan string, 1)
	go func() {
		defer close(found)
		for lines := bufio.NewScanner(r); lines.Scan(); {
			each(lines.Text())
			if m := pattern.FindStringSubmatch(lines.Text()); m != nil && len(found) == 0 {
				found <- m[1]
			}
		}
	}()
	return found
}

// start builds the program and serves an empty data folder until the test ends.
func start(t *testing.T, args ...string) origin {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "sightline")
	if out, err := exec.Command("go", "build", "-o", binary, "..").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	data := t.TempDir()
	args = append([]string{"serve", "--listen", "127.0.0.1:0", "--data", data, "--log-format", "text"}, args...)
	cmd := exec.Command(binary, args...)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	keys := find(stdout, keyLine, func(string) {})
	addresses := find(stderr, addressLine, func(line string) {
		if strings.Contains(line, "level=ERROR") {
			t.Errorf("the server says: %s", line)
		}
	})
	t.Cleanup(func() {
		if err := cmd.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
		for range keys { // until the program has closed its output
		}
		for range addresses {
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	key, told := <-keys
	address, served := <-addresses
	if !told || !served {
		t.Fatal("the server did not start")
	}
	return origin{"http://" + address, key, binary, data}
}

var failure = regexp.MustCompile(`(?m)^FAIL (\w+) .*$`)

// TestOfficialJavaScriptClient runs the specs of the client's own package: with a key, in the
// form in which app_id is null and in the later one, and with an id and a secret, for which the
// client gets tokens by itself. All that do not need the vendor's vocabulary have to pass; the
// rest is reported.
func TestOfficialJavaScriptClient(t *testing.T) {
	if testing.Short() {
		t.Skip("a minute of specs")
	}
	needNode(t)
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
			srv := start(t, append(tt.args, "--allow-private-fetch", "--log", "info")...)
			credential := []string{"--api-key", srv.key}
			if tt.tokens {
				id, secret := srv.client(t)
				credential = []string{"--client-id", id, "--client-secret", secret}
			}
			ctx, stop := system.Terminated(t.Context())
			defer stop()
			cmd := exec.CommandContext(ctx, "node", append([]string{
				"js-specs.cjs", "--base-url", srv.url, "--modules", "node_modules", "--samples-dir", samples, "--verbose",
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
