//go:build wasip1 && lent

package kernel

import (
	"runtime"
	"testing"
)

// init makes the generic level pack all weights that the host packs, so that tests can compare both.
func init() { packBoth = true }

// TestWeightsAreFreed packs more weights than a test's host stores for one module, but keeps none of them, so that the host can free them.
func TestWeightsAreFreed(t *testing.T) {
	packBoth = false
	defer func() { packBoth = true }()
	w := make([]int8, 1<<20)
	for i := range 64 {
		w[0] = int8(i)
		if p := PackS8(w, 1<<10, 1<<10); p.alone() {
			t.Fatalf("the host refuses packing %d", i)
		}
		runtime.GC()
		runtime.Gosched()
	}
}

// TestHostWithoutSpaceForWeights checks that this package computes the same results if the host accepts no more weights.
func TestHostWithoutSpaceForWeights(t *testing.T) {
	var packs []*PackedS8
	w := make([]int8, 1<<20)
	for len(packs) < 64 {
		w[0] = int8(len(packs))
		p := PackS8(w, 1<<10, 1<<10)
		if p.handle == 0 {
			break
		}
		packs = append(packs, p)
	}
	if len(packs) == 64 {
		t.Skip("this host takes everything")
	}
	for i := range w {
		w[i] = int8(i * i)
	}
	a, dst := make([]uint16, 1<<10), make([]int64, 1<<10)
	for i := range a {
		a[i] = uint16(i * i)
	}
	p := PackS8(w, 1<<10, 1<<10)
	if p.handle != 0 {
		t.Fatal("the host takes more after all")
	}
	GemvU16(dst, a, p, nil)
	for j, got := range dst {
		want := int64(0)
		for k, v := range a {
			want += int64(v) * int64(w[j<<10+k])
		}
		if got != want {
			t.Fatalf("GemvU16[%d] = %d, want %d", j, got, want)
		}
	}
	runtime.KeepAlive(packs)
}
