package sim

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"time"

	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/log"
)

// image is a copy of a replica's disk, with the promises and the edge of that time.
type image struct {
	promises
	disk *Memory
	edge edge
}

// keep stores an image of the replica's disk. It does nothing if the disk is not a Memory, or if the site changed since the last check.
func (r *party) keep() {
	disk, ok := r.disk.(*Memory)
	if !ok || !r.up || r.part.Site() == 0 || r.part.Site() != r.site {
		return
	}
	r.image = &image{promises: r.promises.clone(), disk: disk.Copy()}
	if r.edge != nil {
		r.image.edge = *r.edge
	}
}

// rollback restarts the replica from its image. The replica may lose later promises that the origin does not have. Half of the rollbacks
// restore the image as a backup, which gives the outbox another epoch.
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
	for dot, list := range w.oracle.issued {
		for i := range list {
			list[i].rolledBack = list[i].rolledBack || dot.Writer == r.site
		}
	}
	r.up, r.part, r.machine = false, nil, nil
	r.life++
	r.disk = x.disk.Copy()
	r.promises, r.rolled = x.promises.clone(), true
	if r.edge != nil {
		r.edge.seq, r.edge.token = x.edge.seq, x.edge.token
	}
	r.runWithCuts(func() error {
		if w.rng.IntN(2) == 0 {
			if err := renew(r.disk, name(r.random), w.app); err != nil {
				return err
			}
		}
		return r.start()
	})
	if way == 1 { // it writes before it can reach the origin
		r.unplug()
	}
	if way < 2 {
		w.after(time.Millisecond, r.write)
	}
}

// move is a replica's change from one site to another. The replica sends its operations after last again from the new site.
type move struct {
	from, to log.Writer
	last     uint64
}

// name returns the dot of an operation after the move.
func (m move) name(d log.Dot) log.Dot {
	if d.Writer == m.from && d.Seq > m.last {
		return log.Dot{Writer: m.to, Seq: d.Seq - m.last}
	}
	return d
}

// followMove gives the promises the dots of the site to which the replica has moved, and checks them (I2, I3, I8).
func (r *party) followMove() error {
	old, site := r.site, r.part.Site()
	r.site = site
	if old == 0 || old == site {
		return nil
	}
	maps.DeleteFunc(r.ords, func(ord uint32, _ log.Dot) bool { return ord >= fold.PendingOrds })
	o := r.world.oracle
	r.world.moves = append(r.world.moves, move{old, site, r.last})
	dots := r.promised[:0]
	r.tail, r.rolled = nil, false
	for _, dot := range r.promised {
		if dot.Writer != old {
			dots = append(dots, dot)
			continue
		}
		if dot.Seq <= r.last {
			if _, ok := o.at[dot]; ok {
				dots = append(dots, dot)
			}
			continue
		}
		was := o.issued[dot]
		if len(was) == 0 {
			return fmt.Errorf("I2: operation %v was promised and never made", dot)
		}
		to := move{old, site, r.last}.name
		x := was[len(was)-1]
		op, err := log.Decode(x.data)
		for i := len(was) - 1; i > 0 && err == nil && o.shared && op.By != r.by(); i-- { // another replica had the site, too
			x = was[i-1]
			op, err = log.Decode(x.data)
		}
		if err != nil {
			return err
		}
		if at := o.at[dot]; r.hasEntry(at) && !twice(was, x.data) && bytes.Equal(x.data, log.Encode(nil, &o.entries[at-1].Op)) {
			return fmt.Errorf("I3: operation %v is entry %d, and its replica sends it again from site %d", dot, at, site)
		}
		op.Dot = to(dot)
		log.Rename(op.Body, to)
		x.data = log.Encode(nil, &op)
		x.prev, x.rolledBack, r.tail = before(r.tail, op.Dot), false, x.data
		o.issue(op.Dot, x)
		dots = append(dots, op.Dot)
	}
	r.promised = dots
	next := uint64(0)
	var wrong error
	err := r.part.Pending(0, func(op log.Op) bool {
		next = op.Dot.Seq
		r.world.program.noteOp(&op)
		wrong = r.checkToken(op.Dot)
		return wrong == nil
	})
	if err = cmp.Or(wrong, err); err != nil {
		return err
	}
	if !r.world.healing { // a crash soon afterwards loses unsynced data
		r.world.relapse(true, r.crash)
	}
	for _, dot := range r.promised {
		if dot.Writer == site && dot.Seq > next {
			return fmt.Errorf("I2: operation %v was promised, and does not follow its replica to another site", dot)
		}
	}
	return r.world.inspect(r)
}

// twice reports whether a replica issued the same operation, with the same clock, more than once: before and after a rollback of its
// disk.
func twice(issues []issue, data []byte) bool {
	n := 0
	for i := range issues {
		if bytes.Equal(issues[i].data, data) {
			n++
		}
	}
	return n > 1
}

// hasEntry reports whether the log had entry at when the origin last reported which operations of the replica's site it has (r.known).
// Entry 0 is never known.
func (r *party) hasEntry(at uint64) bool {
	return at != 0 && at <= r.known.Seq && r.world.oracle.leadsOn(r.known.Seq, r.known.Chain)
}

// checkToken checks I8: a pending operation is stored with the token of the caller who submitted it.
func (r *party) checkToken(dot log.Dot) error {
	was := r.world.oracle.issued[dot]
	if len(was) == 0 {
		return nil
	}
	want := was[len(was)-1].token
	token, err := r.part.TokenOf(dot)
	if err == nil && token != want {
		err = fmt.Errorf("I8: operation %v was asked for with the token %+v, and its replica knows %+v", dot, want, token)
	}
	return err
}
