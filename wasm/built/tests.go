package built

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/sightline-dev/sightline/core/proof"
)

// Tests is the tests of a package, such as core/jsonio, as a guest that is lent its kernels.
func Tests(t testing.TB, pkg string) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "test.wasm")
	cmd := exec.Command("go", "test", "-c", "-tags", "lent", "-trimpath", "-ldflags", "-s -w", "-o", file, "./"+pkg)
	cmd.Dir = proof.Root(t)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go test -c %s: %v\n%s", pkg, err, out)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Runtime is a runtime with WASI for [Tests], which compiles into the cache of the wasip1 tests.
func Runtime(t testing.TB) wazero.Runtime {
	t.Helper()
	cache, err := wazero.NewCompilationCacheWithDir(filepath.Join(proof.Root(t), ".cache", "wazero"))
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCompilationCache(cache))
	t.Cleanup(func() {
		if err := errors.Join(r.Close(ctx), cache.Close(ctx)); err != nil {
			t.Error(err)
		}
	})
	wasi_snapshot_preview1.MustInstantiate(ctx, r)
	return r
}
