package kv_test

import (
	"fmt"
	"testing"

	"github.com/sightline-dev/sightline/core/kv"
)

// TestFilter checks that a filter reports every added key and few others. A full filter reports every key.
func TestFilter(t *testing.T) {
	key := func(i int) []byte { return fmt.Appendf(nil, "%032x", i) }
	var f kv.Filter
	keys, others := 100_000, 20_000
	if testing.Short() {
		keys, others = 5000, 4000
	}
	if f.Has(key(1)) {
		t.Error("an empty filter has a key")
	}
	for range 2 {
		for i, next := 0, 1; i < keys; i++ {
			if f.Add(key(i)); i < next {
				continue
			}
			next *= 10
			wrong := 0
			for j := range others {
				if j <= i && !f.Has(key(j)) {
					t.Fatalf("after %d keys, key %d is not there", i, j)
				}
				if f.Has(key(-1 - j)) {
					wrong++
				}
			}
			if wrong > others/50 {
				t.Errorf("after %d keys, %d of %d others are there", i, wrong, others)
			}
		}
		f.Reset()
		if f.Has(key(1)) {
			t.Error("a filter that was reset has a key")
		}
	}
	if testing.Short() {
		return
	}
	few := []byte("0000")
	for i := range 4_000_000 {
		few[i%4]++
		f.Add(few)
	}
	if !f.Has(key(-1)) {
		t.Error("a filter that is full does not have every key")
	}
}
