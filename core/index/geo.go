package index

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/golang/geo/r1"
	"github.com/golang/geo/s1"
	"github.com/golang/geo/s2"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// Places are stored twice. One table has them by leaf cell of S2, so that a small region is a few short ranges of keys. The other has them
// by ordinal, as unit vectors: for a region with very many places a search reads 12 bytes for each place instead of a key. A search starts
// with the first table. After maxPlaceKeys keys it changes to the second.
const (
	placesBlock  = 256   // number of ordinals in a block of unit vectors
	maxCells     = 32    // maximum number of cells that cover a region
	maxPlaceKeys = 8_000 // maximum number of keys that a search reads before it changes to the blocks
)

// slack is the distance in radians by which a place may lie outside a radius: 6 micrometres, far above the arithmetic's error and far
// below the resolution of any map, so that every host includes the edge.
const slack = 1e-12

// places is a block of unit vectors in units of 2⁻³¹. A place that does not exist is zero.
type places [placesBlock][3]int32

const (
	placesBytes = placesBlock * 12
	unit        = math.MaxInt32
)

func (p *places) decode(b []byte) error {
	if len(b) != placesBytes {
		return fmt.Errorf("places of %d bytes: %w", len(b), ErrCorrupt)
	}
	for i := range p {
		for j := range p[i] {
			p[i][j] = int32(binary.LittleEndian.Uint32(b[12*i+4*j:]))
		}
	}
	return nil
}

func (p *places) put(w kv.Writer, key []byte) {
	if *p == (places{}) {
		w.Delete(key)
		return
	}
	w.Put(key, p.encode())
}

// encode returns the stored form.
func (p *places) encode() []byte {
	b := make([]byte, 0, placesBytes)
	for i := range p {
		for _, f := range p[i] {
			b = binary.LittleEndian.AppendUint32(b, uint32(f))
		}
	}
	return b
}

// roundPoint returns a point of the sphere in units. Each coordinate is at most half a unit off.
func roundPoint(p s2.Point) [3]int32 {
	return [3]int32{int32(math.Round(p.X * unit)), int32(math.Round(p.Y * unit)), int32(math.Round(p.Z * unit))}
}

func latLng(p log.Point) s2.LatLng { return s2.LatLngFromDegrees(p.Latitude, p.Longitude) }

// cellKey returns the key of a place in the table of leaf cells.
func (x *Index) cellKey(p log.Point, ord uint32) []byte {
	k := append(append(make([]byte, 0, len(x.prefix)+13), x.prefix...), sectionCell)
	k = binary.BigEndian.AppendUint64(k, uint64(s2.CellIDFromLatLng(latLng(p))))
	return binary.BigEndian.AppendUint32(k, ord)
}

// place updates the stored place of an input.
func (s *stage) place(ord uint32, before, after *log.Point) error {
	if before == after || before != nil && after != nil && *before == *after {
		return nil
	}
	if before != nil {
		s.tx.Delete(s.x.cellKey(*before, ord))
	}
	var vector [3]int32
	if after != nil {
		v := binary.LittleEndian.AppendUint64(make([]byte, 0, 16), math.Float64bits(after.Latitude))
		s.tx.Put(s.x.cellKey(*after, ord), binary.LittleEndian.AppendUint64(v, math.Float64bits(after.Longitude)))
		vector = roundPoint(s2.PointFromLatLng(latLng(*after)))
	}
	block := ord / placesBlock
	p, ok := s.places[block]
	if !ok {
		p = &places{}
		value, err := kv.Find(s.tx, numberedKey(s.x.section(sectionPlaces), block))
		if value != nil {
			err = p.decode(value)
		}
		if err != nil {
			return err
		}
		s.places[block] = p
	}
	p[ord%placesBlock] = vector
	return nil
}

// Region is the area of a geo filter: a [Radius] or a [Box].
type Region interface {
	cover() s2.Region          // a region that contains at least this region
	contains(p log.Point) bool // without rounding
	// sort sorts the places of a block, 12 bytes each as stored. in gets the places in the region, doubtful those for which the rounded
	// vectors do not decide. A zero place is in neither.
	sort(block []byte, in, doubtful *placeBits)
}

// placeBits is a subset of a block of places.
type placeBits [placesBlock / 64]uint64

// vector returns a stored place, in units. some is 1 if the place exists, else 0.
func vector(b []byte) (x, y, z float64, some uint64) {
	_ = b[11]
	ix, iy, iz := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])
	all := ix | iy | iz
	return float64(int32(ix)), float64(int32(iy)), float64(int32(iz)), uint64((all | -all) >> 31)
}

// negative returns 1 if f is negative, else 0. It has no branch: half of the places of a broad region are on either side of each edge, so
// the processor would mispredict as often.
func negative(f float64) uint64 { return math.Float64bits(f) >> 63 }

