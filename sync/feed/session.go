package feed

import (
	"errors"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/sync/wire"
)

const (
	sessionBytes = 1 << 20
	maxPositions = 1000 // maximum applications of one session
)

// support returns the protocol versions that the origin supports.
func (c *call) support() wire.Support {
	return wire.Support{Min: wire.Oldest, Max: wire.Protocol, Schema: field.Version}
}

// session answers a replica's session request with what to do about each application.
func (c *call) session() (api.Response, error) {
	body, err := c.body(sessionBytes, "SessionBytes")
	if err != nil {
		return api.Response{}, err
	}
	m, err := wire.DecodeSession(body)
	if err != nil {
		return api.Response{}, malformedError("session: %v", err)
	}
	if len(m.Partitions) > maxPositions {
		return api.Response{}, &wire.Refusal{Code: wire.RefusedLimit, Detail: "too many applications", Limit: "Positions", Value: maxPositions}
	}
	apps := make([]string, len(m.Partitions))
	for i := range m.Partitions {
		apps[i] = m.Partitions[i].App
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
	if out.Protocol, out.Features, err = m.Agree(c.support()); err != nil {
		return api.Response{}, err
	}
	for i := range m.Partitions {
		g, err := c.grant(&m.Partitions[i], &m)
		if err == nil && g.Do != wire.DoErase && (g.Do != wire.DoRefused || g.Drain) {
			err = c.countCalls(&m.Partitions[i], &g)
		}
		if err != nil {
			return api.Response{}, err
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
		return c.drain(g)
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
	g.Epoch, g.Head, g.Horizon = l.Epoch(), l.Head(), h.Horizon
	g.Stable = c.f.o.Stable(at.App, g.Head)
	if g.Backup, g.BackupChain, g.Restored, err = p.Backup(); err != nil {
		return g, err
	}
	rules := max(h.Fold, fold.First) // newer fold rules start with an entry
	switch leads, err := leadsOn(l, at.Epoch, at.Seq, &at.Chain); {
	case err != nil:
		return g, err
	case m.Fold < rules:
		g.Do = wire.DoPause
	case !leads || g.Head-at.Seq > maxTail && at.Seq == 0:
		g.Do = wire.DoRebase
	default:
		g.Do = wire.DoTail
	}
	return g, nil
}

// drain denies access to a local-only application. The grant has the backup that the log was restored from, so that the replica can send
// what the log lacks before it deletes everything.
func (c *call) drain(g wire.Grant) (wire.Grant, error) {
	p, err := c.enter(g.App)
	if err != nil {
		return g, err
	}
	g.Do, g.Detail, g.Drain, g.Epoch = wire.DoRefused, errLocalOnly.Detail, true, p.Log().Epoch()
	g.Backup, g.BackupChain, g.Restored, err = p.Backup()
	return g, err
}

// maxTail is the maximum number of entries that an empty replica pulls. If the log is longer, the replica takes a snapshot, which has the
// state without the history.
const maxTail = 4 * wire.MaxOps

// leadsOn reports whether a log continues from a position. A nil chain is not checked.
func leadsOn(l log.Log, epoch log.Epoch, seq uint64, chain *log.Chain) (bool, error) {
	switch {
	case seq == 0 && epoch == (log.Epoch{}): // the chain begins with the epoch, unless the log was restored
		base, err := l.Chain(0)
		if errors.Is(err, log.ErrTrimmed) {
			return false, nil
		}
		return base == log.Chain(l.Epoch()), err
	case epoch != l.Epoch() || seq > l.Head() || seq+1 < l.Floor():
		return false, nil
	case chain == nil:
		return true, nil
	}
	have, err := l.Chain(seq)
	if errors.Is(err, log.ErrTrimmed) { // trimmed meanwhile
		return false, nil
	}
	return have == *chain, err
}
