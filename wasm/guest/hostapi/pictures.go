package hostapi

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// Pictures stores pictures at the host, which also deletes the unreferenced ones.
type Pictures struct{ From Imports }

var _ register.Pictures = Pictures{}

// Add stores a picture and gives it a name that is valid until expires. A zero expires means forever. The host knows the application.
func (p Pictures) Add(_ context.Context, _ blob.AppID, data []byte, contentType string, expires time.Time) (name string, h blob.Hash, err error) {
	var got [abi.PictureNameBytes + 32]byte
	if err := did(p.From.PictureAdd(data, contentType, abi.Nanos(expires), &got)); err != nil {
		return "", h, err
	}
	copy(h[:], got[abi.PictureNameBytes:])
	return hex.EncodeToString(got[:abi.PictureNameBytes]), h, nil
}

// Lookup returns the picture with a name. If the name is unknown or has expired, it returns blob.ErrNotFound.
func (p Pictures) Lookup(name string, now time.Time) (blob.Picture, error) {
	var key [abi.PictureNameBytes]byte
	if len(name) != 2*len(key) {
		return blob.Picture{}, blob.ErrNotFound
	}
	if _, err := hex.Decode(key[:], []byte(name)); err != nil || hex.EncodeToString(key[:]) != name {
		return blob.Picture{}, blob.ErrNotFound
	}
	data, err := fill(make([]byte, 512), func(dst []byte) int64 { return p.From.PictureLookup(&key, dst) })
	if err != nil {
		return blob.Picture{}, err
	}
	got, err := abi.ParsePicture(data)
	if err == nil && !got.Expires.IsZero() && !now.Before(got.Expires) {
		err = blob.ErrNotFound
	}
	if err != nil {
		return blob.Picture{}, err
	}
	return got, nil
}

// Unpin ends the pin that a result with a blob has.
func (p Pictures) Unpin(_ context.Context, h blob.Hash) error {
	return did(p.From.PictureRelease((*[32]byte)(&h)))
}

// Drop deletes a picture whose record may have been deleted, unless another record or a name needs it.
func (p Pictures) Drop(_ context.Context, h blob.Hash) error {
	return did(p.From.PictureDrop((*[32]byte)(&h)))
}
