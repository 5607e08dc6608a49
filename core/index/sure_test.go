package index

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/golang/geo/s2"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/proof"
)

// TestSureIsNeverWrong holds what a rounded vector tells to the exact answer, on places
// anywhere and on places within centimetres of the edge, and wants it to tell nearly always.
func TestSureIsNeverWrong(t *testing.T) {
	for seed := range proof.Seeds(t, 40, 4000) {
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
		const places = 2000
		for range places {
			p := anywhere()
			near := rng.IntN(2) == 0
			if near {
				p = a
				for _, x := range []*float64{&p.Longitude, &p.Latitude} {
					*x += (rng.Float64() - 0.5) * math.Pow(10, -12*rng.Float64())
				}
				p.Latitude = max(-90, min(90, p.Latitude))
				p.Longitude = max(-180, min(180, p.Longitude))
			}
			v := rounded(s2.PointFromLatLng(latLng(p)))
			for _, g := range regions {
				in, sure := g.sure([3]float64{float64(v[0]) / unit, float64(v[1]) / unit, float64(v[2]) / unit})
				if want := g.contains(p); sure && in != want {
					t.Fatalf("%+v is sure that it contains %+v: %v, want %v", g, p, in, want)
				}
				if _, radius := g.(Radius); radius && !sure && !near {
					doubts++
				}
			}
		}
		if doubts > places/10 {
			t.Errorf("%d doubts of %d", doubts, places)
		}
	}
}
