package catalog

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/testkit"
)

// TestPast checks that an input's past has all parts of its record, each once and with its stamp. The newest comes first and the creation
// last.
func TestPast(t *testing.T) {
	for seed := range testkit.Seeds(t, 300, 20_000) {
		random := rand.New(rand.NewPCG(seed, 1))
		at := func() log.Stamp {
			return log.Stamp{At: log.HLC(10 + random.IntN(4)), Writer: log.Writer(1 + random.IntN(2))}
		}
		in := Input{ID: "in", Dot: log.Dot{Writer: 1, Seq: 7}, Created: 10, By: "anna", URL: "http://pictures.test/1"}
		for i := range random.IntN(5) {
			in.Labels = append(in.Labels, Label{log.Label{Concept: fmt.Sprint("c", i), Value: log.Value(random.IntN(3))}, at()})
			in.Meta = append(in.Meta, MetaPart{Path: []string{fmt.Sprint("m", i)}, JSON: []byte("1"), Removed: i%2 == 0, At: at()})
			in.Edits = append(in.Edits, Edit{log.OutputEdit{Concept: fmt.Sprint("e", i), Value: 0.5}, at()})
		}
		if random.IntN(2) == 0 {
			in.Geo, in.GeoAt = &log.Point{Longitude: 1, Latitude: 2}, at()
		}
		if random.IntN(2) == 0 {
			in.Meta = append(in.Meta, MetaPart{JSON: []byte(`{"whole":1}`), At: log.Stamp{At: 10, Writer: 1}})
		}
		ops := in.PastOps()
		last := len(ops) - 1
		if got := ops[last]; got.Dot != in.Dot || got.At != in.Created || got.By != "anna" {
			t.Fatalf("seed %d: the last is %+v", seed, got)
		}
		if !slices.IsSortedFunc(ops[:last], func(a, b log.Op) int { return int(b.At) - int(a.At) }) {
			t.Fatalf("seed %d: not newest first: %+v", seed, ops)
		}
		if diff := cmp.Diff(record(t, &in), opParts(t, ops)); diff != "" {
			t.Fatalf("seed %d (-record +past):\n%s", seed, diff)
		}
	}
}

// record returns the parts of an input's record with their number.
func record(t *testing.T, in *Input) map[string]int {
	all := map[string]int{}
	for _, l := range in.Labels {
		all[thing(t, l.At, l.Label)]++
	}
	for _, m := range in.Meta {
		all[thing(t, m.At, m.Path, string(m.JSON), m.Removed)]++
	}
	for _, e := range in.Edits {
		all[thing(t, e.At, e.OutputEdit)]++
	}
	if in.Geo != nil {
		all[thing(t, in.GeoAt, in.Geo)]++
	}
	return all
}

// opParts returns the parts of operations with their number.
func opParts(t *testing.T, ops []log.Op) map[string]int {
	all := map[string]int{}
	for _, op := range ops {
		at := op.Stamp()
		labels := func(list []log.Label) {
			for _, l := range list {
				all[thing(t, at, l)]++
			}
		}
		switch b := op.Body.(type) {
		case *log.InputCreate:
			labels(b.Labels)
			if b.Meta != nil {
				all[thing(t, at, []string(nil), string(b.Meta), false)]++
			}
			if b.Geo != nil {
				all[thing(t, at, b.Geo)]++
			}
		case *log.InputLabels:
			labels(b.Labels)
		case *log.InputMeta:
			for _, w := range b.Writes {
				all[thing(t, at, w.Path, string(w.JSON), w.Action == log.MetaRemove)]++
			}
		case *log.InputGeo:
			all[thing(t, at, b.Geo)]++
		case *log.OutputsPatch:
			for _, e := range b.Edits {
				all[thing(t, at, e)]++
			}
		}
	}
	return all
}

func thing(t *testing.T, parts ...any) string {
	text, err := json.Marshal(parts)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
