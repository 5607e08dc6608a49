package kernels_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/sys"

	"github.com/sightline-dev/sightline/core/proof"
	"github.com/sightline-dev/sightline/wasm/built"
	"github.com/sightline-dev/sightline/wasm/host/kernels"
)

// suites are the packages whose kernels a host lends. Their own tests are the proof: run as a
// guest, they hold what the host computes to the generic definition.
var suites = []struct{ pkg, run string }{
	{"core/cpu", "."},
	{"core/predict/nn/kernel", "."},
	{"core/index/hnsw/kernel", "."},
	{"core/train/kernel", "."},
	{"core/predict/raster", "."},
	{"core/predict/raster/jpg", "Inverse"},
	{"core/jsonio", "."},
	{"core/blob", "Sum|Hash|Blobs"},
	{"models", "TestGoldenOutputs/lent"}, // models/testdata/golden.tsv, the same for all targets
}

// runTests runs a test binary in the folder of its package and returns what it printed.
func runTests(t testing.TB, ctx context.Context, r wazero.Runtime, pkg string, binary []byte, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	folder := filepath.Join(proof.Root(t), pkg)
	config := wazero.NewModuleConfig().WithName("").WithArgs(append([]string{"test"}, args...)...).WithEnv("PWD", folder).
		WithStdout(&out).WithStderr(&out).WithFSConfig(wazero.NewFSConfig().WithDirMount("/", "/")).
		WithSysWalltime().WithSysNanotime().WithSysNanosleep().WithRandSource(rand.Reader)
	m, err := r.InstantiateWithConfig(ctx, binary, config)
	if m != nil {
		m.Close(ctx)
	}
	var exit *sys.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 0) {
		t.Errorf("%s: %v\n%s", pkg, err, out.String())
	}
	return out.String()
}

// TestSuitesOfTheKernels runs the tests of every package of kernels as a guest.
func TestSuitesOfTheKernels(t *testing.T) {
	proof.Nightly(t)
	n := kernels.New(kernels.Options{Weights: 32 << 20})
	r := built.Runtime(t)
	if err := n.Instantiate(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	for _, s := range suites {
		t.Run(s.pkg, func(t *testing.T) {
			in := n.Open()
			defer in.Close()
			out := runTests(t, in.Bind(t.Context()), r, s.pkg, built.Tests(t, s.pkg), "-test.short", "-test.run="+s.run)
			if !t.Failed() && !strings.HasSuffix(out, "PASS\n") {
				t.Errorf("printed %q, want PASS at the end", out)
			}
		})
	}
	if packings, bytes := n.Held(); packings != 0 || bytes != 0 {
		t.Errorf("%d packings of %d bytes are held after all instances have closed", packings, bytes)
	}
}
