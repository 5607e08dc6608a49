package search

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPageAgreesWithSort compares pages that are selected by counting with the sorted whole: scores with ties, negative ones and zeros of
// both signs, at the first page, the last, and in between.
func TestPageAgreesWithSort(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 9))
	draws := map[string]func() float64{
		"few values":  func() float64 { return float64(rng.IntN(11)) / 10 },
		"many values": rng.Float64,
		"mixed":       func() float64 { return []float64{0.5, rng.Float64()}[rng.IntN(2)] },
		"one value":   func() float64 { return 0.25 },
		"signs":       func() float64 { return []float64{0, math.Copysign(0, -1), -rng.Float64(), 1}[rng.IntN(4)] },
		"close": func() float64 { // differ in the lowest digits only, or beyond a float32's
			return float64(math.Float32frombits(math.Float32bits(0.7)+rng.Uint32N(3))) + 1e-12*rng.Float64()
		},
	}
	m := new(memory)
	for name, draw := range draws {
		for _, n := range []int{1, few, few + 1, 9000} {
			s := scoredInputs{}
			var want []Hit
			for i := range n {
				f := draw()
				s.ords, s.factor = append(s.ords, uint32(3*i)), append(s.factor, f)
				want = append(want, Hit{uint32(3 * i), float32(f)})
			}
			slices.SortStableFunc(want, byScore)
			for range 30 {
				from := rng.IntN(n)
				size := min(1+rng.IntN(1+rng.IntN(n)), n-from)
				got := s.page(Page{Offset: uint64(from), N: uint64(size)}, m)
				if diff := cmp.Diff(want[from:from+size], got.Hits); diff != "" {
					t.Fatalf("%s: page from %d of %d hits, want -, got +:\n%s", name, from, n, diff)
				}
			}
		}
	}
}
