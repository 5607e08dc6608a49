package sim

import (
	"fmt"
	"time"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// image is a copy of a replica's disk, with the promises and the edge of that time.
type image struct {
	promises
	disk   *Memory
	memory partition.Image
	edge   edge
}

// keep stores an image of the replica's disk. It does nothing if the disk is not a Memory.
func (r *party) keep() {
	disk, ok := r.disk.(*Memory)
	if !ok || !r.up {
		return
	}
	r.image = &image{promises: r.promises.clone(), disk: disk.Copy(), memory: r.part.Image()}
	if r.edge != nil {
		r.image.edge = *r.edge
	}
}

// rollback restarts the replica from its image. The replica may lose later promises that the origin does not have.
func (r *party) rollback() {
	w := r.world
	if r.image == nil || !r.up || r.purged || w.o.LocalOnly {
		return
	}
	way := w.rng.IntN(4)
	if way == 0 { // its push may arrive after later writes
		if r.write(); !r.up {
			return
		}
	}
	x := r.image
	w.stats.Rollbacks++
	w.drop(r)
	r.up, r.part, r.machine = false, nil, nil
	r.life++
	r.disk, r.promises = x.disk.Copy(), x.promises.clone()
	if r.edge != nil {
		r.edge.seq, r.edge.token = x.edge.seq, x.edge.token
	}
	r.runWithCuts(func() error {
		err := r.start()
		if err == nil && w.o.Memory {
			r.part.Resume(x.memory)
		}
		return err
	})
	if way == 1 { // it writes before it can reach the origin
		r.unplug()
	}
	if way < 2 {
		w.after(time.Millisecond, r.write)
	}
}

// twin starts a copy of the replica from its image, and both run from then on. Each run has one at most.
func (r *party) twin() {
	w := r.world
	if r.image == nil || r.purged || w.stats.Twins > 0 || w.o.LocalOnly || w.o.Memory {
		return
	}
	w.stats.Twins++
	t := &party{node: w.node(), number: len(w.parties), user: r.user, promises: r.image.promises.clone(), old: r.old, small: r.small, base: r.base}
	t.disk, t.blobs = r.image.disk.Copy(), r.blobs
	if r.edge != nil {
		e := r.image.edge
		t.edge, e.revoked, e.was = &e, r.edge.revoked, r.edge.was
	}
	w.parties = append(w.parties, t)
	t.runWithCuts(t.start)
}

// checkToken checks I8: a pending operation is stored with the token of the caller who submitted it.
func (r *party) checkToken(dot log.Dot) error {
	was, ok := r.world.oracle.issued[dot]
	if !ok {
		return nil
	}
	token, err := r.part.TokenOf(dot)
	if err == nil && token != was.token {
		err = fmt.Errorf("I8: operation %v was asked for with the token %+v, and its replica knows %+v", dot, was.token, token)
	}
	return err
}
