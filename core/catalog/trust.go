package catalog

import (
	"github.com/sightline-dev/sightline/core/log"
)

// Trust has the keys that verify access tokens on other hosts than the issuer.
//
//field:message trust
type Trust struct {
	Issuer string          `wire:"1"` // name of the origin in its tokens; empty if the origin has issued none
	Keys   []log.PublicKey `wire:"2"` // present, former and future signing keys of the origin
	Peers  []log.PublicKey `wire:"3"` // keys of the other edges that replicate the application, by the edges' ids
	Extra  Extra           `wire:"*"`
}

// Trust returns the origin's keys, from the control partition of the origin.
func (r Reader) Trust() (Trust, error) {
	return orZero(r, r.app.key(tableTrust, 0), decodeTrust)
}

// PutTrust writes the origin's keys.
func (w *Writer) PutTrust(t *Trust) { w.tx.Put(w.app.key(tableTrust, 0), encodeTrust(nil, t)) }

// trustOf returns the keys that an edge of an application trusts.
func (r Reader) trustOf(app, edge string) (Trust, error) {
	t, err := r.Trust()
	if err != nil {
		return Trust{}, err
	}
	err = r.Edges(func(e Edge) bool {
		if e.ID != edge && e.Replicates(app) && e.Key != [32]byte{} {
			t.Peers = append(t.Peers, log.PublicKey{ID: e.ID, Key: e.Key})
		}
		return true
	})
	return t, err
}

// trustKey returns the store's key for the keys that a replica trusts for an application.
func trustKey(app string) []byte { return Control.LocalKey("trust " + app) }

// TrustOf returns the keys that a replica trusts for an application. It reads them from the control partition, as the app record listed
// them.
func (r Reader) TrustOf(app string) (Trust, error) {
	return orZero(r, trustKey(app), decodeTrust)
}

// takeTrust stores the keys that an app record lists as trusted. It deletes them if the application was revoked or the record lists none.
func (w *Writer) takeTrust(x *AppRecord) {
	if x.Revoked != "" || x.Trust.empty() {
		w.tx.Delete(trustKey(x.App))
		return
	}
	w.tx.Put(trustKey(x.App), encodeTrust(nil, &x.Trust))
}

func (t *Trust) empty() bool {
	return t.Issuer == "" && len(t.Keys) == 0 && len(t.Peers) == 0 && len(t.Extra) == 0
}
