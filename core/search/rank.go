package search

import (
	"cmp"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/predict"
)

// scored is inputs with the product of the factors so far.
type scored struct {
	ords   []uint32 // ascending
	factor []float64
}

// walkLimit is how many hits, of all pages up to the one asked for, a walk of the graph finds.
// Deeper pages rank every match.
const walkLimit = 1000

// walkStep rounds the number of hits that a walk finds, so that neighbouring pages come from
// one and the same walk and none of its hits is on two of them or on neither.
const walkStep = 64

// ranked is a page of the matches by score. The output clauses come with those of
// similarity last.
func (e *execution) ranked(outputs []*Clause, p Page) (Result, error) {
	if pic := nearest(outputs); pic >= 0 && p.Offset+p.N <= walkLimit && p.Offset+p.N >= p.N {
		return e.nearest(e.q.Pictures[pic].Embedding, p)
	}
	s, err := e.clause(outputs[0], e.matches)
	for _, c := range outputs[1:] {
		if err != nil {
			return Result{}, err
		}
		var given scored
		given, err = e.clause(c, bitmapOf(s.ords))
		s = s.times(given)
	}
	if err != nil {
		return Result{}, err
	}
	return s.page(p), nil
}

// nearest is the picture that a query ranks by when nothing else ranks, else −1.
func nearest(outputs []*Clause) int {
	if len(outputs) == 1 && len(outputs[0].All) == 1 && !outputs[0].Negate {
		if s, ok := outputs[0].All[0].(Similar); ok {
			return s.Picture
		}
	}
	return -1
}

func (e *execution) nearest(to *predict.Embedding, p Page) (Result, error) {
	total := e.matches.GetCardinality()
	k := (p.Offset + p.N + walkStep - 1) / walkStep * walkStep
	near, err := e.v.Nearest(e.ctx, to, e.matches, int(min(k, total)))
	if err != nil {
		return Result{}, err
	}
	s := scored{}
	slices.SortFunc(near, func(a, b index.Similar) int { return int(int64(a.Ord) - int64(b.Ord)) })
	for _, n := range near {
		s.ords = append(s.ords, n.Ord)
		s.factor = append(s.factor, similarity(n.Cosine))
	}
	result := s.page(p)
	result.Total = total
	return result, nil
}

// similarity maps a cosine to 0…1: identical pictures have 1, unrelated ones about 0.5.
func similarity(cosine float64) float64 { return (1 + cosine) / 2 }

func bitmapOf(ords []uint32) *roaring.Bitmap {
	b := roaring.New()
	b.AddMany(ords)
	return b
}

// clause is what an output clause gives to those of among that it matches.
func (e *execution) clause(c *Clause, among *roaring.Bitmap) (scored, error) {
	if c.Negate {
		return e.negated(c, among)
	}
	all := c.sorted()
	s, err := e.given(all[0], among)
	for _, cond := range all[1:] {
		if err != nil {
			return scored{}, err
		}
		var given scored
		given, err = e.given(cond, bitmapOf(s.ords))
		s = s.times(given)
	}
	return s, err
}

// negated is clause for a negated one: all conditions are asked about all inputs.
func (e *execution) negated(c *Clause, among *roaring.Bitmap) (scored, error) {
	s := ones(among.ToArray())
	holds := among.Clone() // all conditions but Similar
	others := false
	for _, cond := range c.sorted() {
		values, held, err := e.values(cond, among)
		if err != nil {
			return scored{}, err
		}
		if _, ok := cond.(Similar); !ok {
			others = true
			holds.And(held)
		}
		s.scale(values)
	}
	out := scored{}
	for i, ord := range s.ords {
		if !others || !holds.Contains(ord) {
			out.ords = append(out.ords, ord)
			out.factor = append(out.factor, 1-s.factor[i])
		}
	}
	return out, nil
}

// scale multiplies every factor by the input's value, 0 where it has none.
func (s scored) scale(values scored) {
	j := 0
	for i, ord := range s.ords {
		for j < len(values.ords) && values.ords[j] < ord {
			j++
		}
		if j < len(values.ords) && values.ords[j] == ord {
			s.factor[i] *= values.factor[j]
		} else {
			s.factor[i] = 0
		}
	}
}

// given is the value of a condition for those of among for which it holds.
func (e *execution) given(c Condition, among *roaring.Bitmap) (scored, error) {
	switch c := c.(type) {
	case Predicted:
		if !c.Absent {
			return e.largest(c.Concepts, func(concept string) (index.Valued, error) {
				return e.v.PredictedPresent(e.ctx, concept, among)
			})
		}
		values, held, err := e.values(c, among)
		return values.within(held), err
	case Similar:
		return e.similar(c, among)
	}
	b, err := e.holds(c, among)
	if err != nil {
		return scored{}, err
	}
	return ones(b.ToArray()), nil
}

// values is the value of a condition for those of among that have one, and for which it holds.
func (e *execution) values(c Condition, among *roaring.Bitmap) (scored, *roaring.Bitmap, error) {
	p, ok := c.(Predicted)
	if !ok {
		s, err := e.given(c, among)
		return s, bitmapOf(s.ords), err
	}
	s, err := e.largest(p.Concepts, func(concept string) (index.Valued, error) {
		return e.v.Predicted(e.ctx, concept, among)
	})
	held := roaring.New()
	for i, ord := range s.ords {
		if (s.factor[i] < float64(index.Present)) == p.Absent {
			held.Add(ord)
		}
		if p.Absent {
			s.factor[i] = 1 - s.factor[i]
		}
	}
	return s, held, err
}

