package search

import (
	"context"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/index"
)

// Run answers a query in the state of r, a snapshot of the application that x indexes. The caller must set the embeddings of q's
// Pictures, except where IsStored returns true.
//
// Without an output condition a query matches inputs at any status, each with a score of exactly 1, in the order of creation. With one it
// matches analysed inputs only. The score is then the product of the output clauses' values: first the clauses without a Similar in their
// order, then the others. Inputs with a score below the query's MinScore do not match. The value of a clause is the product of its
// conditions' values, and 1 minus that product if it is negated. A negated clause matches if one of its conditions other than Similar does
// not hold. It always matches if it has no others.
func Run(ctx context.Context, r catalog.Reader, x *index.Index, q *Query, p Page) (Result, error) {
	e := execution{ctx: ctx, r: r, v: x.At(r), q: q}
	if len(q.Clauses) == 0 {
		ords, err := e.v.Page(p.Offset, p.N)
		return Result{hitsOf(ords)}, err
	}
	ok, err := e.embeddings()
	if err != nil || !ok {
		return Result{}, err
	}
	return e.run(p)
}

// execution is the evaluation of one query.
type execution struct {
	ctx     context.Context
	r       catalog.Reader
	v       *index.View
	q       *Query
	matches *roaring.Bitmap // matches of the clauses so far; nil: every live input
	mem     *memory         // buffers for scores
}

// hitsOf returns the hits of a query without output conditions.
func hitsOf(ords []uint32) []Hit {
	hits := make([]Hit, len(ords))
	for i, ord := range ords {
		hits[i] = Hit{ord, 1}
	}
	return hits
}

// embeddings looks up the embeddings of stored pictures. It returns false if a picture has no embedding.
func (e *execution) embeddings() (bool, error) {
	for i := range e.q.Pictures {
		pic := &e.q.Pictures[i]
		if pic.Embedding != nil {
			continue
		}
		if !pic.IsStored() {
			return false, nil
		}
		ord, err := e.ordOf(pic.Input)
		if err != nil || ord == nil {
			return false, err
		}
		embedding, ok, err := e.v.Embedding(*ord)
		if err != nil || !ok {
			return false, err
		}
		pic.Embedding = embedding
	}
	return true, nil
}

// run answers a query with clauses: it evaluates the cheapest conditions first, and scores last.
func (e *execution) run(p Page) (Result, error) {
	outputs, err := e.applyFilters()
	if err != nil || e.matches.IsEmpty() {
		return Result{}, err
	}
	if len(outputs) == 0 {
		return e.inOrder(p), nil
	}
	return e.rankedPage(outputs, p)
}

// applyFilters reduces e.matches to the matches of the clauses without output conditions, and returns the other
// clauses. If no match is left, there is nothing to rank.
func (e *execution) applyFilters() (outputs []*Clause, err error) {
	filters, outputs := e.q.splitClauses()
	if len(outputs) > 0 {
		if e.matches, err = e.v.AnalysedInputs(); err != nil {
			return nil, err
		}
	}
	for _, c := range filters {
		if err := e.filter(c); err != nil || e.matches.IsEmpty() {
			return outputs, err
		}
	}
	return outputs, nil
}

// splitClauses returns the clauses without output conditions and those with some, each the cheapest first.
func (q *Query) splitClauses() (filters, outputs []*Clause) {
	for i := range q.Clauses {
		c := &q.Clauses[i]
		if c.cost() < costPredicted {
			filters = append(filters, c)
		} else {
			outputs = append(outputs, c)
		}
	}
	slices.SortStableFunc(filters, func(a, b *Clause) int { return a.cost() - b.cost() })
	slices.SortStableFunc(outputs, func(a, b *Clause) int { return a.cost() - b.cost() })
	return filters, outputs
}

// inOrder returns a page of the matches in the order of creation.
func (e *execution) inOrder(p Page) Result {
	total := e.matches.GetCardinality()
	if p.Offset >= total {
		return Result{}
	}
	n := min(p.N, total-p.Offset)
	if n == 0 {
		return Result{}
	}
	first, err := e.matches.Select(uint32(p.Offset))
	if err != nil {
		return Result{} // never: the offset is below the cardinality
	}
	ords := make([]uint32, 0, n)
	it := e.matches.Iterator()
	for it.AdvanceIfNeeded(first); uint64(len(ords)) < n; {
		ords = append(ords, it.Next())
	}
	return Result{hitsOf(ords)}
}

// Costs of evaluating a condition. The cost of a clause is the cost of its most expensive condition.
const (
	costLookup = iota
	costBitmap
	costDocument
	costRegion
	costPredicted
	costSimilar
)

func (c *Clause) cost() int {
	highest := 0
	for _, cond := range c.All {
		highest = max(highest, cost(cond))
	}
	return highest
}

func cost(c Condition) int {
	switch c.(type) {
	case InputID, URL, Bytes:
		return costLookup
	case Label:
		return costBitmap
	case Metadata:
		return costDocument
	case Radius, Box:
		return costRegion
	case Prediction:
		return costPredicted
	}
	return costSimilar
}

// filter keeps the matches for which a clause without output conditions holds.
func (e *execution) filter(c *Clause) error {
	among := e.matches
	if c.Negate && among == nil {
		var err error
		if among, err = e.v.Live(); err != nil {
			return err
		}
	}
	matches := among
	for _, cond := range c.conditionsByCost() {
		var err error
		if matches, err = e.holds(cond, matches); err != nil {
			return err
		}
	}
	if c.Negate {
		among.AndNot(matches)
		matches = among
	}
	e.matches = matches
	return nil
}

// conditionsByCost returns the conditions, the cheapest first.
func (c *Clause) conditionsByCost() []Condition {
	all := slices.Clone(c.All)
	slices.SortStableFunc(all, func(a, b Condition) int { return cost(a) - cost(b) })
	return all
}
