package register

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// Other writers are edges and sites. An edge enrols once with a token and then signs with its key. A site is a browser profile or a
// folder of one application, and knows a secret. Each writer has a number that is never reused.
//
//	CreateEdge ──token──▶ EnrolEdge ──▶ Edge{Key, Site}   until RevokeEdge
//	LeaseSite ──secret──▶ CheckSite ──▶ Site{App, Holder} until its application is deleted

// ErrNoEdge is returned for an edge that does not exist.
var ErrNoEdge = errors.New("no such edge")

// ErrEnrol is returned for an invalid enrolment token: it is unknown or expired, its edge has enrolled with
// another key, or its edge was revoked.
var ErrEnrol = errors.New("the enrolment token is unknown, expired, already used or revoked")

// EnrolLife is the time for which an enrolment token is valid.
const EnrolLife = 30 * 24 * time.Hour

// ErrNoSite is returned for a site that does not exist or whose secret is wrong.
var ErrNoSite = errors.New("no such site")

// LeaseFor is the time after its last contact for which a site's lease is valid.
const LeaseFor = 30 * 24 * time.Hour

// maxEdgeApps is the maximum number of applications of an edge.
const maxEdgeApps = 1000

// CreateEdge creates an edge with access to applications. It returns the token for its enrolment, which is not stored. Errors: ErrName,
// ErrApplication and the store's.
func (r *Register) CreateEdge(ctx context.Context, by Caller, name string, apps []string) (token string, e catalog.Edge, err error) {
	name, err = text("name", name, 1)
	if err != nil {
		return "", catalog.Edge{}, err
	}
	apps = slices.Clone(apps)
	slices.Sort(apps)
	apps = slices.Compact(apps)
	if len(apps) == 0 || len(apps) > maxEdgeApps {
		return "", catalog.Edge{}, fmt.Errorf("%w: an edge must replicate 1 to %d applications", ErrApplication, maxEdgeApps)
	}
	for _, app := range apps {
		if _, err := r.App(app); err != nil {
			return "", catalog.Edge{}, err
		}
	}
	id, err := log.NewID(r.o.Rand)
	if err != nil {
		return "", catalog.Edge{}, err
	}
	token, hash, err := r.secret()
	if err != nil {
		return "", catalog.Edge{}, err
	}
	err = r.submit(ctx, by.Account, ErrApplication, &log.EdgeCreate{ID: id, Name: name, Token: hash, Apps: apps, Owner: by.Account})
	if err != nil {
		return "", catalog.Edge{}, err
	}
	e, err = r.Edge(id)
	if err == nil {
		err = r.auditEdge(by, ActionCreateEdge, &e)
	}
	return token, e, err
}

// auditEdge records an action on an edge once for each of its applications.
func (r *Register) auditEdge(by Caller, a Action, e *catalog.Edge) error {
	for _, app := range e.Apps {
		if err := r.audit(by, a, app+"/"+e.ID); err != nil {
			return err
		}
	}
	return nil
}

// secret returns 256 random bits as 64 hex digits, and their hash.
func (r *Register) secret() (string, auth.Hash, error) {
	var b [32]byte
	if _, err := io.ReadFull(r.o.Rand, b[:]); err != nil {
		return "", auth.Hash{}, fmt.Errorf("random source: %w", err)
	}
	s := hex.EncodeToString(b[:])
	return s, auth.HashKey(s), nil
}

// Edge returns an edge's record, which stays when it is revoked. Errors: ErrNoEdge and the store's.
func (r *Register) Edge(id string) (catalog.Edge, error) {
	e, err := r.Read().Edge(id)
	if errors.Is(err, catalog.ErrNotFound) {
		err = fmt.Errorf("%w: %q", ErrNoEdge, id)
	}
	return e, err
}

// Edges lists the edges by ID, including revoked ones.
func (r *Register) Edges() ([]catalog.Edge, error) {
	return catalog.Collect(r.Read().Edges)
}

