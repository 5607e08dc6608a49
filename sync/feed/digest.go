package feed

import (
	"maps"
	"sync"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/shares"
	"github.com/sightline-dev/sightline/sync/wire"
)

// digests remembers the newest digest of each application, so that the origin reads a state once for each of its entries. A quota limits the
// entries, and accounts share the places of the states that are being read.
type digests struct {
	places *shares.Shares // by account

	mu     sync.Mutex
	newest map[string]wire.Digest // by application
}

const (
	maxDigests   = 16 // states that are read at a time for all accounts, which share them
	leastDigests = 2  // states that are read at a time for an account while there are places
)

// digest answers with the digest of the current state. If the query names another entry, the answer only has the current entry, since the
// replica cannot compare the digest.
func (c *call) digest() (api.Response, error) {
	p, err := c.target()
	if err != nil {
		return api.Response{}, err
	}
	at, err := c.query.number("at")
	if err != nil {
		return api.Response{}, err
	}
	v := p.View()
	defer v.Close()
	d := wire.Digest{Epoch: p.Log().EpochOf(v.Seq()).Epoch, Seq: v.Seq()}
	if at == 0 || at == d.Seq {
		d, err = c.f.digests.of(c, v, d.Epoch)
	}
	if err != nil {
		return api.Response{}, err
	}
	res := message(d.Encode())
	res.Header = []api.Field{{Name: "Cache-Control", Value: "no-store"}}
	return res, nil
}

// of returns the digest of a view of a log with an epoch. Errors: a *wire.Refusal over the quota or without a place, and those of the store.
func (s *digests) of(c *call, v *partition.View, epoch log.Epoch) (wire.Digest, error) {
	s.mu.Lock()
	d := s.newest[c.app]
	s.mu.Unlock()
	if d.Epoch == epoch && d.Seq == v.Seq() {
		return d, nil
	}
	if !s.places.TryAcquire(c.account, 1) {
		return d, busy("too many digests at once")
	}
	defer s.places.Release(c.account, 1)
	if err := c.f.meters.digests.take(c, 1, c.now, "digests"); err != nil {
		return d, err
	}
	sum, err := fold.Digest(v.KV(), v.AppID())
	if err != nil {
		return d, err
	}
	d = wire.Digest{Epoch: epoch, Seq: v.Seq(), Digest: sum}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest[c.app] = d
	return d, nil
}

// sweep forgets the digests of deleted applications.
func (s *digests) sweep(isDeleted func(app string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.newest, func(app string, _ wire.Digest) bool { return isDeleted(app) })
}

// register answers with the app record, the part of the control log that a replica needs for an application. since is the entry up to which
// the replica has it.
func (c *call) register() (api.Response, error) {
	if _, err := c.target(); err != nil {
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
