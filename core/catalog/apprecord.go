package catalog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
)

// Reasons for which a replica must delete an application.
const (
	ReasonDeleted = "deleted" // the application was deleted
	ReasonRevoked = "revoked" // the replica may no longer hold it
)

// AppRecord is the part of the control partition that a replica of an application needs, at one position of the control log.
type AppRecord struct {
	Epoch   log.Epoch // of the control log
	App     string
	Revoked string // reason why the replica must delete the application, if so; then all fields below are empty
	Record  App
	Keys    []Key // by hash; like Client, only for an edge
	Client  Client
	Edge    Edge  // edge that requests the record, without its token; empty ID if none does
	Trust   Trust // for an edge
	Extra   Extra
}

// AppRecord returns the records that a replica of an application needs, from the control partition. If edge is empty, the replica is
// a browser. It returns ErrNotFound for an application that never
// existed.
func (r Reader) AppRecord(app, edge string) (x AppRecord, err error) {
	x = AppRecord{App: app}
	if edge != "" {
		if x.Edge, err = r.Edge(edge); err != nil && !errors.Is(err, ErrNotFound) {
			return AppRecord{}, err
		}
		x.Edge.Token = [32]byte{}
	}
	x.Record, err = r.App(app)
	if errors.Is(err, ErrNotFound) {
		if deleted, _ := r.AppDeleted(app); deleted {
			return AppRecord{App: app, Revoked: ReasonDeleted}, nil
		}
	}
	if err != nil {
		return AppRecord{}, err
	}
	if edge == "" {
		return x, nil
	}
	if !x.Edge.Replicates(app) {
		return AppRecord{App: app, Revoked: ReasonRevoked}, nil
	}
	err = r.KeysOf(app, func(k Key) bool {
		x.Keys = append(x.Keys, k)
		return true
	})
	if err != nil {
		return AppRecord{}, err
	}
	if x.Client, err = r.ClientOf(app); err != nil && !errors.Is(err, ErrNotFound) {
		return AppRecord{}, err
	}
	x.Trust, err = r.trustOf(app, edge)
	return x, err
}

// registerBytes is the encoding of an app record. Its records are encoded as in the control partition. If a single record is repeated, the
// last one counts. With Revoked it has no records.
//
//field:message register
type registerBytes struct {
	Epoch   log.Epoch `wire:"1"` // of the control log
	App     string    `wire:"2"`
	Revoked string    `wire:"3"`
	Record  [][]byte  `wire:"4"`
	Keys    [][]byte  `wire:"5"`
	Client  [][]byte  `wire:"6"`
	Edge    [][]byte  `wire:"7"`
	Trust   [][]byte  `wire:"8"`
	Extra   Extra     `wire:"*"`
}

// Encode returns the bytes of the record. Equal records have equal bytes.
func (x *AppRecord) Encode() []byte {
	r := registerBytes{Epoch: x.Epoch, App: x.App, Revoked: x.Revoked, Extra: x.Extra}
	if x.Revoked == "" {
		r.Record = [][]byte{encodeApp(nil, &x.Record)}
		for i := range x.Keys {
			r.Keys = append(r.Keys, encodeKey(nil, &x.Keys[i]))
		}
		if x.Client.ID != "" {
			r.Client = [][]byte{encodeClient(nil, &x.Client)}
		}
		if x.Edge.ID != "" {
			r.Edge = [][]byte{encodeEdge(nil, &x.Edge)}
		}
		if !x.Trust.empty() {
			r.Trust = [][]byte{encodeTrust(nil, &x.Trust)}
		}
	}
	return encodeRegisterBytes(nil, &r)
}

// DecodeAppRecord decodes an app record, and checks that all of it belongs to one application. It returns
// field.ErrFormat.
func DecodeAppRecord(data []byte) (AppRecord, error) {
	r, err := decodeRegisterBytes(bytes.Clone(data))
	if err != nil {
		return AppRecord{}, err
	}
	x := AppRecord{Epoch: r.Epoch, App: r.App, Revoked: r.Revoked, Extra: r.Extra}
	x.Record = lastOf(r.Record, decodeApp, &err)
	for _, data := range r.Keys {
		x.Keys = append(x.Keys, lastOf([][]byte{data}, decodeKey, &err))
	}
	x.Client = lastOf(r.Client, decodeClient, &err)
	x.Edge = lastOf(r.Edge, decodeEdge, &err)
	x.Trust = lastOf(r.Trust, decodeTrust, &err)
	if err == nil && !x.whole() {
		err = fmt.Errorf("app record of several applications: %w", field.ErrFormat)
	}
	if err != nil {
		return AppRecord{}, wrapError(err, "register")
	}
	return x, nil
}

