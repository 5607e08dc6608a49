package index_test

import (
	"math"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/index/indextest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/testkit"
)

const degree = math.Pi / 180

// angle returns the central angle between two places. It uses haversines, or those of an antipode for angles above 90°, where haversines
// lose digits.
func angle(a, b log.Point) float64 {
	lat, lng := math.Sin((b.Latitude-a.Latitude)*degree/2), math.Sin((b.Longitude-a.Longitude)*degree/2)
	h := lat*lat + math.Cos(a.Latitude*degree)*math.Cos(b.Latitude*degree)*lng*lng
	if h > 0.5 {
		return math.Pi - angle(log.Point{Longitude: a.Longitude + 180, Latitude: -a.Latitude}, b)
	}
	return 2 * math.Asin(math.Sqrt(h))
}

// places inserts n inputs that have a place and no other data.
func places(t testing.TB, w *indextest.World, n int) {
	t.Helper()
	w.Commit(t, func(tx *indextest.Tx) {
		for range n {
			p := w.Point()
			tx.Insert(&catalog.Input{Code: 30002, Geo: &p}, nil)
		}
	})
}

// TestWithinAgreesWithGreatCircle compares regions with a computation for every place: by cells for few places and by blocks for many, also
// at the poles and on the antimeridian.
func TestWithinAgreesWithGreatCircle(t *testing.T) {
	for _, n := range []int{60, 9500} {
		regions := 300
		switch {
		case n > 1000 && brief():
			continue
		case n > 1000:
			regions = 40
		case brief():
			regions = 60
		}
		for seed := range testkit.Seeds(t, 3, 300) {
			w := indextest.New(t, seed, memkv.New())
			places(t, w, n)
			view := w.Index.At(w.Reader())
			for range regions {
				g, contains := randomRegion(w)
				got, err := view.Within(g, nil)
				if err != nil {
					t.Fatal(err)
				}
				for ord, in := range w.Live {
					if want := contains(*in.Geo); got.Contains(ord) != want {
						t.Fatalf("%+v contains %+v: %v, want %v", g, *in.Geo, !want, want)
					}
				}
				few := roaring.BitmapOf(w.Ords()[:20]...)
				some, err := view.Within(g, few)
				if err != nil {
					t.Fatal(err)
				}
				if few.And(got); !few.Equals(some) {
					t.Fatalf("%+v among few contains %v, want %v", g, some, few)
				}
			}
		}
	}
}

func randomRegion(w *indextest.World) (index.Region, func(log.Point) bool) {
	a, b := w.Point(), w.Point()
	if w.Rand.IntN(2) == 0 {
		least := log.Point{Longitude: min(a.Longitude, b.Longitude), Latitude: min(a.Latitude, b.Latitude)}
		most := log.Point{Longitude: max(a.Longitude, b.Longitude), Latitude: max(a.Latitude, b.Latitude)}
		return index.NewBox(least, most), func(p log.Point) bool {
			return least.Latitude <= p.Latitude && p.Latitude <= most.Latitude &&
				least.Longitude <= p.Longitude && p.Longitude <= most.Longitude
		}
	}
	// Half of the radii end exactly at an input's place.
	radius := math.Pow(10, -6*w.Rand.Float64()) * 4
	if w.Rand.IntN(2) == 0 {
		radius = angle(a, *w.Some().Geo)
	}
	return index.NewRadius(a, radius), func(p log.Point) bool { return angle(a, p) <= radius+1e-12 }
}

// TestPlacesAtEdges checks places that are hard to decide.
func TestPlacesAtEdges(t *testing.T) {
	km := 1 / 6371.0088
	tests := []struct {
		name   string
		region index.Region
		place  log.Point
		want   bool
	}{
		{"across the antimeridian", index.NewRadius(log.Point{Longitude: 179.9}, 30*km), log.Point{Longitude: -179.9}, true},
		{"too far across it", index.NewRadius(log.Point{Longitude: 179.9}, 20*km), log.Point{Longitude: -179.9}, false},
		{"over the north pole", index.NewRadius(log.Point{Longitude: 20, Latitude: 89.9}, 23*km), log.Point{Longitude: -160, Latitude: 89.9}, true},
		{"too far over it", index.NewRadius(log.Point{Longitude: 20, Latitude: 89.9}, 22*km), log.Point{Longitude: -160, Latitude: 89.9}, false},
		{"the pole has all longitudes", index.NewRadius(log.Point{Longitude: 20, Latitude: 90}, 0), log.Point{Longitude: -100, Latitude: 90}, true},
		{"no radius", index.NewRadius(log.Point{Longitude: 20, Latitude: 10}, 0), log.Point{Longitude: 20, Latitude: 10}, true},
		{"the antipode", index.NewRadius(log.Point{Longitude: 20, Latitude: 10}, math.Pi), log.Point{Longitude: -160, Latitude: -10}, true},
		{"beyond the antipode", index.NewRadius(log.Point{Longitude: 20, Latitude: 10}, 100), log.Point{Longitude: -160, Latitude: -10}, true},
		{"a quarter, edge included", index.NewRadius(log.Point{}, 90*degree), log.Point{Longitude: 90}, true},
		{"less than a quarter", index.NewRadius(log.Point{}, 89.9999*degree), log.Point{Longitude: 90}, false},
		{"box with a place on its corner", index.NewBox(log.Point{Longitude: -10, Latitude: -5}, log.Point{Longitude: 10, Latitude: 5}), log.Point{Longitude: 10, Latitude: -5}, true},
		{"box does not wrap", index.NewBox(log.Point{Longitude: -170}, log.Point{Longitude: 170, Latitude: 1}), log.Point{Longitude: 175}, false},
		{"box to the antimeridian", index.NewBox(log.Point{Longitude: 170, Latitude: -1}, log.Point{Longitude: 180, Latitude: 1}), log.Point{Longitude: 180}, true},
		{"its other name is the other end", index.NewBox(log.Point{Longitude: 170, Latitude: -1}, log.Point{Longitude: 180, Latitude: 1}), log.Point{Longitude: -180}, false},
		{"the whole world", index.NewBox(log.Point{Longitude: -180, Latitude: -90}, log.Point{Longitude: 180, Latitude: 90}), log.Point{Longitude: -180, Latitude: -90}, true},
		{"box up to the pole", index.NewBox(log.Point{Longitude: -10, Latitude: 80}, log.Point{Longitude: 10, Latitude: 90}), log.Point{Longitude: 3, Latitude: 90}, true},
		{"box without area", index.NewBox(log.Point{Longitude: 7, Latitude: 8}, log.Point{Longitude: 7, Latitude: 8}), log.Point{Longitude: 7, Latitude: 8}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := indextest.New(t, 1, memkv.New())
			w.Commit(t, func(tx *indextest.Tx) {
				tx.Insert(&catalog.Input{Code: 30002, Geo: &tt.place}, nil)
			})
			got, err := w.Index.At(w.Reader()).Within(tt.region, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got.IsEmpty() == tt.want {
				t.Errorf("contains %+v: %v, want %v", tt.place, !tt.want, tt.want)
			}
		})
	}
}
