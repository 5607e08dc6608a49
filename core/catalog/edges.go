package catalog

import (
	"encoding/binary"
	"encoding/hex"
	"slices"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// Edge is a node with copies of applications, in the control partition. Its record stays after it is revoked, so that its requests get
// the reason.
//
//field:message edge
type Edge struct {
	ID       string   `wire:"1"`
	Name     string   `wire:"2"`
	Apps     []string `wire:"3"`  // that it may hold; deleted ones among them
	Owner    string   `wire:"4"`  // id of the account it belongs to; empty: the operator's
	Token    [32]byte `wire:"5"`  // SHA-256 of the text that it enrols with
	Key      [32]byte `wire:"6"`  // Ed25519, public; zero: not enrolled yet
	Site     log.Site `wire:"7"`  // that it writes as, unless Newer has another; 0: not enrolled yet
	Newer    []Newer  `wire:"11"` // sites of later lives, by application
	Created  log.HLC  `wire:"8,fixed"`
	Enrolled log.HLC  `wire:"9,fixed"`  // 0: not yet
	Revoked  log.HLC  `wire:"10,fixed"` // 0: it is not
	Extra    Extra    `wire:"*"`
}

// Newer is a site that the newest life of an edge writes as in an application. An edge begins another life when its disk was
// rolled back, and when it was restored from a backup.
type Newer struct {
	App  string   `wire:"1"`
	Site log.Site `wire:"2"`
	Life uint64   `wire:"3,fixed"` // name of the request that it was leased for
}

// SiteIn is the site that the newest life of an edge writes as in an application.
func (e *Edge) SiteIn(app string) log.Site {
	for _, n := range e.Newer {
		if n.App == app {
			return n.Site
		}
	}
	return e.Site
}

// LeasedFor is the site of the newest life in an application, if it was leased for a request; 0: it was not.
func (e *Edge) LeasedFor(app string, life uint64) log.Site {
	for _, n := range e.Newer {
		if n.App == app && n.Life == life && life != 0 {
			return n.Site
		}
	}
	return 0
}

// Renew sets the site of the newest life in an application.
func (e *Edge) Renew(n Newer) {
	for i := range e.Newer {
		if e.Newer[i].App == n.App {
			e.Newer[i] = n
			return
		}
	}
	e.Newer = append(e.Newer, n)
}

// Holder names an edge in the records of the sites that are leased to it.
func (e *Edge) Holder() string { return "edge " + e.ID }

// Holds reports whether an edge may hold an application.
func (e *Edge) Holds(app string) bool {
	return e.Revoked == 0 && slices.Contains(e.Apps, app)
}

// Site is the writer with a number, in the control partition: an edge, or a browser's profile or a folder with one application.
//
//field:message site
type Site struct {
	Site    log.Site `wire:"1"`
	Edge    string   `wire:"2"` // id; empty: the site is not an edge
	App     string   `wire:"3"` // empty: an edge's
	Holder  string   `wire:"4"` // key, account or client that asked for it
	Secret  [32]byte `wire:"5"` // SHA-256 of the text by which it is known; zero: an edge's
	Created log.HLC  `wire:"6,fixed"`
	Until   log.HLC  `wire:"7,fixed"` // end of its lease; 0: an edge's, which has none
	Extra   Extra    `wire:"*"`
}

// Edge returns an edge, from the control partition.
func (r Reader) Edge(id string) (Edge, error) {
	return lookup(r, r.app.stringKey(tableEdge, id), "edge", id, decodeEdge)
}

// EdgeByToken returns the edge whose token's text has a SHA-256, from the control partition.
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
func (r Reader) Site(site log.Site) (Site, error) {
	return lookup(r, r.app.uint32Key(tableLease, uint32(site)), "site", site, decodeSite)
}

// Sites yields the leased sites by number, from the control partition.
func (r Reader) Sites(yield func(Site) bool) error {
	return all(r, r.app.key(tableLease, 0), decodeSite, yield)
}

// SitesOf yields the sites that were leased for an application, by number, from the control partition.
func (r Reader) SitesOf(app string, yield func(Site) bool) error {
	return each(r, appSites(r.app, app), func(key, _ []byte) (Site, error) { return r.Site(log.Site(ordAt(key))) }, yield)
}

// PutEdge writes an edge. The token of one that is revoked leads to it no longer.
func (w *Writer) PutEdge(e *Edge) {
	w.tx.Put(w.app.stringKey(tableEdge, e.ID), encodeEdge(nil, e))
	token := w.app.stringKey(tableEdgeToken, string(e.Token[:]))
	if e.Revoked == 0 {
		w.tx.Put(token, []byte(e.ID))
	} else {
		w.tx.Delete(token)
	}
}

// PutSite writes a leased site, which keeps its application.
func (w *Writer) PutSite(s *Site) {
	w.tx.Put(w.app.uint32Key(tableLease, uint32(s.Site)), encodeSite(nil, s))
	if s.App != "" {
		w.tx.Put(binary.BigEndian.AppendUint32(appSites(w.app, s.App), uint32(s.Site)), nil)
	}
}

// appSites begins the keys of an application's sites, in the control partition.
func appSites(control AppID, app string) []byte {
	b, _ := hex.DecodeString(app) // of an existing application
	return append(control.key(tableAppLease, len(b)+4), b...)
}

// deleteSites removes the sites of an application. Their numbers are never given again.
func (w *Writer) deleteSites(app string) error {
	prefix := appSites(w.app, app)
	err := w.ords(prefix, func(site uint32) bool {
		w.tx.Delete(w.app.uint32Key(tableLease, site))
		return true
	})
	w.tx.DeleteRange(prefix, kv.After(prefix))
	return err
}
