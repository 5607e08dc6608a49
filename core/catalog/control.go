package catalog

import (
	"encoding/hex"
	"errors"

	"github.com/sightline-dev/sightline/core/kv"
)

// App returns an application's record, from the control partition.
func (r Reader) App(id string) (App, error) {
	return lookup(r, r.app.stringKey(tableKeyApp, id), "application", id, decodeApp)
}

// Apps yields the applications by id, from the control partition.
func (r Reader) Apps(yield func(App) bool) error {
	return all(r, r.app.key(tableKeyApp, 0), decodeApp, yield)
}

// Key returns the API key whose text has a SHA-256, from the control partition.
func (r Reader) Key(hash [32]byte) (Key, error) {
	return lookup(r, r.app.stringKey(tableKey, string(hash[:])), "key of hash", hex.EncodeToString(hash[:4]), decodeKey)
}

// Keys yields the keys by hash, from the control partition.
func (r Reader) Keys(yield func(Key) bool) error {
	return all(r, r.app.key(tableKey, 0), decodeKey, yield)
}

// KeysOf yields the keys of an application by hash, from the control partition.
func (r Reader) KeysOf(app string, yield func(Key) bool) error {
	id, err := ParseAppID(app)
	if err != nil {
		return err
	}
	prefix := append(r.app.key(tableAppKey, len(id)), id[:]...)
	return each(r, prefix, func(key, _ []byte) (Key, error) { return r.Key([32]byte(key[len(prefix):])) }, yield)
}

// Client returns the client with an id, from the control partition.
func (r Reader) Client(id string) (Client, error) {
	return lookup(r, r.app.stringKey(tableClient, id), "client", id, decodeClient)
}

// ClientOf returns the client of an application, from the control partition.
func (r Reader) ClientOf(app string) (Client, error) {
	id, err := r.get(r.app.stringKey(tableAppClient, app), "client of application", app)
	if err != nil {
		return Client{}, err
	}
	return r.Client(string(id))
}

// AppDeleted reports whether an application with this id was deleted.
func (r Reader) AppDeleted(id string) (bool, error) {
	v, err := kv.Find(r.kv, r.app.stringKey(tableAppGone, id))
	return v != nil, err
}

// PutApp writes an application.
func (w *Writer) PutApp(a *App) { w.tx.Put(w.app.stringKey(tableKeyApp, a.ID), encodeApp(nil, a)) }

// DeleteApp deletes an application's record, its keys, its client and its sites. It records permanently that the application was deleted,
// and marks its data for purging.
func (w *Writer) DeleteApp(a *App, seq uint64) error {
	id, err := ParseAppID(a.ID)
	if err != nil {
		return err
	}
	err = w.KeysOf(a.ID, func(k Key) bool {
		w.DeleteKey(&k)
		return true
	})
	if err != nil {
		return err
	}
	if err := errors.Join(w.deleteClient(a.ID), w.deleteSites(a.ID)); err != nil {
		return err
	}
	w.tx.Delete(w.app.stringKey(tableKeyApp, a.ID))
	w.tx.Put(w.app.stringKey(tableAppGone, a.ID), appendUint64(nil, seq))
	schedulePurge(w.tx, id, a.Seq)
	return nil
}

// PutKey writes a key.
func (w *Writer) PutKey(k *Key) {
	w.tx.Put(w.app.stringKey(tableKey, string(k.Hash[:])), encodeKey(nil, k))
	w.tx.Put(w.appKey(k), nil)
}

// DeleteKey deletes a key.
func (w *Writer) DeleteKey(k *Key) {
	w.tx.Delete(w.app.stringKey(tableKey, string(k.Hash[:])))
	w.tx.Delete(w.appKey(k))
}

// appKey returns the store's key for an API key in the list of its application.
func (w *Writer) appKey(k *Key) []byte {
	b, _ := hex.DecodeString(k.App) // a key belongs to an existing application
	return append(append(w.app.key(tableAppKey, len(b)+len(k.Hash)), b...), k.Hash[:]...)
}

// PutClient writes the client of an application and deletes the previous client.
func (w *Writer) PutClient(c *Client) error {
	if err := w.deleteClient(c.App); err != nil {
		return err
	}
	w.tx.Put(w.app.stringKey(tableClient, c.ID), encodeClient(nil, c))
	w.tx.Put(w.app.stringKey(tableAppClient, c.App), []byte(c.ID))
	return nil
}

func (w *Writer) deleteClient(app string) error {
	c, err := w.ClientOf(app)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	w.tx.Delete(w.app.stringKey(tableClient, c.ID))
	w.tx.Delete(w.app.stringKey(tableAppClient, app))
	return err
}
