package kernels_test

import (
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/wasm/host/kernels"
	"github.com/sightline-dev/sightline/wasm/prebuilt"
)

// TestSuitesOfTheKernels runs the tests of every package of kernels as a guest, and tests that need the host's processor level or network.
func TestSuitesOfTheKernels(t *testing.T) {
	testkit.Nightly(t)
	n := kernels.New(kernels.Options{Weights: 32 << 20})
	r := prebuilt.Runtime(t)
	if err := n.Instantiate(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	suites := slices.Concat(prebuilt.Kernels, []prebuilt.Suite{
		{Package: "core/cpu", Run: "."},
		{Package: "models", Run: "TestGoldenOutputs/lent"}, // models/testdata/golden.tsv, the same for all targets
	})
	for _, s := range suites {
		t.Run(s.Package, func(t *testing.T) {
			in := n.Open()
			defer in.Close()
			s.Test(in.Bind(t.Context()), t, r, nil)
		})
	}
	if packings, bytes := n.PackingUsage(); packings != 0 || bytes != 0 {
		t.Errorf("%d packings of %d bytes are held after all instances have closed", packings, bytes)
	}
}
