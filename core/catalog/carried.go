package catalog

import (
	"bytes"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// DerivedRecord returns the bytes of a derived record, to be carried to another copy of the
// application.
func (r Reader) DerivedRecord(base [32]byte, picture blob.Hash, crop raster.Crop) ([]byte, error) {
	return r.get(derivedKey(r.app, base, picture, crop), "derived record of picture", picture)
}

// PutDerivedRecord is [PutDerived] of bytes that another copy of the application has sent. The
// error says that they are no record.
func PutDerivedRecord(b kv.Writer, app AppID, base [32]byte, picture blob.Hash, crop raster.Crop, record []byte) error {
	x, err := decodeDerived(bytes.Clone(record))
	if err != nil {
		return err
	}
	PutDerived(b, app, base, picture, crop, x)
	return nil
}