// RevokeEdge revokes an edge permanently. After the call the origin rejects its requests, and the edge must delete its data at its
// next contact. Revoking it again changes nothing. Errors: ErrNoEdge and the store's.
func (r *Register) RevokeEdge(ctx context.Context, by Caller, id string) error {
	e, err := r.Edge(id)
	if err != nil || e.Revoked != 0 {
		return err
	}
	if err := r.auditEdge(by, ActionRevokeEdge, &e); err != nil {
		return err
	}
	verdicts, err := r.append(ctx, by.Account, &log.EdgeRevoke{ID: id})
	if err != nil {
		return err
	}
	if code := verdicts[0].Code; code != fold.OK && code != fold.Superseded {
		return fmt.Errorf("%w: %q", ErrNoEdge, id)
	}
	return nil
}

// EnrolEdge stores the public Ed25519 key of the edge that has the token, and gives the edge a site to write as.
// The caller must have checked that the edge has the private key. With the same key it returns the same edge
// again, so that an edge may retry after a lost answer. Errors: ErrEnrol and the store's.
func (r *Register) EnrolEdge(ctx context.Context, token string, key [32]byte) (catalog.Edge, error) {
	e, err := r.Read().EdgeByToken(auth.HashKey(token))
	switch {
	case errors.Is(err, catalog.ErrNotFound):
		return catalog.Edge{}, ErrEnrol
	case err != nil:
		return catalog.Edge{}, err
	case e.Revoked != 0:
		return catalog.Edge{}, ErrEnrol
	case e.Key == key && e.Site != 0:
		return e, nil
	case e.Enrolled == 0 && r.o.Clock().Sub(e.Created.Time()) > EnrolLife:
		return catalog.Edge{}, ErrEnrol
	}
	if err := r.knowSites(ctx); err != nil {
		return catalog.Edge{}, err
	}
	verdicts, err := r.append(ctx, "", &log.EdgeEnrolled{ID: e.ID, Key: key})
	if err != nil {
		return catalog.Edge{}, err
	}
	if code := verdicts[0].Code; code != fold.OK && code != fold.Superseded {
		return catalog.Edge{}, fmt.Errorf("%w: %s", ErrEnrol, verdicts[0].Detail)
	}
	return r.Edge(e.ID)
}

// LeaseSite leases a site of an application to a holder, a key or account. It returns the site's secret, which is not stored. Errors:
// ErrApplication and the store's.
func (r *Register) LeaseSite(ctx context.Context, app, holder string) (site log.Writer, secret string, err error) {
	return r.lease(ctx, &log.SiteLease{App: app, Holder: holder})
}

// RenewEdge leases an edge another site to write as in an application. From then on the origin refuses what the edge's
// previous sites still send. life is the random number of the request: with the same one it returns the same site.
// Errors: ErrNoEdge, ErrApplication and the store's.
func (r *Register) RenewEdge(ctx context.Context, id, app string, life uint64) (log.Writer, error) {
	e, err := r.Edge(id)
	if err != nil {
		return 0, err
	}
	if site := e.LeasedFor(app, life); site != 0 {
		return site, nil
	}
	site, _, err := r.lease(ctx, &log.SiteLease{App: app, Holder: e.Holder(), Edge: e.ID, Life: life})
	return site, err
}

// lease leases the next site.
func (r *Register) lease(ctx context.Context, b *log.SiteLease) (site log.Writer, secret string, err error) {
	app := b.App
	if _, err := r.App(app); err != nil {
		return 0, "", err
	}
	secret, hash, err := r.secret()
	if err != nil {
		return 0, "", err
	}
	if err := r.knowSites(ctx); err != nil {
		return 0, "", err
	}
	b.Secret, b.Until = hash, r.leaseEnd()
	verdicts, err := r.append(ctx, "", b)
	if err != nil {
		return 0, "", err
	}
	switch v := verdicts[0]; v.Code {
	case fold.OK:
		return v.Site, secret, nil
	case fold.Gone:
		return 0, "", fmt.Errorf("%w: %q", ErrApplication, app)
	default:
		return 0, "", fmt.Errorf("control log: %v: %s", v.Code, v.Detail)
	}
}

// Leases counts the sites of an application that were leased, or had contact, within [LeaseFor].
func (r *Register) Leases(app string) (n int, err error) {
	now := log.HLC(r.o.Clock().UnixMilli()) << 16
	err = r.Read().SitesOf(app, func(s catalog.Site) bool {
		if s.Until > now {
			n++
		}
		return true
	})
	return n, err
}

