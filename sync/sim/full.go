package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// space is the space left on a disk.
type space int

const (
	spacious space = iota
	scarce         // Room returns kv.ErrFull: parties may write only operations that make room
	noSpace        // every write of a batch returns kv.ErrFull
)

// Room implements [kv.Store].
func (w *powerCutStore) Room() error {
	if w.space > spacious {
		return kv.ErrFull
	}
	return w.Store.Room()
}

// fill fills the disk of r, or sometimes the origin's, for up to 20 seconds.
func (w *world) fill(r *party) {
	w.stats.Full++
	s := scarce + space(w.rng.IntN(2))
	set := r.setFreeSpace
	if w.rng.IntN(4) == 0 {
		set = w.origin.setFreeSpace
	}
	set(s)
	w.after(w.some(20*time.Second), func() { set(spacious) })
}

// isFull reports whether err is the error of a full disk and the disk is full.
func isFull(err error, s space) bool { return s > spacious && errors.Is(err, kv.ErrFull) }

// checkFullDisk checks that a replica with a full disk pulls only entries that make room.
func (t *checkedPartition) checkFullDisk(run *partition.Run, err error) {
	if err != nil || t.party.wire.space == spacious {
		return
	}
	for i := range run.Entries {
		if !makesRoom(run.Entries[i].Op.Body) {
			t.party.world.fail(fmt.Errorf("the full disk of replica %d takes entry %d", t.party.number, run.Entries[i].Seq))
		}
	}
}

// checkFullDisk checks that an origin with a full disk has appended only entries that make room after the entry since.
func (g *origin) checkFullDisk(since uint64) {
	if !g.up || g.wire.space == spacious {
		return
	}
	for _, e := range g.world.oracle.entries {
		if e.Seq > since && !makesRoom(e.Op.Body) {
			g.world.fail(fmt.Errorf("the full disk of the origin takes entry %d", e.Seq))
		}
	}
}

// makesRoom reports whether a party may write an operation to a full disk, because it deletes something.
func makesRoom(body log.Body) bool {
	switch body.(type) {
	case *log.InputDelete, *log.InputDeleteAll, *log.ModelDelete, *log.ModelDeleteAll, *log.VersionDelete, *log.WorkflowDelete,
		*log.ConceptDelete:
		return true
	}
	return false
}
