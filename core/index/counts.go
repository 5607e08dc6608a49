package index

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/train"
)

// CountLabelled returns the number of inputs that [View.LabelledInputs] returns, without reading the inputs.
func (v *View) CountLabelled(concept string, value log.Value) (uint64, error) {
	switch value {
	case log.True:
		return cardinality(v.kv, v.x.posting(hashTerm(kindTrue, concept)))
	case log.False:
		return cardinality(v.kv, v.x.posting(hashTerm(kindFalse, concept)))
	}
	return 0, nil
}

// CountPresent returns the number of analysed inputs whose predicted value of a concept, as in [View.Predictions], reaches
// [PresentThreshold]. For a general model's concept it reads stored counts. For a custom concept it computes the values at the first
// request.
func (v *View) CountPresent(ctx context.Context, concept string) (uint64, error) {
	place, general := v.space.place[concept]
	if general {
		edited := false
		if err := v.eachEdit(concept, func(uint32, float32) { edited = true }); err != nil {
			return 0, err
		}
		if !edited {
			return cardinality(v.kv, v.space.present(place))
		}
	}
	among, err := v.AnalysedInputs()
	if err != nil {
		return 0, err
	}
	if err := v.Narrow(concept, Reaches, among); err != nil {
		return 0, err
	}
	got, err := v.Predictions(ctx, concept, among.ToArray(), nil)
	n := uint64(0)
	for _, value := range got.Values {
		if value >= PresentThreshold {
			n++
		}
	}
	return n, err
}

// Warm computes and caches the values of custom concepts for [View.Predictions], all in one pass over the embeddings. Without Warm each
// concept would need a pass. It skips concepts of the general model and those without a value in any version.
func (v *View) Warm(ctx context.Context, concepts []string) error {
	analysed, err := v.AnalysedInputs()
	if err != nil {
		return err
	}
	var cold []coldColumn
	for _, concept := range concepts {
		if _, general := v.space.place[concept]; general {
			continue
		}
		version, head, place, err := v.newest(concept)
		if err != nil {
			return err
		}
		if version != nil {
			key := ownKey{version.Manifest, place}
			cold = append(cold, coldColumn{key, head, v.x.heads.column(key)})
		}
	}
	// In one order, so that calls with the same concepts do not deadlock.
	slices.SortFunc(cold, func(a, b coldColumn) int {
		return cmp.Or(bytes.Compare(a.key.manifest[:], b.key.manifest[:]), cmp.Compare(a.key.concept, b.key.concept))
	})
	cold = slices.CompactFunc(cold, func(a, b coldColumn) bool { return a.key == b.key })
	missing := roaring.New()
	for _, c := range cold {
		c.mu.Lock()
		defer c.mu.Unlock()
		missing.Or(roaring.AndNot(analysed, c.have))
	}
	return v.Embeddings(ctx, missing, func(ord uint32, e *predict.Embedding) {
		scale := [1]float32{e.Scale}
		for _, c := range cold {
			var value [1]float32
			c.head.ConceptValues(value[:], c.key.concept, e.Q[:], scale[:])
			c.put(ord, value[0])
		}
	})
}

// coldColumn is a column that is being computed with others.
type coldColumn struct {
	key  ownKey
	head *train.Head
	*ownColumn
}
