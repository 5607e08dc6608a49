package kernel_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/predict/nn/kernel"
)

const (
	guard  = 0xA5
	margin = 64
)

// guardedCopy returns a copy of v inside a larger array that is filled with guard.
func guardedCopy[T uint8 | float32](v []T) (buf, inside []T) {
	buf = slices.Repeat([]T{guard}, len(v)+2*margin)
	inside = buf[margin : margin+len(v) : margin+len(v)]
	copy(inside, v)
	return buf, inside
}

// same calls a kernel on a copy of dst inside a larger array. It compares the whole array with one in which fill has written the results.
func same(t *testing.T, label any, dst []uint8, call, fill func(dst []uint8)) {
	t.Helper()
	want, inside := guardedCopy(dst)
	fill(inside)
	got, inside := guardedCopy(dst)
	call(inside)
	if bytes.Equal(got, want) {
		return
	}
	at := 0
	for got[at] == want[at] {
		at++
	}
	t.Errorf("%v: byte %d of %d = %d, want %d", label, at-margin, len(dst), got[at], want[at])
}

// near calls a kernel with numbers inside a larger array and compares rows of width results, ld apart, with their definition. Nothing else
// may change.
func near(t *testing.T, label any, rows, width, ld int, call func(dst []float32), definition func(row, i int) (want, tolerance float64)) {
	t.Helper()
	buf, dst := guardedCopy(slices.Repeat([]float32{guard}, (rows-1)*ld+width))
	call(dst)
	for row := range rows {
		for i, got := range dst[row*ld:][:width] {
			if want, tolerance := definition(row, i); !(math.Abs(float64(got)-want) <= tolerance) {
				t.Errorf("%v: result %d of row %d = %v, want %v", label, i, row, got, want)
				return
			}
			dst[row*ld+i] = guard
		}
	}
	if at := slices.IndexFunc(buf, func(v float32) bool { return v != guard }); at >= 0 {
		t.Errorf("%v: wrote outside, at %d of %d", label, at-margin, len(dst))
	}
}

// atEveryLevel runs f as a subtest of each level that the machine has.
func atEveryLevel(t *testing.T, f func(t *testing.T)) {
	for level := range kernel.Levels.Each() {
		t.Run(level.String(), f)
	}
}

// seeds runs f with n seeded random sources and names the seed of a failure.
func seeds(t *testing.T, n uint64, f func(t *testing.T, rng *rand.Rand)) {
	for seed := range n {
		f(t, rand.New(rand.NewPCG(seed, 7)))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
