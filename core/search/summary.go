package search

import (
	"context"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/log"
)

// SummaryOptions select the figures of a Summary, besides the number of matches.
type SummaryOptions struct {
	Bins   int           // number of bins of the histogram of scores, up to MaxBins; 0: no histogram
	Days   *Days         // nil: no days
	Places *PlaceOptions // nil: no places
	Learn  Learn         // data that cut-offs are learned from, for Bins
}

// Limits of [SummaryOptions].
const (
	MaxBins   = 1000
	MaxZoom   = 24
	MaxPlaces = 2000 // clusters of an answer
)

// Days defines where a day begins.
type Days struct{ Offset int } // minutes east of Greenwich

// PlaceOptions have the resolution and the area of places.
type PlaceOptions struct {
	Zoom int // zoom level of web maps: the world is 256·2^Zoom pixels wide, and a cell 64 pixels
	Box  *Box
}

// Summary has figures of all the matches of a query.
type Summary struct {
	Matching uint64
	Scores   *Scores   // nil if nothing ranks or SummaryOptions.Bins is 0
	Days     []Day     // newest first
	Places   []Cluster // the largest first
}

// Scores is the histogram of the matches by score.
type Scores struct {
	From, To float64 // the first bin begins at From, and the last ends at To
	Counts   []uint64
	CutOff   *CutOff // nil if there is no data to learn one from
}

// Day is the number of matches that were created on a day.
type Day struct {
	Number int64 // of days since 1970-01-01
	Count  uint64
}

// Cluster is a group of matches whose places lie in one cell.
type Cluster struct {
	Place log.Point // place of the only match, or the middle of their places
	Count uint64
	Ord   uint32 // the first of them in the order of creation
}

// Summarise answers a query as Run does, but with figures of all its matches instead of a page of them. The caller must set the
// embeddings of q's Pictures, except where IsStored returns true.
func Summarise(ctx context.Context, r catalog.Reader, x *index.Index, q *Query, ask SummaryOptions) (Summary, error) {
	e := execution{ctx: ctx, r: r, v: x.At(r), q: q, mem: memories.Get().(*memory)}
	defer memories.Put(e.mem)
	out, err := e.scores(ask)
	if err != nil {
		return Summary{}, err
	}
	if ask.Days != nil {
		if out.Days, err = e.days(*ask.Days); err != nil {
			return Summary{}, err
		}
	}
	if ask.Places != nil {
		if out.Places, err = e.places(ask.Places); err != nil {
			return Summary{}, err
		}
	}
	out.Matching = e.matches.GetCardinality()
	return out, nil
}

// scores leaves the matches of all clauses in e.matches, and returns their histogram if ask selects it.
func (e *execution) scores(ask SummaryOptions) (out Summary, err error) {
	outputs, err := e.all()
	if err != nil || len(outputs) == 0 {
		return out, err
	}
	var s scoredInputs
	if !e.matches.IsEmpty() {
		if s, err = e.scoreMatches(outputs); err != nil {
			return out, err
		}
		e.matches = index.BitmapOf(s.ords)
	}
	if ask.Bins > 0 {
		out.Scores = s.histogram(ask.Bins)
		out.Scores.CutOff, err = e.cutOff(outputs, ask.Learn)
	}
	e.mem.give(s)
	return out, err
}

// all applies the filters of a query, which may have no clauses. If a picture has no embedding, no matches are left.
func (e *execution) all() ([]*Clause, error) {
	if len(e.q.Clauses) == 0 {
		var err error
		e.matches, err = e.v.Live()
		return nil, err
	}
	ok, err := e.embeddings()
	if err != nil {
		return nil, err
	}
	if !ok {
		e.matches = roaring.New()
		_, outputs := e.q.splitClauses()
		return outputs, nil
	}
	return e.applyFilters()
}

// step is the divisor of the ends of a histogram, so that they stay the same while a user types.
const step = 20 // to 1

// histogram counts scores by bins of equal width.
func (s scoredInputs) histogram(bins int) *Scores {
	h := &Scores{To: 1, Counts: make([]uint64, bins)}
	if len(s.factor) == 0 {
		return h
	}
	least, greatest := s.factor[0], s.factor[0]
	for _, f := range s.factor {
		least, greatest = min(least, f), max(greatest, f)
	}
	first, last := math.Floor(least*step), math.Floor(greatest*step)
	if last < greatest*step || last == first {
		last++
	}
	h.From, h.To = first/step, last/step
	wide := float64(bins) / (h.To - h.From)
	for _, f := range s.factor {
		at := int(float64(f-h.From) * wide)
		h.Counts[min(max(at, 0), bins-1)]++
	}
	return h
}

const dayMinutes = 24 * 60

// days counts the matches by the day of their creation.
func (e *execution) days(d Days) ([]Day, error) {
	counts := map[int64]uint64{}
	last, n := int64(0), uint64(0) // neighbours often have the same day
	err := e.v.EachMinute(e.ctx, e.matches, func(_, minute uint32) {
		day := (int64(minute) + int64(d.Offset) + dayMinutes) / dayMinutes // never before 1969
		if day != last {
			counts[last] += n
			last, n = day, 0
		}
		n++
	})
	if err != nil {
		return nil, err
	}
	counts[last] += n
	out := make([]Day, 0, len(counts))
	for day, count := range counts {
		if count > 0 {
			out = append(out, Day{day - 1, count})
		}
	}
	slices.SortFunc(out, func(a, b Day) int { return int(b.Number - a.Number) })
	return out, nil
}
