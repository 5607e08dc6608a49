package sim

import (
	"math/rand/v2"
	"slices"

	"github.com/sightline-dev/sightline/core/kv/memkv"
)

// disk is the disk of a node: the batches of its store. A loss of power deletes the last unsynced ones.
type disk struct {
	batches [][]byte
	durable int
}

var _ memkv.Journal = (*disk)(nil)

// Replay implements [memkv.Journal].
func (d *disk) Replay(yield func(batch []byte) error) error {
	for _, b := range d.batches {
		if err := yield(b); err != nil {
			return err
		}
	}
	return nil
}

// Append implements [memkv.Journal].
func (d *disk) Append(batch []byte) (wait func() error, err error) {
	d.batches = append(d.batches, slices.Clone(batch))
	n := len(d.batches)
	return func() error {
		d.durable = max(d.durable, n)
		return nil
	}, nil
}

// copy returns a durable copy.
func (d *disk) copy() *disk {
	n := len(d.batches)
	return &disk{d.batches[:n:n], n}
}

// cut returns the disk after a loss of power.
func (d *disk) cut(rng *rand.Rand) *disk {
	n := d.durable + rng.IntN(len(d.batches)-d.durable+1)
	return &disk{d.batches[:n:n], n}
}
