// Package process helps tests that examine the program from outside. It finds other programs on the machine, builds the program, and
// starts it as a server with an empty data folder. Only tests import it.
package process

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
)

// Need returns the path of the first of the programs that is installed. If no program is installed, Need skips the test, or in CI fails
// it.
func Need(t testing.TB, programs ...string) string {
	t.Helper()
	for _, program := range programs {
		if path, err := exec.LookPath(program); err == nil {
			return path
		}
	}
	names := strings.Join(programs, " or ")
	if os.Getenv("CI") != "" {
		t.Fatalf("%s is missing", names)
	}
	t.Skipf("%s is missing, and this test needs it", names)
	return ""
}

// The import paths of the programs.
const (
	Origin = "github.com/sightline-dev/sightline/origin"
	Edge   = "github.com/sightline-dev/sightline/edge"
)

// Build returns the path of a copy of a program that make build has built. The decoding modules are next to it, and compiled, so that
// servers do not compile them in the background of a test. All are deleted when the test ends. The race detector does not see into the
// program, so make race leaves out the test.
func Build(t testing.TB, program string) string {
	t.Helper()
	testkit.SkipRace(t)
	Make(t, "build")
	Warm(t, filepath.Join(testkit.Root(t), "bin", "sightline"))
	built := map[string]string{Origin: "sightline", Edge: "sightline-edge"}[program]
	data, err := os.ReadFile(filepath.Join(testkit.Root(t), "bin", built))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "sightline")
	err = os.WriteFile(path, data, 0o700)
	for _, decoder := range []string{"ffmpreg.wasm.gz", "jpegxl.wasm.gz"} {
		err = errors.Join(err, os.Symlink(filepath.Join(testkit.Root(t), "bin", decoder), filepath.Join(filepath.Dir(path), decoder)))
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// BuildWith builds a program with other contents of some source files, and returns its path. files maps the absolute path of a source file
// to its contents. The program is deleted when the test ends.
func BuildWith(t testing.TB, program string, files map[string][]byte) string {
	t.Helper()
	Make(t, "build") // builds the files that the program embeds
	useCache(t)
	dir := t.TempDir()
	binary := filepath.Join(dir, "sightline")
	cmd := exec.Command("go", "build", "-ldflags", "-s -w", "-overlay", writeOverlay(t, dir, files), "-o", binary, program)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // like the released programs
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return binary
}

// writeOverlay writes the replacements to dir, with a list of them in the format of the go command's -overlay. It returns the path of the
// list.
func writeOverlay(t testing.TB, dir string, files map[string][]byte) string {
	t.Helper()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	write := func(name string, data []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for path, data := range files {
		overlay.Replace[path] = write(fmt.Sprintf("%d-%s", len(overlay.Replace), filepath.Base(path)), data)
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	return write("overlay.json", text)
}

// Server is the program in a separate process. Its methods are safe for concurrent use.
type Server struct {
	URL  string // URL at a loopback address, without a slash at its end
	Data string // path of the data folder

	mu      sync.Mutex
	output  []string
	changed chan struct{} // closed at the next line of output, and at the end of an output
	open    int           // number of outputs that have not ended
}

var addressLine = regexp.MustCompile(`msg=serving address=(\S+)`)

// Serve starts binary on a free port of loopback and stops it when the test ends. The test fails if the program exits with an error or
// logs one.
func Serve(t testing.TB, binary string, args ...string) *Server {
	t.Helper()
	return ServeIn(t, binary, t.TempDir(), args...)
}

// ServeIn is [Serve] with a data folder that the caller chooses.
func ServeIn(t testing.TB, binary, data string, args ...string) *Server {
	t.Helper()
	s := &Server{Data: data, changed: make(chan struct{}), open: 2}
	cmd := exec.Command(binary, append([]string{"serve", "--listen", "127.0.0.1:0", "--data", s.Data, "--log-format", "text"}, args...)...)
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
	var outputs sync.WaitGroup
	outputs.Go(func() { s.read(stdout) })
	outputs.Go(func() { s.read(stderr) })
	t.Cleanup(func() {
		if err := cmd.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
		outputs.Wait()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
		for _, line := range s.output {
			if strings.Contains(line, "level=ERROR") {
				t.Errorf("the server says: %s", line)
			}
		}
	})
	s.URL = "http://" + s.Find(t, addressLine)
	return s
}

func (s *Server) read(r io.Reader) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		s.addLine(lines.Text())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	s.wake()
}

func (s *Server) addLine(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.output = append(s.output, line)
	s.wake()
}

// wake wakes the goroutines that wait for a change. The caller holds s.mu.
func (s *Server) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// lines returns the lines of output starting at line n, whether more may follow, and a channel that closes when something changes.
func (s *Server) lines(n int) (lines []string, more bool, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.output[n:], s.open > 0, s.changed
}

// Find returns the first group of the pattern in the first line of output that matches. It waits for such a line, and fails the test if
// the server ends before.
func (s *Server) Find(t testing.TB, pattern *regexp.Regexp) string {
	t.Helper()
	for n := 0; ; {
		lines, more, changed := s.lines(n)
		for _, line := range lines {
			if m := pattern.FindStringSubmatch(line); m != nil {
				return m[1]
			}
		}
		if n += len(lines); !more {
			t.Fatalf("the server ended without saying %s:\n%s", pattern, strings.Join(s.output, "\n"))
		}
		<-changed
	}
}

// Follow writes every past and future line of output to w, until the server ends, w fails, or stop is closed.
func (s *Server) Follow(w io.Writer, stop <-chan struct{}) {
	for n := 0; ; {
		lines, more, changed := s.lines(n)
		for _, line := range lines {
			if _, err := io.WriteString(w, line+"\n"); err != nil {
				return
			}
		}
		if n += len(lines); !more {
			return
		}
		select {
		case <-changed:
		case <-stop:
			return
		}
	}
}
