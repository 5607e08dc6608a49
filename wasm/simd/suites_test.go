//go:build !wasip1

package simd_test

import (
	"context"
	"testing"

	"github.com/tetratelabs/wazero/api"

	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/wasm/prebuilt"
	"github.com/sightline-dev/sightline/wasm/simd"
)

// TestSuitesOfTheKernels runs the tests of every package of kernels as a guest. It runs the tests of the int8 products also with the
// modules in exact.
func TestSuitesOfTheKernels(t *testing.T) {
	testkit.Nightly(t)
	testSuites(t, simd.Module(), prebuilt.Kernels)
	for name, module := range exact {
		t.Run(name, func(t *testing.T) { testSuites(t, module(), prebuilt.Kernels[:1]) })
	}
}

func testSuites(t *testing.T, module []byte, suites []prebuilt.Suite) {
	r := prebuilt.Runtime(t)
	l, err := link(t.Context(), r, module)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range suites {
		t.Run(s.Package, func(t *testing.T) {
			s.Test(t.Context(), t, r, func(ctx context.Context, guest api.Module) error {
				t.Cleanup(func() { _ = l.Detach(context.Background(), guest) })
				return l.Attach(ctx, guest)
			})
		})
	}
}
