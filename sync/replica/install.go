package replica

import (
	"cmp"
	"context"
	"fmt"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/wire"
)

// A host can do the slow parts of a join natively, several times as fast as a machine in a guest. It does them between the machine's steps,
// over the same store:
//
//	machine ── Ask, Place ──▶ host: chunk, its hash ── Place ──▶ derived records in their table, PlacedKey
//	        ◀── Answer, Placed ──┘
//	        ── InstallSnapshot ──▶ host: the machine ends ── ApplySnapshot ──▶ state, index ── another machine begins, and pulls
//
// A host that is killed or fails in between leaves the same data as a machine that is killed: the chunks, or a torn state, which
// [partition.OpenReplica] deletes.

// nativeSnapshotBytes is the minimum size in bytes of a snapshot that the host installs. For a smaller one, creating another machine costs
// more than the host saves.
const nativeSnapshotBytes = 8 << 20

// offerSnapshot asks the host to install the snapshot, and reports whether it did.
func (m *Machine) offerSnapshot() (bool, error) {
	r := &m.rebase
	size := uint64(0)
	for _, c := range r.manifest.Chunks {
		size += c.Size
	}
	if !m.o.NativeSnapshots || size < nativeSnapshotBytes {
		return false, nil
	}
	places, err := m.places()
	if places && err == nil {
		r.handedOver = true
		m.effects = append(m.effects, InstallSnapshot{Manifest: r.manifest.Encode()})
	}
	return places, err
}

// Place stores the derived records of a snapshot chunk under their keys, instead of the application's machine, which must be between two
// steps. hash is the hash of piece. Place returns false and changes nothing if the chunk has other records, or if the replica has inputs
// already.
func Place(store kv.Store, app catalog.AppID, hash blob.Hash, piece []byte) (bool, error) {
	if err := store.Room(); err != nil {
		return false, err
	}
	empty, err := blank(store, app)
	var b kv.Batch
	if err != nil || !empty || !partition.PlaceChunk(&b, app, hash, piece) {
		return false, err
	}
	err = store.Apply(&b)
	return err == nil, err
}

// ApplySnapshot installs the snapshot of an [InstallSnapshot] after the application's machine has ended. The chunks must be in the store.
// It uses App, Partition and Store of o. After an error the replica has pulled nothing, and the next machine continues from there.
func ApplySnapshot(ctx context.Context, o Options, manifest []byte) error {
	f, err := wire.DecodeManifest(manifest)
	if err != nil {
		return err
	}
	m := &Machine{o: o, p: o.Partition}
	m.rebase.begin(&f)
	for i, c := range m.rebase.parts {
		has, err := m.hasPart(i)
		if err == nil && !has {
			err = fmt.Errorf("chunk %v of a snapshot: %w", c.Hash, blob.ErrNotFound)
		}
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
	}
	return m.adopt(ctx)
}
