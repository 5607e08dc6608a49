package catalog

import (
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// thumbSuffix ends a thumbnail's key. The key is among those of the derived records of the picture and crop, so it is deleted with them. No
// base is as short.
const thumbSuffix = 't'

// Thumb returns the thumbnail of a picture and a crop: a JPEG, see predict.ThumbnailSide.
func (r Reader) Thumb(picture blob.Hash, crop raster.Crop) ([]byte, error) {
	return r.get(thumbKey(r.app, picture, crop), "thumbnail of picture", picture)
}

func thumbKey(app AppID, picture blob.Hash, crop raster.Crop) []byte {
	return append(app.picture(tableDerived, picture, crop, 1), thumbSuffix)
}

// PutThumb adds a thumbnail to a batch. It belongs into the same batch as PutDerived.
func PutThumb(b kv.Writer, app AppID, picture blob.Hash, crop raster.Crop, jpeg []byte) {
	b.Put(thumbKey(app, picture, crop), jpeg)
}

// HasDerived reports whether the application has any derived record.
func (r Reader) HasDerived() (bool, error) { return kv.AnyWithPrefix(r.kv, r.app.key(tableDerived, 0)) }
