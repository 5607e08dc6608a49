package hnsw

// plan decides how a filtered search goes: by measuring all matches, or by a walk that keeps
// wide candidates.
//
// A walk among few of its neighbours sees less, so it is made wider the rarer matches are: at 10 % of
// the nodes six times as wide. One candidate of such a walk costs as much as
// measuring 180 to 390 matches (BenchmarkPlan, 256 dimensions), and a scan is exact, so
// it is taken up to scanShare for each candidate.
func plan(matches, live, ef int) (wide int, scan bool) {
	const scanShare = 250
	ef = max(ef, defaultEf)
	wide = ef + ef*live/(2*matches)
	return wide, matches <= scanShare*wide
}
