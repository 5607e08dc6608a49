package sim

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/sync/feed"
)

// origin is the party with the log.
type origin struct {
	node
	part   *partition.Origin
	rules  uint32 // newest version of the fold's rules that it knows
	engine *engine
	feed   *feed.Feed
	polls  []*waitingPoll // polls that wait for an entry

	copied *Memory // last backup of the disk; nil if there is none
	stable uint64  // last entry of the log in the backup

	listed map[log.Dot]bool // operations that it lists as conflicts or once listed
}

// look updates oracle.latest, the latest time that the clock ever showed.
func (g *origin) look() {
	if now := g.clock.now(); now.After(g.world.oracle.latest) {
		g.world.oracle.latest = now
	}
}

// start opens the engine and the partition on the disk. The first start creates the application.
func (g *origin) start() (err error) {
	if err := g.mount(); err != nil {
		return err
	}
	if err := g.open(); err != nil {
		return err
	}
	life := name(g.random)
	if g.world.oracle == nil {
		if err := g.createApp(life); err != nil {
			return err
		}
	}
	g.look()
	if g.part, err = partition.OpenOrigin(partition.Options{
		Store: g.wire, App: g.world.app, Clock: g.clock.now, Epoch: life, Rules: g.rules, Secret: [32]byte{1},
	}); err != nil {
		return err
	}
	g.up = true
	if err := cmp.Or(g.follow(), g.lists()); err != nil { // a call before a crash may have appended entries
		return err
	}
	return g.edges()
}

// follow passes the new entries of the log to the oracle.
func (g *origin) follow() error {
	return g.world.oracle.follow(g.part.Log())
}

// edges reads from the app records which edges are revoked. A loss of power may undo a running revocation. A restore undoes those after
// the backup.
func (g *origin) edges() error {
	for _, r := range g.world.parties {
		if r.edge == nil {
			continue
		}
		e, err := g.engine.Register.Edge(r.edge.id)
		if err != nil {
			return err
		}
		if r.edge.revoked = e.Revoked != 0; r.edge.revoked {
			r.edge.was = true
		}
	}
	return nil
}

// createApp creates the application and the oracle of its log, whose first opening has an epoch.
func (g *origin) createApp(epoch log.Epoch) error {
	w := g.world
	app, _, err := g.engine.Register.CreateApp(context.Background(), register.Caller{Account: "operator"}, register.NewApp{Name: "sim", Language: "en"})
	if err != nil {
		return err
	}
	if w.app, err = catalog.ParseAppID(app.ID); err != nil {
		return err
	}
	o := newOracle(w.app, log.Chain(epoch), w.program.noteOp)
	o.over, o.memory = g.over, w.o.Memory
	w.setOracle(o)
	return nil
}

// runWithCuts runs do, and then follow. A loss of power may end do at any step of the store. runWithCuts reports whether both ended without
// an error.
func (g *origin) runWithCuts(do func() error) (complete bool) {
	g.look()
	complete, err := catchCut(func() error {
		if err := do(); err != nil {
			return err
		}
		return g.follow()
	}, g.crash)
	if err != nil && !isFull(err, g.space) {
		g.world.fail(fmt.Errorf("origin: %w", err))
	}
	return complete && err == nil
}

// crash kills the process or cuts its power. The origin starts again within ten seconds.
func (g *origin) crash() {
	if !g.up {
		return
	}
	g.world.stats.OriginCuts++
	if g.feed != nil {
		_ = g.feed.Close() // snapshots that are open end with the process
	}
	g.engine, g.feed, g.part = nil, nil, nil
	g.stop(10*time.Second, func() { g.runWithCuts(g.start) }, g.crash)
	g.answerPolls()
}

// backup stores a copy of the disk as the backup. It skips a local-only application: its replicas delete what they have sent, so that a
// restore would lose it.
func (g *origin) backup() {
	if disk, ok := g.disk.(*Memory); ok && g.up && !g.isLocal() {
		g.copied, g.stable = disk.Copy(), g.world.oracle.head()
	}
}

// restore sets the disk of the origin back to its backup, as a restore does, and sometimes at once to the same backup again, before a replica has
// met the first one.
func (g *origin) restore() {
	w := g.world
	if g.copied == nil || !g.up {
		return
	}
	w.stats.Restores++
	g.back()
	if w.rng.IntN(4) == 0 && g.up {
		w.stats.Twice++
		g.write()
		g.back()
	}
}

