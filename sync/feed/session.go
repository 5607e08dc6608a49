package feed

import (
	"errors"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/wire"
)

const (
	sessionBytes = 1 << 20
	maxPositions = 1000 // maximum applications of one session
)

// session answers a replica's session request with what to do about each application.
func (c *call) session() (api.Response, error) {
	m, err := read(c, sessionBytes, "SessionBytes", wire.DecodeSession)
	if err != nil {
		return api.Response{}, err
	}
	if len(m.Apps) > maxPositions {
		return api.Response{}, &wire.Refusal{Code: wire.RefusedLimit, Detail: "too many applications", Limit: "Positions", Value: maxPositions}
	}
	apps := make([]string, len(m.Apps))
	for i := range m.Apps {
		apps[i] = m.Apps[i].App
	}
	if err := c.identify(apps...); err != nil {
		return api.Response{}, err
	}
	out := wire.SessionReply{
		Fold: fold.Version, Now: wire.MillisOf(c.now), Limits: c.f.o.Limits.wireLimits(), Expires: wire.MillisOf(c.until),
		Links: []wire.Link{{Name: "keys", Path: Prefix + "/keys"}, {Name: wire.LinkDates, Path: Prefix + "/dates"}},
	}
	if c.until.IsZero() {
		out.Expires = 0
	}
	if out.Protocol, out.Features, err = m.Agree(wire.Support{Min: wire.Oldest, Max: wire.Protocol, Schema: field.Version}); err != nil {
		return api.Response{}, err
	}
	for i := range m.Apps {
		g, err := c.grant(&m.Apps[i], &m)
		if err == nil && g.Do != wire.DoErase && (g.Do != wire.DoRefused || g.Drain) {
			err = c.countCalls(&m.Apps[i], &g)
		}
		if err != nil {
			return api.Response{}, err
		}
		if g.Do == wire.DoTail || g.Do == wire.DoRebase || g.Do == wire.DoPause {
			c.noteSession(g.App, m.Name, m.Apps[i].Seq)
		}
		out.Grants = append(out.Grants, g)
	}
	return message(out.Encode()), nil
}

// countCalls stores the count of calls that an edge reports, and adds the time until which the account has none left to the grant.
func (c *call) countCalls(at *wire.Position, g *wire.Grant) error {
	if c.edge == nil || c.f.o.Calls == nil || at.Calls == 0 {
		return nil
	}
	over, err := c.f.o.Calls(at.App, c.edge.ID, at.Calls)
	if !over.IsZero() {
		g.Over = wire.MillisOf(over)
	}
	return err
}

// grant returns the answer for one application.
func (c *call) grant(at *wire.Position, m *wire.Session) (wire.Grant, error) {
	g := wire.Grant{App: at.App}
	p, err := c.reach(at.App)
	var refused *wire.Refusal
	switch {
	case errors.As(err, &refused) && refused.Code == wire.RefusedGone:
		g.Do, g.Detail = wire.DoErase, refused.Detail
		return g, nil
	case errors.Is(err, errLocalOnly):
		return c.drain(at, g)
	case errors.As(err, &refused):
		g.Do, g.Detail = wire.DoRefused, refused.Detail
		return g, nil
	case err != nil:
		return g, err
	}
	l := p.Log()
	v := p.View()
	defer v.Close()
	h, err := v.Header()
	if err != nil {
		return g, err
	}
	g.Head, g.Horizon = l.Head(), h.Horizon
	g.Stable = c.f.o.Stable(at.App, g.Head)
	if err := c.find(p, at, &g); err != nil {
		return g, err
	}
	rules := max(h.Fold, fold.FirstVersion) // newer fold rules start with an entry
	switch {
	case m.Fold < rules:
		g.Do = wire.DoPause
	case g.Lacks, at.Seq+1 < l.Floor(), g.Head-at.Seq > maxTail && at.Seq == 0:
		g.Do = wire.DoRebase
	default:
		g.Do = wire.DoTail
	}
	return g, nil
}

// find adds the opening of the log to a grant, and whether the log has the replica's place. If it lacks a place of its present opening, this
// machine has continued from an image of its memory: all logs get another opening.
func (c *call) find(p *partition.Origin, at *wire.Position, g *wire.Grant) error {
	has, err := p.HasPlace(log.Mark{Epoch: at.Epoch, To: at.Seq}, at.Chain)
	if err == nil && !has {
		g.Lacks = true
		g.Have, g.HaveChain, err = p.Common(at.Kept)
	}
	if err == nil && !has && at.Epoch == p.Opening() {
		err = c.reopen(at)
	}
	g.Opening = p.Opening()
	return err
}

// reopen gives all logs another opening. Each replica of this origin begins a session then, so an account causes it 40 times an hour at most.
func (c *call) reopen(at *wire.Position) error {
	if err := c.f.meters.reopens.take(c, 1, c.now, "lost entries"); err != nil {
		return err
	}
	c.f.o.Log.Error("the log lacks entries of its present opening: the machine was set back with its memory", "app", at.App, "entry", at.Seq)
	return c.f.o.Engine.Reopen()
}

// drain denies access to a local-only application. The grant shows what the log lacks, so that the replica can send it before it deletes
// everything.
func (c *call) drain(at *wire.Position, g wire.Grant) (wire.Grant, error) {
	p, err := c.enter(g.App)
	if err != nil {
		return g, err
	}
	g.Do, g.Detail, g.Drain = wire.DoRefused, errLocalOnly.Detail, true
	return g, c.find(p, at, &g)
}

// maxTail is the maximum number of entries that an empty replica pulls. If the log is longer, the replica takes a snapshot, which has the
// state without the history.
const maxTail = 4 * wire.MaxOps
