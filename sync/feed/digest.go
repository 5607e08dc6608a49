package feed

import (
	"crypto/sha256"
	"errors"
	"slices"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/shares"
	"github.com/sightline-dev/sightline/sync/wire"
)

// tree is a digest tree of the state at an entry. It takes 3 MB.
type tree struct {
	*fold.Tree
	epoch log.Epoch
	seq   uint64
}

const (
	maxTrees   = 16              // trees of all accounts, which share them
	leastTrees = 2               // trees that an account may always have while there are places
	keepTree   = 2 * time.Minute // time after the last use
	lastTree   = 2 * time.Hour   // maximum age
)

func newTrees(f *Feed) pool[tree] {
	return pool[tree]{
		name: "digests", places: shares.New(maxTrees, leastTrees), quota: &f.meters.trees, idle: keepTree, age: lastTree,
		end: func(*tree) error { return nil },
	}
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
	isAt := func(seq uint64) func(*pooled[tree]) bool {
		return func(x *pooled[tree]) bool {
			return x.group.app == c.app && x.value.epoch == epoch && x.value.seq == seq
		}
	}
	var x *pooled[tree]
	if len(prefix) != fold.TreeDepth { // a leaf's keys are read from the current state
		x = c.f.trees.find(c.now, isAt(at))
	}
	if x == nil {
		x, err = c.f.trees.get(c, group{app: c.app}, isAt(v.Seq()), func() (tree, error) {
			t, err := fold.DigestTree(v.KV(), v.AppID())
			return tree{t, epoch, v.Seq()}, err
		})
		if err != nil {
			return api.Response{}, err
		}
	}
	res, err := c.node(&x.value, v.Reader, prefix)
	return res, errors.Join(err, c.f.trees.release(x))
}

// node answers with a node of a tree. r is the current state.
func (c *call) node(x *tree, r catalog.Reader, prefix string) (api.Response, error) {
	out := wire.Digests{Epoch: x.epoch, Seq: x.seq, Prefix: prefix}
	children, err := x.Children(prefix)
	if errors.Is(err, fold.ErrPrefix) {
		return api.Response{}, malformedError("prefix must be at most %d lower-case hexadecimal digits", fold.TreeDepth)
	}
	for _, n := range children {
		out.Nodes = append(out.Nodes, wire.Node{Keys: n.Keys, Digest: n.Digest})
	}
	if err == nil && len(prefix) == fold.TreeDepth {
		out.Leaves, err = c.leaves(r, prefix)
	}
	if err != nil {
		return api.Response{}, err
	}
	res := message(out.Encode())
	res.Header = []api.Field{{Name: "Cache-Control", Value: "no-store"}}
	return res, nil
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