// lastOf decodes records and returns the last, or zero if there is none. It joins their errors to err.
func lastOf[T any](records [][]byte, decode func([]byte) (T, error), err *error) (x T) {
	for _, data := range records {
		var failed error
		x, failed = decode(data)
		*err = errors.Join(*err, failed)
	}
	return x
}

// whole reports whether all parts of an app record belong to one application.
func (x *AppRecord) whole() bool {
	if _, err := ParseAppID(x.App); err != nil {
		return false
	}
	if x.Revoked != "" {
		return x.Record.ID == "" && x.Keys == nil && x.Client.ID == "" && x.Edge.ID == "" && x.Trust.empty()
	}
	for i := range x.Keys {
		if x.Keys[i].App != x.App || i > 0 && bytes.Compare(x.Keys[i-1].Hash[:], x.Keys[i].Hash[:]) >= 0 {
			return false
		}
	}
	return x.Record.ID == x.App && (x.Client.ID == "") == (x.Client.App == "") && (x.Client.ID == "" || x.Client.App == x.App)
}

// registerKey returns the key of the note that has the position of a replica's app record.
func registerKey(app string) []byte { return Control.LocalKey("register " + app) }

// AppRecordSeq returns the position in the control log, and that log's epoch, of an app record that a
// replica has, from the control partition. It returns zeros if the replica has none.
func (r Reader) AppRecordSeq(app string) (epoch log.Epoch, seq uint64, err error) {
	v, err := kv.Find(r.kv, registerKey(app))
	if v == nil {
		return epoch, 0, err
	}
	if len(v) != len(epoch)+8 {
		return epoch, 0, fmt.Errorf("%w: %d bytes for the position of an app record", field.ErrFormat, len(v))
	}
	return log.Epoch(v[:len(epoch)]), binary.BigEndian.Uint64(v[len(epoch):]), nil
}

// HasReplicas reports whether any app record came from another host, from the control partition. Then
// the log of the control partition lacks some of its records.
func (r Reader) HasReplicas() (bool, error) { return kv.AnyWithPrefix(r.kv, registerKey("")) }

// ApplyAppRecord replaces the records of an application by an app record at seq of the control log. applied reports
// whether the app record is newer than the existing records. Only replicas call it: at the origin the fold
// alone writes these records. With Revoked, ApplyAppRecord deletes the records and leaves a note to purge the
// application's data.
func (w *Writer) ApplyAppRecord(x *AppRecord, seq uint64) (applied bool, err error) {
	epoch, have, err := w.AppRecordSeq(x.App)
	if err != nil || epoch == x.Epoch && seq <= have {
		return false, err
	}
	w.tx.Put(registerKey(x.App), appendUint64(slices.Clone(x.Epoch[:]), seq))
	w.takeTrust(x)
	if x.Revoked != "" {
		return true, w.DeleteApp(&App{ID: x.App}, seq)
	}
	for i := range x.Keys {
		k, err := w.Key(x.Keys[i].Hash)
		if err == nil && k.App != x.App {
			err = fmt.Errorf("key of application %s: %w", k.App, field.ErrFormat)
		}
		if err != nil && !errors.Is(err, ErrNotFound) {
			return false, err
		}
	}
	err = w.KeysOf(x.App, func(k Key) bool {
		w.DeleteKey(&k)
		return true
	})
	if err == nil {
		err = w.takeClient(x)
	}
	for i := range x.Keys {
		w.PutKey(&x.Keys[i])
	}
	if x.Edge.ID != "" {
		w.tx.Put(w.app.stringKey(tableEdge, x.Edge.ID), encodeEdge(nil, &x.Edge))
	}
	w.tx.Delete(w.app.stringKey(tableAppGone, x.App))
	w.PutApp(&x.Record)
	return true, err
}

// takeClient writes the client of an app record. Its id must not belong to another application.
func (w *Writer) takeClient(x *AppRecord) error {
	if x.Client.ID == "" {
		return w.deleteClient(x.App)
	}
	c, err := w.Client(x.Client.ID)
	if err == nil && c.App != x.App {
		err = fmt.Errorf("client of application %s: %w", c.App, field.ErrFormat)
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	return w.PutClient(&x.Client)
}
