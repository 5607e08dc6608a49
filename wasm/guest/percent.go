package main

// headroom is how many bytes are allocated, at least, between two collections. The collector's own
// measure, as much as is alive, is little in a small instance, which would collect every few dozen
// predictions: a fifth of what they cost.
const headroom = 16 << 20

// smallest is the heap that the collector waits for at 100 percent.
const smallest = 4 << 20

// least is how much may be allocated between two collections in a large instance, in percent of what is alive: the
// library's measure, and less where the guest itself keeps all data, most of which the collector need not look into.
const (
	least    = 100
	leastOwn = 20
)

// percent is how much may be allocated in percent of what is alive, and no less than least.
func percent(live, least uint64) int {
	most := (headroom + live) * 100 / smallest // below live, that much of smallest counts
	return int(max(least, min(headroom*100/max(live, 1), most)))
}
