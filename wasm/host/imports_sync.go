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

func pictureHas(c *call) error {
	hash := c.hash()
	if c.in.lent.Blobs == nil {
		return errNotLent
	}
	has, err := c.in.lent.Blobs.Has(c.ctx, hash)
	if err == nil && !has {
		err = blob.ErrNotFound
	}
	return err
}

func pictureGet(c *call) ([]byte, error) {
	hash := c.hash()
	if c.in.lent.Blobs == nil {
		return nil, errNotLent
	}
	return c.in.lent.Blobs.Get(c.ctx, hash)
}

func picturePut(c *call) error {
	hash, data := c.hash(), c.bytes(1)
	if c.in.lent.Blobs == nil {
		return errNotLent
	}
	_, err := c.in.lent.Blobs.Put(c.ctx, bytes.NewReader(data), hash)
	return err
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

func registerTake(c *call) error {
	seq, data := c.stack[0], bytes.Clone(c.bytes(1))
	if c.in.lent.Register == nil || !c.in.bounds.one {
		return errNotLent
	}
	return c.in.lent.Register.TakeRegister(c.in.bounds.app.String(), seq, data)
}
