package partition

import (
	"context"
	"slices"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
)

// An empty replica installs a large snapshot in the order of the keys in the store:
//
//	chunks of derived records, as they come ──▶ their table, and a PlacedKey each
//	Rebase:  torn ──▶ state, indexed without derived records ──▶ derived records, by picture ──▶ not torn
//
// So each record is written once and read once, in the order of the keys.

// placedNote is the prefix of the names of PlacedKeys.
const placedNote = "sync/placed/"

// PlacedKey returns the key of a record: the store has the derived records of this chunk, although no input names them yet. While such a
// key exists and the replica has pulled nothing, cleanup does not delete them.
func PlacedKey(app catalog.AppID, chunk blob.Hash) []byte {
	return append(app.LocalKey(placedNote), chunk[:]...)
}

// DeletePlacedKeys deletes all PlacedKeys of an application.
func DeletePlacedKeys(w kv.Writer, app catalog.AppID) { kv.DeletePrefix(w, app.LocalKey(placedNote)) }

// PlaceChunk adds the derived records of a chunk and its PlacedKey to a batch. It returns false and adds nothing if the chunk has other
// records too.
func PlaceChunk(b *kv.Batch, app catalog.AppID, hash blob.Hash, chunk []byte) bool {
	var pairs []catalog.Pair
	all := true
	err := Unpack(chunk, func(key, value []byte) bool {
		pairs = append(pairs, catalog.Pair{Key: key, Value: value})
		all = catalog.IsDerivedKey(key)
		return all
	})
	if err != nil || !all || len(pairs) == 0 {
		return false
	}
	catalog.PutPairs(b, app, pairs)
	b.Put(PlacedKey(app, hash), nil)
	return true
}

// fill is adopt for a store without inputs and a snapshot that takes several batches. It writes derived records first, so that each input is
// indexed completely, once.
func (m *pullBatch) fill(ctx context.Context, s *Snapshot, states int) error {
	p := m.p
	if err := m.flush(); err != nil { // the state is torn now, and nothing below reads tx
		return err
	}
	var b kv.Batch
	pour := func(least int) error {
		if len(b.Bytes()) <= least {
			return ctx.Err()
		}
		err := p.o.Store.Apply(&b)
		if b.Reset(); err == nil {
			err = m.flush()
		}
		return err
	}
	for i := max(states-1, 0); i < len(s.Chunks); i++ {
		if s.isPlaced(i) {
			continue
		}
		pairs, err := s.pairs(i)
		if err == nil {
			catalog.PutPairs(&b, p.o.App, pairs)
			err = pour(p.batch)
		}
		if err != nil {
			return err
		}
	}
	if p.index != nil {
		p.index.Postpone()
		defer p.index.Resume()
	}
	a := catalog.AdoptInto(p.o.Store, &b, p.o.App, m.record)
	for i := range states {
		pairs, err := s.pairs(i)
		if err == nil {
			err = a.Keys(slices.DeleteFunc(pairs, func(x catalog.Pair) bool { return catalog.IsDerivedKey(x.Key) }))
		}
		if err == nil {
			err = pour(p.batch)
		}
		if err != nil {
			return err
		}
	}
	err := a.End()
	if err == nil {
		err = pour(0)
	}
	if err == nil && p.index != nil {
		err = p.index.IndexDerived(ctx, p.batch)
	}
	return err
}
