package host

import (
	"bytes"

	"github.com/sightline-dev/sightline/core/blob"
)

// Register is what a host knows of applications that are copies of an origin's.
type Register interface {
	// RegisterSeq is the place in the origin's control log of what is known of an application; 0: nothing.
	RegisterSeq(app string) (uint64, error)

	// TakeRegister takes a newer one. It is called while the application's guest runs: what ends that waits until
	// the call is over. data is the host's.
	TakeRegister(app string, seq uint64, data []byte) error
}

func pictureHas(c *call) {
	hash := c.hash()
	if c.in.lent.Blobs == nil {
		c.did(errNotLent)
		return
	}
	has, err := c.in.lent.Blobs.Has(c.ctx, hash)
	if err == nil && !has {
		err = blob.ErrNotFound
	}
	c.did(err)
}

func pictureGet(c *call) {
	hash := c.hash()
	if c.in.lent.Blobs == nil {
		c.fill(1, nil, errNotLent)
		return
	}
	data, err := c.in.lent.Blobs.Get(c.ctx, hash)
	c.fill(1, data, err)
}

func picturePut(c *call) {
	hash, data := c.hash(), c.bytes(1)
	if c.in.lent.Blobs == nil {
		c.did(errNotLent)
		return
	}
	_, err := c.in.lent.Blobs.Put(c.ctx, bytes.NewReader(data), hash)
	c.did(err)
}

func registerSeq(c *call) {
	if c.in.lent.Register == nil || !c.in.bounds.one {
		c.refuse(errNotLent)
		return
	}
	seq, err := c.in.lent.Register.RegisterSeq(c.in.bounds.app.String())
	if c.stack[0] = seq; err != nil {
		c.refuse(err)
	}
}

func registerTake(c *call) {
	seq, data := c.stack[0], bytes.Clone(c.bytes(1))
	if c.in.lent.Register == nil || !c.in.bounds.one {
		c.did(errNotLent)
		return
	}
	c.did(c.in.lent.Register.TakeRegister(c.in.bounds.app.String(), seq, data))
}
