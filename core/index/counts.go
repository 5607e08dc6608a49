package index

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/predict"
)

// Embeddings calls yield with the embedding of every input of ords, all of them analysed, in their order. The
// embedding is borrowed until yield returns. Where ords are dense the rows are read in one scan.
func (v *View) Embeddings(ctx context.Context, ords *roaring.Bitmap, yield func(ord uint32, e *predict.Embedding)) error {
	return v.embeddings(ctx, ords, yield)
}

// CountLabelled is how many inputs [View.Labelled] has, without reading which.
func (v *View) CountLabelled(concept string, value log.Value) (uint64, error) {
	switch value {
	case log.True:
		return cardinality(v.kv, v.x.posting(hashed(kindTrue, concept)))
	case log.False:
		return cardinality(v.kv, v.x.posting(hashed(kindFalse, concept)))
	}
	return 0, nil
}

// CountPresent is how many analysed inputs are predicted to show a concept: those whose value, as [View.Predicted]
// has it, reaches [Present]. Of a general model's concept that is read from what is kept; of the application's own
// the values are computed when somebody first asks for them.
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
	among, err := v.Analysed()
	if err != nil {
		return 0, err
	}
	if err := v.Narrow(concept, Reaches, among); err != nil {
		return 0, err
	}
	got, err := v.Predicted(ctx, concept, among.ToArray(), nil)
	n := uint64(0)
	for _, value := range got.Values {
		if value >= Present {
			n++
		}
	}
	return n, err
}
