package slim_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"github.com/sightline-dev/sightline/wasm/slim"
)

// program returns the linked module of testdata/program.
func program(t *testing.T) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "program.wasm")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", file, "./testdata/program")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	module, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return module
}

// run runs a module, and returns its exit code and its output.
func run(t *testing.T, module []byte, args ...string) (code uint32, printed string) {
	t.Helper()
	ctx := t.Context()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer r.Close(context.WithoutCancel(ctx))
	wasi_snapshot_preview1.MustInstantiate(ctx, r)
	var out bytes.Buffer
	config := wazero.NewModuleConfig().WithArgs(append([]string{"program"}, args...)...).
		WithStdout(&out).WithStderr(&out).WithRandSource(rand.Reader)
	_, err := r.InstantiateWithConfig(ctx, module, config)
	var exit *sys.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v\n%s", err, &out)
	}
	if exit != nil {
		code = exit.ExitCode()
	}
	return code, out.String()
}

// TestModule runs a program with and without the tables of stack traces. Only its stack traces differ. It fails with a release of Go that slim
// does not know.
func TestModule(t *testing.T) {
	linked := program(t)
	slimmed, err := slim.Module(linked)
	if err != nil {
		t.Fatalf("%v: the comment of package slim has what to do", err)
	}
	again, err := slim.Module(linked)
	if err != nil || !bytes.Equal(again, slimmed) {
		t.Errorf("a second time gives another module: %v", err)
	}
	const want = "501 2210<nil> 210runtime error: index out of range [2] with length 2\n"
	for name, module := range map[string][]byte{"linked": linked, "slimmed": slimmed} {
		if code, got := run(t, module); code != 0 || got != want {
			t.Errorf("%s: exit code %d, printed %q, want %q", name, code, got, want)
		}
	}
	code, got := run(t, slimmed, "panic")
	trace, ok := strings.CutPrefix(got, want+"panic: runtime error: index out of range [7] with length 0\n")
	if code != 2 || !ok || !strings.Contains(trace, "main.Caller()\n\t?:0") || strings.Contains(trace, ".go:") {
		t.Errorf("exit code %d, printed\n%s", code, got)
	}
	if _, got := run(t, linked, "panic"); !strings.Contains(got, "main.go:") {
		t.Errorf("the linked module has no lines either: the test shows nothing\n%s", got)
	}
	if bytes.Contains(slimmed, []byte("testdata/program/main.go")) {
		t.Error("the names of files remain")
	}
}

// TestRejects checks that Module returns ErrModule for modules that are cut off, have another layout, or are not from a known release
// of Go.
func TestRejects(t *testing.T) {
	linked := program(t)
	rejects := func(name string, module []byte) {
		t.Helper()
		if _, err := slim.Module(module); !errors.Is(err, slim.ErrModule) {
			t.Errorf("%s: %v", name, err)
		}
	}
	rejects("nothing", nil)
	const start, goProducer = "\x00asm\x01\x00\x00\x00", "\x00\x11\x09producers\x06go1.26"
	rejects("no producers", []byte(start))
	rejects("no data", []byte(start+goProducer))
	rejects("data of no Go program", []byte(start+goProducer+"\x0b\x07\x01\x00\x41\x08\x0b\x01x"))
	for n := 9; n < len(linked); n += len(linked) / 64 {
		rejects("cut off", linked[:n])
	}
	magic := []byte{0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8}
	at := bytes.Index(linked, magic)
	if at < 0 {
		t.Fatal("no header of function tables")
	}
	changed := func(at int, b ...byte) []byte {
		out := bytes.Clone(linked)
		copy(out[at:], b)
		return out
	}
	rejects("another layout", changed(at, 0xf2))
	rejects("no tables at the place in the header", changed(at+32, binary.LittleEndian.AppendUint32(nil, 4096)...))
	const minor = "\x0cprocessed-by\x01\x0eGo cmd/compile\x08go1."
	if at = bytes.LastIndex(linked, []byte(minor)); at < 0 {
		t.Fatal("the module does not name its release of Go")
	}
	rejects("a newer release", bytes.ReplaceAll(linked, linked[at+len(minor)-4:][:6], []byte("go1.99")))
}
