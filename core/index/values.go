package index

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/kv"
)

// blockSize is the number of ordinals in a column's block.
const blockSize = 1024

// InputValues holds a value for each of some inputs.
type InputValues struct {
	Ords   []uint32  // ascending
	Values []float32 // value of the input at the same index
}

// Predictions returns the predictions of a concept for analysed inputs, whose ordinals must be ascending: the stored value of a general
// model's concept, or the value of the newest trained version for a custom concept, with a user's edits. It omits inputs without a value.
//
// The result may share ords, which Predictions does not change. It also shares buf if the values fit in its capacity.
func (v *View) Predictions(ctx context.Context, concept string, ords []uint32, buf []float32) (InputValues, error) {
	edits, err := v.readEdits(concept, ords)
	if err != nil {
		return InputValues{}, err
	}
	if cap(buf) < len(ords) {
		buf = make([]float32, len(ords))
	}
	out := InputValues{ords, buf[:len(ords)]}
	if place, ok := v.space.place[concept]; ok {
		err = v.fill(place, out)
	} else if ok, err = v.own(ctx, concept, out); err == nil && !ok {
		return edits.alone(ords), nil
	}
	if err != nil {
		return InputValues{}, err
	}
	for i, at := range edits.at {
		out.Values[at] = edits.values[i]
	}
	return out, nil
}

// Side is the side of [PresentThreshold] on which a value is.
type Side bool

// The two outcomes.
const (
	Below   Side = false
	Reaches Side = true // PresentThreshold or more
)

// Narrow removes from among, which are all analysed, inputs whose value of a concept is certainly on the other side of [PresentThreshold].
// For a general model's concept it keeps those that are on this side in their stored values or have an edit; for a custom concept it keeps
// all.
func (v *View) Narrow(concept string, to Side, among *roaring.Bitmap) error {
	place, ok := v.space.place[concept]
	if !ok {
		return nil
	}
	present, err := bitmap(v.kv, v.space.present(place))
	if err != nil {
		return err
	}
	err = v.eachEdit(concept, func(ord uint32, _ float32) {
		if to == Reaches {
			present.Add(ord)
		} else {
			present.Remove(ord)
		}
	})
	if err != nil {
		return err
	}
	if to == Reaches {
		among.And(present)
	} else {
		among.AndNot(present)
	}
	return nil
}

// edits holds edited values, by the index of their input in a list of ordinals.
type edits struct {
	at     []int // ascending
	values []float32
}

// alone returns the edits as the only values.
func (e edits) alone(ords []uint32) InputValues {
	var out InputValues
	for _, at := range e.at {
		out.Ords = append(out.Ords, ords[at])
	}
	out.Values = e.values
	return out
}

// readEdits returns the edited values of a concept for inputs whose ordinals ascend.
func (v *View) readEdits(concept string, ords []uint32) (edits, error) {
	var out edits
	from := 0
	err := v.eachEdit(concept, func(ord uint32, value float32) {
		i, ok := slices.BinarySearch(ords[from:], ord)
		if from += i; ok {
			out.at, out.values = append(out.at, from), append(out.values, value)
		}
	})
	return out, err
}

// eachEdit yields the edited values of a concept by ascending ordinal.
func (v *View) eachEdit(concept string, yield func(ord uint32, value float32)) error {
	var failed error
	for k, value := range kv.WithPrefix(v.kv, v.x.edits(concept), &failed) {
		if len(value) != 4 {
			return fmt.Errorf("edit of %d bytes: %w", len(value), ErrCorrupt)
		}
		yield(lastNumber(k), math.Float32frombits(binary.LittleEndian.Uint32(value)))
	}
	return failed
}

// maxRows is the number of inputs whose stored values a view caches: a block, since usually at most that many have none in the columns,
// and a query may ask for several concepts of each.
const maxRows = blockSize

// derivedValue returns one stored value from the derived record of an input.
func (v *View) derivedValue(ord uint32, place int) (float32, error) {
	v.mu.Lock()
	values, ok := v.rows[ord]
	v.mu.Unlock()
	if ok {
		return values[place], nil
	}
	d, err := v.space.derivedRecord(v.records, ord)
	if err != nil {
		return 0, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.rows == nil {
		v.rows = map[uint32][]float32{}
	}
	if len(v.rows) < maxRows {
		v.rows[ord] = d.Values
	}
	return d.Values[place], nil
}
