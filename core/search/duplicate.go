package search

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/predict"
)

// Tier is the certainty with which two inputs are one picture.
type Tier int

// The tiers, the closest first.
const (
	SameFile  Tier = iota // equal bytes and crop
	ReEncoded             // one picture saved twice: in another format, quality or size
	Alike                 // likely one scene: at least as similar as the network's bound
)

// Tiers are the names of the tiers.
var Tiers = [...]string{"same_file", "re_encoded", "similar"}

func (t Tier) String() string { return Tiers[t] }

// Duplicate is an input that may be the same picture as another input.
type Duplicate struct {
	Ord   uint32
	Score float32 // similarity
	Tier  Tier
}

const (
	// looked is the number of most similar inputs whose fingerprints are compared.
	looked = 24
	// leastAlike is the similarity below which inputs are not compared: half the size gives 0.75 and more, a fifth of it 0.53.
	leastAlike = 0.6
)

// Duplicates returns at most n inputs that may be the same picture as in, by tier and then by falling similarity.
// For an input that is not analysed it returns only the inputs with the same file. alike is the minimum similarity of the tier
// Alike, see [predict.Similarity]. If it is 0, because none is measured, the tier stays empty.
func Duplicates(ctx context.Context, r catalog.Reader, x *index.Index, in *catalog.Input, n int, alike float64) ([]Duplicate, error) {
	k := kin{execution{ctx: ctx, r: r, v: x.At(r)}}
	out, err := k.sameFile(in)
	if err != nil || len(out) >= n {
		return out[:min(n, len(out))], err
	}
	e, ok, err := k.v.Embedding(in.Ord)
	if err != nil || !ok {
		return out, err
	}
	among, err := k.v.AnalysedInputs()
	if err != nil {
		return nil, err
	}
	among.Remove(in.Ord)
	for _, d := range out {
		among.Remove(d.Ord)
	}
	near, err := k.near(in, e, among, max(n, looked), looked)
	if err != nil {
		return nil, err
	}
	for _, d := range near {
		if d.Tier == ReEncoded || alike > 0 && d.Score >= float32(alike) {
			out = append(out, d)
		}
	}
	slices.SortStableFunc(out, func(a, b Duplicate) int { return cmp.Compare(a.Tier, b.Tier) })
	return out[:min(n, len(out))], nil
}

// kin looks for duplicates.
type kin struct{ execution }

// sameFile returns the other inputs with the picture and the crop of in.
func (k *kin) sameFile(in *catalog.Input) ([]Duplicate, error) {
	var out []Duplicate
	if in.Blob.IsZero() {
		return nil, nil
	}
	err := k.r.ByPicture(in.Blob, in.Crop, func(ord uint32) bool {
		if ord != in.Ord {
			out = append(out, Duplicate{ord, 1, SameFile})
		}
		return true
	})
	return out, err
}

// near returns the n inputs of among that are most similar to in, the most similar first. For the first look of them it also checks
// whether they are the same picture as in.
func (k *kin) near(in *catalog.Input, e *predict.Embedding, among *roaring.Bitmap, n, look int) ([]Duplicate, error) {
	found, err := k.v.Nearest(k.ctx, e, among, n)
	if err != nil {
		return nil, err
	}
	var own *fingerprint
	out := make([]Duplicate, len(found))
	for i, f := range found {
		d := &out[i]
		*d = Duplicate{f.Ord, float32(similarity(f.Cosine)), Alike}
		if i >= look || d.Score < leastAlike || i > 0 && own == nil {
			continue
		}
		if own == nil {
			if own, err = k.fingerprint(in); err != nil || own == nil {
				continue
			}
		}
		other, err := k.r.Input(f.Ord)
		if err != nil {
			return nil, err
		}
		p, err := k.fingerprint(&other)
		if err != nil {
			return nil, err
		}
		if p != nil && own.same(p) {
			d.Tier = ReEncoded
		}
	}
	return out, nil
}

// fingerprint returns the fingerprint of an input, or nil if its record has none.
func (k *kin) fingerprint(in *catalog.Input) (*fingerprint, error) {
	if err := k.ctx.Err(); err != nil {
		return nil, err
	}
	fingerprint, err := k.r.Fingerprint(k.v.Base(), in)
	if errors.Is(err, catalog.ErrNotFound) {
		return nil, nil
	}
	return decodeFingerprint(fingerprint), err
}
