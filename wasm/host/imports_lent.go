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

func fileRead(c *call) {
	dst := c.bytes(2)
	file, offset, err := c.place()
	if err == nil {
		err = c.in.lent.Files.Read(file, offset, dst)
	}
	c.did(err)
}

func fileWrite(c *call) {
	src := c.bytes(2)
	file, offset, err := c.place()
	if err == nil {
		err = c.in.lent.Files.Write(file, offset, src)
	}
	c.did(err)
}

func fileTruncate(c *call) {
	file, size, err := c.place()
	if err == nil {
		err = c.in.lent.Files.Truncate(file, size)
	}
	c.did(err)
}

func fileSync(c *call) {
	if c.in.lent.Files == nil || c.u32(0) >= numbered {
		c.did(errNotLent)
		return
	}
	c.did(c.in.lent.Files.Sync(int(c.u32(0))))
}

// hash is that of parameter 0.
func (c *call) hash() blob.Hash { return blob.Hash(c.view(c.u32(0), uint32(len(blob.Hash{})))) }

func pictureAdd(c *call) {
	data, contentType := c.bytes(0), c.text(2)
	const room = abi.PictureNameBytes + len(blob.Hash{})
	dst := c.view(c.u32(5), uint32(room))
	if c.in.lent.Hosted == nil {
		c.did(errNotLent)
		return
	}
	name, hash, err := c.in.lent.Hosted.Add(c.ctx, data, contentType, abi.FromNanos(int64(c.stack[4])))
	if err == nil {
		_, err = hex.Decode(dst[:abi.PictureNameBytes], []byte(name))
		copy(dst[abi.PictureNameBytes:], hash[:])
	}
	c.did(err)
}

func pictureRelease(c *call) {
	hash := c.hash()
	if c.in.lent.Hosted == nil {
		c.did(errNotLent)
		return
	}
	c.did(c.in.lent.Hosted.Release(c.ctx, hash))
}

func pictureDrop(c *call) {
	hash := c.hash()
	if c.in.lent.Hosted == nil {
		c.did(errNotLent)
		return
	}
	c.did(c.in.lent.Hosted.Drop(c.ctx, hash))
}

func pictureLookup(c *call) {
	name := hex.EncodeToString(c.view(c.u32(0), abi.PictureNameBytes))
	if c.in.lent.Hosted == nil {
		c.fill(1, nil, errNotLent)
		return
	}
	p, err := c.in.lent.Hosted.Lookup(name, c.in.lent.Clock())
	if err != nil {
		c.fill(1, nil, err)
		return
	}
	c.fill(1, abi.AppendPicture(nil, &p), nil)
}

// once answers what must not be asked twice: where it does not fit the guest has broken the contract.
func (c *call) once(i int, data []byte, err error) {
	if err == nil && len(data) > int(c.u32(i+1)) {
		err = errTooLong
	}
	c.fill(i, data, err)
}

func tokenIssue(c *call) {
	claims, err := abi.ParseClaims(c.bytes(0))
	if err == nil && c.in.lent.Tokens == nil {
		err = auth.ErrToken
	}
	if err == nil && !c.in.bounds.mayIssue(claims.App) {
		err = errForeign
	}
	if err != nil {
		c.fill(2, nil, err)
		return
	}
	token, life, err := c.in.lent.Tokens.Issue(claims)
	c.once(2, abi.AppendToken(nil, token, life), err)
}

func tokenRead(c *call) {
	token := c.text(0)
	if c.in.lent.Tokens == nil {
		c.fill(2, nil, auth.ErrToken)
		return
	}
	claims, err := c.in.lent.Tokens.Read(token)
	c.fill(2, abi.MarshalClaims(claims), err)
}

// count counts a call of the application, or answers why the call is refused.
func count(c *call) {
	if c.in.lent.Count == nil {
		c.fill(0, nil, errNotLent)
		return
	}
	c.once(0, []byte(c.in.lent.Count(c.in.bounds.app.String())), nil)
}
