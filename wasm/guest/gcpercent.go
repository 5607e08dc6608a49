package main

// headroom is the minimum number of bytes that are allocated between two collections. The collector's measure, the size of the live
// memory, is small in a small instance, which would collect every few dozen predictions: a fifth of their cost.
const headroom = 16 << 20

// smallest is the heap that the collector waits for at 100 percent.
const smallest = 4 << 20

// least is the amount that a large instance may allocate between two collections, in percent of the live memory: the library's measure,
// and less if the guest itself stores all data, most of which the collector need not scan.
const (
	least    = 100
	leastOwn = 20
)

// percent returns the amount that may be allocated, in percent of the live memory, and at least least.
func percent(live, least uint64) int {
	most := (headroom + live) * 100 / smallest // below live, that much of smallest counts
	return int(max(least, min(headroom*100/max(live, 1), most)))
}
