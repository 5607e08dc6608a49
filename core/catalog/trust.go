package catalog

import (
	"errors"
	"slices"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
)

// Trust is by whose keys access tokens are read where they were not issued.
type Trust struct {
	Issuer string          // as the origin's tokens name it; empty: the origin has issued none
	Keys   []log.PublicKey // of the origin: those that sign now, those that did and those that will
	Peers  []log.PublicKey // of the other edges that hold an application, by their ids
	Extra  Extra
}

// Trust returns the origin's keys, from the control partition of the origin.
func (r Reader) Trust() (Trust, error) {
	v, err := r.kv.Get(r.app.key(tableTrust, 0))
	if errors.Is(err, kv.ErrNotFound) {
		return Trust{}, nil
	}
	if err != nil {
		return Trust{}, err
	}
	return decodeTrust(v)
}

// PutTrust writes the origin's keys.
func (w *Writer) PutTrust(t *Trust) { w.tx.Put(w.app.key(tableTrust, 0), encodeTrust(t)) }

// trustOf is whom an edge of an application trusts.
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

// trustKey is where a replica keeps whom it trusts for an application.
func trustKey(app string) []byte { return Control.LocalKey("trust " + app) }

// TrustOf returns whom a replica trusts for an application as its register says, from the control partition.
func (r Reader) TrustOf(app string) (Trust, error) {
	v, err := r.kv.Get(trustKey(app))
	if errors.Is(err, kv.ErrNotFound) {
		return Trust{}, nil
	}
	if err != nil {
		return Trust{}, err
	}
	return decodeTrust(v)
}

// takeTrust writes whom a register says to trust.
func (w *Writer) takeTrust(x *Register) {
	if x.Gone != "" || x.Trust.empty() {
		w.tx.Delete(trustKey(x.App))
		return
	}
	w.tx.Put(trustKey(x.App), encodeTrust(&x.Trust))
}

func (t *Trust) empty() bool {
	return t.Issuer == "" && len(t.Keys) == 0 && len(t.Peers) == 0 && len(t.Extra) == 0
}

// 1 issuer, 2 keys (1 id, 2 key)…, 3 peers (likewise)…
func encodeTrust(t *Trust) []byte {
	var e field.Encoder
	e.Text(1, t.Issuer)
	log.EncodeKeys(&e, 2, t.Keys)
	log.EncodeKeys(&e, 3, t.Peers)
	return e.Bytes(t.Extra)
}

func decodeTrust(data []byte) (Trust, error) {
	var t Trust
	d := field.Decode(slices.Clone(data))
	for d.Next() {
		switch d.Number {
		case 1:
			t.Issuer = d.Text()
		case 2:
			t.Keys = append(t.Keys, log.DecodeKey(d.Message()))
		case 3:
			t.Peers = append(t.Peers, log.DecodeKey(d.Message()))
		default:
			d.Keep()
		}
	}
	t.Extra = d.Extra()
	return t, named(d.Err(), "trust")
}
