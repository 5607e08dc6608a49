package host

import (
	"context"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// HostedPicture returns the picture with a hosted name, without its data. If none exists, it returns blob.ErrNotFound.
func (in *Instance) HostedPicture(ctx context.Context, name string) (blob.Picture, error) {
	value, err := in.Ask(ctx, abi.Query{What: abi.AskHosted, Name: name})
	if err != nil {
		return blob.Picture{}, err
	}
	h, err := abi.ParseHosted(value)
	return blob.Picture{Hash: h.Hash, ContentType: h.ContentType, Expires: h.Expires}, in.invalidAnswer(err)
}

// Thumbnail returns the thumbnail of an input's picture as a JPEG. If none exists, it returns blob.ErrNotFound.
func (in *Instance) Thumbnail(ctx context.Context, name string) ([]byte, error) {
	return in.Ask(ctx, abi.Query{What: abi.AskThumbnail, Name: name})
}

// Memory returns the size of the guest's heap, and of the memory that its runtime has from the system.
func (in *Instance) Memory(ctx context.Context) (abi.MemoryReply, error) {
	value, err := in.Ask(ctx, abi.Query{What: abi.AskMemory})
	if err != nil {
		return abi.MemoryReply{}, err
	}
	m, err := abi.ParseMemory(value)
	return m, in.invalidAnswer(err)
}
