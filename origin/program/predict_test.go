package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/cli"
)

// run runs the command line and returns its exit code and what it wrote.
func run(t *testing.T, stdin io.Reader, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	if stdin == nil {
		stdin = strings.NewReader("")
	}
	environ := func() []string { return []string{"XDG_CACHE_HOME=" + os.Getenv("XDG_CACHE_HOME")} } // without one that a test sets, there is no cache
	code = cli.Run(t.Context(), New(), server.Env{Args: args, Stdin: stdin, Stdout: &out, Stderr: &errs, Environ: environ})
	return code, out.String(), errs.String()
}

// album creates a folder with three photos, a text file and a subfolder.
func album(t *testing.T) (dir string, pictures []string) {
	t.Helper()
	dir = t.TempDir()
	for from, to := range map[string]string{
		"35-slice-of-pizza.jpg": "b pizza.jpg", "09-sea-turtle.jpg": "a/turtle", "26-green-roadster.jpg": "c.jpeg",
	} {
		path := filepath.Join(dir, to)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, sample(t, from), 0o600); err != nil {
			t.Fatal(err)
		}
		pictures = append(pictures, path)
	}
	if err := os.WriteFile(filepath.Join(dir, "notes.jpg"), []byte("no picture at all"), 0o600); err != nil {
		t.Fatal(err)
	}
	slices.Sort(pictures)
	return dir, pictures
}

func TestPredictTable(t *testing.T) {
	_, pictures := album(t)
	code, stdout, stderr := run(t, nil, "predict", pictures[1])
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if code != 0 || len(lines) != 5 || stderr != "" {
		t.Fatalf("one picture: %d\n%s%s", code, stdout, stderr)
	}
	if !strings.Contains(stdout, "food") || !strings.Contains(lines[0], "█") || strings.Contains(stdout, "\x1b") {
		t.Errorf("the table of a pizza:\n%s", stdout)
	}
	code, stdout, stderr = run(t, nil, "predict", "--top", "2", pictures[0], pictures[1])
	if code != 0 || !strings.HasPrefix(stdout, pictures[0]+"\n  ") || !strings.Contains(stdout, "\n\n"+pictures[1]+"\n  ") || strings.Count(stdout, "\n") != 7 {
		t.Errorf("two pictures: %d\n%s", code, stdout)
	}
	if !strings.HasPrefix(stderr, "2 pictures, 0 failed, ") {
		t.Errorf("the sum is %q", stderr)
	}
	if _, _, stderr = run(t, nil, "predict", "-q", pictures[0], pictures[1]); stderr != "" {
		t.Errorf("quietly: %q", stderr)
	}
}

func TestPredictJSONKeepsOrder(t *testing.T) {
	dir, pictures := album(t)
	args := []string{"predict", "--json", "--workers", "4", "missing.jpg", dir}
	for range 30 {
		args = append(args, pictures...)
	}
	code, stdout, stderr := run(t, nil, args...)
	want := append([]string{"missing.jpg"}, pictures...)
	for range 30 {
		want = append(want, pictures...)
	}
	var got []string
	for line := range strings.Lines(stdout) {
		var o struct {
			ID     string
			Status cli.Status
			Input  struct {
				Data struct{ Image struct{ URL string } }
			}
			Data struct{ Concepts []cli.Object }
		}
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		url := o.Input.Data.Image.URL
		if failed := o.Status.Code != 10000; failed != (url == "missing.jpg") || !failed && len(o.Data.Concepts) != 20 || len(o.ID) != 32 {
			t.Errorf("%s: status %d, %d concepts", url, o.Status.Code, len(o.Data.Concepts))
		}
		got = append(got, url)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the order is %q, want %q", got, want)
	}
	if code != 3 || !strings.Contains(stderr, "missing.jpg: open missing.jpg: no such file") || !strings.Contains(stderr, "94 pictures, 1 failed") {
		t.Errorf("exit code %d, want 3:\n%s", code, stderr)
	}
}

