package main_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/andybalholm/brotli"

	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/web/process"
)

type object = map[string]any

// build builds the program around a module.
func build(t testing.TB, module []byte) string {
	t.Helper()
	var packed bytes.Buffer
	w := brotli.NewWriterLevel(&packed, brotli.BestSpeed)
	if _, err := w.Write(module); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	embedded := filepath.Join(testkit.Root(t), "wasm", "packed", "guest.wasm.br")
	return process.BuildWith(t, process.Edge, map[string][]byte{embedded: packed.Bytes()})
}

// own returns the path of the released program.
func own(t testing.TB) string { return process.Build(t, process.Edge) }

// hubOf returns the origin's program, next to an edge's, built at the first request.
func hubOf(t testing.TB, edge string) string {
	t.Helper()
	binary := filepath.Join(filepath.Dir(edge), "origin")
	if _, err := os.Stat(binary); err == nil {
		return binary
	}
	if err := os.Rename(process.Build(t, process.Origin), binary); err != nil {
		t.Fatal(err)
	}
	return binary
}

// command runs a command to its end, checks that it succeeds, and returns its output.
func command(t testing.TB, binary string, args ...string) string {
	t.Helper()
	code, out, stderr := try(t, binary, args...)
	if code != 0 {
		t.Fatalf("%s: exit code %d\n%s%s", strings.Join(args, " "), code, out, stderr)
	}
	return out
}

// try runs a command to its end.
func try(t testing.TB, binary string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut strings.Builder
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errOut.String()
}

// folder is a new data folder. The program's module is compiled already.
func folder(t testing.TB, binary string) string {
	t.Helper()
	process.Warm(t, binary)
	return t.TempDir()
}

// owner makes an application of a folder, and a key of it.
func owner(t testing.TB, binary, data, name string) (app, key string, client [2]string) {
	t.Helper()
	var record struct {
		App    string `json:"app_id"`
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	text := command(t, binary, "app", "create", name, "--data", data, "--json")
	if err := json.Unmarshal([]byte(text), &record); err != nil {
		t.Fatalf("app create: %v in %q", err, text)
	}
	key = strings.TrimSpace(command(t, binary, "key", "create", "--app", record.App, "--scopes", "All", "--data", data))
	return record.App, key, [2]string{record.ID, record.Secret}
}

// patience is the maximum time for anything that a test waits for: a longer wait hangs, and is reported with its place.
const patience = 3 * time.Minute

// asking is the HTTP client of the tests.
var asking = &http.Client{Timeout: patience}

// server is sightline-edge serving: a supervisor and the process that it runs.
type server struct {
	base    string
	cmd     *exec.Cmd
	mu      sync.Mutex
	lines   []string
	changed chan struct{}
	ended   chan struct{}
	err     error // of the end
}

var serving = regexp.MustCompile(`msg=serving address=(\S+)`)

// serve starts the program on a folder and waits until it serves.
func serve(t testing.TB, binary, data string, args ...string) *server {
	t.Helper()
	s := begin(t, binary, data, args...)
	s.base = "http://" + s.find(t, serving, 1)
	return s
}

// begin starts the program.
func begin(t testing.TB, binary, data string, args ...string) *server {
	t.Helper()
	return launch(t, exec.Command(binary,
		append([]string{"serve", "--listen", "127.0.0.1:0", "--data", data, "--log-format", "text", "--allow-private-fetch"}, args...)...))
}

// launch starts a command that serves.
func launch(t testing.TB, cmd *exec.Cmd) *server {
	t.Helper()
	s := &server{cmd: cmd, changed: make(chan struct{}), ended: make(chan struct{})}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s.cmd.Stdout, s.cmd.Stderr = w, w
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	go func() {
		defer r.Close()
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			s.mu.Lock()
			s.lines = append(s.lines, lines.Text())
			close(s.changed)
			s.changed = make(chan struct{})
			s.mu.Unlock()
		}
		s.err = s.cmd.Wait()
		close(s.ended)
	}()
	t.Cleanup(func() {
		s.end()
		if t.Failed() {
			t.Logf("the server said\n%s", strings.Join(s.lines, "\n"))
		}
	})
	return s
}

// find waits for the nth line that a pattern fits, and returns its first group.
func (s *server) find(t testing.TB, pattern *regexp.Regexp, n int) string {
	t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		s.mu.Lock()
		lines, changed := s.lines, s.changed
		s.mu.Unlock()
		fits := n
		for _, line := range lines {
			if m := pattern.FindStringSubmatch(line); m != nil {
				if fits--; fits == 0 {
					return m[len(m)-1]
				}
			}
		}
		select {
		case <-changed:
		case <-s.ended:
			t.Fatalf("the server ended without saying %s", pattern)
		case <-late.C:
			hangs(t, fmt.Sprintf("the server says %s", pattern))
		}
	}
}

