package sim

import (
	"time"

	"github.com/sightline-dev/sightline/core/log"
)

// happen causes one random event: a user's write, a fault or a task of the operator.
func (w *world) happen() {
	r := w.parties[w.rng.IntN(len(w.parties))]
	if w.rng.IntN(16) == 0 {
		w.fill(r)
		return
	}
	if w.rng.IntN(10) == 0 {
		w.disaster(r)
		return
	}
	switch n := w.rng.IntN(100); {
	case n < 42:
		r.write()
	case n < 60:
		w.origin.write()
		if w.parties[0].edge != nil && w.rng.IntN(6) == 0 {
			w.origin.revokeTokens()
		}
	case n < 64:
		r.tidy()
	case n < 65:
		w.origin.tidy()
	case n < 70:
		r.cutPowerSoon(r.crash)
	case n < 74:
		w.origin.cutPowerSoon(w.origin.crash)
	case n < 84:
		r.unplug()
	case n < 89:
		w.jump(r)
	case n < 93:
		w.origin.trim()
	case n < 96:
		w.origin.horizon()
	case n < 99:
		switch {
		case w.rng.IntN(2) == 0:
			r.old = false
			r.reopen()
		case w.origin.rules < newRules:
			w.origin.upgrade()
		default:
			w.origin.trim()
		}
	default:
		w.origin.revoke(w.parties[0])
	}
}

// disaster replaces a disk by an older state of it, or stores a backup of the origin for that.
func (w *world) disaster(r *party) {
	switch w.rng.IntN(6) {
	case 5:
		r.twin()
	case 0:
		r.rollback()
		if w.rng.IntN(2) == 0 { // one fault rolls back both disks
			w.after(w.some(10*time.Second), func() {
				if !w.healing {
					w.origin.restore()
				}
			})
		}
	case 1, 2:
		w.origin.restore()
	default:
		w.origin.backup()
	}
}

// bodies draws the operations of one call.
func (w *world) bodies(of writers) []log.Body {
	bodies := make([]log.Body, 1+w.rng.IntN(3))
	for i := range bodies {
		bodies[i] = w.program.body(of)
	}
	return bodies
}

// unplug cuts a replica's link for up to 20 seconds.
func (r *party) unplug() {
	if r.down {
		return
	}
	r.world.stats.Partitions++
	r.down = true
	r.world.after(r.world.some(20*time.Second), func() { r.down = false })
}

// jump sets the clock of r, or sometimes the origin's, to at most 20 seconds before or after the true time.
func (w *world) jump(r *party) {
	if w.o.Memory { // two timelines with the same clock are not told apart
		return
	}
	w.stats.Jumps++
	c := &r.clock
	if w.rng.IntN(4) == 0 {
		c = &w.origin.clock
	}
	w.origin.look()
	c.skew = w.some(40*time.Second) - 20*time.Second
}
