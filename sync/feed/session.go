package feed

import (
	"errors"
	"fmt"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/core/register"
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

// session answers a replica's session request with its site and what to do about each application.
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
	if err := c.lease(&m, &out); err != nil {
		return api.Response{}, c.addEpoch(&m, err)
	}
	for i := range m.Partitions {
		g, err := c.grant(&m.Partitions[i], &m, out.Site)
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

// addEpoch adds the epoch of the log to the refusal of a site: the log may have been restored from a backup that is older than the lease.
func (c *call) addEpoch(m *wire.Session, err error) error {
	r, ok := errors.AsType[*wire.Refusal](err)
	if !ok || r.Code != wire.RefusedSite || len(m.Partitions) != 1 {
		return err
	}
	if p, failed := c.enter(m.Partitions[0].App); failed == nil { // also of a local-only application
		r.Epoch = p.Log().Epoch()
	}
	return r
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

// lease sets the site that the replica writes as. An edge has its own, another replica keeps the one whose secret it knows, and a new
// replica gets a new one.
func (c *call) lease(m *wire.Session, out *wire.SessionReply) error {
	if c.edge != nil {
		return c.leaseEdge(m, out)
	}
	c.app = c.principal.App
	if m.Site == 0 {
		if err := c.f.meters.enrols.take("lease "+c.user(), 1, c.now, "sites"); err != nil {
			return err
		}
		if err := c.roomForSite(); err != nil {
			return err
		}
		site, secret, err := c.f.o.Register.LeaseSite(c.ctx, c.app, c.holder())
		if err != nil {
			return err
		}
		out.Site, out.Secret, out.Until = site, []byte(secret), wire.MillisOf(c.now.Add(register.LeaseFor))
		return nil
	}
	s, err := c.checkSiteSecret(m.Site, string(m.Secret))
	if err != nil {
		return err
	}
	out.Site, out.Until = s.Site, wire.MillisOf(s.Until.Time())
	return c.f.o.Register.ProlongSite(c.ctx, s)
}

// leaseEdge sets an edge's site: the requested one, if any life of the edge had it; a new one if it leaves Leaves; otherwise that of its
// newest life.
func (c *call) leaseEdge(m *wire.Session, out *wire.SessionReply) error {
	if len(m.Partitions) != 1 { // no push follows such a session
		out.Site = c.edge.Site
		return nil
	}
	app := m.Partitions[0].App
	switch {
	case m.Site != 0:
		owns, err := c.owns(app, m.Site)
		if err == nil && !owns {
			if _, closed := c.enter(app); closed != nil { // the grant has the reason
				out.Site = m.Site
				return nil
			}
			err = &wire.Refusal{Code: wire.RefusedSite, Detail: fmt.Sprintf("site %d does not belong to this edge", m.Site)}
		}
		out.Site = m.Site
		return err
	case m.Leaves == 0:
		out.Site = c.edge.SiteIn(app)
		return nil
	}
	if err := c.f.meters.enrols.take("lease "+c.user(), 1, c.now, "sites"); err != nil {
		return err
	}
	if _, err := c.enter(app); err != nil { // the grant has the reason
		out.Site = m.Leaves
		return nil
	}
	var err error
	if out.Site, err = c.f.o.Register.RenewEdge(c.ctx, c.edge.ID, app, m.Life); err == nil {
		c.edge.Renew(catalog.Newer{App: app, Site: out.Site, Life: m.Life})
	}
	return err
}

// owns reports whether any life of the edge writes or wrote as site in an application.
func (c *call) owns(app string, site log.Writer) (bool, error) {
	if site == c.edge.Site || site == c.edge.SiteIn(app) {
		return true, nil
	}
	s, err := c.f.o.Register.EdgeSite(site)
	if errors.Is(err, register.ErrNoSite) {
		return false, nil
	}
	return err == nil && s.App == app && s.Holder == c.edge.Holder(), err
}

// older returns the reason why the origin refuses operations of an edge's site; empty: it accepts them.
func (c *call) older(app string, site log.Writer) string {
	if c.edge == nil || site == c.edge.SiteIn(app) {
		return ""
	}
	return "a newer life of this edge writes now: it was restored from a backup, or its disk was rolled back"
}

// roomForSite refuses a new site if the application has too many. A site whose lease has expired does not count, but its number is not
// reused: a replica that was offline for long may come back with operations under it.
func (c *call) roomForSite() error {
	n, err := c.f.o.Register.Leases(c.app)
	if err != nil {
		return err
	}
	if limit := c.f.o.Limits.Sites; uint64(n) >= limit {
		return &wire.Refusal{
			Code: wire.RefusedQuota, Detail: fmt.Sprintf("too many replicas: at most %d in %v", limit, register.LeaseFor),
			Limit: "Sites", Value: limit, WaitMillis: uint64(time.Hour.Milliseconds()),
		}
	}
	return nil
}

// grant returns the answer for one application.
func (c *call) grant(at *wire.Position, m *wire.Session, site log.Writer) (wire.Grant, error) {
	g := wire.Grant{App: at.App}
	p, err := c.reach(at.App)
	var refused *wire.Refusal
	switch {
	case errors.As(err, &refused) && refused.Code == wire.RefusedGone:
		g.Do, g.Detail = wire.DoErase, refused.Detail
		return g, nil
	case errors.Is(err, errLocalOnly):
		return c.drain(g, site)
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
	if g.Confirmed, err = p.SiteSeq(site); err != nil {
		return g, err
	}
	lives, err := p.Lives(site, max(min(at.Confirmed, g.Confirmed), 1), min(at.Issued, g.Confirmed))
	if err != nil {
		return g, err
	}
	for _, l := range lives {
		g.Lives = append(g.Lives, wire.Life(l))
	}
	if len(m.Partitions) == 1 {
		g.Detail = c.older(at.App, site)
	}
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

// drain denies access to a local-only application. The grant has the last of the replica's operations in the log and the backup that the
// log was restored from, so that the replica can send what the log lacks before it deletes everything.
func (c *call) drain(g wire.Grant, site log.Writer) (wire.Grant, error) {
	p, err := c.enter(g.App)
	if err != nil {
		return g, err
	}
	g.Do, g.Detail, g.Drain, g.Epoch = wire.DoRefused, errLocalOnly.Detail, true, p.Log().Epoch()
	if g.Backup, g.BackupChain, g.Restored, err = p.Backup(); err != nil {
		return g, err
	}
	g.Confirmed, err = p.SiteSeq(site)
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
