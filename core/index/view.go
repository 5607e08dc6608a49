package index

import (
	"context"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// View shows an index at the moment of its reader. It is as safe for concurrent use as the reader is. The caller owns the bitmaps that it
// returns.
type View struct {
	x       *Index
	space   *space
	records catalog.Reader
	kv      kv.Reader
	dates   *dates

	known    sync.Once // analysed was read
	analysed *roaring.Bitmap
	failed   error

	mu   sync.Mutex
	rows map[uint32][]float32 // stored values of inputs that the columns do not have
}

// At returns the index at the moment of r, a snapshot of the store or the store itself. The view uses the space of the base model that
// serves the application in r.
func (x *Index) At(r catalog.Reader) *View {
	v := &View{x: x, space: x.serving(), records: r, kv: r.KV(), dates: x.datesNow()}
	if h, err := r.Header(); err == nil { // the reads that follow return the error, too
		if sp, err := x.spaceOf(h.Base); err == nil {
			v.space = sp
		}
	}
	return v
}

// Base returns the base model of the view's space.
func (v *View) Base() [32]byte { return v.space.Base }

// datesNow returns the dates of the present epoch. A view from before a deletion of everything keeps its dates.
func (x *Index) datesNow() *dates {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.dates
}

// Page returns the ordinals of n live inputs in the order of creation, starting at rank offset.
func (v *View) Page(offset, n uint64) ([]uint32, error) {
	return page(v.kv, v.x.posting(plain(kindLive)), offset, n)
}

// Live returns all live inputs.
func (v *View) Live() (*roaring.Bitmap, error) { return bitmap(v.kv, v.x.posting(plain(kindLive))) }

// Ready returns the inputs at 30000.
func (v *View) Ready() (*roaring.Bitmap, error) { return bitmap(v.kv, v.x.posting(plain(kindReady))) }

// PlacedInputs returns the inputs with a place.
func (v *View) PlacedInputs() (*roaring.Bitmap, error) {
	return bitmap(v.kv, v.x.posting(plain(kindPlace)))
}

// LabelledInputs returns the inputs that a user labelled with a concept, True or False.
func (v *View) LabelledInputs(concept string, value log.Value) (*roaring.Bitmap, error) {
	switch value {
	case log.True:
		return bitmap(v.kv, v.x.posting(hashTerm(kindTrue, concept)))
	case log.False:
		return bitmap(v.kv, v.x.posting(hashTerm(kindFalse, concept)))
	}
	return roaring.New(), nil
}

// AnalysedInputs returns the inputs that the serving base model has analysed.
func (v *View) AnalysedInputs() (*roaring.Bitmap, error) {
	v.known.Do(func() { v.analysed, v.failed = bitmap(v.kv, v.space.analysedKey()) })
	if v.failed != nil {
		return nil, v.failed
	}
	return v.analysed.Clone(), nil
}

// InputsContaining returns the inputs of among whose metadata contains the pattern. A nil among means all inputs. It reads documents only
// if the postings leave doubt.
func (v *View) InputsContaining(ctx context.Context, p *Pattern, among *roaring.Bitmap) (*roaring.Bitmap, error) {
	if p.empty() {
		if among != nil {
			return among.Clone(), nil
		}
		return v.Live()
	}
	out, doubtful, err := v.candidates(p, among)
	if err != nil {
		return nil, err
	}
	err = v.inputs(ctx, doubtful, func(in *catalog.Input) {
		if p.Match(in.Meta.JSON()) {
			out.Add(in.Ord)
		}
	})
	return out, err
}

// inputs yields the records of inputs, in their order.
func (v *View) inputs(ctx context.Context, ords *roaring.Bitmap, yield func(in *catalog.Input)) error {
	it := ords.Iterator()
	for n := 0; it.HasNext(); n++ {
		if n%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		in, err := v.records.Input(it.Next())
		if err != nil {
			return err
		}
		yield(&in)
	}
	return nil
}

// candidates returns the inputs that surely contain a pattern and those that may.
func (v *View) candidates(p *Pattern, among *roaring.Bitmap) (sure, doubtful *roaring.Bitmap, err error) {
	sure = roaring.New()
	if !p.deep {
		for i, t := range p.terms {
			b, err := bitmap(v.kv, v.x.posting(t))
			if err != nil {
				return nil, nil, err
			}
			if i == 0 {
				sure = b
			} else {
				sure.And(b)
			}
			if sure.IsEmpty() {
				break
			}
		}
	}
	ambiguous, err := bitmap(v.kv, v.x.posting(plain(kindAmbiguous)))
	if err != nil {
		return nil, nil, err
	}
	wide, err := bitmap(v.kv, v.x.posting(plain(kindWide)))
	if err != nil {
		return nil, nil, err
	}
	if among != nil {
		sure.And(among)
		wide.And(among)
	}
	ambiguous.And(sure)
	sure.AndNot(ambiguous)
	ambiguous.Or(wide)
	return sure, ambiguous, nil
}
