package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/sync/replica"
)

// mostRounds is the maximum number of rounds until agreement: three times the way from one replica to another by the origin.
const mostRounds = 3 * 2

// heal ends all faults and has everybody talk until all agree. A round is everybody's turn to ask until
// they have nothing more to ask.
func (w *world) heal() {
	w.healing = true
	w.faults = faults{}
	w.origin.mend()
	for _, r := range w.parties {
		r.mend()
	}
	if w.o.LocalOnly {
		w.origin.keepLocal()
	}
	for round := 1; w.failed == nil; round++ {
		w.stats.Rounds = round
		for _, r := range w.parties {
			r.step(replica.Online{})
			w.settle()
		}
		if w.hasConverged() || w.failed != nil {
			break
		}
		if round == mostRounds {
			w.fail(fmt.Errorf("I1: no agreement after %d rounds%s", round, w.standing()))
		}
	}
	for _, r := range w.parties {
		if w.failed == nil && !r.gone {
			w.fail(w.inspect(r))
		}
	}
	if w.failed == nil && !w.o.LocalOnly {
		w.fail(w.checkOwed())
	}
	if w.failed == nil && !w.o.LocalOnly && w.rng.IntN(8) == 0 {
		w.erase()
	}
}

// erase deletes the application, which empties every replica at its next contact.
func (w *world) erase() {
	w.stats.Scopes++
	w.origin.runWithCuts(func() error {
		w.deleted = true
		return w.origin.engine.Register.DeleteApp(context.Background(), register.Caller{Account: "operator"}, w.app.String())
	})
	for _, r := range w.parties {
		r.step(replica.Online{})
		w.settle()
		if w.failed == nil && !r.gone {
			w.fail(fmt.Errorf("I8: replica %d holds what was deleted: %+v", r.number, r.machine.Status()))
		}
	}
}

// mend has the power back for good.
func (g *origin) mend() {
	g.spare(spacious)
	if !g.up {
		g.runWithCuts(g.start)
	}
	if g.up {
		g.wire.left = 0
	}
	g.answerPolls()
}

// mend has the power and the network back for good, and the newest version.
func (r *party) mend() {
	r.spare(spacious)
	if r.down = false; r.old {
		r.old = false
		r.reopen()
	}
	if !r.up {
		r.runWithCuts(r.start)
	}
	if r.up {
		r.wire.left = 0
	}
}

// settle lets things happen until nobody waits for an answer.
func (w *world) settle() {
	until := w.now + time.Minute
	for w.failed == nil && w.busy() && w.step(until) {
		continue
	}
}

func (w *world) busy() bool {
	return slices.ContainsFunc(w.parties, func(r *party) bool { return !r.gone && (len(r.asked) > 0 || !r.up) })
}

// hasConverged reports whether everybody has all of the log and all of everybody's is in it.
func (w *world) hasConverged() bool {
	for _, r := range w.parties {
		if r.gone {
			continue
		}
		if r.edge != nil && r.edge.revoked || w.o.LocalOnly {
			return false // I8
		}
		issued, confirmed := r.part.Outbox()
		if c := r.part.Cursor(); c.Seq != w.oracle.head() || c.Seq > 0 && (c.Epoch != w.oracle.epoch || !w.oracle.leadsOn(c.Seq, c.Chain)) || issued != confirmed {
			return false
		}
	}
	return true
}

// standing returns the state of all parties as text.
func (w *world) standing() string {
	out := fmt.Sprintf("\n\torigin: %d in %x", w.oracle.head(), w.oracle.epoch[:2])
	for _, r := range w.parties {
		if r.gone {
			continue
		}
		out += fmt.Sprintf("\n\treplica %d: %+v", r.number, r.machine.Status())
	}
	return out
}