// sitesNote is the name of the local note that holds the epoch of the log in which sites were last leased.
const sitesNote = "sites"

const (
	skippedSites = 1 << 16 // maximum number of sites that were leased after a backup was made
	spreadSites  = 1 << 22 // numbers among which a restored log begins, so that two restores of one backup lease different sites
)

// knowSites makes sure that no number is leased twice. A log that was restored from a backup has another
// epoch than the noted one, and lacks the last leases. For such a log knowSites skips more numbers than
// those.
func (r *Register) knowSites(ctx context.Context) error {
	if r.partition == nil {
		return ErrNotOrigin
	}
	r.sites.mu.Lock()
	defer r.sites.mu.Unlock()
	if r.sites.known {
		return nil
	}
	key, epoch := catalog.Control.LocalKey(sitesNote), r.partition.Log().Epoch()
	_, _, restored, err := r.partition.Backup()
	if err != nil {
		return err
	}
	noted, err := r.o.Store.Get(key)
	switch {
	case err == nil && bytes.Equal(noted, epoch[:]):
		r.sites.known = true
		return nil
	case err == nil, restored && errors.Is(err, kv.ErrNotFound):
		h, err := r.Read().Header()
		if err != nil {
			return err
		}
		spread := uint64(binary.BigEndian.Uint32(epoch[12:])) % spreadSites
		to := log.Writer(min(uint64(h.Sites)+skippedSites+spread, math.MaxUint32))
		if err := r.submit(ctx, "", ErrNoSite, &log.SitesSkip{To: to}); err != nil {
			return err
		}
	case !errors.Is(err, kv.ErrNotFound):
		return err
	}
	err = r.partition.Tidy(func(tx *kv.Overlay) error {
		tx.Put(key, epoch[:])
		return nil
	})
	r.sites.known = err == nil
	return err
}

// RolledBack gives the register's log another epoch, because an application's log has shown that the disk was rolled back. Replicas then
// have newer records than the register, and it lacks the last leases of sites. Errors: ErrNotOrigin and the store's.
func (r *Register) RolledBack() error {
	if r.partition == nil {
		return ErrNotOrigin
	}
	r.sites.mu.Lock()
	defer r.sites.mu.Unlock()
	if err := r.partition.RenewLog(); err != nil {
		return err
	}
	r.sites.known = false
	return nil
}

// leaseEnd returns the end of a lease that begins now.
func (r *Register) leaseEnd() log.HLC { return log.HLC(r.o.Clock().Add(LeaseFor).UnixMilli()) << 16 }

// CheckSite returns a site if secret is its secret. It refuses the sites of edges, which sign instead. It accepts a site whose lease has
// ended. Errors: ErrNoSite and the store's.
func (r *Register) CheckSite(site log.Writer, secret string) (catalog.Site, error) {
	s, err := r.Read().Site(site)
	switch {
	case errors.Is(err, catalog.ErrNotFound):
		return catalog.Site{}, fmt.Errorf("%w: %d", ErrNoSite, site)
	case err != nil:
		return catalog.Site{}, err
	case s.Edge != "" || !auth.Same(auth.HashKey(secret), s.Secret):
		return catalog.Site{}, fmt.Errorf("%w: %d", ErrNoSite, site)
	}
	return s, nil
}

// EdgeSite returns a site without checking a secret. It may be an edge's. Errors: ErrNoSite and the store's.
func (r *Register) EdgeSite(site log.Writer) (catalog.Site, error) {
	s, err := r.Read().Site(site)
	if errors.Is(err, catalog.ErrNotFound) {
		err = fmt.Errorf("%w: %d", ErrNoSite, site)
	}
	return s, err
}

// ProlongSite extends the lease of a site after contact with it, once half of the lease is over. Errors: those of the store.
func (r *Register) ProlongSite(ctx context.Context, s catalog.Site) error {
	end := r.leaseEnd()
	if s.Edge != "" || end.Time().Sub(s.Until.Time()) < LeaseFor/2 {
		return nil
	}
	_, err := r.append(ctx, "", &log.SiteLease{Site: s.Site, Until: end})
	return err
}
