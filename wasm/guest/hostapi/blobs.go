package hostapi

import (
	"context"
	"io"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// Blobs stores pictures at the host, by hash. A replica uploads and downloads them.
type Blobs struct{ From Imports }

var _ replica.Blobs = Blobs{}

// Has reports whether the host has a picture.
func (b Blobs) Has(_ context.Context, h blob.Hash) (bool, error) {
	switch code := abi.Errno(b.From.PictureHas((*[32]byte)(&h))); code {
	case 0:
		return true, nil
	case abi.ErrnoOf(blob.ErrNotFound):
		return false, nil
	default:
		return false, code.Err()
	}
}

// Get returns a picture. If the host does not have it, Get returns blob.ErrNotFound.
func (b Blobs) Get(_ context.Context, h blob.Hash) ([]byte, error) {
	return fill(nil, func(dst []byte) int64 { return b.From.PictureGet((*[32]byte)(&h), dst) })
}

// Put stores a picture. The host checks that it has the hash want.
func (b Blobs) Put(_ context.Context, r io.Reader, want blob.Hash) (blob.Hash, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return blob.Hash{}, err
	}
	return want, did(b.From.PicturePut((*[32]byte)(&want), data))
}

// AppRecords stores the application's record at the host.
type AppRecords struct{ From Imports }

var _ replica.AppRecords = AppRecords{}

// Seq returns the entry of the origin's control log up to which the host's app record goes; 0: the host has none.
func (r AppRecords) Seq() uint64 { return uint64(max(r.From.AppRecordSeq(), 0)) }

// Apply passes a newer app record to the host. If the record reports that the application was deleted, the host deletes the application
// only after the call, because that ends this instance.
func (r AppRecords) Apply(seq uint64, data []byte) (reason string, err error) {
	x, err := catalog.DecodeAppRecord(data)
	if err != nil {
		return "", err
	}
	return x.Revoked, did(r.From.RegisterTake(int64(seq), data))
}
