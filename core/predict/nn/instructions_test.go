package nn_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/sightline-dev/sightline/core/predict/nn"
	"github.com/sightline-dev/sightline/core/predict/nn/kernel"
)

// TestInstructions runs the released network, and then each of its pointwise layers, between two calls of os.Getppid, and prints their
// multiply-adds. Under qemu the plugin of .ci/instructions counts what happens between the calls.
func TestInstructions(t *testing.T) {
	if os.Getenv("INSTRUCTIONS") == "" {
		t.Skip("INSTRUCTIONS is not set")
	}
	n := loadNetwork(t)
	p := plan(t, n, nn.Options{})
	s, in := prepare(t, n)
	if _, err := s.Run(in); err != nil { // the first run has caches to fill
		t.Fatal(err)
	}
	between := func(work int64, f func()) {
		os.Getppid()
		f()
		os.Getppid()
		fmt.Printf("work %d\n", work)
	}
	fmt.Printf("\nlevel %s\n", kernel.Levels.Current())
	between(p.Work(), func() {
		if _, err := s.Run(in); err != nil {
			t.Error(err)
		}
	})
	for _, c := range n.Pointwise() {
		outs, ins := c.Weights[0], c.Weights[1]
		w := kernel.PackS8(c.Bytes, outs, ins)
		src, dst := make([]uint8, c.Pixels*ins), make([]uint8, c.Pixels*outs)
		q := &kernel.Requant{Bias: make([]int32, outs), Scale: make([]float32, outs), Zero: c.Zero, Hi: 255}
		between(int64(c.Pixels*ins*outs), func() { kernel.ConvRowU8(dst, outs, src, ins, 0, c.Pixels, w, q, nil) })
	}
}
