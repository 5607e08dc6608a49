package sim

import (
	"fmt"
	"maps"
	"slices"

	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/log"
)

// image is a copy of a replica's disk, with the promises of that time.
type image struct {
	disk     *Memory
	promised []log.Dot
	refused  map[log.Dot]refusal
	ords     map[uint32]log.Dot
	epoch    log.Epoch
	site     log.Site
	edge     edge
}

// keep keeps an image of the replica's disk.
func (r *party) keep() {
	disk, ok := r.disk.(*Memory)
	if !ok || !r.up || r.part.Site() == 0 || r.part.Site() != r.site {
		return
	}
	r.image = &image{
		disk: disk.Copy(), promised: slices.Clone(r.promised), refused: maps.Clone(r.refused), ords: maps.Clone(r.ords), epoch: r.epoch, site: r.site,
	}
	if r.edge != nil {
		r.image.edge = *r.edge
	}
}

// rollback replaces the disk by the image. The replica may lose later promises, unless the origin has them. A
// backup that is restored gives the outbox another epoch.
func (r *party) rollback() {
	x, w := r.image, r.world
	if x == nil || !r.up || r.gone || w.o.LocalOnly {
		return
	}
	w.stats.Rollbacks++
	w.drop(r)
	for dot, list := range w.oracle.issued {
		for i := range list {
			list[i].gone = list[i].gone || dot.Site == r.site
		}
	}
	r.up, r.part, r.machine = false, nil, nil
	r.life++
	r.disk = x.disk.Copy()
	r.promised, r.refused, r.ords, r.epoch, r.site = slices.Clone(x.promised), maps.Clone(x.refused), maps.Clone(x.ords), x.epoch, x.site
	if r.edge != nil {
		r.edge.heard, r.edge.token = x.edge.heard, x.edge.token
	}
	r.guarded(func() error {
		if w.rng.IntN(2) == 0 {
			if err := r.restored(); err != nil {
				return err
			}
		}
		return r.start()
	})
}

// restored does to the disk what restoring a backup does.
func (r *party) restored() error {
	store, err := r.disk.Open()
	if err != nil {
		return err
	}
	l, err := log.Open(store, log.Options{Prefix: r.world.app.LogPrefix()})
	if err == nil {
		err = l.Renew(r.name())
	}
	if err == nil {
		err = store.Close()
	}
	return err
}

// moved follows promises to the site that the replica has taken.
func (r *party) moved() error {
	old, site := r.site, r.part.Site()
	r.site = site
	if old == 0 || old == site {
		return nil
	}
	maps.DeleteFunc(r.ords, func(ord uint32, _ log.Dot) bool { return ord >= fold.PendingOrds })
	o := r.world.oracle
	kept := r.promised[:0]
	for _, dot := range r.promised {
		if dot.Site != old {
			kept = append(kept, dot)
			continue
		}
		if dot.Seq <= r.last {
			if _, ok := o.at[dot]; ok {
				kept = append(kept, dot)
			}
			continue
		}
		was := o.issued[dot]
		if len(was) == 0 {
			return fmt.Errorf("I2: operation %v was promised and never made", dot)
		}
		to := func(d log.Dot) log.Dot {
			if d.Site == old && d.Seq > r.last {
				return log.Dot{Site: site, Seq: d.Seq - r.last}
			}
			return d
		}
		x := was[len(was)-1]
		op, err := log.Decode(x.data)
		if err != nil {
			return err
		}
		op.Dot = to(dot)
		log.Rename(op.Body, to)
		x.data = log.Encode(nil, &op)
		o.issue(op.Dot, x)
		kept = append(kept, op.Dot)
	}
	r.promised = kept
	next := uint64(0)
	err := r.part.Pending(0, func(op log.Op) bool {
		next = op.Dot.Seq
		r.world.program.issued(&op)
		return true
	})
	for _, dot := range r.promised {
		if dot.Site == site && dot.Seq > next {
			return joined(err, fmt.Errorf("I2: operation %v was promised, and does not follow its replica to another site", dot))
		}
	}
	return joined(err, r.world.inspect(r))
}
