package hostapi

import (
	"context"
	"io"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// Blobs are the pictures of the host by their hashes, which a copy sends and fetches.
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

// Get returns a picture; the error is blob.ErrNotFound where the host has none.
func (b Blobs) Get(_ context.Context, h blob.Hash) ([]byte, error) {
	return fill(nil, func(dst []byte) int64 { return b.From.PictureGet((*[32]byte)(&h), dst) })
}

// Put keeps a picture. The host holds it to its hash.
func (b Blobs) Put(_ context.Context, r io.Reader, want blob.Hash) (blob.Hash, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return blob.Hash{}, err
	}
	return want, did(b.From.PicturePut((*[32]byte)(&want), data))
}

// AppRecords is the host's register of the application.
type AppRecords struct{ From Imports }

var _ replica.AppRecords = AppRecords{}

// Seq is the entry of the origin's control log that the host's register is of.
func (r AppRecords) Seq() uint64 { return uint64(max(r.From.AppRecordSeq(), 0)) }

// Take passes a newer register to the host. If it reports that the application was deleted, the host acts on it after the call, since
// that ends this instance.
func (r AppRecords) Take(seq uint64, data []byte) (gone string, err error) {
	x, err := catalog.DecodeRegister(data)
	if err != nil {
		return "", err
	}
	return x.Revoked, did(r.From.RegisterTake(int64(seq), data))
}
