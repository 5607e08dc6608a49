package index

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// EachPlace calls yield with every input of among that has a place. The order may differ between hosts. It reads the places of few inputs
// one by one, and for many it reads all the application's places.
func (v *View) EachPlace(ctx context.Context, among *roaring.Bitmap, yield func(ord uint32, p log.Point)) error {
	placed, err := v.PlacedInputs()
	if err != nil {
		return err
	}
	among = roaring.And(placed, among)
	if 32*among.GetCardinality() <= placed.GetCardinality() {
		return v.inputs(ctx, among, func(in *catalog.Input) {
			if in.Geo != nil {
				yield(in.Ord, *in.Geo)
			}
		})
	}
	all := among.GetCardinality() == placed.GetCardinality()
	return v.scanPlaces(ctx, func(ord uint32, p log.Point) {
		if all || among.Contains(ord) {
			yield(ord, p)
		}
	})
}

// scanPlaces yields the places of all inputs, by leaf cell.
func (v *View) scanPlaces(ctx context.Context, yield func(ord uint32, p log.Point)) error {
	var failed error
	n := 0
	for k, value := range kv.WithPrefix(v.kv, v.x.section(sectionCell), &failed) {
		if n++; n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		p, err := placeOfCell(value)
		if err != nil {
			return err
		}
		yield(lastNumber(k), p)
	}
	return failed
}

// placeOfCell reads the value of a leaf cell's key.
func placeOfCell(value []byte) (log.Point, error) {
	if len(value) != 16 {
		return log.Point{}, fmt.Errorf("place of %d bytes: %w", len(value), ErrCorrupt)
	}
	return log.Point{
		Latitude:  math.Float64frombits(binary.LittleEndian.Uint64(value)),
		Longitude: math.Float64frombits(binary.LittleEndian.Uint64(value[8:])),
	}, nil
}
