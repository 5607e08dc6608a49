package search_test

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	diff "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/index/indextest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/search"
	"github.com/sightline-dev/sightline/core/testkit"
)

// naiveSummary computes a summary from the records of the naive answer. It has the sum of the histogram, and the figures of the clusters
// that do not depend on the division into cells.
func naiveSummary(n *naive, ask search.SummaryOptions) search.Summary {
	var out search.Summary
	days := map[int64]uint64{}
	for _, hit := range n.answer() {
		out.Matching++
		in, err := n.r.Input(hit.Ord)
		if err != nil {
			n.t.Fatal(err)
		}
		days[int64(math.Floor((in.Created.Time().Sub(epoch).Minutes()+float64(ask.Days.Offset))/(24*60)))]++
		if in.Geo != nil && inBox(ask.Places.Box, *in.Geo) {
			out.Places = append(out.Places, search.Cluster{Place: *in.Geo, Count: 1, Ord: hit.Ord})
		}
	}
	for day, count := range days {
		out.Days = append(out.Days, search.Day{Number: day, Count: count})
	}
	slices.SortFunc(out.Days, func(a, b search.Day) int { return cmp.Compare(b.Number, a.Number) })
	slices.SortFunc(out.Places, func(a, b search.Cluster) int { return cmp.Compare(a.Ord, b.Ord) })
	return out
}

var epoch = log.HLC(0).Time()

func inBox(b *search.Box, p log.Point) bool {
	if b == nil {
		return true
	}
	lng := p.Longitude >= b.Min.Longitude && p.Longitude <= b.Max.Longitude
	if b.Min.Longitude > b.Max.Longitude {
		lng = p.Longitude >= b.Min.Longitude || p.Longitude <= b.Max.Longitude
	}
	return lng && p.Latitude >= b.Min.Latitude && p.Latitude <= b.Max.Latitude
}

// TestSummaryAgreesWithScan holds what summaries of random queries count to the records themselves.
func TestSummaryAgreesWithScan(t *testing.T) {
	clusters := 0
	for seed := range testkit.Seeds(t, 25, 20_000) {
		w := indextest.New(t, seed, memkv.New())
		for range 3 {
			w.Churn(t, 1+w.Rand.IntN(80))
			if w.Rand.IntN(4) == 0 {
				w.Commit(t, func(tx *indextest.Tx) {
					tx.DeleteAll()
					tx.Insert(w.Input(), w.RandomDerived())
				})
			}
			if _, err := w.Index.Step(t.Context(), w.Rand.IntN(40)); err != nil {
				t.Fatal(err)
			}
			for range 15 {
				q := random(t, w)
				ask := search.SummaryOptions{
					Bins: 1 + w.Rand.IntN(80), Days: &search.Days{Offset: w.Rand.IntN(2881) - 1440},
					Places: &search.PlaceOptions{Zoom: w.Rand.IntN(search.MaxZoom + 1)},
				}
				if w.Rand.IntN(2) == 0 {
					a, b := w.Point(), w.Point()
					ask.Places.Box = &search.Box{
						Min: log.Point{Latitude: min(a.Latitude, b.Latitude), Longitude: a.Longitude},
						Max: log.Point{Latitude: max(a.Latitude, b.Latitude), Longitude: b.Longitude},
					}
				}
				n := &naive{t: t, w: w, r: w.Reader(), q: q}
				want := naiveSummary(n, ask)
				got, err := search.Summarise(t.Context(), w.Reader(), w.Index, q, ask)
				if err != nil {
					t.Fatal(err)
				}
				checkScores(t, n, &got)
				clusters += checkPlaces(t, want.Places, got.Places)
				want.Places, got.Places, got.Scores = nil, nil, nil
				if d := diff.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
					t.Fatalf("Summarise(%+v), want -, got +:\n%s", q, d)
				}
			}
		}
	}
	if clusters == 0 {
		t.Error("no two places were ever in one cluster")
	}
}

// checkScores holds a histogram to the scores.
func checkScores(t *testing.T, n *naive, got *search.Summary) {
	t.Helper()
	ranks := slices.ContainsFunc(n.q.Clauses, isOutput)
	if (got.Scores != nil) != ranks {
		t.Fatalf("Summarise(%+v) has scores: %v", n.q, got.Scores)
	}
	if !ranks {
		return
	}
	h := got.Scores
	counts, wide := make([]uint64, len(h.Counts)), (h.To-h.From)/float64(len(h.Counts))
	for _, hit := range n.answer() {
		score := float64(hit.Score)
		if score < h.From-1e-6 || score > h.To+1e-6 {
			t.Fatalf("score %v is not from %v to %v", score, h.From, h.To)
		}
		counts[min(max(int((score-h.From)/wide), 0), len(counts)-1)]++
	}
	// A score at the border of two bins may be in either: hits show it rounded.
	sum, want := int64(0), int64(0)
	for i := range counts {
		sum, want = sum+int64(h.Counts[i]), want+int64(counts[i])
		border := 0
		for _, hit := range n.answer() {
			if math.Abs(float64(hit.Score)-h.From-float64(i+1)*wide) < 1e-6 {
				border++
			}
		}
		if d := sum - want; d > int64(border) || -d > int64(border) {
			t.Fatalf("%d scores up to bin %d of %v, want %d", sum, i, h, want)
		}
	}
	if sum != int64(got.Matching) {
		t.Fatalf("%d scores of %d matches", sum, got.Matching)
	}
}

