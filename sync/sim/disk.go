package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
)

// Disk is the disk of a party's store.
type Disk interface {
	// Open opens the store that is on the disk; an empty disk has an empty one.
	Open() (kv.Store, error)

	// Kill returns the disk as a process leaves it that is killed at this moment: with all that was
	// given to it, of which a later loss of power may still take what was not synced. The old disk
	// is not used again; false: this disk cannot tell the two apart.
	Kill() (Disk, bool)

	// Cut returns the disk after a loss of power at this moment: with all durable data and about percent of the rest. The old disk is not
	// used again.
	Cut(percent int, rng *rand.Rand) (Disk, error)
}

// Memory is the cheapest disk: the batches of a store in memory. A loss of power deletes the last unsynced ones. It keeps exactly the
// promises of package kv.
type Memory struct {
	batches [][]byte
	durable int
}

var (
	_ Disk          = (*Memory)(nil)
	_ memkv.Journal = (*Memory)(nil)
)

// Open implements [Disk].
func (m *Memory) Open() (kv.Store, error) { return memkv.Open(memkv.Options{Journal: m}) }

// Cut implements [Disk].
func (m *Memory) Cut(percent int, rng *rand.Rand) (Disk, error) {
	n := m.durable
	for n < len(m.batches) && rng.IntN(100) < percent {
		n++
	}
	return &Memory{batches: slices.Clone(m.batches[:n]), durable: n}, nil
}

// Kill implements [Disk].
func (m *Memory) Kill() (Disk, bool) { return m, true }

// Copy is the disk as a backup that is taken now has it.
func (m *Memory) Copy() *Memory {
	return &Memory{batches: slices.Clone(m.batches), durable: len(m.batches)}
}

// Replay implements [memkv.Journal].
func (m *Memory) Replay(yield func(batch []byte) error) error {
	for _, b := range m.batches {
		if err := yield(b); err != nil {
			return err
		}
	}
	return nil
}

// Append implements [memkv.Journal].
func (m *Memory) Append(batch []byte) (wait func() error, err error) {
	m.batches = append(m.batches, slices.Clone(batch))
	n := len(m.batches)
	return func() error {
		m.durable = max(m.durable, n)
		return nil
	}, nil
}

// lose ends a process on a disk: it is killed, or its machine loses power.
func (w *world) lose(d Disk) (after Disk, killed bool) {
	if w.rng.IntN(4) == 0 {
		if after, killed = d.Kill(); killed {
			return after, true
		}
	}
	after, err := d.Cut(w.faults.unsynced, w.rng)
	w.fail(err)
	return after, false
}

// relapse has a process that was killed, and has begun again, soon end once more: what it found on its
// disk and took for safe may be lost with the power now.
func (w *world) relapse(killed bool, crash func()) {
	if killed && w.rng.IntN(2) == 0 {
		w.after(w.some(time.Second), func() {
			if !w.healing { // when all is well for good
				crash()
			}
		})
	}
}

// cut is the panic of a power cut in the middle of a call.
type cut struct{}

// powerCutStore is a store whose power can be cut in the middle of an operation.
type powerCutStore struct {
	kv.Store
	left  int   // steps until the power is cut; 0: it is not
	space space // that is left
}

func (w *powerCutStore) step() {
	if w.left > 0 {
		if w.left--; w.left == 0 {
			panic(cut{})
		}
	}
}

// Apply implements [kv.Store].
func (w *powerCutStore) Apply(b *kv.Batch) error {
	w.step()
	if w.space == none {
		return kv.ErrFull
	}
	err := w.Store.Apply(b)
	w.step()
	return err
}

// Commit implements [kv.Store].
func (w *powerCutStore) Commit(b *kv.Batch) (func() error, error) {
	w.step()
	if w.space == none {
		return nil, kv.ErrFull
	}
	wait, err := w.Store.Commit(b)
	w.step()
	if err != nil {
		return nil, err
	}
	return func() error {
		err := wait()
		w.step()
		return err
	}, nil
}
