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

// origin is the party that has the log.
type origin struct {
	node
	rules  uint32 // newest version that it knows
	engine *engine
	feed   *feed.Feed
	held   []*waitingPoll // polls

	copied *Memory   // the backup
	stable uint64    // last entry that the backup has
	epoch  log.Epoch // of the log in the backup
	life   byte      // how often the log was restored, or its disk rolled back

	listed map[log.Dot]bool // operations that it lists as conflicts, or did
}

// look notes what the clock shows.
func (g *origin) look() {
	if now := g.clock.now(); now.After(g.world.oracle.latest) {
		g.world.oracle.latest = now
	}
}

// start opens what the disk holds.
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
	if g.part, err = partition.Open(partition.Options{
		Store: g.wire, App: g.world.app, Clock: g.clock.now, Epoch: life, Rules: g.rules, Secret: [32]byte{1},
	}); err != nil {
		return err
	}
	g.up = true
	if err := cmp.Or(g.follow(), g.lists()); err != nil { // it may have crashed before it could answer
		return err
	}
	return g.edges()
}

// follow reads the new entries of the log. An origin that learned of a rollback of its disk gives the log another epoch.
func (g *origin) follow() error {
	w, l := g.world, g.part.Log()
	if epoch := l.Epoch(); epoch != w.oracle.epoch {
		w.stats.Noticed++
		f, err := w.oracle.fork(epoch, w.oracle.head())
		if err != nil {
			return err
		}
		w.goOn(f)
	}
	return w.oracle.follow(l)
}

// edges reads the revoked edges: a revocation during a loss of power is stored or not, and one after the restored backup is not.
func (g *origin) edges() error {
	o := g.world.oracle
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
			for _, site := range []log.Site{e.Site, e.SiteIn(g.world.app.String())} {
				o.shut[site] = o.model.SiteSeq(site)
			}
		}
	}
	return nil
}

// createApp makes the application, whose log begins with an epoch.
func (g *origin) createApp(epoch log.Epoch) error {
	w := g.world
	app, _, err := g.engine.Register.CreateApp(context.Background(), register.Caller{Account: "operator"}, register.NewApp{Name: "sim", Language: "en"})
	if err != nil {
		return err
	}
	if w.app, err = catalog.ParseAppID(app.ID); err != nil {
		return err
	}
	o := newOracle(w.app, epoch, w.program.noteOp)
	o.over, o.moved = g.over, w.movedName
	w.goOn(o)
	return nil
}

// runWithCuts runs do, which a loss of power may end anywhere, and looks at the log after it. It
// reports whether do came to its end.
func (g *origin) runWithCuts(do func() error) (whole bool) {
	g.look()
	whole, err := catchCut(func() error {
		if err := do(); err != nil {
			return err
		}
		return g.follow()
	}, g.crash)
	if err != nil && !isFull(err, g.space) {
		g.world.fail(fmt.Errorf("origin: %w", err))
	}
	return whole && err == nil
}

// crash cuts the power, and has it back later.
func (g *origin) crash() {
	if !g.up {
		return
	}
	g.world.stats.OriginCuts++
	if g.feed != nil {
		_ = g.feed.Close() // snapshots that are open end with the process
	}
	g.engine, g.feed = nil, nil
	g.fall(10*time.Second, func() { g.runWithCuts(g.start) }, g.crash)
	g.answerPolls()
}

// backup keeps a copy of the disk somewhere else. A local-only application is not copied: the backup would lack what replicas send after
// it, which they then forget.
func (g *origin) backup() {
	if disk, ok := g.disk.(*Memory); ok && g.up && !g.isLocal() {
		g.copied, g.stable, g.epoch = disk.Copy(), g.world.oracle.head(), g.world.oracle.epoch
	}
}

// restore restores the origin's backup.
func (g *origin) restore() {
	w := g.world
	if g.copied == nil || !g.up {
		return
	}
	w.stats.Restores++
	epoch := name(g.random)
	g.back(epoch, func() error { return renew(g.disk, epoch, catalog.Control, w.app) })
}

// rollback replaces the disk of the origin by the backup, without restoring that: the origin does not notice. All replicas that run have
// followed it to its log by then. One that gives back what an earlier loss took would take that for done, though this one takes it again.
func (g *origin) rollback() {
	if g.copied == nil || !g.up {
		return
	}
	for _, r := range g.world.parties {
		if !r.gone && (!r.up || r.part.Cursor().Epoch != (log.Epoch{}) && r.part.Cursor().Epoch != g.world.oracle.epoch) {
			return
		}
	}
	g.world.oracle.shared = true // in its fork, too
	g.world.stats.OriginRollbacks++
	g.back(g.epoch, func() error { return nil })
}

// back restarts the origin from its backup, with a log of another epoch, once do has prepared the disk.
func (g *origin) back(epoch log.Epoch, do func() error) {
	w := g.world
	g.disk = g.copied.Copy()
	g.life++
	f, err := w.oracle.fork(epoch, g.stable)
	if err == nil {
		err = w.owe(w.oracle, f)
	}
	if err != nil {
		w.fail(err)
		return
	}
	w.goOn(f)
	g.runWithCuts(func() error {
		if err := do(); err != nil {
			return err
		}
		return g.start()
	})
}

// write has a user of the origin write.
func (g *origin) write() {
	if !g.up {
		return
	}
	w := g.world
	bodies := w.bodies(log.Origin)
	g.runWithCuts(func() error {
		v, err := g.part.Submit(context.Background(), "key", bodies, g.supply(bodies))
		if err != nil {
			return err
		}
		w.stats.Writes += len(v)
		return w.oracle.notePromises(g.part, len(v))
	})
	g.answerPolls()
}

// lists notes the operations that the origin lists as conflicts.
func (g *origin) lists() error {
	if g.listed == nil {
		g.listed = map[log.Dot]bool{}
	}
	return g.part.Conflicts(func(c partition.Conflict) bool {
		g.listed[c.Op.Dot] = true
		return true
	})
}

// tidy does some of the work that was left for later.
func (g *origin) tidy() {
	if g.up {
		g.runWithCuts(g.node.tidy)
	}
}

// trim forgets some of the log.
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
		g.world.trimmed = max(g.world.trimmed, below-1)
		return l.Trim(below)
	})
}

// horizon refuses the writes of replicas that were offline for long.
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

// upgrade has the origin start again as a newer version.
func (g *origin) upgrade() {
	if g.up {
		g.world.stats.Upgrades++
		g.rules = newRules
		g.crash()
	}
}

// revokeTokens begins another generation of tokens, which an edge learns at its next contact.
func (g *origin) revokeTokens() {
	if !g.up {
		return
	}
	g.runWithCuts(func() error {
		g.world.stats.Revocations++
		return g.engine.Register.RevokeTokens(context.Background(), register.Caller{Account: "operator"}, g.world.app.String())
	})
}

// over reports whether an edge has made an operation for somebody whose token was revoked by then.
func (g *origin) over(op *log.Op, token partition.Token) (bool, error) {
	if op.By != auth.ByToken {
		return false, nil
	}
	tokens, err := g.engine.Register.Tokens(g.world.app.String())
	return err == nil && tokens.Over(token.Client, token.Generation, op.At.Time()), err
}

// revoke shuts an edge out. After that the origin accepts nothing of it, and the edge must delete its data at its next request.
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
