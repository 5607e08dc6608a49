package kernels

import "github.com/sightline-dev/sightline/core/predict"

// values(tables, general, food, logits, classes, embedding) → i32
func (in *Instance) values(s []uint64) {
	words, classes := view[int32](in, s[0], 13), count(s[4])
	number := func(i int) int { return count(uint64(uint32(words[i]))) }
	at := func(i int) uint64 { return uint64(uint32(words[i])) }
	n, heads, food := number(8), number(9), number(10)
	in.work(heads, predict.Dim, 1)
	t := predict.Evaluation{
		Terms: view[uint16](in, at(0), number(11)), Starts: view[uint32](in, at(1), n+1), Heads: view[int32](in, at(2), n),
		Slopes: view[float64](in, at(3), times(n, 3)), Weights: view[float32](in, at(4), times(heads, predict.Dim)),
		Intercepts: view[float32](in, at(5), heads), Food: view[uint32](in, at(6), food), FoodTerms: view[uint16](in, at(7), number(12)),
	}
	if !t.Fits(classes) {
		wild()
	}
	in.work(len(t.Terms)+len(t.FoodTerms), 1+food, 1) // each food concept may have all of them
	e := &in.embedding
	copy(e.Q[:], view[int16](in, s[5], len(e.Q)))
	e.Scale = view[float32](in, s[5]+2*predict.Dim, 1)[0]
	general, foods := view[float32](in, s[1], n), view[float32](in, s[2], food)
	if t.Values(general, foods, view[float32](in, s[3], classes), e, &in.scratch) == nil {
		s[0] = 1
	} else {
		s[0] = 0
	}
}
