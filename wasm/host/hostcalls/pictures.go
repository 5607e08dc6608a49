package hostcalls

import (
	"bytes"
	"encoding/hex"
	"math"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// numbered is the number of files of a guest.
const numbered = 4

// place returns ErrNotProvided if the host has no files, or if a file's number or an offset is invalid.
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

// FileRead fills dst with the bytes of a file at offset, or returns an error.
func (h *Host) FileRead(file uint32, offset int64, dst []byte) int32 {
	if err := h.place(file, offset); err != nil {
		return did(err)
	}
	return did(h.Files.Read(int(file), offset, dst))
}

// FileWrite writes src to a file at offset.
func (h *Host) FileWrite(file uint32, offset int64, src []byte) int32 {
	if err := h.place(file, offset); err != nil {
		return did(err)
	}
	return did(h.Files.Write(int(file), offset, src))
}

// FileTruncate shortens a file to size bytes.
func (h *Host) FileTruncate(file uint32, size int64) int32 {
	if err := h.place(file, size); err != nil {
		return did(err)
	}
	return did(h.Files.Truncate(int(file), size))
}

// FileSync makes earlier writes to a file durable.
func (h *Host) FileSync(file uint32) int32 {
	if err := h.place(file, 0); err != nil {
		return did(err)
	}
	return did(h.Files.Sync(int(file)))
}

// PictureAdd stores a picture of the instance's application, and writes its name and its hash to dst. expires is in nanoseconds since 1970;
// 0 means never. If the instance serves all applications, the picture has none.
func (h *Host) PictureAdd(data []byte, contentType string, expires int64, dst *[abi.PictureNameBytes + 32]byte) int32 {
	if h.Hosted == nil {
		return did(ErrNotProvided)
	}
	name, hash, err := h.Hosted.Add(h.Context, h.bounds.app, data, contentType, abi.FromNanos(expires))
	if err == nil {
		copy(dst[abi.PictureNameBytes:], hash[:])
		_, err = hex.Decode(dst[:abi.PictureNameBytes], []byte(name))
	}
	return did(err)
}

// PictureRelease ends the pin that a result with a blob has.
func (h *Host) PictureRelease(hash *[32]byte) int32 {
	if h.Hosted == nil {
		return did(ErrNotProvided)
	}
	return did(h.Hosted.Unpin(h.Context, *hash))
}

// PictureDrop deletes a picture whose record may have been deleted, unless another record or a name needs it.
func (h *Host) PictureDrop(hash *[32]byte) int32 {
	if h.Hosted == nil {
		return did(ErrNotProvided)
	}
	return did(h.Hosted.Drop(h.Context, *hash))
}

// PictureLookup returns the picture with a public name, in the form that [abi.ParsePicture] reads.
func (h *Host) PictureLookup(name *[abi.PictureNameBytes]byte, dst []byte) int64 {
	if h.Hosted == nil {
		return put(dst, nil, ErrNotProvided)
	}
	p, err := h.Hosted.Lookup(hex.EncodeToString(name[:]), h.Clock())
	return put(dst, abi.AppendPicture(nil, &p), err)
}

// PictureHas returns 0 if the host has a picture of a replica. Otherwise it returns abi.BlobNotFound or another error.
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

// PictureGet reads a picture of a replica.
func (h *Host) PictureGet(hash *[32]byte, dst []byte) int64 {
	if h.Blobs == nil {
		return put(dst, nil, ErrNotProvided)
	}
	data, err := h.Blobs.Get(h.Context, *hash)
	return put(dst, data, err)
}

// PicturePut stores a picture of a replica. It returns an error if data does not have the hash.
func (h *Host) PicturePut(hash *[32]byte, data []byte) int32 {
	if h.Blobs == nil {
		return did(ErrNotProvided)
	}
	_, err := h.Blobs.Put(h.Context, bytes.NewReader(data), *hash)
	return did(err)
}

// AppRecordSeq returns the position of the application's record in the origin's control log; 0: there is no record.
func (h *Host) AppRecordSeq() int64 {
	if h.AppRecords == nil || !h.bounds.one {
		return put(nil, nil, ErrNotProvided)
	}
	seq, err := h.AppRecords.AppRecordSeq(h.bounds.app.String())
	if err != nil {
		return put(nil, nil, err)
	}
	return int64(seq)
}

// RegisterTake stores a newer app record of the application, whose position in the origin's control log is seq.
func (h *Host) RegisterTake(seq int64, data []byte) int32 {
	if h.AppRecords == nil || !h.bounds.one {
		return did(ErrNotProvided)
	}
	return did(h.AppRecords.ApplyAppRecord(h.bounds.app.String(), uint64(seq), bytes.Clone(data)))
}

// TokenIssue issues a token, in the form that [abi.ParseToken] reads.
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

// Count counts a call of the application and returns 0. If the call is refused, Count writes the reason to dst and returns its length.
func (h *Host) Count(dst []byte) int64 {
	if h.Services.Count == nil {
		return put(dst, nil, ErrNotProvided)
	}
	return putOnce(dst, []byte(h.Services.Count(h.bounds.app.String())), nil)
}
