package index

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/golang/geo/s2"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/testkit"
)

// TestRoundedPlacesAreNeverWrong compares decisions by rounded vectors with the exact answer, for random places and for places within
// centimetres of the edge. The rounded vectors must decide nearly always.
func TestRoundedPlacesAreNeverWrong(t *testing.T) {
	for seed := range testkit.Seeds(t, 40, 4000) {
		rng := rand.New(rand.NewPCG(seed, 7))
		anywhere := func() log.Point {
			p := log.Point{Longitude: 360*rng.Float64() - 180, Latitude: 180*rng.Float64() - 90}
			if rng.IntN(3) == 0 {
				p = log.Point{Longitude: float64(rng.IntN(37)*10 - 180), Latitude: float64(rng.IntN(19)*10 - 90)}
			}
			return p
		}
		a, b := anywhere(), anywhere()
		regions := []Region{
			NewRadius(a, math.Pow(10, -7*rng.Float64())*4),
			NewBox(log.Point{Longitude: min(a.Longitude, b.Longitude), Latitude: min(a.Latitude, b.Latitude)},
				log.Point{Longitude: max(a.Longitude, b.Longitude), Latitude: max(a.Latitude, b.Latitude)}),
		}
		doubts := 0
		const blocks = 8
		for range blocks {
			var block places
			var points [placesBlock]log.Point
			var near [placesBlock]bool
			for i := range points {
				if rng.IntN(8) == 0 {
					continue // an input without a place
				}
				p := anywhere()
				if near[i] = rng.IntN(2) == 0; near[i] {
					p = a
					for _, x := range []*float64{&p.Longitude, &p.Latitude} {
						*x += (rng.Float64() - 0.5) * math.Pow(10, -12*rng.Float64())
					}
					p.Latitude = max(-90, min(90, p.Latitude))
					p.Longitude = max(-180, min(180, p.Longitude))
				}
				points[i] = p
				block[i] = roundPoint(s2.PointFromLatLng(latLng(p)))
			}
			for _, g := range regions {
				var in, unsure placeBits
				g.sort(block.encode(), &in, &unsure)
				for i, p := range points {
					inside, doubtful := in[i/64]>>(i%64)&1 == 1, unsure[i/64]>>(i%64)&1 == 1
					switch want := block[i] != [3]int32{} && g.contains(p); {
					case inside && doubtful, block[i] == [3]int32{} && doubtful, !doubtful && inside != want:
						t.Fatalf("%+v is sure that it contains %+v: %v (in doubt: %v), want %v", g, p, inside, doubtful, want)
					}
					if _, radius := g.(Radius); radius && doubtful && !near[i] {
						doubts++
					}
				}
			}
		}
		if doubts > blocks*placesBlock/10 {
			t.Errorf("%d doubts of %d", doubts, blocks*placesBlock)
		}
	}
}
