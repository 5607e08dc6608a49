package feed

import (
	"crypto/sha256"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/wire"
)

// trees contains the digest trees that audits are reading. A tree takes 3 MB.
type trees struct {
	mu    sync.Mutex
	grown []*tree // oldest first
}

// tree is a digest tree of the state at an entry.
type tree struct {
	*fold.Tree
	app   string
	epoch log.Epoch
	seq   uint64
	used  time.Time
}

const (
	maxTrees = 8
	keepTree = 2 * time.Minute // time after the last use
)

// find returns the tree of the state at seq, or nil.
func (t *trees) find(app string, epoch log.Epoch, seq uint64, now time.Time) *tree {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, x := range t.grown {
		if x.app == app && x.epoch == epoch && x.seq == seq {
			x.used = now
			return x
		}
	}
	return nil
}

// put adds a tree, and drops trees that are too old or too many.
func (t *trees) put(x *tree) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.grown = slices.DeleteFunc(t.grown, func(o *tree) bool { return x.used.Sub(o.used) > keepTree })
	if len(t.grown) >= maxTrees {
		t.grown = slices.Delete(t.grown, 0, 1)
	}
	t.grown = append(t.grown, x)
}

// sweep drops trees that were not used for a while, and those of deleted applications.
func (t *trees) sweep(now time.Time, isDeleted func(app string) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.grown = slices.DeleteFunc(t.grown, func(x *tree) bool { return now.Sub(x.used).Abs() > keepTree || isDeleted(x.app) })
}

// digest answers with a node of the tree of the current state, or of an earlier entry whose tree is still in memory. The answer has the
// entry.
func (c *call) digest() (api.Response, error) {
	p, err := c.target()
	if err != nil {
		return api.Response{}, err
	}
	at, err := c.query.number("at")
	if err != nil {
		return api.Response{}, err
	}
	prefix := c.query.Get("prefix")
	v := p.View()
	defer v.Close()
	epoch := p.Log().Epoch()
	x := c.f.trees.find(c.app, epoch, at, c.now)
	if x == nil || len(prefix) == fold.TreeDepth {
		x = c.f.trees.find(c.app, epoch, v.Seq(), c.now) // a leaf's keys are read from the current state
	}
	if x == nil {
		if x, err = c.grow(v, epoch); err != nil {
			return api.Response{}, err
		}
	}
	out := wire.Digests{Epoch: epoch, Seq: x.seq, Prefix: prefix}
	children, err := x.Children(prefix)
	if errors.Is(err, fold.ErrPrefix) {
		return api.Response{}, malformedError("prefix must be at most %d lower-case hexadecimal digits", fold.TreeDepth)
	}
	for _, n := range children {
		out.Nodes = append(out.Nodes, wire.Node{Keys: n.Keys, Digest: n.Digest})
	}
	if err == nil && len(prefix) == fold.TreeDepth {
		out.Leaves, err = c.leaves(v.Reader, prefix)
	}
	if err != nil {
		return api.Response{}, err
	}
	res := message(out.Encode())
	res.Header = []api.Field{{Name: "Cache-Control", Value: "no-store"}}
	return res, nil
}

// grow builds the tree of the current state.
func (c *call) grow(v *partition.View, epoch log.Epoch) (*tree, error) {
	if err := c.f.meters.snapshots.take(c.user()+" digest", 1, c.now, "digests"); err != nil {
		return nil, err
	}
	digestTree, err := fold.DigestTree(v.KV(), v.AppID())
	if err != nil {
		return nil, err
	}
	x := &tree{Tree: digestTree, app: c.app, epoch: epoch, seq: v.Seq(), used: c.now}
	c.f.trees.put(x)
	return x, nil
}

// leaves returns the keys of a leaf, with their values if the query requests them.
func (c *call) leaves(r catalog.Reader, prefix string) ([]wire.Digest, error) {
	values := c.query.Get("values") == "1"
	var out []wire.Digest
	err := fold.KeysBelow(r.KV(), r.AppID(), prefix, func(key, value []byte) bool {
		d := wire.Digest{Key: slices.Clone(key), Hash: sha256.Sum256(value)}
		if values {
			d.Value = slices.Clone(value)
		}
		out = append(out, d)
		return true
	})
	return out, err
}

// register answers with the app record, the part of the control log that a replica needs for an application. since is the entry up to which
// the replica has it.
func (c *call) register() (api.Response, error) {
	app := c.query.Get("app")
	if _, err := c.open(app); err != nil {
		return api.Response{}, err
	}
	since, err := c.query.number("since")
	if err != nil {
		return api.Response{}, err
	}
	data, seq, err := c.f.o.Register.AppRecord(c.app, c.edgeID())
	if err != nil {
		return api.Response{}, err
	}
	if since != 0 && seq == since {
		return api.Response{Status: 204}, nil
	}
	m := wire.AppRecord{App: c.app, Seq: seq, Data: data}
	res := message(m.Encode())
	res.Header = []api.Field{{Name: "Cache-Control", Value: "no-store"}}
	return res, nil
}
