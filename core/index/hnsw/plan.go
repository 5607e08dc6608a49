package hnsw

// plan chooses the method of a filtered search: a scan that measures all matches, or a walk that keeps wide candidates.
//
// A walk meets fewer matches the rarer they are, so it keeps more candidates: six times as many for matches of 10 % of the nodes. One
// candidate of such a walk costs as much as measuring 180 to 390 matches (BenchmarkPlan, 256 dimensions). A scan is exact, so plan prefers
// it for up to scanShare matches for each candidate.
func plan(matches, live, ef int) (wide int, scan bool) {
	const scanShare = 250
	ef = max(ef, defaultEf)
	wide = ef + ef*live/(2*matches)
	return wide, matches <= scanShare*wide
}
