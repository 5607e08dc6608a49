package feed_test

import (
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/predict/raster/exif"
	"github.com/sightline-dev/sightline/sync/wire"
)

// TestDates asks for the dates of pictures that the origin has analysed, and of one that it lacks.
func TestDates(t *testing.T) {
	w := newWorld(t, nil)
	r := w.join(w.App, w.Key)
	base := apitest.Tiny(t).Base()
	m := wire.DatesRequest{App: w.App}
	for _, name := range []string{"dated.png", "red.png", "blue.png"} {
		h := r.upload(apitest.Picture(name))
		if name != "blue.png" {
			r.mustPush(r.next(&log.InputCreate{ID: name, Blob: h, ContentType: "image/png"}))
		}
		m.Names = slices.Concat(m.Names, h[:], make([]byte, 16), base[:])
	}
	got, err := wire.DecodeDates(r.must(200, "POST", "/v2/sync/dates", m.Encode()).Body)
	want := []wire.Date{{Read: exif.Version, Taken: exif.Time{Wall: 1563750398, Offset: -540, HasOffset: true, Known: true}}, {Read: exif.Version}, {}}
	if err != nil || !slices.Equal(got.Dates, want) {
		t.Errorf("dates %+v, %v, want %+v", got.Dates, err, want)
	}
}
