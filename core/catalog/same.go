package catalog

import (
	"bytes"
	"cmp"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// ByPicture yields the ordinals of the live inputs with a picture and a crop, in the order of
// their creation.
func (r Reader) ByPicture(h blob.Hash, c raster.Crop, yield func(ord uint32) bool) error {
	return r.ords(r.app.picture(tableBlob, h, c, 0), yield)
}

// SamePictures yields the ordinals of live inputs that have one picture and one crop, two or more at a
// time, in the order of their creation. They are the caller's.
func (r Reader) SamePictures(yield func(ords []uint32) bool) error {
	var of []byte // the picture and the crop
	var ords []uint32
	prefix, more := r.app.key(tableBlob, 0), true
	end := func() {
		if len(ords) > 1 {
			more = yield(ords)
			ords = nil
		}
		ords = ords[:0]
	}
	err := r.kv.Scan(prefix, after(prefix), func(key, _ []byte) bool {
		if picture := key[:len(key)-4]; !bytes.Equal(picture, of) {
			end()
			of = append(of[:0], picture...)
		}
		ords = append(ords, ordAt(key))
		return more
	})
	if err == nil && more {
		end()
	}
	return err
}

// Created yields when the live inputs from an ordinal on were created, in the order of their creation in the
// log. Of the records no more is read than that.
func (r Reader) Created(from uint32, yield func(ord uint32, at log.HLC) bool) error {
	var bad error
	err := r.kv.Scan(r.app.numbered(tableInput, from), after(r.app.key(tableInput, 0)), func(key, value []byte) bool {
		d := field.Decode(value)
		at := log.HLC(0)
		for at == 0 && d.Next() {
			if d.Number == 4 {
				at = log.HLC(d.Fixed64())
			}
		}
		bad = d.Err()
		return bad == nil && yield(ordAt(key), at)
	})
	return cmp.Or(err, bad)
}