// doubt is the maximum error of a rounded vector, with a margin; about a centimetre on earth.
const doubt = 1e-9

// Radius is the set of places within an angle of a centre along a great circle, edge included.
type Radius struct {
	centre s2.Point
	angle  float64
	chord  float64 // straight distance to the edge
}

// NewRadius returns a Radius with an angle in radians. An angle of π or more contains every place.
func NewRadius(centre log.Point, radians float64) Radius {
	return Radius{
		centre: s2.PointFromLatLng(latLng(centre)),
		angle:  radians,
		chord:  2 * math.Sin(min(radians, math.Pi)/2),
	}
}

func (r Radius) cover() s2.Region {
	return s2.CapFromCenterAngle(r.centre, s1.Angle(min(r.angle+doubt, math.Pi)))
}

func (r Radius) contains(p log.Point) bool {
	return float64(r.centre.Distance(s2.PointFromLatLng(latLng(p)))) <= r.angle+slack
}

func (r Radius) sort(block []byte, in, doubtful *placeBits) {
	cx, cy, cz := float64(r.centre.X*unit), float64(r.centre.Y*unit), float64(r.centre.Z*unit)
	margin := float64(2*doubt*r.chord) + doubt*doubt
	edge := float64(r.chord * r.chord)
	least, most := float64((edge-margin)*unit)*unit, float64((edge+margin)*unit)*unit
	for w := range in {
		var inside, unsure uint64
		for i := range 64 {
			x, y, z, some := vector(block[12*i:])
			x, y, z = cx-x, cy-y, cz-z
			d := float64(x*x) + float64(y*y) + float64(z*z)
			within, without := negative(d-least), negative(most-d)
			inside |= (some & within) << i
			unsure |= (some &^ (within | without)) << i
		}
		in[w], doubtful[w] = inside, unsure
		block = block[12*64:]
	}
}

// Box is the set of places between two parallels and two meridians, edges included. It does not wrap around: 180° east and 180° west are
// its two ends.
type Box struct {
	min, max     log.Point
	south, north float64    // sines of the parallels
	west, east   [2]float64 // cosine and sine of the meridians
}

// NewBox returns the Box between two corners: least has the smallest coordinates, most the largest.
func NewBox(least, most log.Point) Box {
	lo, hi := latLng(least), latLng(most)
	return Box{
		min: least, max: most,
		south: math.Sin(lo.Lat.Radians()), north: math.Sin(hi.Lat.Radians()),
		west: [2]float64{math.Cos(lo.Lng.Radians()), math.Sin(lo.Lng.Radians())},
		east: [2]float64{math.Cos(hi.Lng.Radians()), math.Sin(hi.Lng.Radians())},
	}
}

func (b Box) cover() s2.Region {
	lo, hi := latLng(b.min), latLng(b.max)
	return s2.Rect{
		Lat: r1.Interval{Lo: max(lo.Lat.Radians()-doubt, -math.Pi/2), Hi: min(hi.Lat.Radians()+doubt, math.Pi/2)},
		Lng: meridians(lo.Lng.Radians()-doubt, hi.Lng.Radians()+doubt),
	}
}

// meridians returns the interval from lo to hi, in radians. Both may be past ±π.
func meridians(lo, hi float64) s1.Interval {
	if hi-lo >= 2*math.Pi {
		return s1.FullInterval()
	}
	return s1.Interval{Lo: wrapLongitude(lo), Hi: wrapLongitude(hi)}
}

// wrapLongitude returns the same meridian within ±π. lng is in radians.
func wrapLongitude(lng float64) float64 {
	switch {
	case lng > math.Pi:
		return lng - 2*math.Pi
	case lng < -math.Pi:
		return lng + 2*math.Pi
	}
	return lng
}

func (b Box) contains(p log.Point) bool {
	return b.min.Latitude <= p.Latitude && p.Latitude <= b.max.Latitude &&
		b.min.Longitude <= p.Longitude && p.Longitude <= b.max.Longitude
}

func (b Box) sort(block []byte, in, doubtful *placeBits) {
	const doubt = doubt * unit
	lowest, highest := float64(b.south*unit), float64(b.north*unit)
	wide := uint64(0)
	if b.max.Longitude-b.min.Longitude > 180 {
		wide = 1
	}
	for w := range in {
		var inside, unsure uint64
		for i := range 64 {
			x, y, z, some := vector(block[12*i:])
			south, north := z-lowest, highest-z
			// Distance of the place to the east of the western meridian's plane, and to the west of the eastern one's.
			east := float64(y*b.west[0]) - float64(x*b.west[1])
			west := float64(x*b.east[1]) - float64(y*b.east[0])
			some &^= negative(south+doubt) | negative(north+doubt)
			near := negative(south-doubt) | negative(north-doubt) | negative(math.Abs(east)-doubt) | negative(math.Abs(west)-doubt)
			out := negative(east) | negative(west)
			out &^= wide & (negative(east) ^ negative(west)) // in a wide box one side is enough
			inside |= (some &^ (near | out)) << i
			unsure |= (some & near) << i
		}
		in[w], doubtful[w] = inside, unsure
		block = block[12*64:]
	}
}