// hung is set when something took longer than patience: servers tell then at their end where each of their goroutines is.
var hung atomic.Bool

// hangs ends a test that waits in vain.
func hangs(t testing.TB, condition string) {
	t.Helper()
	hung.Store(true)
	t.Fatalf("never: %s", condition)
}

// end kills the server, and with it what it keeps.
func (s *server) end() {
	if hung.Load() {
		if child, err := s.findChild(); err == nil {
			_ = syscall.Kill(child, syscall.SIGQUIT)
		}
		_ = s.cmd.Process.Signal(syscall.SIGQUIT)
	} else {
		_ = s.cmd.Process.Kill()
	}
	<-s.ended
}

// terminate stops the server, which is to end well.
func (s *server) terminate(t testing.TB) {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.ended:
	case <-time.After(patience):
		hangs(t, "the server stops")
	}
	if s.err != nil {
		t.Errorf("the server ended with %v", s.err)
	}
}

// child returns the id of the supervisor's process.
func (s *server) child(t testing.TB) int {
	t.Helper()
	child, err := s.findChild()
	if err != nil {
		t.Fatal(err)
	}
	return child
}

// findChild returns the child process. The error is that there is none.
func (s *server) findChild() (child int, err error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", s.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if n, _ := fmt.Sscan(string(text), &child); err == nil && n == 1 {
			return child, nil
		}
	}
	return 0, errors.New("the supervisor runs nothing")
}

// client asks /v2 with a credential.
type client struct {
	t    testing.TB
	s    *server
	auth string
}

func (s *server) as(t testing.TB, key string) *client { return &client{t, s, "Key " + key} }

// do asks, and returns the HTTP status and the answer; an error is that there is none.
func (c *client) do(method, path string, body any) (int, object, error) {
	status, _, out, err := c.ask(method, path, body)
	return status, out, err
}

// ask is do with the answer's header.
func (c *client) ask(method, path string, body any) (int, http.Header, object, error) {
	var r io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			c.t.Fatal(err)
		}
		r = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.s.base+path, r)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Authorization", c.auth)
	res, err := asking.Do(req)
	if late := net.Error(nil); errors.As(err, &late) && late.Timeout() {
		hangs(c.t, err.Error())
	}
	if err != nil {
		return 0, nil, nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, nil, nil, err
	}
	out := object{}
	if json.Unmarshal(text, &out) != nil {
		out["text"] = string(text)
	}
	return res.StatusCode, res.Header, out, nil
}

// must asks, and wants status 200.
func (c *client) must(method, path string, body any) object {
	c.t.Helper()
	status, out, err := c.do(method, path, body)
	if err != nil || status != 200 {
		c.t.Fatalf("%s %s = %d, %v, %.600v", method, path, status, err, out)
	}
	return out
}

// at goes down into an answer: names, and numbers of elements.
func at(t testing.TB, v any, path ...any) any {
	t.Helper()
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, ok := v.(object)
			if !ok || m[p] == nil {
				t.Fatalf("no %q in %.300v", p, v)
			}
			v = m[p]
		case int:
			l, ok := v.([]any)
			if !ok || p >= len(l) {
				t.Fatalf("no element %d in %.300v", p, v)
			}
			v = l[p]
		}
	}
	return v
}

// photo is one of the demonstration's pictures, as base64.
func photo(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(testkit.Root(t), "web", "samples", name))
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b)
}

// decode decodes base64.
func decode(t testing.TB, text string) string {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// photos are their names.
func photos(t testing.TB) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(testkit.Root(t), "web", "samples", "*.jpg"))
	if err != nil || len(found) < 8 {
		t.Fatalf("%d samples, %v", len(found), err)
	}
	for i := range found {
		found[i] = filepath.Base(found[i])
	}
	return found
}

// input is an input of a picture, with concepts that are true of it.
func input(id, base64 string, concepts ...string) object {
	data := object{"image": object{"base64": base64}}
	var all []object
	for _, c := range concepts {
		all = append(all, object{"id": c, "value": 1})
	}
	if all != nil {
		data["concepts"] = all
	}
	return object{"id": id, "data": data}
}

// settle waits until an application has analysed all of its inputs.
func (c *client) settle(n int) {
	c.t.Helper()
	until(c.t, "all inputs are analysed", func() bool {
		counts := at(c.t, c.must("GET", "/v2/inputs/status", nil), "counts").(object)
		if counts["errors"] != float64(0) {
			c.t.Fatalf("inputs failed: %v", counts)
		}
		return counts["processed"] == float64(n)
	})
}
