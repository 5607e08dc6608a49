package fold

import (
	"errors"
	"math"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/log"
)

// edgeCreate creates an edge for existing applications. Each id and each token belongs to one edge only.
func (f *Fold) edgeCreate(b *log.EdgeCreate) (Verdict, error) {
	if !isID(b.ID) || len(b.Apps) == 0 || b.Token == [32]byte{} {
		return refusal("edge"), nil
	}
	for _, app := range b.Apps {
		if _, err := f.w.App(app); err != nil {
			return missingVerdict(err)
		}
	}
	other, err := f.w.Edge(b.ID)
	if errors.Is(err, catalog.ErrNotFound) {
		other, err = f.w.EdgeByToken(b.Token)
	}
	if err == nil {
		return Verdict{Code: Duplicate, Detail: "id", ID: other.ID}, nil
	}
	if !errors.Is(err, catalog.ErrNotFound) {
		return Verdict{}, err
	}
	op := &f.e.Op
	f.w.PutEdge(&catalog.Edge{ID: b.ID, Name: b.Name, Apps: b.Apps, Owner: b.Owner, Token: b.Token, Created: op.At})
	return Verdict{Code: OK, Dot: op.Dot, ID: b.ID}, nil
}

// edgeEnrolled gives an edge its key and its site. An edge enrols once: the same key again changes nothing, and another key is refused.
func (f *Fold) edgeEnrolled(b *log.EdgeEnrolled) (Verdict, error) {
	if b.Key == [32]byte{} {
		return refusal("key"), nil
	}
	e, err := f.w.Edge(b.ID)
	if err != nil {
		return missingVerdict(err)
	}
	v := Verdict{Code: OK, Dot: f.e.Op.Dot, ID: e.ID}
	switch {
	case e.Revoked != 0:
		return Verdict{Code: Gone}, nil
	case e.Key == b.Key:
		v.Code = Superseded
		return v, nil
	case e.Key != [32]byte{}:
		return Verdict{Code: Refused, Detail: "scope: enrolled"}, nil
	}
	site, ok := f.nextSite()
	if !ok {
		return Verdict{Code: Refused, Detail: "quota: sites"}, nil
	}
	e.Key, e.Site, e.Enrolled = b.Key, site, f.e.Op.At
	f.w.PutEdge(&e)
	f.w.PutSite(&catalog.Site{Site: site, Edge: e.ID, Created: f.e.Op.At})
	return v, nil
}

func (f *Fold) edgeRevoke(b *log.EdgeRevoke) (Verdict, error) {
	e, err := f.w.Edge(b.ID)
	if err != nil {
		return missingVerdict(err)
	}
	v := Verdict{Code: OK, Dot: f.e.Op.Dot, ID: e.ID}
	if e.Revoked != 0 {
		v.Code = Superseded
		return v, nil
	}
	e.Revoked = f.e.Op.At
	f.w.PutEdge(&e)
	return v, nil
}

// nextSite returns the next site to lease. It never returns a number twice, and the origin has the first one.
func (f *Fold) nextSite() (log.Writer, bool) {
	last := max(f.h.Sites, uint32(log.Origin))
	if last == math.MaxUint32 {
		return 0, false
	}
	f.h.Sites = last + 1
	return log.Writer(f.h.Sites), true
}

// siteLease leases a site, or prolongs a lease to the latest end that was requested.
func (f *Fold) siteLease(b *log.SiteLease) (Verdict, error) {
	if b.Site != 0 {
		return f.prolong(b)
	}
	if b.Secret == [32]byte{} {
		return refusal("secret"), nil
	}
	if _, err := f.w.App(b.App); err != nil {
		return missingVerdict(err)
	}
	var edge catalog.Edge
	if b.Edge != "" {
		var err error
		if edge, err = f.w.Edge(b.Edge); err != nil {
			return missingVerdict(err)
		}
		if !edge.Replicates(b.App) {
			return Verdict{Code: Gone}, nil
		}
	}
	site, ok := f.nextSite()
	if !ok {
		return Verdict{Code: Refused, Detail: "quota: sites"}, nil
	}
	op := &f.e.Op
	f.w.PutSite(&catalog.Site{Site: site, App: b.App, Holder: b.Holder, Secret: b.Secret, Created: op.At, Until: b.Until})
	if b.Edge != "" {
		edge.SetSite(catalog.EdgeSite{App: b.App, Site: site, Life: b.Life})
		f.w.PutEdge(&edge)
	}
	return Verdict{Code: OK, Dot: op.Dot}, nil
}

func (f *Fold) prolong(b *log.SiteLease) (Verdict, error) {
	s, err := f.w.Site(b.Site)
	if err != nil {
		return missingVerdict(err)
	}
	v := Verdict{Code: OK, Dot: f.e.Op.Dot}
	if s.Edge != "" || b.Until <= s.Until {
		v.Code = Superseded
		return v, nil
	}
	s.Until = b.Until
	f.w.PutSite(&s)
	return v, nil
}