// back restarts the origin from its backup.
func (g *origin) back() {
	w := g.world
	g.disk = g.copied.Copy()
	f, err := w.oracle.fork(g.stable)
	if err == nil {
		err = w.recordLost(w.oracle, f)
	}
	if err != nil {
		w.fail(err)
		return
	}
	w.setOracle(f)
	g.runWithCuts(g.start)
}

// write submits random operations of a user of the origin.
func (g *origin) write() {
	if !g.up {
		return
	}
	w := g.world
	bodies := w.bodies(g.part)
	g.runWithCuts(func() error {
		shown := g.part.View()
		defer func() { w.fail(shown.Close()) }()
		v, err := g.part.Submit(context.Background(), "key", bodies, g.supply(bodies))
		if err != nil {
			return err
		}
		w.stats.Writes += len(v)
		return w.oracle.notePromises(g.part, len(v), shown.Reader)
	})
	g.answerPolls()
}

// lists adds the operations that the origin lists as conflicts to g.listed.
func (g *origin) lists() error {
	if g.listed == nil {
		g.listed = map[log.Dot]bool{}
	}
	return g.part.Conflicts(func(c partition.Conflict) bool {
		g.listed[c.Op.Dot] = true
		return true
	})
}

// tidy does all deferred work of the partition.
func (g *origin) tidy() {
	if g.up {
		g.runWithCuts(func() error { return g.node.tidy(g.part.Partition) })
	}
}

// trim removes the start of the log up to a random entry, or the whole log. If there is a backup, it removes nothing that the backup lacks.
func (g *origin) trim() {
	if !g.up {
		return
	}
	g.runWithCuts(func() error {
		l := g.part.Log()
		g.world.stats.Trims++
		below := 1 + uint64(g.world.rng.Int64N(int64(l.Head())+1))
		if g.world.rng.IntN(2) == 0 {
			below = l.Head() + 1
		}
		if g.copied != nil { // trimmed entries count as stable
			below = min(below, g.stable+1)
		}
		g.world.trimmed = max(g.world.trimmed, below-1)
		return l.Trim(below)
	})
}

// horizon moves the horizon of the log to a time up to 30 seconds ago. Field writes with an earlier clock that arrive later are refused.
func (g *origin) horizon() {
	if !g.up {
		return
	}
	g.runWithCuts(func() error {
		g.world.stats.Horizons++
		at := g.clock.now().Add(-g.world.some(30 * time.Second))
		_, err := g.part.Submit(context.Background(), "", []log.Body{&log.Horizon{At: log.HLC(at.UnixMilli()) << 16}}, nil)
		return err
	})
}

// upgrade restarts the origin as a version that knows newRules.
func (g *origin) upgrade() {
	if g.up {
		g.world.stats.Upgrades++
		g.rules = newRules
		g.crash()
	}
}

// revokeTokens revokes the tokens of the application. An edge learns the new generation at its next contact.
func (g *origin) revokeTokens() {
	if !g.up {
		return
	}
	g.runWithCuts(func() error {
		g.world.stats.Revocations++
		return g.engine.Register.RevokeTokens(context.Background(), register.Caller{Account: "operator"}, g.world.app.String())
	})
}

// over reports whether op is the operation of an edge's caller whose token was revoked by the time of op.
func (g *origin) over(op *log.Op, token partition.Token) (bool, error) {
	if op.By != auth.ByToken {
		return false, nil
	}
	tokens, err := g.engine.Register.Tokens(g.world.app.String())
	return err == nil && tokens.WasInvalid(token.Client, token.Generation, op.At.Time()), err
}

// revoke revokes an edge. After that the origin accepts no operation from it, and the edge must delete its data at its next request.
func (g *origin) revoke(r *party) {
	if !g.up || r.edge == nil || r.edge.revoked {
		return
	}
	g.runWithCuts(func() error {
		if err := g.engine.Register.RevokeEdge(context.Background(), register.Caller{Account: "operator"}, r.edge.id); err != nil {
			return err
		}
		g.world.stats.Scopes++
		return g.edges()
	})
}
