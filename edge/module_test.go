package main_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/wasm/prebuilt"
)

// earlier serves the data folder of an earlier program, which stored other modules in it. They are neither served nor changed. A SIGHUP
// made earlier programs load them and now changes nothing.
func earlier(t *testing.T, binary string) {
	data := folder(t, binary)
	_, key, _ := owner(t, binary, data, "earlier")
	files := map[string]string{
		"module.wasm": "no module", "modules.json": `{"seen":{"version":2}}`, filepath.Join("modules", strings.Repeat("a", 64)+".wasm"): "no module",
	}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(data, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(data, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	srv := serve(t, binary, data)
	c, child := srv.as(t, key), srv.child(t)
	c.must("POST", "/v2/inputs", object{"inputs": []object{input("before", photo(t, photos(t)[0]))}})
	for _, process := range []int{srv.cmd.Process.Pid, child} {
		if err := syscall.Kill(process, syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	c.must("GET", "/v2/inputs/before", nil)
	if own := fmt.Sprintf("%x", sha256.Sum256(prebuilt.Guest(t))); !strings.Contains(get(t, srv.base+"/version", 200), own) {
		t.Errorf("/version = %s, want module %s", get(t, srv.base+"/version", 200), own)
	}
	if after := srv.child(t); after != child {
		t.Errorf("process %d serves, want %d", after, child)
	}
	srv.terminate(t)
	for name, text := range files {
		if content, err := os.ReadFile(filepath.Join(data, name)); err != nil || string(content) != text {
			t.Errorf("%s = %q, %v", name, content, err)
		}
	}
	if out := command(t, binary, "precompile", "--data", data, "--json"); !strings.Contains(out, `"compiled":false`) {
		t.Errorf("precompile after a start = %s, want that nothing was compiled", out)
	}
}

// TestStuckModuleIsStopped serves a built-in module that never returns from a call, so its calls have no deadlines. The process ends and
// another replaces it, with all acknowledged writes. If the collector does not run meanwhile, the process reports the hang itself. If a
// collection begins, nothing in the process runs any longer, and the supervisor must notice. If a collection had begun before the call, it
// stops only goroutines that must help it. Then either of the two can report first.
func TestStuckModuleIsStopped(t *testing.T) {
	testkit.RequireTiming(t)
	binary := build(t, runaway(t))
	warm := t.TempDir()
	command(t, binary, "precompile", "--data", warm)
	for _, tt := range []struct {
		name, collector, callTime string
		pattern                   *regexp.Regexp
	}{
		{"told", "off", "1s", regexp.MustCompile(`(a module call exceeded 1s)`)},
		{"frozen", "1", "4s", regexp.MustCompile(`(no heartbeat for 14s|a module call exceeded 4s)`)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data := t.TempDir()
			if err := os.CopyFS(data, os.DirFS(warm)); err != nil {
				t.Fatal(err)
			}
			_, key, _ := owner(t, binary, data, "runaway")
			t.Setenv("GOGC", tt.collector)
			srv := serve(t, binary, data, "--call-timeout", tt.callTime)
			c := srv.as(t, key)
			c.must("POST", "/v2/inputs", object{"inputs": []object{input("before", photo(t, photos(t)[0]))}})
			before := srv.child(t)
			begun, hung := time.Now(), make(chan error, 1)
			go func() {
				_, _, err := c.do("POST", "/v2/inputs", object{"inputs": []object{{"id": "run-away", "data": object{"image": object{"url": "http://run.away/"}}}}})
				hung <- err
			}()
			for len(hung) == 0 { // these requests make garbage for the collector, even after one without an answer
				_, _, _ = c.do("GET", "/metrics", nil)
			}
			if err := <-hung; err == nil {
				t.Error("the call that never returns was answered")
			}
			t.Logf("the hung process ended after %v", time.Since(begun).Round(time.Millisecond))
			t.Log(srv.find(t, tt.pattern, 1))
			srv.find(t, serving, 2)
			if after := srv.child(t); after == before {
				t.Errorf("process %d serves on", before)
			}
			c.must("GET", "/v2/inputs/before", nil)
			if status, _, err := c.do("GET", "/v2/inputs/run-away", nil); status != 404 || err != nil {
				t.Errorf("what was never acknowledged: %d, %v, want 404", status, err)
			}
			srv.terminate(t)
			command(t, binary, "doctor", "--data", data)
		})
	}
}

// runaway returns a build of the module that never answers a certain request.
func runaway(t *testing.T) []byte {
	t.Helper()
	root, dir := testkit.Root(t), t.TempDir()
	source := filepath.Join(root, "wasm", "guest", "exports.go")
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	const answers = "return call(n, guest.Serve)"
	spins := strings.Replace(string(text), answers, `away := strings.Contains(string(input[:n]), "http://run.away/")
	for away {
	}
	`+answers, 1)
	spins = strings.Replace(spins, "import (", "import (\n\t\"strings\"", 1)
	if strings.Count(spins, "run.away") != 1 || strings.Count(spins, `"strings"`) != 1 {
		t.Fatalf("%s is not what this test changes", source)
	}
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	overlay := write("overlay.json", fmt.Sprintf(`{"Replace":{%q:%q}}`, source, write("exports.go", spins)))
	out := filepath.Join(dir, "guest.wasm")
	cmd := exec.Command("go", "build", "-overlay", overlay, "-trimpath", "-ldflags", "-s -w", "-tags", "lent", "-buildmode=c-shared", "-o", out, "./wasm/guest")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, output)
	}
	module, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return module
}
