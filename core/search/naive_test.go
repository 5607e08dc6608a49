package search_test

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/index/indextest"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/search"
)

// naive answers a query by testing every clause on every input's record.
type naive struct {
	t testing.TB
	w *indextest.World
	r catalog.Reader
	q *search.Query
}

// answer returns all hits.
func (n *naive) answer() []search.Hit {
	var hits []search.Hit
	ranks := false
	for _, c := range n.q.Clauses {
		ranks = ranks || isOutput(c)
	}
	for i := range n.q.Pictures {
		if n.picture(i) == nil {
			return nil
		}
	}
	if err := n.r.Inputs(0, func(in catalog.Input) bool {
		if score, ok := n.input(&in, ranks); ok && score >= n.q.MinScore {
			hits = append(hits, search.Hit{Ord: in.Ord, Score: score})
		}
		return true
	}); err != nil {
		n.t.Fatal(err)
	}
	slices.SortStableFunc(hits, func(a, b search.Hit) int { return cmp.Compare(b.Score, a.Score) })
	return hits
}

func isOutput(c search.Clause) bool {
	return slices.ContainsFunc(c.All, func(c search.Condition) bool { return isSimilar(c) || isPredicted(c) })
}

func isSimilar(c search.Condition) bool {
	_, ok := c.(search.Similar)
	return ok
}

func isPredicted(c search.Condition) bool {
	_, ok := c.(search.Prediction)
	return ok
}

func (n *naive) input(in *catalog.Input, ranks bool) (float32, bool) {
	var d *catalog.DerivedData
	if in.Code == catalog.InputReady {
		if found, err := n.r.DerivedOfInput(indextest.Base, in); err == nil {
			d = &found
		} else if !errors.Is(err, catalog.ErrNotFound) {
			n.t.Fatal(err)
		}
	}
	if ranks && d == nil {
		return 0, false
	}
	score := 1.0
	for _, similar := range []bool{false, true} {
		for _, c := range n.q.Clauses {
			if isOutput(c) && slices.ContainsFunc(c.All, isSimilar) == similar {
				factor, ok := n.clause(&c, in, d)
				if !ok {
					return 0, false
				}
				score *= factor
			}
		}
	}
	for _, c := range n.q.Clauses {
		if _, ok := n.clause(&c, in, d); !ok {
			return 0, false
		}
	}
	return float32(score), true
}

func (n *naive) clause(c *search.Clause, in *catalog.Input, d *catalog.DerivedData) (float64, bool) {
	product, all, others := 1.0, true, false
	for _, class := range []func(search.Condition) bool{
		func(c search.Condition) bool { return !isPredicted(c) && !isSimilar(c) }, isPredicted, isSimilar,
	} {
		for _, cond := range c.All {
			if !class(cond) {
				continue
			}
			value, matched := n.condition(cond, in, d)
			product *= value
			if !isSimilar(cond) {
				others = true
				all = all && matched
			}
		}
	}
	if c.Negate {
		return 1 - product, !others || !all
	}
	return product, all
}

func truth(b bool) (float64, bool) {
	if b {
		return 1, true
	}
	return 0, false
}

func (n *naive) condition(c search.Condition, in *catalog.Input, d *catalog.DerivedData) (float64, bool) {
	switch c := c.(type) {
	case search.InputID:
		return truth(in.ID == c.ID)
	case search.URL:
		return truth(in.URL == c.URL || c.Hosted != [16]byte{} && in.Hosted == c.Hosted)
	case search.Bytes:
		return truth(in.Blob == c.Blob && !c.Blob.IsZero())
	case search.Label:
		return truth(slices.ContainsFunc(in.Labels, func(l catalog.Label) bool {
			return l.Value == c.Value && slices.Contains(c.Concepts, l.Concept)
		}))
	case search.Metadata:
		return truth(c.Pattern.Match(in.Meta.JSON()))
	case search.Radius:
		return truth(in.Geo != nil && greatCircle(c.Centre, *in.Geo) <= c.Angle+1e-9)
	case search.Box:
		return truth(in.Geo != nil && c.Min.Latitude <= in.Geo.Latitude && in.Geo.Latitude <= c.Max.Latitude &&
			c.Min.Longitude <= in.Geo.Longitude && in.Geo.Longitude <= c.Max.Longitude)
	case search.Prediction:
		return n.predictedValue(c, in, d)
	case search.Similar:
		var e predict.Embedding
		if err := e.UnmarshalBinary(d.Embedding); err != nil {
			n.t.Fatal(err)
		}
		return (1 + n.picture(c.Picture).Cosine(&e)) / 2, true
	}
	n.t.Fatalf("condition %T", c)
	return 0, false
}

// picture returns the embedding of a picture of the query, or nil if there is none.
func (n *naive) picture(i int) *predict.Embedding {
	p := &n.q.Pictures[i]
	if p.Embedding != nil || p.Input == "" {
		return p.Embedding
	}
	in, err := n.r.InputByID(p.Input)
	if err != nil || in.Code != catalog.InputReady {
		return nil
	}
	d, err := n.r.DerivedOfInput(indextest.Base, &in)
	if err != nil {
		return nil
	}
	e := new(predict.Embedding)
	if err := e.UnmarshalBinary(d.Embedding); err != nil {
		n.t.Fatal(err)
	}
	return e
}

func (n *naive) predictedValue(c search.Prediction, in *catalog.Input, d *catalog.DerivedData) (float64, bool) {
	largest, any := float32(0), false
	for _, concept := range c.Concepts {
		if value, ok := n.value(concept, in, d); ok {
			largest, any = max(largest, value), true
		}
	}
	switch {
	case !any:
		return 0, false
	case c.Absent:
		return 1 - float64(largest), largest < index.PresentThreshold
	}
	return float64(largest), largest >= index.PresentThreshold
}

func (n *naive) value(concept string, in *catalog.Input, d *catalog.DerivedData) (float32, bool) {
	for _, e := range in.Edits {
		if e.Concept == concept {
			if e.Removed {
				return 0, true
			}
			return e.Value, true
		}
	}
	if i := slices.Index(indextest.Concepts, concept); i >= 0 {
		return d.Values[i], true
	}
	for _, h := range slices.Backward(n.w.Heads) {
		if i := slices.Index(h.Concepts, concept); i >= 0 {
			var e predict.Embedding
			if err := e.UnmarshalBinary(d.Embedding); err != nil {
				n.t.Fatal(err)
			}
			return h.Values(nil, &e)[i], true
		}
	}
	return 0, false
}

// greatCircle returns the central angle between two points in radians, by haversines.
func greatCircle(a, b log.Point) float64 {
	const degree = math.Pi / 180
	lat, lng := math.Sin((b.Latitude-a.Latitude)*degree/2), math.Sin((b.Longitude-a.Longitude)*degree/2)
	h := lat*lat + math.Cos(a.Latitude*degree)*math.Cos(b.Latitude*degree)*lng*lng
	return 2 * math.Asin(math.Sqrt(min(1, h)))
}
