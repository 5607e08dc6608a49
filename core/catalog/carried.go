package catalog

import (
	"bytes"
	"encoding/binary"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/predict/raster/exif"
)

// DerivedRecord returns the bytes of a derived record, for another replica of the
// application.
func (r Reader) DerivedRecord(base [32]byte, picture blob.Hash, crop raster.Crop) ([]byte, error) {
	return r.get(derivedKey(r.app, base, picture, crop), "derived record of picture", picture)
}

// PutDerivedRecord is [PutDerived] for bytes from another replica of the application. If they are not a valid record, it returns an
// error.
func PutDerivedRecord(b kv.Writer, app AppID, base [32]byte, picture blob.Hash, crop raster.Crop, record []byte) error {
	x, err := decodeDerivedData(bytes.Clone(record))
	if err != nil {
		return err
	}
	PutDerived(b, app, base, picture, crop, x)
	return nil
}

// DerivedContent is the content of a derived record. Its bytes are borrowed.
//
//field:fields get
type DerivedContent struct {
	Embedding   []byte    `wire:"1"` // predict.EmbeddingBytes
	Values      []byte    `wire:"2"` // values of the general model's concepts, in its order: little-endian float32
	Fingerprint []byte    `wire:"4"` // see [DerivedData]
	Read        uint32    `wire:"5"` // see [DerivedData]
	Taken       exif.Time `wire:"6"`
}

// picturesAtOnce is the maximum number of inputs whose pictures EachDerived has in memory.
const picturesAtOnce = 8192

// EachDerived yields the derived records of the inputs' pictures by the network base, in the order of the pictures and not of the inputs.
// It reads the store sequentially, so it is much faster than [Reader.DerivedOfInput] for each input. It skips inputs
// without a record. It returns errors of malformed records and of the store.
func (r Reader) EachDerived(base [32]byte, yield func(ord uint32, x DerivedContent) bool) error {
	table := r.app.key(tableBlob, 0)
	const size = pictureBytes + 4
	inputs := make([]byte, 0, picturesAtOnce*size) // picture, ordinal
	for next, more := table, true; more; {
		inputs, more = inputs[:0], false
		var err error
		for key := range kv.Range(r.kv, next, kv.PrefixEnd(table), &err) {
			if more = len(inputs) == cap(inputs); more {
				next = bytes.Clone(key)
				break
			}
			if len(key) == len(table)+size {
				inputs = append(inputs, key[len(table):]...)
			}
		}
		if err == nil && len(inputs) > 0 {
			more, err = r.eachMade(base, inputs, more, yield)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// eachMade yields the records of the pictures in inputs, in their order, and reports whether to continue. more is false for the last ones.
func (r Reader) eachMade(base [32]byte, inputs []byte, more bool, yield func(ord uint32, x DerivedContent) bool) (bool, error) {
	table := r.app.key(tableDerived, 0)
	const size = pictureBytes + 4
	lo := append(bytes.Clone(table), inputs[:pictureBytes]...)
	hi := kv.PrefixEnd(append(bytes.Clone(table), inputs[len(inputs)-size:][:pictureBytes]...))
	var failed error
	for key, value := range kv.Range(r.kv, lo, hi, &failed) {
		key = key[len(table):]
		if !bytes.Equal(key[min(pictureBytes, len(key)):], base[:]) {
			continue
		}
		var x DerivedContent
		for decoded := false; len(inputs) > 0; inputs = inputs[size:] {
			order := bytes.Compare(inputs[:pictureBytes], key[:pictureBytes])
			if order > 0 {
				break
			}
			if order < 0 {
				continue
			}
			if !decoded {
				var err error
				if x, err = decodeMade(value); err != nil {
					return false, err
				}
				decoded = true
			}
			if !yield(binary.BigEndian.Uint32(inputs[pictureBytes:size]), x) {
				return false, nil
			}
		}
		if len(inputs) == 0 {
			break
		}
	}
	return more, failed
}

// decodeMade decodes a derived record like decodeDerivedData, but without copying it.
func decodeMade(data []byte) (x DerivedContent, err error) {
	d := field.Decode(data)
	if getDerivedContent(d, &x); len(x.Values)%4 != 0 {
		d.Malformed("values")
	}
	return x, wrapError(d.Err(), "derived record")
}
