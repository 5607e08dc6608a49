//go:build wasip1

package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// pace sets the collector's percentage for the current size of the heap, and again after each collection. The larger the heap, the closer
// the percentage is to its minimum.
func pace() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	floor := uint64(least)
	if guest.StoresPictures() {
		floor = leastOwn
	}
	debug.SetGCPercent(percent(live[0].Value.Uint64(), floor))
	runtime.AddCleanup(&cycle{}, func(struct{}) { pace() }, struct{}{})
}

// cycle is an unreferenced object: the next collection frees it and so calls pace. It is too large for Go's tiny allocator, which would
// combine it with other objects.
type cycle struct{ _ [32]byte }
