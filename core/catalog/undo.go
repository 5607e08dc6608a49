package catalog

import (
	"bytes"

	"github.com/sightline-dev/sightline/core/kv"
)

// An undo record is what one key of the state holds without the operations of a replica that
// are not in the log yet. It is written when the first of them changes the key:
//
//	y key → 0            without them there is no such key
//	y key → 1 ‖ value    without them it has this value
//
// The state with all undo records applied is the state of the log, byte for byte.

// undoKey is the key of the undo record of a key of the store.
func (a AppID) undoKey(key []byte) []byte { return append(a.key(tableUndo, len(key)), key...) }

// PutUndo notes what a key holds without the pending operations; a nil value: nothing.
func PutUndo(w kv.Writer, app AppID, key, value []byte) {
	undo := []byte{0}
	if value != nil {
		undo = append(append(make([]byte, 0, 1+len(value)), 1), value...)
	}
	w.Put(app.undoKey(key), undo)
}

// HasUndo reports whether a key has its undo record already.
func HasUndo(r kv.Reader, app AppID, key []byte) (bool, error) {
	undo, err := kv.Find(r, app.undoKey(key))
	return undo != nil, err
}

// SomeUndo reports whether there are undo records.
func SomeUndo(r kv.Reader, app AppID) (bool, error) { return kv.Some(r, app.key(tableUndo, 0)) }

// Undo adds to tx what takes the pending operations back, and that there is nothing left to
// take back. It yields the ordinals of the inputs that they changed, ascending.
func Undo(tx *kv.Overlay, app AppID, yield func(ord uint32)) (err error) {
	table := app.key(tableUndo, 0)
	inputs := app.key(tableInput, 0)
	some := false
	for k, v := range kv.All(tx, table, &err) {
		some = true
		key := k[len(table):]
		if bytes.HasPrefix(key, inputs) {
			yield(ordAt(key))
		}
		undo(tx, key, v)
	}
	if some {
		tx.DeleteRange(table, kv.After(table))
	}
	return err
}

// undo writes what an undo record says of a key.
func undo(w kv.Writer, key, record []byte) {
	if value := undone(record); value != nil {
		w.Put(key, value)
	} else {
		w.Delete(key)
	}
}

// undone is the value that an undo record holds; nil: none.
func undone(v []byte) []byte {
	if len(v) == 0 || v[0] == 0 {
		return nil
	}
	return v[1:]
}

// Before returns r as it is without the pending operations of an application. What r shows
// must be one moment: a snapshot, or a store that nobody writes to.
func Before(r kv.Reader, app AppID) kv.Reader { return &before{r, app} }

type before struct {
	kv  kv.Reader
	app AppID
}

// Get implements [kv.Reader].
func (b *before) Get(key []byte) ([]byte, error) {
	v, err := kv.Find(b.kv, b.app.undoKey(key))
	switch {
	case err != nil:
		return nil, err
	case v == nil:
		return b.kv.Get(key)
	}
	if v = undone(v); v == nil {
		return nil, kv.ErrNotFound
	}
	return v, nil
}

// Scan implements [kv.Reader].
func (b *before) Scan(lo, hi []byte, yield func(key, value []byte) bool) error {
	r, err := b.undone(lo, hi)
	if err != nil {
		return err
	}
	return r.Scan(lo, hi, yield)
}

// ScanBack implements [kv.Reader].
func (b *before) ScanBack(lo, hi []byte, yield func(key, value []byte) bool) error {
	r, err := b.undone(lo, hi)
	if err != nil {
		return err
	}
	return r.ScanBack(lo, hi, yield)
}

// undone returns the store with the undo records of a range of keys in their places. It holds all of them in memory.
func (b *before) undone(lo, hi []byte) (kv.Reader, error) {
	table := b.app.key(tableUndo, 0)
	end := kv.After(table)
	if hi != nil {
		end = b.app.undoKey(hi)
	}
	o := kv.NewOverlay(b.kv)
	var err error
	for k, v := range kv.Range(b.kv, b.app.undoKey(lo), end, &err) {
		undo(o, k[len(table):], v)
	}
	return o, err
}

// Differ returns the records of an ordinal's input in two states, and whether they differ; nil
// is none.
func Differ(before, after Reader, ord uint32) (was, is *Input, differ bool, err error) {
	key := before.app.numbered(tableInput, ord)
	a, err := kv.Find(before.kv, key)
	if err != nil {
		return nil, nil, false, err
	}
	b, err := kv.Find(after.kv, key)
	if err != nil || a == nil && b == nil || a != nil && b != nil && bytes.Equal(a, b) {
		return nil, nil, false, err
	}
	if was, err = inputOr(a); err != nil {
		return nil, nil, false, err
	}
	is, err = inputOr(b)
	return was, is, err == nil, err
}

func inputOr(value []byte) (*Input, error) {
	if value == nil {
		return nil, nil
	}
	in, err := decodeInput(value)
	return &in, err
}

// Position reports whether a key of the store is of how far the fold has come, of the partition
// or of a site, and of no record.
func Position(app AppID, key []byte) bool {
	table := app.key(tableHeader, 0)
	n := len(table) - 1
	return len(key) > n && bytes.Equal(key[:n], table[:n]) && (key[n] == tableHeader || key[n] == tableSite)
}
