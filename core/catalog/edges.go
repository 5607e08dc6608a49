package catalog

import (
	"encoding/binary"
	"encoding/hex"
	"slices"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// Edge is a node with replicas of applications, in the control partition. A revoked edge keeps its record, so that its requests get
// the reason.
//
//field:message edge
type Edge struct {
	ID       string     `wire:"1"`
	Name     string     `wire:"2"`
	Apps     []string   `wire:"3"`  // applications that it may replicate, including deleted ones
	Owner    string     `wire:"4"`  // id of the owner's account; empty if the operator owns it
	Token    [32]byte   `wire:"5"`  // SHA-256 of the text of its enrolment token
	Key      [32]byte   `wire:"6"`  // public key, Ed25519; zero: not enrolled yet
	Site     log.Writer `wire:"7"`  // site that it writes as, unless Sites has another; 0: not enrolled yet
	Sites    []EdgeSite `wire:"11"` // sites of later lives, by application
	Created  log.HLC    `wire:"8,fixed"`
	Enrolled log.HLC    `wire:"9,fixed"`  // 0: not enrolled yet
	Revoked  log.HLC    `wire:"10,fixed"` // 0: not revoked
	Extra    Extra      `wire:"*"`
}

// EdgeSite is the site as which the newest life of an edge writes in an application. An edge begins another life after a rollback of its
// disk or a restore from a backup.
type EdgeSite struct {
	App  string     `wire:"1"`
	Site log.Writer `wire:"2"`
	Life uint64     `wire:"3,fixed"` // id of the request for which the site was leased
}

// SiteIn returns the site as which the newest life of an edge writes in an application.
func (e *Edge) SiteIn(app string) log.Writer {
	for _, n := range e.Sites {
		if n.App == app {
			return n.Site
		}
	}
	return e.Site
}

// SetSite sets the site of the newest life in an application.
func (e *Edge) SetSite(n EdgeSite) {
	for i := range e.Sites {
		if e.Sites[i].App == n.App {
			e.Sites[i] = n
			return
		}
	}
	e.Sites = append(e.Sites, n)
}

// Holder returns the name of an edge in the records of the sites that are leased to it.
func (e *Edge) Holder() string { return "edge " + e.ID }

// Replicates reports whether an edge may replicate an application.
func (e *Edge) Replicates(app string) bool {
	return e.Revoked == 0 && slices.Contains(e.Apps, app)
}

// Site is a leased site and its holder, in the control partition: an edge, or a browser profile or a folder with one application.
//
//field:message site
type Site struct {
	Site    log.Writer `wire:"1"`
	Edge    string     `wire:"2"` // id; empty if the site is not an edge
	App     string     `wire:"3"` // empty for an edge
	Holder  string     `wire:"4"` // key, account or client that requested the lease
	Secret  [32]byte   `wire:"5"` // SHA-256 of the secret text of the site; zero for an edge
	Created log.HLC    `wire:"6,fixed"`
	Until   log.HLC    `wire:"7,fixed"` // end of the lease; 0 for an edge, whose lease does not end
	Extra   Extra      `wire:"*"`
}

// Edge returns the edge with an id, from the control partition.
func (r Reader) Edge(id string) (Edge, error) {
	return lookup(r, r.app.stringKey(tableEdge, id), "edge", id, decodeEdge)
}

// EdgeByToken returns the edge whose enrolment token's text has a SHA-256, from the control partition.
func (r Reader) EdgeByToken(hash [32]byte) (Edge, error) {
	id, err := r.get(r.app.stringKey(tableEdgeToken, string(hash[:])), "edge of token", hex.EncodeToString(hash[:4]))
	if err != nil {
		return Edge{}, err
	}
	return r.Edge(string(id))
}

// Edges yields the edges by id, from the control partition.
func (r Reader) Edges(yield func(Edge) bool) error {
	return all(r, r.app.key(tableEdge, 0), decodeEdge, yield)
}

// Site returns a leased site, from the control partition.
func (r Reader) Site(site log.Writer) (Site, error) {
	return lookup(r, r.app.uint32Key(tableLease, uint32(site)), "site", site, decodeSite)
}

// Sites yields the leased sites by number, from the control partition.
func (r Reader) Sites(yield func(Site) bool) error {
	return all(r, r.app.key(tableLease, 0), decodeSite, yield)
}

// PutEdge writes an edge. It deletes the token index entry of a revoked edge.
func (w *Writer) PutEdge(e *Edge) {
	w.tx.Put(w.app.stringKey(tableEdge, e.ID), encodeEdge(nil, e))
	token := w.app.stringKey(tableEdgeToken, string(e.Token[:]))
	if e.Revoked == 0 {
		w.tx.Put(token, []byte(e.ID))
	} else {
		w.tx.Delete(token)
	}
}

// PutSite writes a leased site. The application of an existing site must not change.
func (w *Writer) PutSite(s *Site) {
	w.tx.Put(w.app.uint32Key(tableLease, uint32(s.Site)), encodeSite(nil, s))
	if s.App != "" {
		w.tx.Put(binary.BigEndian.AppendUint32(appSites(w.app, s.App), uint32(s.Site)), nil)
	}
}

// appSites returns the prefix of the keys of an application's sites, in the control partition.
func appSites(control AppID, app string) []byte {
	b, _ := hex.DecodeString(app) // the id is valid
	return append(control.key(tableAppLease, len(b)+4), b...)
}

// deleteSites deletes the sites of an application. Their numbers are never used again.
func (w *Writer) deleteSites(app string) error {
	prefix := appSites(w.app, app)
	err := w.ords(prefix, func(site uint32) bool {
		w.tx.Delete(w.app.uint32Key(tableLease, site))
		return true
	})
	kv.DeletePrefix(w.tx, prefix)
	return err
}
