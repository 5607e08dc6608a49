package sim

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
)

// Disk is the disk of a party's store.
type Disk interface {
	// Open opens the store on the disk. The store on an empty disk is empty.
	Open() (kv.Store, error)

	// Kill returns the disk after the process that uses it is killed at this moment: with all data that was written to it. A later loss of
	// power may still delete the unsynced data. The caller must not use the old disk again. Kill returns false if the disk cannot
	// distinguish a killed process from a loss of power.
	Kill() (Disk, bool)

	// Cut returns the disk after a loss of power at this moment: with all durable data and a random part of the rest, all of it if percent
	// is 100. The caller must not use the old disk again.
	Cut(percent int, rng *rand.Rand) (Disk, error)
}

// Memory is the fastest disk: it stores the batches of a store in memory. A loss of power deletes the last unsynced batches. Memory
// guarantees exactly what package kv requires.
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

// Copy returns a copy of the disk, as a backup taken now has it. All data of the copy is durable.
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

// lose returns the disk after its process was killed, or its computer lost power. killed reports which.
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

// relapse calls crash within a second, with a probability of 1/2, if a process was killed and has started again. Data that the process
// found on its disk may still be unsynced, and a loss of power then deletes it.
func (w *world) relapse(killed bool, crash func()) {
	if killed && w.rng.IntN(2) == 0 {
		w.after(w.some(time.Second), func() {
			if !w.healing { // no faults during the healing
				crash()
			}
		})
	}
}

// cut is the value of the panic that a power cut causes in a call.
type cut struct{}

// powerCutStore is a store whose power can be cut in the middle of an operation.
type powerCutStore struct {
	kv.Store
	left  int   // steps until the power is cut; 0: no cut is planned
	space space // space left on the disk
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
	if w.space == noSpace {
		return kv.ErrFull
	}
	err := w.Store.Apply(b)
	w.step()
	return err
}

// Commit implements [kv.Store].
func (w *powerCutStore) Commit(b *kv.Batch) (func() error, error) {
	w.step()
	if w.space == noSpace {
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

// strayKey returns a key that belongs to the state of the control partition. In an application's state only the digest depends on it.
func strayKey(app catalog.AppID) []byte {
	lo, _ := app.Range()
	return append(bytes.Clone(lo), "Rstray"...)
}

// spoil makes the state of a replica differ from the origin's. An audit must find the difference.
func (r *party) spoil() {
	if !r.up || r.part.Cursor().Seq == 0 {
		return
	}
	r.world.stats.Spoiled++
	var b kv.Batch
	b.Put(strayKey(r.world.app), []byte{1})
	r.world.fail(r.wire.Store.Apply(&b))
}

// isSpoiled reports whether a state differs because of spoil.
func isSpoiled(s kv.Reader, app catalog.AppID) bool {
	_, err := s.Get(strayKey(app))
	return err == nil
}
