package host

import (
	"encoding/hex"
	"math"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// Files are the host's files that a guest with a store of its own keeps it in. They are numbered
// 0 to 3 and empty at first.
type Files interface {
	Size(file int) (int64, error)
	Read(file int, offset int64, dst []byte) error // all of dst, or an error
	Write(file int, offset int64, src []byte) error
	Truncate(file int, size int64) error
	Sync(file int) error // what was written outlives a crash
}

// numbered is how many files there are.
const numbered = 4

// file is the file of parameter 0, and the offset of parameter 1.
func (c *call) place() (file int, offset int64, err error) {
	file, offset = int(c.u32(0)), int64(c.stack[1])
	if c.in.lent.Files == nil || file >= numbered || offset < 0 || offset > math.MaxInt64-math.MaxUint32 {
		err = errNotLent
	}
	return file, offset, err
}

func fileSize(c *call) {
	if c.in.lent.Files == nil || c.u32(0) >= numbered {
		c.refuse(errNotLent)
		return
	}
	n, err := c.in.lent.Files.Size(int(c.u32(0)))
	if c.stack[0] = uint64(n); err != nil {
		c.refuse(err)
	}
}

func fileRead(c *call) error {
	dst := c.bytes(2)
	file, offset, err := c.place()
	if err != nil {
		return err
	}
	return c.in.lent.Files.Read(file, offset, dst)
}

func fileWrite(c *call) error {
	src := c.bytes(2)
	file, offset, err := c.place()
	if err != nil {
		return err
	}
	return c.in.lent.Files.Write(file, offset, src)
}

func fileTruncate(c *call) error {
	file, size, err := c.place()
	if err != nil {
		return err
	}
	return c.in.lent.Files.Truncate(file, size)
}

func fileSync(c *call) error {
	if c.in.lent.Files == nil || c.u32(0) >= numbered {
		return errNotLent
	}
	return c.in.lent.Files.Sync(int(c.u32(0)))
}

// hash is that of parameter 0.
func (c *call) hash() blob.Hash { return blob.Hash(c.view(c.u32(0), uint32(len(blob.Hash{})))) }

func pictureAdd(c *call) error {
	data, contentType := c.bytes(0), c.text(2)
	const room = abi.PictureNameBytes + len(blob.Hash{})
	dst := c.view(c.u32(5), uint32(room))
	if c.in.lent.Hosted == nil {
		return errNotLent
	}
	name, hash, err := c.in.lent.Hosted.Add(c.ctx, data, contentType, abi.FromNanos(int64(c.stack[4])))
	if err != nil {
		return err
	}
	copy(dst[abi.PictureNameBytes:], hash[:])
	_, err = hex.Decode(dst[:abi.PictureNameBytes], []byte(name))
	return err
}

func pictureRelease(c *call) error {
	hash := c.hash()
	if c.in.lent.Hosted == nil {
		return errNotLent
	}
	return c.in.lent.Hosted.Release(c.ctx, hash)
}

func pictureDrop(c *call) error {
	hash := c.hash()
	if c.in.lent.Hosted == nil {
		return errNotLent
	}
	return c.in.lent.Hosted.Drop(c.ctx, hash)
}

func pictureLookup(c *call) ([]byte, error) {
	name := hex.EncodeToString(c.view(c.u32(0), abi.PictureNameBytes))
	if c.in.lent.Hosted == nil {
		return nil, errNotLent
	}
	p, err := c.in.lent.Hosted.Lookup(name, c.in.lent.Clock())
	return abi.AppendPicture(nil, &p), err
}

// once returns what must not be asked for twice. If it does not fit the room of parameter i, the guest has broken the contract.
func (c *call) once(i int, data []byte, err error) ([]byte, error) {
	if err == nil && len(data) > int(c.u32(i+1)) {
		err = errTooLong
	}
	return data, err
}

func tokenIssue(c *call) ([]byte, error) {
	claims, err := abi.ParseClaims(c.bytes(0))
	switch {
	case err != nil:
		return nil, err
	case c.in.lent.Tokens == nil:
		return nil, auth.ErrToken
	case !c.in.bounds.mayIssue(claims.App):
		return nil, errForeign
	}
	token, life, err := c.in.lent.Tokens.Issue(claims)
	return c.once(2, abi.AppendToken(nil, token, life), err)
}

func tokenRead(c *call) ([]byte, error) {
	token := c.text(0)
	if c.in.lent.Tokens == nil {
		return nil, auth.ErrToken
	}
	claims, err := c.in.lent.Tokens.Read(token)
	return abi.MarshalClaims(claims), err
}

// count counts a call of the application, or answers why the call is refused.
func count(c *call) ([]byte, error) {
	if c.in.lent.Count == nil {
		return nil, errNotLent
	}
	return c.once(0, []byte(c.in.lent.Count(c.in.bounds.app.String())), nil)
}
