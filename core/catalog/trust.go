package catalog

import (
	"github.com/sightline-dev/sightline/core/log"
)

// Trust has the keys that verify access tokens at other hosts than the issuer.
//
//field:message trust
type Trust struct {
	Issuer string          `wire:"1"` // as the origin's tokens name it; empty: the origin has issued none
	Keys   []log.PublicKey `wire:"2"` // of the origin: those that sign now, those that did and those that will
	Peers  []log.PublicKey `wire:"3"` // of the other edges that hold an application, by their ids
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
		if e.ID != edge && e.Holds(app) && e.Key != [32]byte{} {
			t.Peers = append(t.Peers, log.PublicKey{ID: e.ID, Key: e.Key})
		}
		return true
	})
	return t, err
}

// trustKey returns the key of a replica's trusted keys for an application.
func trustKey(app string) []byte { return Control.LocalKey("trust " + app) }

// TrustOf returns whom a replica trusts for an application as its register says, from the control partition.
func (r Reader) TrustOf(app string) (Trust, error) {
	return orZero(r, trustKey(app), decodeTrust)
}

// takeTrust writes whom a register says to trust.
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