func TestPredictSources(t *testing.T) {
	testkit.SkipRace(t)
	_, pictures := album(t)
	pizza, err := os.ReadFile(pictures[1])
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(pizza) }))
	defer server.Close()
	_, file, _ := run(t, nil, "predict", pictures[1])
	for name, tt := range map[string]struct {
		stdin io.Reader
		args  []string
	}{
		"standard input": {bytes.NewReader(pizza), []string{"-"}},
		"address":        {nil, []string{"--allow-private-fetch", server.URL + "/pizza"}},
	} {
		if code, stdout, stderr := run(t, tt.stdin, append([]string{"predict"}, tt.args...)...); code != 0 || stdout != file {
			t.Errorf("%s: %d\n%s%s\nwant\n%s", name, code, stdout, stderr, file)
		}
	}
	code, _, stderr := run(t, nil, "predict", server.URL+"/pizza")
	if code != 1 || !strings.Contains(stderr, "is not permitted") {
		t.Errorf("a private address: %d %q, want 1 and that it is refused", code, stderr)
	}
	if code, stdout, _ := run(t, bytes.NewReader(pizza), "predict", "--json", "-"); code != 0 || !strings.Contains(stdout, `"url":"-"`) {
		t.Errorf("standard input as JSON: %d %s", code, stdout)
	}
}

func TestPredictModelsAndLanguages(t *testing.T) {
	testkit.SkipRace(t)
	_, pictures := album(t)
	turtle, pizza := pictures[0], pictures[1]
	for _, tt := range []struct {
		args []string
		text string
	}{
		{[]string{"--model", "general-v1.3", pizza}, "food"},
		{[]string{"--model", generalID, pizza}, "food"},
		{[]string{"--model", "food-items-v1.0", "--top", "200", "--min-value", "0", pizza}, "pizza"},
		{[]string{"--model", "food-items-v1.0", "--min-value", "0.9", turtle}, "no food"},
		{[]string{"--model", "color", pizza}, "#"},
		{[]string{"--model", embedID, pizza}, "256 numbers"},
		{[]string{"--language", "de", pizza}, "Essen"},
		{[]string{"--language", "zh-TW", turtle}, "動物"},
	} {
		code, stdout, stderr := run(t, nil, append([]string{"predict"}, tt.args...)...)
		if code != 0 || !strings.Contains(stdout, tt.text) {
			t.Errorf("%q: %d\n%s%s\nwant it to hold %q", tt.args, code, stdout, stderr, tt.text)
		}
	}
}

func TestExitCodes(t *testing.T) {
	testkit.SkipRace(t)
	dir, pictures := album(t)
	empty := t.TempDir()
	notes := filepath.Join(dir, "notes.jpg")
	for _, tt := range []struct {
		code   int
		args   []string
		stderr string
	}{
		{0, []string{"predict", pictures[0]}, ""},
		{0, []string{"version"}, ""},
		{0, nil, ""},
		{0, []string{"predict", "--help"}, ""},
		{1, []string{"predict", "missing.jpg"}, "missing.jpg: "},
		{1, []string{"predict", notes}, "notes.jpg: "},
		{1, []string{"predict", empty}, "no pictures in "},
		{1, []string{"serve", "--data", notes, "--listen", "127.0.0.1:0"}, "data folder: "},
		{2, []string{"predict"}, "no pictures given"},
		{2, []string{"predict", "-", "-"}, "once"},
		{2, []string{"predict", "--model", "none", pictures[0]}, "model not found"},
		{2, []string{"predict", "--language", "xx", pictures[0]}, "--language xx"},
		{2, []string{"predict", "--model", "color", "--language", "de", pictures[0]}, "--language de"},
		{2, []string{"predict", "--top", "201", pictures[0]}, "--top 201"},
		{2, []string{"predict", "--top", "-1", pictures[0]}, "--top -1"},
		{2, []string{"predict", "--min-value", "1.5", pictures[0]}, "--min-value"},
		{2, []string{"predict", "--min-value", "NaN", pictures[0]}, "--min-value"},
		{2, []string{"predict", "--workers", "-1", pictures[0]}, "--workers"},
		{2, []string{"predict", "--nonsense", pictures[0]}, "unknown flag"},
		{2, []string{"nonsense"}, "unknown command"},
		{2, []string{"version", "x"}, "unexpected argument"},
		{2, []string{"serve", "--listen", "0.0.0.0:80"}, "refusing plain HTTP on 0.0.0.0:80"},
		{3, []string{"predict", pictures[0], notes}, "notes.jpg: "},
	} {
		code, _, stderr := run(t, nil, tt.args...)
		if code != tt.code || !strings.Contains(stderr, tt.stderr) || tt.code == 2 && !strings.Contains(stderr, "--help'") {
			t.Errorf("%q: exit code %d, want %d; standard error %q", tt.args, code, tt.code, stderr)
		}
	}
}

