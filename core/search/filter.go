package search

import (
	"errors"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/index"
)

// holds returns the inputs of among for which a condition on inputs holds. A nil among means every live
// input. The caller owns the result, which shares nothing with among.
func (e *execution) holds(c Condition, among *roaring.Bitmap) (*roaring.Bitmap, error) {
	out, err := e.find(c, among)
	if err == nil && among != nil {
		out.And(among)
	}
	return out, err
}

func (e *execution) find(c Condition, among *roaring.Bitmap) (*roaring.Bitmap, error) {
	switch c := c.(type) {
	case InputID:
		ord, err := e.ordOf(c.ID)
		if err != nil || ord == nil {
			return roaring.New(), err
		}
		return roaring.BitmapOf(*ord), nil
	case URL:
		return e.url(c)
	case Bytes:
		out := roaring.New()
		return out, e.r.ByBlob(c.Blob, adder(out))
	case Label:
		out := roaring.New()
		for _, concept := range c.Concepts {
			b, err := e.v.LabelledInputs(concept, c.Value)
			if err != nil {
				return nil, err
			}
			out.Or(b)
		}
		return out, nil
	case Metadata:
		return e.v.InputsContaining(e.ctx, c.Pattern, among)
	case Radius:
		return e.v.Within(index.NewRadius(c.Centre, c.Angle), among)
	case Box:
		return e.v.Within(index.NewBox(c.Min, c.Max), among)
	}
	panic("search: a condition on outputs cannot be a filter")
}

func adder(b *roaring.Bitmap) func(uint32) bool {
	return func(ord uint32) bool {
		b.Add(ord)
		return true
	}
}

// ordOf returns the ordinal of the input with an ID, or nil if no such input exists.
func (e *execution) ordOf(id string) (*uint32, error) {
	ord, err := e.r.Ord(id)
	if errors.Is(err, catalog.ErrNotFound) {
		return nil, nil
	}
	return &ord, err
}

func (e *execution) url(u URL) (*roaring.Bitmap, error) {
	out := roaring.New()
	if err := e.r.InputsWithURL(u.URL, adder(out)); err != nil {
		return nil, err
	}
	if u.Hosted == [16]byte{} {
		return out, nil
	}
	app, ord, err := catalog.HostedInput(e.r.KV(), u.Hosted)
	switch {
	case errors.Is(err, catalog.ErrNotFound):
	case err != nil:
		return nil, err
	case app == e.r.AppID():
		out.Add(ord)
	}
	return out, nil
}
