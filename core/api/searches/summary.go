package searches

import (
	"time"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/api/show"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/search"
)

// Limits of a summary.
const (
	defaultBins  = 60
	maxUTCOffset = 24 * 60 // minutes
)

// Summarise answers with figures about all matches of a search instead of a page of them: their number, scores, days and
// places.
func Summarise(x *call.Call) error {
	ask, err := readSummary(x)
	if err != nil {
		return err
	}
	return withQuery(x, func(q *search.Query) error { return answerSummary(x, q, ask) })
}

// readSummary reads the member "summary". The answer has only the figures that it lists.
func readSummary(x *call.Call) (ask search.SummaryOptions, err error) {
	summary, err := x.Body.Object("summary")
	if err != nil {
		return ask, call.Refuse(search.ErrQuery, err)
	}
	if summary.Has("scores") {
		if ask.Bins, err = readWithin(summary, "scores", "bins", 1, search.MaxBins, defaultBins); err != nil {
			return ask, err
		}
	}
	if summary.Has("days") {
		ask.Days = &search.Days{}
		if ask.Days.Offset, err = readWithin(summary, "days", "utc_offset", -maxUTCOffset, maxUTCOffset, 0); err != nil {
			return ask, err
		}
	}
	if summary.Has("places") {
		ask.Places = &search.PlaceOptions{}
		if ask.Places.Zoom, err = readWithin(summary, "places", "zoom", 0, search.MaxZoom, 0); err != nil {
			return ask, err
		}
		ask.Places.Box, err = readBox(summary)
	}
	return ask, err
}

// readWithin reads an integer from least to greatest in an object member. If it is absent, it returns absent.
func readWithin(o call.Object, member, name string, least, greatest, absent int64) (int, error) {
	inner, err := o.Object(member)
	if err != nil {
		return 0, call.Refuse(search.ErrQuery, err)
	}
	if !inner.Has(name) {
		return int(absent), nil
	}
	n, err := inner.Integer(name)
	if err != nil {
		return 0, call.Refuse(search.ErrQuery, err)
	}
	if n < least || n > greatest {
		return 0, call.Refusef(search.ErrQuery, "%s: must be %d to %d, not %d.", inner.MemberPath(name), least, greatest, n)
	}
	return int(n), nil
}

// readBox reads places.box: [south, west, north, east]. A box across 180° has a west edge that is greater than its east edge.
func readBox(o call.Object) (*search.Box, error) {
	places, err := o.Object("places")
	if err != nil || !places.Has("box") {
		return nil, err
	}
	bad := call.Refusef(search.ErrQuery, "%s: must be south, west, north and east in degrees, with south below north.", places.MemberPath("box"))
	var edges []float64
	for e := range places.Get("box").Elems() {
		f, err := e.Float()
		if err != nil || len(edges) == 4 {
			return nil, bad
		}
		edges = append(edges, f)
	}
	if len(edges) != 4 {
		return nil, bad
	}
	b := &search.Box{Min: log.Point{Latitude: edges[0], Longitude: edges[1]}, Max: log.Point{Latitude: edges[2], Longitude: edges[3]}}
	for _, p := range []log.Point{b.Min, b.Max} {
		if !(p.Latitude >= -90 && p.Latitude <= 90 && p.Longitude >= -180 && p.Longitude <= 180) {
			return nil, bad
		}
	}
	if b.Min.Latitude > b.Max.Latitude {
		return nil, bad
	}
	return b, nil
}

// answerSummary runs a query and answers with figures about its matches.
func answerSummary(x *call.Call, q *search.Query, ask search.SummaryOptions) error {
	v := x.View()
	if err := stay(x, q, v); err != nil {
		return err
	}
	ask.Learn = learnFrom(x)
	s, err := search.Summarise(x.Ctx, v.Reader, x.App.Partition.Index(), q, ask)
	if err != nil {
		return err
	}
	ids := make([]string, len(s.Places))
	for i := range s.Places {
		if s.Places[i].Count > 1 {
			continue
		}
		var in catalog.Input
		if in, err = v.Input(s.Places[i].Ord); err != nil {
			return err
		}
		ids[i] = in.ID
	}
	return x.OK(func(w *jsonio.Writer) {
		w.ObjectMember("summary")
		show.WriteInt(w, "matching", s.Matching)
		if s.Scores != nil {
			writeScores(w, s.Scores)
		}
		if ask.Days != nil {
			writeDays(w, s.Days)
		}
		if ask.Places != nil {
			writePlaces(w, s.Places, ids)
		}
		w.End('}')
	})
}

// learnFrom returns the data from which the search may learn cut-offs. It excludes data that the key may not read.
func learnFrom(x *call.Call) search.Learn {
	return search.Learn{
		Labels:      x.Shows(auth.ConceptsGet),
		Evaluations: x.Shows(auth.ConceptsGet) && x.Shows(auth.ModelsGet),
		Network:     x.Net.Similar,
	}
}

func writeScores(w *jsonio.Writer, s *search.Scores) {
	w.ObjectMember("scores")
	w.Name("from")
	w.Float(s.From)
	w.Name("to")
	w.Float(s.To)
	w.List("counts", len(s.Counts), func(i int) { w.Int(int64(s.Counts[i])) })
	if s.CutOff != nil {
		writeCutOff(w, s.CutOff)
	}
	w.End('}')
}

func writeCutOff(w *jsonio.Writer, c *search.CutOff) {
	w.ObjectMember("cut_off")
	show.WriteFloat32(w, "value", c.Value)
	w.Text("source", string(c.Source))
	show.WriteInt(w, "examples", c.Examples)
	w.End('}')
}

func writeDays(w *jsonio.Writer, days []search.Day) {
	w.Objects("days", len(days), func(i int) {
		d := days[i]
		w.Text("day", time.Unix(d.Number*24*60*60, 0).UTC().Format(time.DateOnly))
		show.WriteInt(w, "count", d.Count)
	})
}

// writePlaces writes clusters. ids are the input ids of clusters with one input, empty for others.
func writePlaces(w *jsonio.Writer, places []search.Cluster, ids []string) {
	w.Objects("places", len(places), func(i int) {
		w.Name("latitude")
		w.Float(places[i].Place.Latitude)
		w.Name("longitude")
		w.Float(places[i].Place.Longitude)
		show.WriteInt(w, "count", places[i].Count)
		show.WriteText(w, "input_id", ids[i])
	})
}
