package main

// headroom is the number of bytes that a small instance allocates between two collections. By default Go collects once the heap has
// doubled. A small instance would then collect every few dozen predictions, which is a fifth of their cost.
const headroom = 16 << 20

// smallest is the minimum heap in bytes at which Go collects at 100 percent. At other percentages the minimum is proportional.
const smallest = 4 << 20

// Minimum amounts that an instance may allocate between two collections, in percent of the live memory. They apply to large instances.
const (
	least    = 100 // Go's default
	leastOwn = 20  // if the guest itself stores all data, most of which the collector need not scan
)

// percent returns the percentage for debug.SetGCPercent, at least least, that allows headroom bytes between two collections. live is the
// number of bytes of live memory.
func percent(live, least uint64) int {
	limit := (headroom + live) * 100 / smallest // at a higher percentage, the minimum heap would exceed live + headroom
	return int(max(least, min(headroom*100/max(live, 1), limit)))
}
