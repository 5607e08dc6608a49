//go:build !wasip1

package simd_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/sys"

	"github.com/sightline-dev/sightline/core/proof"
	"github.com/sightline-dev/sightline/wasm/built"
)

// suites are the packages whose kernels the module computes. Their own tests hold it to the generic definition.
var suites = []struct{ pkg, run string }{
	{"core/predict/nn/kernel", "."},
	{"core/index/hnsw/kernel", "."},
	{"core/train/kernel", "."},
	{"core/predict/raster", "."},
	{"core/predict/raster/jpg", "Inverse"},
	{"core/jsonio", "."},
	{"core/blob", "Sum|Hash|Blobs"},
}

// runTests runs a test binary in the folder of its package.
func runTests(t *testing.T, r wazero.Runtime, l *linker, pkg string, args ...string) {
	t.Helper()
	ctx := t.Context()
	compiled, err := r.CompileModule(ctx, built.Tests(t, pkg))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	folder := filepath.Join(proof.Root(t), pkg)
	guest, err := r.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions().
		WithArgs(append([]string{"test"}, args...)...).WithEnv("PWD", folder).
		WithStdout(&out).WithStderr(&out).WithFSConfig(wazero.NewFSConfig().WithDirMount("/", "/")).
		WithSysWalltime().WithSysNanotime().WithSysNanosleep().WithRandSource(rand.Reader))
	if err != nil {
		t.Fatal(err)
	}
	defer guest.Close(ctx)
	if err := l.Attach(ctx, guest); err != nil {
		t.Fatal(err)
	}
	defer l.Detach(ctx, guest)
	_, err = guest.ExportedFunction("_start").Call(ctx)
	var exit *sys.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 0 || !strings.HasSuffix(out.String(), "PASS\n") {
		t.Errorf("%s: %v\n%s", pkg, err, out.String())
	}
}

// TestSuitesOfTheKernels runs the tests of every package of kernels as a guest.
func TestSuitesOfTheKernels(t *testing.T) {
	proof.Nightly(t)
	r := built.Runtime(t)
	l, err := link(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range suites {
		t.Run(s.pkg, func(t *testing.T) {
			runTests(t, r, l, s.pkg, "-test.short", "-test.run="+s.run)
		})
	}
}
