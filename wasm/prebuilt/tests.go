package prebuilt

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"github.com/sightline-dev/sightline/core/testkit"
)

// Suite selects tests of a package that uses the kernels of its host. Run is the pattern of -test.run.
type Suite struct{ Package, Run string }

// Kernels lists the packages whose kernels a host provides. Their tests compare the kernels with the definitions in Go.
var Kernels = []Suite{
	{"core/predict/nn/kernel", "."},
	{"core/index/hnsw/kernel", "."},
	{"core/train/kernel", "."},
	{"core/predict/raster", "."},
	{"core/predict/raster/jpg", "Inverse"},
	{"core/jsonio", "."},
	{"core/blob", "Sum|Hash|Blobs"},
}

// Test runs a suite as a guest, in the folder of its package. Before the guest starts, Test calls attach, which links the guest with its
// host. attach may be nil.
func (s Suite) Test(ctx context.Context, t testing.TB, r wazero.Runtime, attach func(ctx context.Context, guest api.Module) error) {
	t.Helper()
	compiled, err := r.CompileModule(ctx, tests(t, s.Package))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	guest, err := r.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions().
		WithArgs("test", "-test.short", "-test.run="+s.Run).WithEnv("PWD", filepath.Join(testkit.Root(t), s.Package)).
		WithStdout(&out).WithStderr(&out).WithFSConfig(wazero.NewFSConfig().WithDirMount("/", "/")).
		WithSysWalltime().WithSysNanotime().WithSysNanosleep().WithRandSource(rand.Reader))
	if err != nil {
		t.Fatal(err)
	}
	defer guest.Close(ctx)
	if attach != nil {
		if err := attach(ctx, guest); err != nil {
			t.Fatal(err)
		}
	}
	_, err = guest.ExportedFunction("_start").Call(ctx)
	var exit *sys.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 0 || !strings.HasSuffix(out.String(), "PASS\n") {
		t.Errorf("%s: %v\n%s", s.Package, err, out.String())
	}
}

// tests returns the tests of a package, such as core/jsonio, built as a guest that imports its kernels from the host.
func tests(t testing.TB, pkg string) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "test.wasm")
	cmd := exec.Command("go", "test", "-c", "-tags", "lent", "-trimpath", "-ldflags", "-s -w", "-o", file, "./"+pkg)
	cmd.Dir = testkit.Root(t)
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

// Runtime returns a runtime with WASI for [Suite.Test], which it closes when the test ends. Compiled modules are stored in the cache of
// the wasip1 tests.
func Runtime(t testing.TB) wazero.Runtime {
	t.Helper()
	cache, err := wazero.NewCompilationCacheWithDir(filepath.Join(testkit.Root(t), ".cache", "wazero"))
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
