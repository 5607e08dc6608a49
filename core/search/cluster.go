package search

import (
	"cmp"
	"math"
	"slices"

	"github.com/sightline-dev/sightline/core/log"
)

// Places are clustered by cells of 64 pixels at a zoom. Maps draw a degree of latitude the taller
// the nearer it is to the poles, so cells are lower there, by halves. Cells are thus about square everywhere,
// without arithmetic that could differ between hosts.

// cell is a square of the map.
type cell struct {
	band     int8  // distance from the equator in bands, 0 to 3, negative in the south
	row, col int32 // counted from the south pole and from 180° west
}

// bands are the latitudes beyond which rows are half as high. Their cosines are 1/√2, 1/√8, 1/√32.
var bands = [...]float64{45, 69.3, 79.8}

// cellOf returns the cell of a place at a zoom.
func cellOf(p log.Point, zoom int) cell {
	var c cell
	for _, from := range bands {
		if math.Abs(p.Latitude) >= from {
			c.band++
		}
	}
	perDegree := float64(int64(4)<<zoom) / 360
	c.col = int32(min((p.Longitude+180)*perDegree, float64(int64(4)<<zoom)-1))
	c.row = int32((p.Latitude + 90) * float64(perDegree*float64(int(1)<<c.band)))
	if p.Latitude < 0 {
		c.band = -c.band
	}
	return c
}

// pile sums up the places in a cell.
type pile struct {
	count               uint64
	ord                 uint32
	first               log.Point // place of ord
	latitude, longitude int64     // sums, in parts of a degree
}

// parts is the number of parts of a degree. Sums of whole parts do not depend on the order.
const parts = 10_000_000

func (c *pile) add(ord uint32, p log.Point) {
	if c.count == 0 || ord < c.ord {
		c.ord, c.first = ord, p
	}
	c.count++
	c.latitude += int64(math.Round(p.Latitude * parts))
	c.longitude += int64(math.Round(p.Longitude * parts))
}

func (c *pile) middle() log.Point {
	if c.count == 1 {
		return c.first
	}
	mean := func(sum int64) float64 { return float64(sum) / float64(c.count) / parts }
	return log.Point{Latitude: mean(c.latitude), Longitude: mean(c.longitude)}
}

// placedInput is an input with its place.
type placedInput struct {
	ord uint32
	p   log.Point
}

// groupByCell sorts places into cells. It returns false if there are more than MaxPlaces cells.
func groupByCell(all []placedInput, zoom int) (map[cell]*pile, bool) {
	piles := map[cell]*pile{}
	for _, at := range all {
		c := cellOf(at.p, zoom)
		p := piles[c]
		if p == nil {
			if len(piles) == MaxPlaces {
				return piles, false
			}
			p = new(pile)
			piles[c] = p
		}
		p.add(at.ord, at.p)
	}
	return piles, true
}

// places clusters the matches with a place. If there are too many clusters, it uses a lower
// zoom.
func (e *execution) places(ask *PlaceOptions) ([]Cluster, error) {
	var all []placedInput
	err := e.v.EachPlace(e.ctx, e.matches, func(ord uint32, p log.Point) {
		if ask.Box == nil || ask.Box.holds(p) {
			all = append(all, placedInput{ord, p})
		}
	})
	if err != nil {
		return nil, err
	}
	zoom := ask.Zoom
	piles, ok := groupByCell(all, zoom)
	for ; !ok && zoom > 0; zoom-- {
		piles, ok = groupByCell(all, zoom-1)
	}
	out := make([]Cluster, 0, len(piles))
	for _, c := range piles {
		out = append(out, Cluster{c.middle(), c.count, c.ord})
	}
	slices.SortFunc(out, func(a, b Cluster) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Ord, b.Ord))
	})
	return out, nil
}

// holds reports whether a place lies between the corners, edges included. A box whose western edge
// lies east of its eastern edge crosses 180°.
func (b *Box) holds(p log.Point) bool {
	if p.Latitude < b.Min.Latitude || p.Latitude > b.Max.Latitude {
		return false
	}
	east, west := p.Longitude >= b.Min.Longitude, p.Longitude <= b.Max.Longitude
	if b.Min.Longitude > b.Max.Longitude {
		return east || west
	}
	return east && west
}
