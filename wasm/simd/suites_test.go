//go:build !wasip1

package simd_test

import (
	"context"
	"testing"

	"github.com/tetratelabs/wazero/api"

	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/wasm/prebuilt"
)

// TestSuitesOfTheKernels runs the tests of every package of kernels as a guest.
func TestSuitesOfTheKernels(t *testing.T) {
	testkit.Nightly(t)
	r := prebuilt.Runtime(t)
	l, err := link(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range prebuilt.Kernels {
		t.Run(s.Package, func(t *testing.T) {
			s.Test(t.Context(), t, r, func(ctx context.Context, guest api.Module) error {
				t.Cleanup(func() { _ = l.Detach(context.Background(), guest) })
				return l.Attach(ctx, guest)
			})
		})
	}
}
