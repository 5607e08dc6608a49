package register

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/log"
)

// An edge enrols once with a token and then signs with its key:
//
//	CreateEdge ──token──▶ EnrolEdge ──▶ Edge{Key}   until RevokeEdge
//
// A replica of version 0.1.0 wrote as a site, a number that was leased to it. It still sends the operations that it made, with the secret
// of its lease. An edge signs instead.

// ErrNoEdge is returned for an edge that does not exist.
var ErrNoEdge = errors.New("no such edge")

// ErrEnrol is returned for an invalid enrolment token: it is unknown or expired, its edge has enrolled with
// another key, or its edge was revoked.
var ErrEnrol = errors.New("the enrolment token is unknown, expired, already used or revoked")

// EnrolTokenTTL is the time for which an enrolment token is valid.
const EnrolTokenTTL = 30 * 24 * time.Hour

// ErrNoSite is returned for a site that does not exist or whose secret is wrong.
var ErrNoSite = errors.New("no such site")

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
		err = done(r.auditEdge(by, ActionCreateEdge, &e))
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
	e, err := r.Reader().Edge(id)
	if errors.Is(err, catalog.ErrNotFound) {
		err = fmt.Errorf("%w: %q", ErrNoEdge, id)
	}
	return e, err
}

// Edges lists the edges by ID, including revoked ones.
func (r *Register) Edges() ([]catalog.Edge, error) {
	return catalog.Collect(r.Reader().Edges)
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

// EnrolEdge stores the public Ed25519 key of the edge that has the token. The caller must have checked that the edge has the private key. With the same key it returns the same edge
// again, so that an edge may retry after a lost answer. Errors: ErrEnrol and the store's.
func (r *Register) EnrolEdge(ctx context.Context, token string, key [32]byte) (catalog.Edge, error) {
	e, err := r.Reader().EdgeByToken(auth.HashKey(token))
	switch {
	case errors.Is(err, catalog.ErrNotFound):
		return catalog.Edge{}, ErrEnrol
	case err != nil:
		return catalog.Edge{}, err
	case e.Revoked != 0:
		return catalog.Edge{}, ErrEnrol
	case e.Key == key && e.Site != 0:
		return e, nil
	case e.Enrolled == 0 && r.o.Clock().Sub(e.Created.Time()) > EnrolTokenTTL:
		return catalog.Edge{}, ErrEnrol
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

// CheckSite returns a site if secret is its secret. It refuses the sites of edges, which sign instead. It accepts a site whose lease has
// ended. Errors: ErrNoSite and the store's.
func (r *Register) CheckSite(site log.Writer, secret string) (catalog.Site, error) {
	s, err := r.Site(site)
	if err == nil && (s.Edge != "" || !auth.Same(auth.HashKey(secret), s.Secret)) {
		return catalog.Site{}, fmt.Errorf("%w: %d", ErrNoSite, site)
	}
	return s, err
}

// Site returns a site without checking a secret. It may be an edge's. Errors: ErrNoSite and the store's.
func (r *Register) Site(site log.Writer) (catalog.Site, error) {
	s, err := r.Reader().Site(site)
	if errors.Is(err, catalog.ErrNotFound) {
		err = fmt.Errorf("%w: %d", ErrNoSite, site)
	}
	return s, err
}