func TestVersion(t *testing.T) {
	_, stdout, _ := run(t, nil, "version")
	if !strings.HasPrefix(stdout, "sightline "+server.Version+" (go") {
		t.Errorf("version prints %q", stdout)
	}
	_, stdout, _ = run(t, nil, "version", "--json")
	var v struct{ Version, Go, Platform string }
	if err := json.Unmarshal([]byte(stdout), &v); err != nil || v.Version != server.Version || v.Go == "" || v.Platform == "" {
		t.Errorf("version --json prints %q", stdout)
	}
}

// closedPipe is an output whose reader closes after left bytes.
type closedPipe struct{ left int }

func (c *closedPipe) Write(p []byte) (int, error) {
	if c.left -= len(p); c.left < 0 {
		return 0, &os.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}
	}
	return len(p), nil
}

func TestBrokenPipeEndsQuietly(t *testing.T) {
	_, pictures := album(t)
	args := []string{"predict"}
	for range 50 {
		args = append(args, pictures...)
	}
	var stderr bytes.Buffer
	code := cli.Run(t.Context(), New(), server.Env{Args: args, Stdin: strings.NewReader(""), Stdout: &closedPipe{left: 500}, Stderr: &stderr, Environ: func() []string { return nil }})
	if code != 0 || stderr.Len() != 0 {
		t.Errorf("exit code %d and %q, want 0 and nothing", code, &stderr)
	}
}

func TestOtherWriteErrorsFail(t *testing.T) {
	_, pictures := album(t)
	var stderr bytes.Buffer
	code := cli.Run(t.Context(), New(), server.Env{Args: []string{"predict", pictures[0]}, Stdout: full{}, Stderr: &stderr, Environ: func() []string { return nil }})
	if code != 1 || !strings.Contains(stderr.String(), "no space") {
		t.Errorf("exit code %d and %q, want 1 and no space", code, &stderr)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestInterruptEndsPredict(t *testing.T) {
	_, pictures := album(t)
	args := []string{"predict"}
	for range 100 {
		args = append(args, pictures...)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var stderr bytes.Buffer
	code := cli.Run(ctx, New(), server.Env{Args: args, Stdout: &interrupting{after: 3, cancel: cancel}, Stderr: &stderr, Environ: func() []string { return nil }})
	if code != 1 || !strings.Contains(stderr.String(), "interrupted after ") {
		t.Errorf("exit code %d and %q, want 1 and how far it came", code, &stderr)
	}
}

type interrupting struct {
	after  int
	cancel context.CancelFunc
}

func (i *interrupting) Write(p []byte) (int, error) {
	if i.after--; i.after == 0 {
		i.cancel()
	}
	return len(p), nil
}

func TestTableIsSafeForTerminals(t *testing.T) {
	for in, want := range map[string]string{"a\x1b[31mb": "a�[31mb", "a\nb": "a�b", "\u202etxt": "�txt", "猫 ü": "猫 ü", "\u009b": "�"} {
		if got := server.Printable(in); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
	for value, want := range map[float64]string{0: "", 1: strings.Repeat("█", 20), 0.5: strings.Repeat("█", 10), 0.025: "▌", 0.05: "█"} {
		if got := bar(value); got != want {
			t.Errorf("bar(%v) = %q, want %q", value, got, want)
		}
	}
	var b strings.Builder
	tab := table{w: &b, color: true, model: &predict.Model{Name: "color"}}
	output := `{"data":{"colors":[{"raw_hex":"#ff8000","w3c":{"hex":"#ff8c00","name":"DarkOrange"},"value":0.5}]}}`
	if err := tab.write(&answer{output: []byte(output)}); err != nil || !strings.Contains(b.String(), "\x1b[48;2;255;128;0m") {
		t.Errorf("%v: %q, want a swatch", err, b.String())
	}
	b.Reset()
	tab.color = false
	wide := `{"data":{"concepts":[{"name":"動物","value":0.9},{"name":"turtle","value":0.5}]}}`
	if err := tab.write(&answer{output: []byte(wide)}); err != nil || !strings.HasPrefix(b.String(), "  動物    0.900  ") {
		t.Errorf("%v: wide letters are not aligned:\n%s", err, b.String())
	}
	if err := tab.write(&answer{output: []byte("{")}); err == nil {
		t.Error("a broken output is written")
	}
}
