package replica_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/predict/raster/exif"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
)

// read reads the dates of an input's picture at the origin.
func (o *origin) read(id string, wall int64) {
	o.Helper()
	err := o.part.Tidy(func(tx *kv.Overlay) error {
		in, err := catalog.Read(tx, app).InputByID(id)
		if err != nil {
			return err
		}
		return catalog.PutTaken(tx, app, o.base, &in, exif.Time{Wall: wall, Known: true})
	})
	if err != nil {
		o.Fatal(err)
	}
}

// undated returns the number of the replica's derived records without a date, and checks the others.
func (r *rig) undated(ids ...string) (n int) {
	r.Helper()
	state := catalog.Read(r.store, app)
	for i, id := range ids {
		in, err := state.InputByID(id)
		if err != nil {
			r.Fatal(err)
		}
		t, isDue, err := state.Taken(r.origin.base, &in)
		if isDue {
			n++
		} else if want := (exif.Time{Wall: int64(i), Known: true}); t != want || err != nil {
			r.Errorf("%s is of %+v, %v", id, t, err)
		}
		if d, err := state.DerivedOfInput(r.origin.base, &in); err != nil || len(d.Embedding) != 32 || d.Values[0] != float32(in.Blob[0]) {
			r.Errorf("%s: record %+v, %v", id, d, err)
		}
	}
	return n
}

// pass runs for a time.
func (r *rig) pass(d time.Duration) {
	r.Helper()
	end := r.clock.Add(d)
	r.run(func() bool { return r.clock.After(end) }, 10_000)
}

// TestDates: a replica of an earlier release has derived records without dates. It asks the origin for them in few calls, again while the
// origin has not read all of them, and not after that, also after a start.
func TestDates(t *testing.T) {
	r := newRig(t, replica.Options{Wants: wire.Wants{Vectors: wire.VectorsQ16}})
	var ids []string
	var bodies []log.Body
	for i := range 700 {
		id := fmt.Sprintf("%03d", i)
		ids, bodies = append(ids, id), append(bodies, &log.InputCreate{ID: id, Blob: blob.Sum([]byte(id)), ContentType: "image/png"})
	}
	r.origin.submit(bodies...)
	r.settle()
	if n := r.undated(ids...); n != 700 || r.origin.got["dates"] > 0 {
		t.Fatalf("%d records without a date, %d calls to an earlier origin", n, r.origin.got["dates"])
	}
	r.origin.dated = true
	for i, id := range ids[:699] {
		r.origin.read(id, int64(i))
	}
	r.start()
	r.pass(time.Minute)
	calls := r.origin.got["dates"]
	if n := r.undated(ids...); n != 1 || calls < 2 || calls > 4 {
		t.Errorf("%d records without a date after %d calls", n, calls)
	}
	r.origin.read(ids[699], 699)
	r.pass(time.Hour)
	if n := r.undated(ids...); n != 0 || r.origin.got["dates"] != calls+1 {
		t.Errorf("an hour later %d records without a date, %d calls", n, r.origin.got["dates"]-calls)
	}
	r.start()
	r.pass(time.Hour)
	if r.origin.got["dates"] != calls+1 {
		t.Errorf("%d calls, although no date is missing", r.origin.got["dates"]-calls-1)
	}
	r.agree()
}