// largest joins the values of several concepts: the largest counts.
func (e *execution) largest(concepts []string, of func(concept string) (index.Valued, error)) (scored, error) {
	var s scored
	for _, concept := range concepts {
		v, err := of(concept)
		if err != nil {
			return scored{}, err
		}
		if s.ords == nil {
			s = valued(v)
		} else {
			s = s.or(v)
		}
	}
	return s, nil
}

func valued(v index.Valued) scored {
	s := scored{v.Ords, make([]float64, len(v.Values))}
	for i, value := range v.Values {
		s.factor[i] = float64(value)
	}
	return s
}

// or is the inputs of either, each with its larger value.
func (s scored) or(v index.Valued) scored {
	out := scored{make([]uint32, 0, len(s.ords)+len(v.Ords)), make([]float64, 0, len(s.ords)+len(v.Ords))}
	i, j := 0, 0
	for i < len(s.ords) || j < len(v.Ords) {
		switch {
		case j == len(v.Ords) || i < len(s.ords) && s.ords[i] < v.Ords[j]:
			out.ords, out.factor = append(out.ords, s.ords[i]), append(out.factor, s.factor[i])
			i++
		case i == len(s.ords) || v.Ords[j] < s.ords[i]:
			out.ords, out.factor = append(out.ords, v.Ords[j]), append(out.factor, float64(v.Values[j]))
			j++
		default:
			out.ords = append(out.ords, s.ords[i])
			out.factor = append(out.factor, max(s.factor[i], float64(v.Values[j])))
			i++
			j++
		}
	}
	return out
}

// within is s less what is not in b.
func (s scored) within(b *roaring.Bitmap) scored { return s.times(ones(b.ToArray())) }

func ones(ords []uint32) scored {
	s := scored{ords, make([]float64, len(ords))}
	for i := range s.factor {
		s.factor[i] = 1
	}
	return s
}

// times is the inputs of both, with the products of their factors.
func (s scored) times(o scored) scored {
	out := scored{s.ords[:0], s.factor[:0]}
	j := 0
	for i, ord := range s.ords {
		for j < len(o.ords) && o.ords[j] < ord {
			j++
		}
		if j < len(o.ords) && o.ords[j] == ord {
			out.ords = append(out.ords, ord)
			out.factor = append(out.factor, s.factor[i]*o.factor[j])
		}
	}
	return out
}

// similar is the similarity of every input of among.
func (e *execution) similar(c Similar, among *roaring.Bitmap) (scored, error) {
	near, err := e.v.Cosines(e.ctx, e.q.Pictures[c.Picture].Embedding, among)
	if err != nil {
		return scored{}, err
	}
	slices.SortFunc(near, func(a, b index.Similar) int { return int(int64(a.Ord) - int64(b.Ord)) })
	s := scored{make([]uint32, len(near)), make([]float64, len(near))}
	for i, n := range near {
		s.ords[i], s.factor[i] = n.Ord, similarity(n.Cosine)
	}
	return s, nil
}

// page is a page of the inputs by falling score, equal ones by ordinal.
func (s scored) page(p Page) Result {
	total := uint64(len(s.ords))
	result := Result{Total: total}
	if p.Offset >= total || p.N == 0 {
		return result
	}
	from, to := int(p.Offset), int(p.Offset+min(p.N, total-p.Offset))
	hits := s.best(to)
	first(hits, from)
	hits = hits[from:to]
	slices.SortFunc(hits, byScore)
	result.Hits = hits
	return result
}

// best returns the n hits that rank first, and perhaps others behind them, in no order. What
// is scored lower than n others so far is passed over at the cost of one comparison.
func (s scored) best(n int) []Hit {
	limit := 2*n + 1024
	hits := make([]Hit, 0, min(limit, len(s.ords)))
	least := float32(-1)
	for i, ord := range s.ords {
		score := float32(s.factor[i])
		if score < least {
			continue
		}
		hits = append(hits, Hit{ord, score})
		if len(hits) == limit {
			first(hits, n)
			hits = hits[:n]
			least = hits[0].Score
			for _, h := range hits {
				least = min(least, h.Score)
			}
		}
	}
	first(hits, n)
	return hits[:n:n]
}

func byScore(a, b Hit) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Ord, b.Ord))
}

// first moves the n hits that rank first to the front, in no order: Hoare's selection with
// a median of three, linear in the number of hits however deep the page.
func first(hits []Hit, n int) {
	for n > 0 && n < len(hits) {
		at := partition(hits)
		switch {
		case n <= at:
			hits = hits[:at]
		default:
			hits, n = hits[at:], n-at
		}
	}
}

// partition moves hits that rank before some pivot to the front and returns how many they are: at least
// one and not all of them, of at least two.
func partition(hits []Hit) int {
	a, b, c := hits[0], hits[len(hits)/2], hits[len(hits)-1]
	if byScore(b, a) < 0 {
		a, b = b, a
	}
	if byScore(c, b) < 0 {
		b = c
		if byScore(b, a) < 0 {
			b = a
		}
	}
	i, j := 0, len(hits)-1
	for {
		for byScore(hits[i], b) < 0 {
			i++
		}
		for byScore(b, hits[j]) < 0 {
			j--
		}
		if i >= j {
			return max(i, 1)
		}
		hits[i], hits[j] = hits[j], hits[i]
		i++
		j--
	}
}
