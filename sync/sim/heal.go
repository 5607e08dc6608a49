package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/sync/replica"
)

// maxRounds is the maximum number of rounds until agreement: three times the two rounds that a change needs from one replica to another.
const maxRounds = 3 * 2

// heal ends all faults and runs rounds until all parties agree, then checks all parties. In a round, each replica in turn sends requests
// until none is unanswered. If the parties do not agree after maxRounds rounds, the run fails.
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
		if round > 1 && w.audit > 0 { // the next audits are due
			for until := w.now + w.audit; w.failed == nil && w.step(until); {
				continue
			}
		}
		for _, r := range w.parties {
			r.step(replica.Online{})
			w.settle()
		}
		if w.hasConverged() || w.failed != nil {
			break
		}
		if round == maxRounds {
			w.fail(fmt.Errorf("I1: no agreement after %d rounds%s", round, w.standing()))
		}
	}
	for _, r := range w.parties {
		if w.failed == nil && !r.purged {
			w.fail(w.inspect(r))
		}
	}
	if w.failed == nil && !w.o.LocalOnly {
		w.fail(w.checkRemoved())
	}
	if w.failed == nil && !w.o.LocalOnly && w.rng.IntN(8) == 0 {
		w.erase()
	}
}

// erase deletes the application and checks that every replica deletes its data at its next contact.
func (w *world) erase() {
	w.stats.Scopes++
	w.origin.runWithCuts(func() error {
		w.deleted = true
		return w.origin.engine.Register.DeleteApp(context.Background(), register.Caller{Account: "operator"}, w.app.String())
	})
	for _, r := range w.parties {
		r.step(replica.Online{})
		w.settle()
		if w.failed == nil && !r.purged {
			w.fail(fmt.Errorf("I8: replica %d holds what was deleted: %+v", r.number, r.machine.Status()))
		}
	}
}

// mend restores the origin's disk space and power for the rest of the run, and starts the origin if it is down.
func (g *origin) mend() {
	g.setFreeSpace(spacious)
	if !g.up {
		g.runWithCuts(g.start)
	}
	if g.up {
		g.wire.left = 0
	}
	g.answerPolls()
}

// mend restores the replica's disk space, power and link for the rest of the run. It starts the replica with the newest version if needed.
func (r *party) mend() {
	r.setFreeSpace(spacious)
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

// settle runs events until no replica is busy, for at most one minute of simulated time.
func (w *world) settle() {
	until := w.now + time.Minute
	for w.failed == nil && w.busy() && w.step(until) {
		continue
	}
}

func (w *world) busy() bool {
	return slices.ContainsFunc(w.parties, func(r *party) bool { return !r.purged && (len(r.requests) > 0 || !r.up) })
}

// hasConverged reports whether every replica has pulled the whole log, and the log has confirmed every operation of the replicas.
func (w *world) hasConverged() bool {
	for _, r := range w.parties {
		if r.purged {
			continue
		}
		if r.edge != nil && r.edge.revoked || w.o.LocalOnly {
			return false // I8: this replica must have deleted its data
		}
		if isSpoiled(r.wire, w.app) {
			return false
		}
		issued, confirmed := r.part.Outbox()
		if c := r.part.Cursor(); c.Seq != w.oracle.head() || c.Seq > 0 && !w.oracle.leadsOn(c.Seq, c.Chain) || issued != confirmed {
			return false
		}
	}
	return true
}

// standing returns the state of all parties as text.
func (w *world) standing() string {
	opening := w.origin.part.Opening()
	out := fmt.Sprintf("\n\torigin: %d in %x", w.oracle.head(), opening[:2])
	for _, r := range w.parties {
		if r.purged {
			continue
		}
		out += fmt.Sprintf("\n\treplica %d: %+v", r.number, r.machine.Status())
	}
	return out
}