// fewPlaced is the maximum number of inputs whose places are read one by one.
const fewPlaced = 64

// Within returns the inputs of among with a place in the region. A nil among means all inputs.
func (v *View) Within(g Region, among *roaring.Bitmap) (*roaring.Bitmap, error) {
	if among != nil && among.GetCardinality() <= fewPlaced {
		out := roaring.New()
		return out, v.ask(out, among.ToArray(), g)
	}
	out, ok, err := v.withinCells(g)
	if err == nil && !ok {
		out, err = v.withinBlocks(g)
	}
	if err == nil && among != nil {
		out.And(among)
	}
	return out, err
}

// ask adds to out the inputs in ords whose record has a place in the region.
func (v *View) ask(out *roaring.Bitmap, ords []uint32, g Region) error {
	for _, ord := range ords {
		in, err := v.records.Input(ord)
		if err != nil {
			return err
		}
		if in.Geo != nil && g.contains(*in.Geo) {
			out.Add(ord)
		}
	}
	return nil
}

// withinCells reads the places of the cells that cover the region. It returns false if they are too many.
func (v *View) withinCells(g Region) (out *roaring.Bitmap, ok bool, err error) {
	type candidate struct {
		ord   uint32
		place log.Point
	}
	var found []candidate
	prefix := v.x.section(sectionCell)
	coverer := s2.RegionCoverer{MaxLevel: s2.MaxLevel, LevelMod: 1, MaxCells: maxCells}
	var failed error
	for _, cell := range coverer.Covering(g.cover()) {
		lo := binary.BigEndian.AppendUint64(prefix[:len(prefix):len(prefix)], uint64(cell.RangeMin()))
		hi := binary.BigEndian.AppendUint64(prefix[:len(prefix):len(prefix)], uint64(cell.RangeMax())+1)
		for k, value := range kv.Range(v.kv, lo, hi, &failed) {
			if len(found) == maxPlaceKeys {
				return nil, false, nil
			}
			place, err := placeOfCell(value)
			if err != nil {
				return nil, false, err
			}
			found = append(found, candidate{lastNumber(k), place})
		}
		if failed != nil {
			return nil, false, failed
		}
	}
	ords := make([]uint32, 0, len(found))
	for _, c := range found { // only now, since there may have been too many
		if g.contains(c.place) {
			ords = append(ords, c.ord)
		}
	}
	slices.Sort(ords)
	return BitmapOf(ords), true, nil
}

// withinBlocks reads the vectors of all places.
func (v *View) withinBlocks(g Region) (*roaring.Bitmap, error) {
	var dense []uint64 // bits of the ordinals in the region, except those in far
	var far, doubtful []uint32
	var failed error
	for k, value := range kv.WithPrefix(v.kv, v.x.section(sectionPlaces), &failed) {
		if len(value) != placesBytes {
			return nil, fmt.Errorf("places of %d bytes: %w", len(value), ErrCorrupt)
		}
		number := lastNumber(k)
		if number > math.MaxUint32/placesBlock {
			return nil, fmt.Errorf("block %d of places: %w", number, ErrCorrupt)
		}
		var in, unsure placeBits
		g.sort(value, &in, &unsure)
		for w, word := range unsure {
			doubtful = appendBits(doubtful, number*placesBlock+uint32(64*w), word)
		}
		if isPending(number * placesBlock) {
			for w, word := range in {
				far = appendBits(far, number*placesBlock+uint32(64*w), word)
			}
			continue
		}
		at := int(number) * len(in)
		if need := at + len(in) - len(dense); need > 0 {
			dense = append(dense, make([]uint64, need)...)
		}
		copy(dense[at:], in[:])
	}
	if failed != nil {
		return nil, failed
	}
	out := roaring.New()
	out.FromDense(dense, false)
	out.AddMany(far)
	return out, v.ask(out, doubtful, g)
}

// appendBits appends the ordinals of the bits that are set in word. from is the ordinal of the lowest bit.
func appendBits(dst []uint32, from uint32, word uint64) []uint32 {
	for ; word != 0; word &= word - 1 {
		dst = append(dst, from+uint32(bits.TrailingZeros64(word)))
	}
	return dst
}
