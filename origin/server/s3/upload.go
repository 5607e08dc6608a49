package s3

import (
	"context"

	"github.com/minio/minio-go/v7"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/origin/server/control"
	"github.com/sightline-dev/sightline/origin/server/data"
)

// uploads is the number of pictures that Upload sends at once.
const uploads = 8

// Upload stores all pictures of another store, and checks each against its hash. It omits pictures that the server has with the same number
// of bytes, so a second call continues after an error. progress is called after each 64 pictures, by one goroutine at a time. The cache gets
// no pictures.
func (s *Store) Upload(ctx context.Context, from blob.Blobs, progress func(done, total control.BackupStats)) (control.BackupStats, error) {
	return data.CopyBlobs(ctx, from, uploads, func(ctx context.Context, h blob.Hash) (int64, error) {
		n, err := from.Len(ctx, h)
		if err != nil {
			return 0, err
		}
		if isStored, err := s.stores(ctx, h, n); isStored || err != nil {
			return n, err
		}
		b, err := from.Get(ctx, h)
		if err == nil {
			err = s.write(ctx, object(h), b, minio.PutObjectOptions{})
		}
		return n, err
	}, progress)
}
