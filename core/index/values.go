package index

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/RoaringBitmap/roaring/v2"
)

// blockSize is how many ordinals a column's block has.
const blockSize = 1024

// Valued is inputs with a value each.
type Valued struct {
	Ords   []uint32  // ascending
	Values []float32 // of the input at the same place
}

// Predicted is what is predicted of a concept for the inputs of among: the stored value of a
// general model's concept, the value of the newest trained version for the application's own, and over both
// what a user edited. Inputs that have no value are left out.
func (v *View) Predicted(ctx context.Context, concept string, among *roaring.Bitmap) (Valued, error) {
	edits, err := v.edited(concept, among)
	if err != nil {
		return Valued{}, err
	}
	analysed, err := v.Analysed()
	if err != nil {
		return Valued{}, err
	}
	analysed.And(among)
	var out Valued
	if place, ok := v.space.place[concept]; ok {
		out = newValued(analysed)
		err = v.fill(place, out)
	} else {
		out, err = v.own(ctx, concept, analysed)
	}
	if err != nil {
		return Valued{}, err
	}
	return out.over(edits.within(analysed)), nil
}

// PredictedPresent is Predicted less the inputs whose value is below [Present]. Of a general
// model's concept only the postings' inputs are looked at.
func (v *View) PredictedPresent(ctx context.Context, concept string, among *roaring.Bitmap) (Valued, error) {
	if place, ok := v.space.place[concept]; ok {
		present, err := bitmap(v.kv, v.space.present(place))
		if err != nil {
			return Valued{}, err
		}
		edits, err := v.edited(concept, among)
		if err != nil {
			return Valued{}, err
		}
		present.AddMany(edits.Ords)
		present.And(among)
		among = present
	}
	out, err := v.Predicted(ctx, concept, among)
	if err != nil {
		return Valued{}, err
	}
	n := 0
	for i, value := range out.Values {
		if value >= Present {
			out.Ords[n], out.Values[n] = out.Ords[i], value
			n++
		}
	}
	return Valued{out.Ords[:n], out.Values[:n]}, nil
}

// edited is the edited values of a concept.
func (v *View) edited(concept string, among *roaring.Bitmap) (Valued, error) {
	var out Valued
	var bad error
	prefix := v.x.edits(concept)
	err := v.kv.Scan(prefix, after(prefix), func(k, value []byte) bool {
		if len(value) != 4 {
			bad = fmt.Errorf("edit of %d bytes: %w", len(value), ErrCorrupt)
			return false
		}
		if ord := lastNumber(k); among.Contains(ord) {
			out.Ords = append(out.Ords, ord)
			out.Values = append(out.Values, math.Float32frombits(binary.LittleEndian.Uint32(value)))
		}
		return true
	})
	return out, errors.Join(err, bad)
}

// within is v less what is not in b.
func (v Valued) within(b *roaring.Bitmap) Valued {
	var out Valued
	for i, ord := range v.Ords {
		if b.Contains(ord) {
			out.Ords = append(out.Ords, ord)
			out.Values = append(out.Values, v.Values[i])
		}
	}
	return out
}

// over is v with the values of edits in place of its own.
func (v Valued) over(edits Valued) Valued {
	if len(edits.Ords) == 0 {
		return v
	}
	out := Valued{make([]uint32, 0, len(v.Ords)+len(edits.Ords)), make([]float32, 0, len(v.Ords)+len(edits.Ords))}
	add := func(ord uint32, value float32) {
		out.Ords, out.Values = append(out.Ords, ord), append(out.Values, value)
	}
	i := 0
	for j, ord := range edits.Ords {
		for ; i < len(v.Ords) && v.Ords[i] < ord; i++ {
			add(v.Ords[i], v.Values[i])
		}
		if i < len(v.Ords) && v.Ords[i] == ord {
			i++
		}
		add(ord, edits.Values[j])
	}
	out.Ords = append(out.Ords, v.Ords[i:]...)
	out.Values = append(out.Values, v.Values[i:]...)
	return out
}

// newValued is the inputs of b, with values to be set.
func newValued(b *roaring.Bitmap) Valued {
	out := Valued{Ords: b.ToArray()}
	out.Values = make([]float32, len(out.Ords))
	return out
}

// derived reads one stored value out of the input's derived record.
func (v *View) derived(ord uint32, place int) (float32, error) {
	d, err := v.space.derived(v.records, ord)
	if err != nil {
		return 0, err
	}
	return d.Values[place], nil
}
