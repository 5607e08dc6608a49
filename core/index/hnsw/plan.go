package hnsw

// scanIsCheaper plans a filtered search: whether to measure all matches or to walk among them.
//
// In nanoseconds on the machine of the benchmarks, a scan costs scanCost for each match, and a walk
// walkCost for each candidate times a factor that grows as matches become rare.
func scanIsCheaper(matches, live, ef int) bool {
	const scanCost, walkCost = 12, 1500
	return matches*scanCost <= ef*walkCost
}
