package main_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/proof"
	"github.com/sightline-dev/sightline/origin/system"
	"github.com/sightline-dev/sightline/wasm/built"
)

// other is a module that does what another does and has another hash: it carries a note.
func other(module []byte) []byte {
	note := []byte("\x04notethis is another")
	return append(append(bytes.Clone(module), 0, byte(len(note))), note...)
}

// swapped goes over to another module while calls are under way, and back; a file that is no
// module changes nothing. What another module was compiled to and who has it outlive a start.
func swapped(t *testing.T, binary string) {
	data := folder(t, binary)
	_, key, _ := owner(t, binary, data, "swapped")
	files := t.TempDir()
	write := func(name string, b []byte) string {
		file := filepath.Join(files, name)
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	module := other(built.Guest(t))
	file := write("other.wasm", module)
	hash := fmt.Sprintf("%x", sha256.Sum256(module))

	srv := serve(t, binary, data)
	c := srv.as(t, key)
	c.must("POST", "/v2/inputs", object{"inputs": []object{input("before", photo(t, photos(t)[0]))}})
	stop := make(chan struct{})
	var asking sync.WaitGroup
	asked := 0
	asking.Go(func() {
		for ; ; asked++ {
			select {
			case <-stop:
				return
			default:
			}
			if status, out, err := c.do("GET", "/v2/inputs/before", nil); status != 200 || err != nil {
				t.Errorf("while the module changes: %d, %v, %v", status, out, err)
				return
			}
			system.Pause(t.Context(), time.Millisecond) // the module is compiled meanwhile
		}
	})
	if out := command(t, binary, "module", file, "--data", data); !strings.HasPrefix(out, hash) || !strings.Contains(out, "not the program's own") {
		t.Errorf("module says %q, want %s", out, hash)
	}
	for name, b := range map[string][]byte{"no module": []byte("no module"), "no guest": []byte("\x00asm\x01\x00\x00\x00"), "cut": module[:len(module)/2]} {
		if code, _, stderr := try(t, binary, "module", write("bad.wasm", b), "--data", data); code != 1 || stderr == "" {
			t.Errorf("%s: exit code %d, %q, want 1", name, code, stderr)
		}
	}
	if v := get(t, srv.base+"/version", 200); !strings.Contains(v, hash) {
		t.Errorf("/version = %s, want module %s", v, hash)
	}
	c.must("POST", "/v2/models/"+general+"/outputs", object{"inputs": []object{{"data": object{"image": object{"base64": photo(t, photos(t)[1])}}}}})
	close(stop)
	asking.Wait()
	t.Logf("%d calls while the module changed", asked)

	srv.terminate(t)
	srv = serve(t, binary, data)
	c = srv.as(t, key)
	if v := get(t, srv.base+"/version", 200); !strings.Contains(v, hash) {
		t.Errorf("after a start /version = %s, want module %s", v, hash)
	}
	c.must("GET", "/v2/inputs/before", nil)
	command(t, binary, "module", "--built-in", "--data", data)
	if v := get(t, srv.base+"/version", 200); strings.Contains(v, hash) {
		t.Errorf("/version = %s, want the program's own module", v)
	}
	c.must("GET", "/v2/inputs/before", nil)
	srv.terminate(t)
	damaged(t, binary, data, key)
	if out := command(t, binary, "warm", "--data", data, "--json"); !strings.Contains(out, `"compiled":false`) || !strings.Contains(out, `"built_in":true`) {
		t.Errorf("warm after a start = %s, want that nothing was compiled", out)
	}
}

// damaged has the folder's module be none: at SIGHUP what serves goes on, and at a start the program's
// own takes its place.
func damaged(t *testing.T, binary, data, key string) {
	t.Helper()
	srv := serve(t, binary, data)
	if err := os.WriteFile(filepath.Join(data, "module.wasm"), []byte("no module"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := srv.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	srv.find(t, regexp.MustCompile(`(level=ERROR msg=reload)`), 1)
	srv.as(t, key).must("GET", "/v2/inputs/before", nil)
	srv.terminate(t)
	srv = serve(t, binary, data)
	srv.find(t, regexp.MustCompile(`(the program's own serves)`), 1)
	srv.as(t, key).must("GET", "/v2/inputs/before", nil)
	if err := os.Remove(filepath.Join(data, "module.wasm")); err != nil {
		t.Fatal(err)
	}
	if err := srv.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	srv.find(t, regexp.MustCompile(`(msg=reloaded)`), 1)
	srv.terminate(t)
}

// TestRunaway serves a module that never returns from a call, built in, so that its calls have no
// deadlines: the process ends and another takes its place, with all that was acknowledged. Where the
// collector does not run meanwhile the process tells so itself; where one begins, nothing of the process runs
// any more, and the keeper has to notice. Where one had begun before the call it stops only who has to help it, and
// either may be first.
func TestRunaway(t *testing.T) {
	proof.Timed(t)
	binary := build(t, runaway(t))
	warm := t.TempDir()
	command(t, binary, "warm", "--data", warm)
	for _, tt := range []struct {
		name, collector, callTime string
		says                      *regexp.Regexp
	}{
		{"told", "off", "1s", regexp.MustCompile(`(a call of the module takes longer than 1s)`)},
		{"frozen", "1", "4s", regexp.MustCompile(`(it said nothing for 14s|a call of the module takes longer than 4s)`)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data := t.TempDir()
			if err := os.CopyFS(data, os.DirFS(warm)); err != nil {
				t.Fatal(err)
			}
			_, key, _ := owner(t, binary, data, "runaway")
			t.Setenv("GOGC", tt.collector)
			srv := serve(t, binary, data, "--call-time", tt.callTime)
			c := srv.as(t, key)
			c.must("POST", "/v2/inputs", object{"inputs": []object{input("before", photo(t, photos(t)[0]))}})
			before := srv.child(t)
			begun, hung := time.Now(), make(chan error, 1)
			go func() {
				_, _, err := c.do("POST", "/v2/inputs", object{"inputs": []object{{"id": "run-away", "data": object{"image": object{"url": "http://run.away/"}}}}})
				hung <- err
			}()
			for len(hung) == 0 { // what else is asked makes garbage, also after an answer that did not come
				_, _, _ = c.do("GET", "/metrics", nil)
			}
			if err := <-hung; err == nil {
				t.Error("the call that never returns was answered")
			}
			t.Logf("the hung process ended after %v", time.Since(begun).Round(time.Millisecond))
			t.Log(srv.find(t, tt.says, 1))
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

// runaway is the module with a request that it never answers.
func runaway(t *testing.T) []byte {
	t.Helper()
	root, dir := proof.Root(t), t.TempDir()
	source := filepath.Join(root, "wasm", "guest", "exports.go")
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	const answers = "return call(n, the.Serve)"
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
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, said)
	}
	module, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return module
}