// checkPlaces holds clusters to the places that are in them; it returns how many clusters have several.
func checkPlaces(t *testing.T, want, got []search.Cluster) (several int) {
	t.Helper()
	n, last := uint64(0), uint64(math.MaxUint64)
	for _, c := range got {
		if n += c.Count; c.Count > last {
			t.Fatalf("a cluster of %d after one of %d", c.Count, last)
		}
		last = c.Count
		at := slices.IndexFunc(want, func(w search.Cluster) bool { return w.Ord == c.Ord })
		if at < 0 || c.Count == 1 && c.Place != want[at].Place {
			t.Fatalf("cluster %+v of %+v", c, want)
		}
		if c.Count > 1 {
			several++
		}
	}
	if n != uint64(len(want)) {
		t.Fatalf("clusters of %d places, want %d", n, len(want))
	}
	return several
}

// TestClusters looks at what cells of a zoom take together.
func TestClusters(t *testing.T) {
	w := indextest.New(t, 1, memkv.New())
	at := func(latitude, longitude float64) *log.Point {
		return &log.Point{Latitude: latitude, Longitude: longitude}
	}
	w.Commit(t, func(tx *indextest.Tx) {
		for _, p := range []*log.Point{at(52.5, 13.4), at(52.51, 13.41), at(48.1, 11.6), at(-33.9, 151.2), at(90, 180), nil} {
			tx.Insert(&catalog.Input{Geo: p}, w.RandomDerived())
		}
	})
	places := func(zoom int, b *search.Box) []search.Cluster {
		t.Helper()
		s, err := search.Summarise(t.Context(), w.Reader(), w.Index, &search.Query{}, search.SummaryOptions{Places: &search.PlaceOptions{Zoom: zoom, Box: b}})
		if err != nil {
			t.Fatal(err)
		}
		return s.Places
	}
	first := w.Ords()[0]
	for _, tt := range []struct {
		zoom     int
		clusters int
		largest  uint64
	}{{0, 3, 3}, {3, 4, 2}, {8, 4, 2}, {14, 5, 1}, {search.MaxZoom, 5, 1}} {
		got := places(tt.zoom, nil)
		if len(got) != tt.clusters || got[0].Count != tt.largest || got[0].Ord != first {
			t.Errorf("zoom %d: %+v, want %d clusters, the largest of %d", tt.zoom, got, tt.clusters, tt.largest)
		}
	}
	if got := places(8, nil)[0].Place; math.Abs(got.Latitude-52.505) > 1e-9 || math.Abs(got.Longitude-13.405) > 1e-9 {
		t.Errorf("the middle is %v", got)
	}
	over := &search.Box{Min: log.Point{Latitude: -40, Longitude: 150}, Max: log.Point{Latitude: 90, Longitude: -170}}
	if got := places(8, over); len(got) != 2 {
		t.Errorf("over 180°: %+v", got)
	}
}

// TestManyClusters has more places apart than an answer holds.
func TestManyClusters(t *testing.T) {
	w := indextest.New(t, 2, memkv.New())
	const n = 3000
	all := roaring.New()
	w.Commit(t, func(tx *indextest.Tx) {
		for i := range n {
			in := tx.Insert(&catalog.Input{Code: catalog.InputPending, Geo: &log.Point{Latitude: float64(i%60) - 30, Longitude: float64(i/60) * 3}}, nil)
			all.Add(in.Ord)
		}
	})
	s, err := search.Summarise(t.Context(), w.Reader(), w.Index, &search.Query{}, search.SummaryOptions{Places: &search.PlaceOptions{Zoom: 20}})
	if err != nil {
		t.Fatal(err)
	}
	sum := uint64(0)
	for _, c := range s.Places {
		sum += c.Count
	}
	if len(s.Places) > search.MaxPlaces || len(s.Places) < search.MaxPlaces/8 || sum != n {
		t.Errorf("%d clusters of %d places", len(s.Places), sum)
	}
}
