//go:build wasip1

package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// pace sets when the collector runs next, and does so again each time it has run: the larger the heap
// becomes, the nearer to the least percentage.
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

// cycle is unreachable after a collection. It is too large to share memory with others.
type cycle struct{ _ [32]byte }
