package hostcalls

import (
	"bytes"
	"encoding/hex"
	"math"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// numbered is the number of files.
const numbered = 4

// place refuses a file or an offset that there is not.
func (h *Host) place(file uint32, offset int64) error {
	if h.Files == nil || file >= numbered || offset < 0 || offset > math.MaxInt64-math.MaxUint32 {
		return ErrNotProvided
	}
	return nil
}

// FileSize returns the size of a file.
func (h *Host) FileSize(file uint32) int64 {
	err := h.place(file, 0)
	var n int64
	if err == nil {
		n, err = h.Files.Size(int(file))
	}
	if err != nil {
		return put(nil, nil, err)
	}
	return n
}

// FileRead fills dst from a file.
func (h *Host) FileRead(file uint32, offset int64, dst []byte) int32 {
	if err := h.place(file, offset); err != nil {
		return did(err)
	}
	return did(h.Files.Read(int(file), offset, dst))
}

// FileWrite writes src to a file.
func (h *Host) FileWrite(file uint32, offset int64, src []byte) int32 {
	if err := h.place(file, offset); err != nil {
		return did(err)
	}
	return did(h.Files.Write(int(file), offset, src))
}

// FileTruncate shortens a file.
func (h *Host) FileTruncate(file uint32, size int64) int32 {
	if err := h.place(file, size); err != nil {
		return did(err)
	}
	return did(h.Files.Truncate(int(file), size))
}

// FileSync has what was written to a file outlive a crash.
func (h *Host) FileSync(file uint32) int32 {
	if err := h.place(file, 0); err != nil {
		return did(err)
	}
	return did(h.Files.Sync(int(file)))
}

// PictureAdd keeps a picture, and writes its name and its hash to dst.
func (h *Host) PictureAdd(data []byte, contentType string, expires int64, dst *[abi.PictureNameBytes + 32]byte) int32 {
	if h.Hosted == nil {
		return did(ErrNotProvided)
	}
	name, hash, err := h.Hosted.Add(h.Context, data, contentType, abi.FromNanos(expires))
	if err == nil {
		copy(dst[abi.PictureNameBytes:], hash[:])
		_, err = hex.Decode(dst[:abi.PictureNameBytes], []byte(name))
	}
	return did(err)
}

// PictureRelease gives up what a result with a blob holds.
func (h *Host) PictureRelease(hash *[32]byte) int32 {
	if h.Hosted == nil {
		return did(ErrNotProvided)
	}
	return did(h.Hosted.Unpin(h.Context, *hash))
}

// PictureDrop deletes a picture that nothing claims.
func (h *Host) PictureDrop(hash *[32]byte) int32 {
	if h.Hosted == nil {
		return did(ErrNotProvided)
	}
	return did(h.Hosted.Drop(h.Context, *hash))
}

// PictureLookup finds the picture of a public name; see [abi.ParsePicture].
func (h *Host) PictureLookup(name *[abi.PictureNameBytes]byte, dst []byte) int64 {
	if h.Hosted == nil {
		return put(dst, nil, ErrNotProvided)
	}
	p, err := h.Hosted.Lookup(hex.EncodeToString(name[:]), h.Clock())
	return put(dst, abi.AppendPicture(nil, &p), err)
}

// PictureHas reports whether the host has a picture of a copy.
func (h *Host) PictureHas(hash *[32]byte) int32 {
	if h.Blobs == nil {
		return did(ErrNotProvided)
	}
	has, err := h.Blobs.Has(h.Context, *hash)
	if err == nil && !has {
		err = blob.ErrNotFound
	}
	return did(err)
}

// PictureGet reads a picture of a copy.
func (h *Host) PictureGet(hash *[32]byte, dst []byte) int64 {
	if h.Blobs == nil {
		return put(dst, nil, ErrNotProvided)
	}
	data, err := h.Blobs.Get(h.Context, *hash)
	return put(dst, data, err)
}

// PicturePut keeps a picture of a copy, which must have the hash.
func (h *Host) PicturePut(hash *[32]byte, data []byte) int32 {
	if h.Blobs == nil {
		return did(ErrNotProvided)
	}
	_, err := h.Blobs.Put(h.Context, bytes.NewReader(data), *hash)
	return did(err)
}

// AppRecordSeq returns the place of the application's record in the origin's control log.
func (h *Host) AppRecordSeq() int64 {
	if h.Register == nil || !h.bounds.one {
		return put(nil, nil, ErrNotProvided)
	}
	seq, err := h.Register.AppRecordSeq(h.bounds.app.String())
	if err != nil {
		return put(nil, nil, err)
	}
	return int64(seq)
}

// RegisterTake takes what the origin says of the application.
func (h *Host) RegisterTake(seq int64, data []byte) int32 {
	if h.Register == nil || !h.bounds.one {
		return did(ErrNotProvided)
	}
	return did(h.Register.ApplyAppRecord(h.bounds.app.String(), uint64(seq), bytes.Clone(data)))
}

// TokenIssue issues a token; see [abi.ParseToken].
func (h *Host) TokenIssue(claims, dst []byte) int64 {
	c, err := abi.ParseClaims(claims)
	switch {
	case err != nil:
	case h.Tokens == nil:
		err = auth.ErrToken
	case !h.bounds.mayIssue(c.App):
		err = errOtherApp
	}
	if err != nil {
		return put(dst, nil, err)
	}
	token, life, err := h.Tokens.Issue(c)
	return putOnce(dst, abi.AppendToken(nil, token, life), err)
}

// TokenRead reads the claims of a token.
func (h *Host) TokenRead(token string, dst []byte) int64 {
	if h.Tokens == nil {
		return put(dst, nil, auth.ErrToken)
	}
	c, err := h.Tokens.Read(token)
	return put(dst, abi.MarshalClaims(c), err)
}

// Count counts a call of the application, or answers why the call is refused.
func (h *Host) Count(dst []byte) int64 {
	if h.Services.Count == nil {
		return put(dst, nil, ErrNotProvided)
	}
	return putOnce(dst, []byte(h.Services.Count(h.bounds.app.String())), nil)
}
