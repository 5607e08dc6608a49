package conformance

import (
	"bufio"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/web/process"
	"github.com/sightline-dev/sightline/web/runtime/test"
)

var installing sync.Mutex

// install installs node_modules from the lock file, unless they are up to date.
func install(t *testing.T) {
	t.Helper()
	process.Need(t, "node")
	process.Need(t, "npm")
	installing.Lock()
	defer installing.Unlock()
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

// client creates an application on the server, and returns its ID and its client's ID and secret.
func client(t *testing.T, binary string, srv *process.Server) (app, id, secret string) {
	t.Helper()
	cmd := exec.Command(binary, "app", "create", "conformance", "--language", "en", "--json", "--data", srv.Data)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("app create: %v", err)
	}
	var credentials struct {
		App    string `json:"app_id"`
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	if err := json.Unmarshal(out, &credentials); err != nil || credentials.ID == "" || credentials.Secret == "" {
		t.Fatalf("app create gives no client: %v", err)
	}
	return credentials.App, credentials.ID, credentials.Secret
}

// TestMain runs up to 8 tests in parallel on any number of processors, because the specs mostly wait.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	code := m.Run()
	test.Forget()
	os.Exit(code)
}

var keyLine = regexp.MustCompile(`^    key     ([0-9a-f]{32})$`)

var failure = regexp.MustCompile(`(?m)^FAIL (\w+) .*$`)

// TestOfficialJavaScriptClient runs the specs of the client's own package: with a key, in the form of app_id that the client gets by
// default and in the other one, and with an ID and a secret, for which the client requests tokens itself. All specs that do not need the
// vendor's vocabulary must pass. Failures of the others are only logged.
func TestOfficialJavaScriptClient(t *testing.T) {
	if testing.Short() {
		t.Skip("a minute of specs")
	}
	t.Parallel()
	specs(t, process.Build(t, process.Origin), func(testing.TB, string) {})
}

// TestOfficialJavaScriptClientAtAnEdge runs the same specs against an edge, which answers from the module.
func TestOfficialJavaScriptClientAtAnEdge(t *testing.T) {
	if testing.Short() {
		t.Skip("a minute of specs")
	}
	t.Parallel()
	specs(t, process.Build(t, process.Edge), process.Warm)
}

// TestOfficialJavaScriptClientAtAJoinedEdge runs the video specs against an edge that keeps a replica of an origin's application.
func TestOfficialJavaScriptClientAtAJoinedEdge(t *testing.T) {
	testkit.Nightly(t)
	t.Parallel()
	install(t)
	binary := process.Build(t, process.Origin)
	hub := process.Serve(t, binary)
	app, id, secret := client(t, binary, hub)
	out, err := exec.Command(binary, "edge", "create", "shop", "--apps", app, "--json", "--data", hub.Data).Output()
	var enrolment struct{ Token string }
	if err == nil {
		err = json.Unmarshal(out, &enrolment)
	}
	if err != nil {
		t.Fatalf("edge create: %v", err)
	}
	program, data := process.Build(t, process.Edge), t.TempDir()
	process.Warm(t, program)
	edge := process.ServeIn(t, program, data, "--origin", hub.URL, "--token", enrolment.Token, "--allow-private-fetch")
	for joined := false; !joined; time.Sleep(100 * time.Millisecond) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, edge.URL+"/v2/token", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth(id, secret)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		joined = res.StatusCode == http.StatusOK
	}
	run(t, edge.URL, []string{"--client-id", id, "--client-secret", secret, "--film", film(t), "--only", "[Vv]ideo"})
}

// TestOfficialJavaScriptClientInAPage runs the same specs against a page in a browser without a server: its service worker answers from the
// module. There a caller with any key, or any client's ID and secret, is the owner of the data.
func TestOfficialJavaScriptClientInAPage(t *testing.T) {
	if testing.Short() {
		t.Skip("a minute of specs in a browser")
	}
	t.Parallel()
	chromium := process.Need(t, "chromium", "chromium-browser", "google-chrome")
	install(t)
	runtime := test.AssembleRuntime(t)
	for name, credential := range map[string][]string{
		"key":    {"--api-key", strings.Repeat("0123456789abcdef", 2), "--film", film(t)},
		"tokens": {"--client-id", "anyone", "--client-secret", "whatever"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, page(t, runtime, chromium), credential)
		})
	}
}

// page starts a browser with the runtime, and returns the URL of the port that passes requests to it. The cleanup fails the test if the
// browser made a request to anything but loopback.
func page(t *testing.T, runtime, chromium string) (url string) {
	t.Helper()
	cmd := exec.Command("node", "page.mjs")
	cmd.Env = append(os.Environ(), "RUNTIME="+runtime, "SAMPLES="+samples(t), "CHROMIUM="+chromium)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stay, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	first, err := lines.ReadString('\n')
	t.Cleanup(func() {
		_ = stay.Close()
		rest, _ := io.ReadAll(lines)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the page ended with %v\n%s%s", err, rest, stderr.String())
		}
	})
	if url = strings.TrimSpace(first); err != nil {
		t.Fatalf("the page does not start: %v", err)
	}
	return url
}

func samples(t *testing.T) string { return filepath.Join(testkit.Root(t), "web", "samples") }

// specs runs the specs against a program in both forms. In each form it uses a key and, at the same time for another application, tokens.
// warm compiles the program's module.
func specs(t *testing.T, binary string, warm func(t testing.TB, binary string)) {
	t.Helper()
	install(t)
	for form, args := range map[string][]string{"auto": nil, "null": {"--public-app-id", "null"}} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			warm(t, binary)
			srv := process.Serve(t, binary, append(args, "--allow-private-fetch", "--log", "info")...)
			key := srv.Find(t, keyLine)
			t.Run("key", func(t *testing.T) {
				t.Parallel()
				options := []string{"--api-key", key}
				if form == "auto" { // only one server of each program loads the decoder
					options = append(options, "--film", film(t))
				}
				run(t, srv.URL, options)
			})
			if form != "auto" {
				return
			}
			t.Run("tokens", func(t *testing.T) {
				t.Parallel()
				_, id, secret := client(t, binary, srv)
				run(t, srv.URL, []string{"--client-id", id, "--client-secret", secret})
			})
			t.Run("videos", func(t *testing.T) {
				t.Parallel()
				predictVideos(t, srv.URL, key)
			})
		})
	}
}

// run runs the specs against a server. With a film, the video specs must pass as well.
func run(t *testing.T, url string, options []string) {
	t.Helper()
	ctx, stop := system.CancelOnSignal(t.Context())
	defer stop()
	cmd := exec.CommandContext(ctx, "node", append([]string{
		"--require", "./loopback.cjs", "js-specs.cjs", "--base-url", url, "--modules", "node_modules", "--samples-dir", samples(t), "--verbose",
	}, options...)...)
	out, err := cmd.CombinedOutput()
	for _, line := range failure.FindAllSubmatch(out, -1) {
		if kind := string(line[1]); kind == "wire" || kind == "video" && slices.Contains(options, "--film") {
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
}
