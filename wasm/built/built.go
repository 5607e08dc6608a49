// Package built makes the module for tests that run it, from the sources beside them. Only tests
// import it.
package built

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/sightline-dev/sightline/core/proof"
)

// guests are built once a process, by their tags.
var guests = map[string]func() ([]byte, error){
	"":     sync.OnceValues(func() ([]byte, error) { return build("") }),
	"lent": sync.OnceValues(func() ([]byte, error) { return build("lent") }),
}

// root is the repository's folder; it is found by the first test that asks.
var root string

var find sync.Mutex

// Guest is the module as `make wasm` builds it: it imports its kernels.
func Guest(t testing.TB) []byte { return guest(t, "lent") }

// Plain is the module with kernels of its own, in plain Go: slow, and alike in every answer.
func Plain(t testing.TB) []byte { return guest(t, "") }

func guest(t testing.TB, tags string) []byte {
	t.Helper()
	find.Lock()
	root = proof.Root(t)
	find.Unlock()
	module, err := guests[tags]()
	if err != nil {
		t.Fatal(err)
	}
	return module
}

// build compiles the module, which costs nothing where the Go command finds it compiled.
// Processes may do so at once: each renames a file of its own into place.
func build(tags string) ([]byte, error) {
	folder := filepath.Join(root, ".cache")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp(folder, "guest-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	file := filepath.Join(temp, "guest.wasm")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-tags", tags, "-buildmode=c-shared", "-o", file, "./wasm/guest")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build ./wasm/guest: %w\n%s", err, out)
	}
	return os.ReadFile(file)
}
