package catalog

import (
	"bytes"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// ByPicture yields the ordinals of the live inputs with a picture and a crop, in the order of
// their creation.
func (r Reader) ByPicture(h blob.Hash, c raster.Crop, yield func(ord uint32) bool) error {
	return r.ords(r.app.picture(tableBlob, h, c, 0), yield)
}

// SamePictures yields groups of live inputs that have one picture and one crop: their ordinals, two or more, in the order of their
// creation. yield owns the slice.
func (r Reader) SamePictures(yield func(ords []uint32) bool) error {
	var of []byte // picture and crop of ords
	var ords []uint32
	var failed error
	for key := range kv.WithPrefix(r.kv, r.app.key(tableBlob, 0), &failed) {
		if picture := key[:len(key)-4]; !bytes.Equal(picture, of) {
			if len(ords) > 1 {
				if !yield(ords) {
					return nil
				}
				ords = nil
			}
			of, ords = append(of[:0], picture...), ords[:0]
		}
		ords = append(ords, ordAt(key))
	}
	if failed == nil && len(ords) > 1 {
		yield(ords)
	}
	return failed
}

// CreationTimes yields the creation times of the live inputs, starting at an ordinal, in the order of the log. It reads only that part of
// the records.
func (r Reader) CreationTimes(from uint32, yield func(ord uint32, at log.HLC) bool) error {
	var failed error
	for key, value := range kv.Range(r.kv, r.app.uint32Key(tableInput, from), kv.PrefixEnd(r.app.key(tableInput, 0)), &failed) {
		d := field.Decode(value)
		at := log.HLC(0)
		for at == 0 && d.Next() {
			if d.Number == 4 {
				at = log.HLC(d.Fixed64())
			}
		}
		if err := d.Err(); err != nil || !yield(ordAt(key), at) {
			return err
		}
	}
	return failed
}
