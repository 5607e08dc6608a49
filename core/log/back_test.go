package log_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/testkit"
)

// TestAbout compares About with a scan of all entries. About finds all entries that name the operation, newest first and with their
// positions, down to the operation itself or to the trimmed end of the log. yield can end the search.
func TestAbout(t *testing.T) {
	for seed := range testkit.Seeds(t, 60, 2000) {
		random := rand.New(rand.NewPCG(seed, 1))
		l, err := log.Open(kvtest.OrLate(t, memkv.New()), log.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var ops []log.Op
		var dots []log.Dot
		for i := range uint64(5 + random.IntN(400)) {
			op := log.Op{Dot: log.Dot{Writer: log.Writer(1 + random.IntN(300)), Seq: i + 1}, At: log.HLC(i), Body: &log.InputCreate{ID: "in"}}
			if len(dots) > 0 && random.IntN(3) > 0 {
				op.Body = &log.InputLabels{Input: dots[random.IntN(len(dots))], Labels: []log.Label{{Concept: "c", Value: log.True}}}
			} else {
				dots = append(dots, op.Dot)
			}
			ops = append(ops, op)
		}
		_, wait, err := l.Append(ops, nil)
		if err == nil {
			err = wait()
		}
		if err != nil {
			t.Fatal(err)
		}
		below := uint64(1 + random.IntN(len(ops)))
		if random.IntN(2) == 0 {
			if err := l.Trim(below); err != nil {
				t.Fatal(err)
			}
		}
		for _, dot := range dots {
			var want, got []uint64
			exists := false
			for i := len(ops); i >= int(l.Floor()); i-- {
				labels, _ := ops[i-1].Body.(*log.InputLabels)
				if exists = ops[i-1].Dot == dot; exists || labels != nil && labels.Input == dot {
					want = append(want, uint64(i))
				}
				if exists {
					break
				}
			}
			found, err := l.About(dot, func(e log.Entry) bool {
				labels, _ := e.Op.Body.(*log.InputLabels)
				if e.Op.Dot == dot || labels != nil && labels.Input == dot {
					got = append(got, e.Seq)
				}
				return true
			})
			if err != nil || found != exists || !slices.Equal(got, want) {
				t.Fatalf("seed %d, operation %v: %v, found %t, %v; want %v, found %t", seed, dot, got, found, err, want, exists)
			}
			n := 0
			if _, err := l.About(dot, func(log.Entry) bool { n++; return false }); err != nil || n != min(1, len(want)) && n != 1 {
				t.Fatalf("seed %d: %d entries after the first was enough, %v", seed, n, err)
			}
		}
	}
}

// TestDeletions: FindInputCreate finds the newest operation that created an input with an id, and Deletions finds those that deleted it.
func TestDeletions(t *testing.T) {
	l, err := log.Open(kvtest.OrLate(t, memkv.New()), log.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dot := func(seq uint64) log.Dot { return log.Dot{Writer: 1, Seq: seq} }
	var ops []log.Op
	for i, body := range []log.Body{
		&log.InputCreate{ID: "in"},                             // 1
		&log.InputDelete{Input: dot(1)},                        // 2
		&log.InputCreate{ID: "in"},                             // 3
		&log.InputCreate{ID: "inn", URL: "http://in"},          // 4
		&log.ConceptCreate{ID: "in"},                           // 5: another kind with the same id
		&log.InputDelete{Input: dot(3)},                        // 6
		&log.InputDelete{Input: dot(4)},                        // 7
		&log.InputDeleteAll{}, &log.InputDelete{Input: dot(3)}, // 8, 9
		&log.InputLabels{Input: dot(3)}, // 10
	} {
		ops = append(ops, log.Op{Dot: dot(uint64(i) + 1), At: log.HLC(i), By: "anna", Body: body})
	}
	_, wait, err := l.Append(ops, nil)
	if err == nil {
		err = wait()
	}
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]uint64{"in": 3, "inn": 4, "i": 0, "none": 0} {
		if entry, found, err := l.FindInputCreate(id); err != nil || found != (want > 0) || entry.Seq != want {
			t.Errorf("MadeInput(%q) = %d, %t, %v; want %d", id, entry.Seq, found, err, want)
		}
	}
	var got []uint64
	if err := l.Deletions(dot(3), 3, func(e log.Entry) bool { got = append(got, e.Seq); return true }); err != nil || !slices.Equal(got, []uint64{9, 8, 6}) {
		t.Errorf("deletions of the third: %v, %v", got, err)
	}
	got = nil
	if err := l.Deletions(dot(1), 6, func(e log.Entry) bool { got = append(got, e.Seq); return false }); err != nil || !slices.Equal(got, []uint64{8}) {
		t.Errorf("deletions of the first after the sixth: %v, %v", got, err)
	}
}

// TestMakers: Makers finds who requested the writes with some stamps, also where the origin has set the clock back, and leaves out writes that
// the log no longer has.
func TestMakers(t *testing.T) {
	l, err := log.Open(kvtest.OrLate(t, memkv.New()), log.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ops := []log.Op{
		{Dot: log.Dot{Writer: 1, Seq: 1}, At: 50, By: "trimmed", Body: &log.ConceptName{ID: "c", Name: "a"}},
		{Dot: log.Dot{Writer: 2, Seq: 1}, At: 60, By: "anna", Body: &log.ConceptName{ID: "c", Name: "b"}},
		{Dot: log.Dot{Writer: 3, Seq: 1}, At: 60, By: "berta", Made: 90, Body: &log.ConceptName{ID: "c", Name: "c"}},
		{Dot: log.Dot{Writer: 4, Seq: 1}, At: 70, By: "carla", Body: &log.ConceptName{ID: "c", Name: "d"}},
	}
	_, wait, err := l.Append(ops, nil)
	if err == nil {
		err = wait()
	}
	if err == nil {
		err = l.Trim(2)
	}
	if err != nil {
		t.Fatal(err)
	}
	anna, berta := log.Stamp{At: 60, Writer: 2}, log.Stamp{At: 60, Writer: 3, Made: 90}
	got, err := l.Makers([]log.Stamp{anna, berta, {At: 50, Writer: 1}, {At: 80, Writer: 5}})
	if want := map[log.Stamp]string{anna: "anna", berta: "berta"}; err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}
