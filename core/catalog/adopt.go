package catalog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/sightline-dev/sightline/core/kv"
)

// ErrOrder is returned by Adopter.Keys for keys that are not in the order of CopyTables, and for keys in
// none of its tables.
var ErrOrder = errors.New("keys out of order")

// Pair is a key, without the application's id, and its value.
type Pair struct{ Key, Value []byte }

// Adopter replaces an application's state by the state of another replica. It writes only the differences:
//
//	theirs  c … s … i ─┬─ keys ─┬─ I …     passed to Keys in parts, in the order of CopyTables
//	ours               │        │
//	                   └─ keys missing in theirs are deleted
//
// It updates the public names of pictures with their inputs. It adds derived records and deletes none.
type Adopter struct {
	r       kv.Reader // our state
	w       kv.Writer
	app     AppID
	changed func(ord uint32, after *Input) // called for each input that changes; after is nil if the input is deleted
	table   int                            // index in stateTables; len(stateTables) after all of them
	last    []byte                         // last adopted key in that table; nil: none
	failed  error
	scratch []byte
}

// Adopt returns an Adopter of app in tx.
func Adopt(tx *kv.Overlay, app AppID, changed func(ord uint32, after *Input)) *Adopter {
	return AdoptInto(tx, tx, app, changed)
}

// AdoptInto is like Adopt but reads r and writes w. r need not show the writes to w, since the Adopter reads no key twice.
func AdoptInto(r kv.Reader, w kv.Writer, app AppID, changed func(ord uint32, after *Input)) *Adopter {
	return &Adopter{r: r, w: w, app: app, changed: changed}
}

// Keys adopts the next keys. It borrows pairs during the call. It returns ErrOrder, errors of malformed records and
// errors of the store.
func (a *Adopter) Keys(pairs []Pair) error {
	for len(pairs) > 0 && a.failed == nil {
		n := 1
		for n < len(pairs) && pairs[n].Key[0] == pairs[0].Key[0] {
			n++
		}
		if IsDerivedKey(pairs[0].Key) {
			a.addDerived(pairs[:n])
		} else {
			a.sameTable(pairs[:n], n < len(pairs))
		}
		pairs = pairs[n:]
	}
	return a.failed
}

// End ends the state. It deletes our keys after the last adopted key.
func (a *Adopter) End() error {
	for a.failed == nil && a.table < len(stateTables) {
		a.restOfTable()
	}
	return a.failed
}

// restOfTable deletes the remaining keys of a table and proceeds to the next table.
func (a *Adopter) restOfTable() {
	lo := a.app.key(stateTables[a.table], len(a.last)+1)
	hi := kv.PrefixEnd(lo)
	if a.last != nil {
		lo = append(a.fullKey(a.last), 0)
	}
	a.span(lo, hi, nil)
	a.table, a.last = a.table+1, nil
}

// fullKey returns the store's key for a key without the application's id.
func (a *Adopter) fullKey(key []byte) []byte { return append(a.app.key(key[0], len(key)), key[1:]...) }

// sameTable adopts keys of one table. more reports whether keys of another table follow.
func (a *Adopter) sameTable(pairs []Pair, more bool) {
	for a.table < len(stateTables) && stateTables[a.table] != pairs[0].Key[0] {
		if a.restOfTable(); a.failed != nil {
			return
		}
	}
	if a.table == len(stateTables) {
		a.failed = fmt.Errorf("table %q: %w", pairs[0].Key[0], ErrOrder)
		return
	}
	last := a.last
	for _, p := range pairs {
		if last != nil && bytes.Compare(p.Key, last) <= 0 {
			a.failed = fmt.Errorf("key %x after %x: %w", p.Key, last, ErrOrder)
			return
		}
		last = p.Key
	}
	lo := a.app.key(pairs[0].Key[0], 0)
	if a.last != nil {
		lo = append(a.fullKey(a.last), 0)
	}
	a.span(lo, append(a.fullKey(last), 0), pairs)
	if a.last = bytes.Clone(last); more {
		a.restOfTable()
	}
}

// span replaces the keys of a range by pairs.
func (a *Adopter) span(lo, hi []byte, pairs []Pair) {
	prefix := len(a.app) + 1
	err := a.r.Scan(lo, hi, func(key, value []byte) bool {
		for len(pairs) > 0 && bytes.Compare(pairs[0].Key, key[prefix:]) < 0 {
			a.set(pairs[0].Key, nil, pairs[0].Value)
			pairs = pairs[1:]
		}
		if len(pairs) > 0 && bytes.Equal(pairs[0].Key, key[prefix:]) {
			if !bytes.Equal(value, pairs[0].Value) {
				a.set(pairs[0].Key, value, pairs[0].Value)
			}
			pairs = pairs[1:]
		} else {
			a.set(key[prefix:], value, nil)
		}
		return a.failed == nil
	})
	for _, p := range pairs {
		a.set(p.Key, nil, p.Value)
	}
	a.failed = errors.Join(a.failed, err)
}

// set replaces the value `was` of a key by `is`; nil means that the key does not exist.
func (a *Adopter) set(key, was, is []byte) {
	if a.failed != nil {
		return
	}
	if key[0] == tableInput {
		a.input(key, was, is)
	}
	a.scratch = append(append(append(append(a.scratch[:0], tableApp), a.app[:]...), key[0]), key[1:]...)
	if is == nil {
		a.w.Delete(a.scratch)
	} else {
		a.w.Put(a.scratch, is)
	}
}

// input updates the public name of an input's picture.
func (a *Adopter) input(key, was, is []byte) {
	if len(key) != 5 {
		a.failed = fmt.Errorf("key %x: %w", key, ErrOrder)
		return
	}
	ord := binary.BigEndian.Uint32(key[1:])
	before, err := inputOr(bytes.Clone(was))
	if err == nil && before != nil && before.Hosted != [16]byte{} {
		name := hostedKey(before.Hosted, a.app)
		var leads []byte
		if leads, err = kv.Find(a.r, name); err == nil && bytes.Equal(leads, key[1:]) {
			a.w.Delete(name)
		}
	}
	if err != nil {
		a.failed = err
		return
	}
	after, err := inputOr(bytes.Clone(is))
	if err != nil || after != nil && after.Ord != ord {
		a.failed = errors.Join(err, fmt.Errorf("input %d: %w", ord, kv.ErrCorrupt))
		return
	}
	if after != nil && after.Hosted != [16]byte{} {
		a.w.Put(hostedKey(after.Hosted, a.app), key[1:])
	}
	a.changed(ord, after)
}

// PutPairs adds the derived records among pairs, without reading existing ones.
func PutPairs(w kv.Writer, app AppID, pairs []Pair) {
	key := app.key(tableDerived, pictureBytes+len([32]byte{}))
	table := len(key)
	for _, p := range pairs {
		if IsDerivedKey(p.Key) {
			key = append(key[:table], p.Key[1:]...)
			w.Put(key, p.Value)
		}
	}
}

// addDerived adds missing derived records.
func (a *Adopter) addDerived(pairs []Pair) {
	for _, p := range pairs {
		if !IsDerivedKey(p.Key) {
			a.failed = fmt.Errorf("key %x: %w", p.Key, ErrOrder)
			return
		}
		have, err := kv.Find(a.r, a.fullKey(p.Key))
		if err != nil {
			a.failed = err
			return
		}
		if !bytes.Equal(have, p.Value) {
			a.w.Put(a.fullKey(p.Key), p.Value)
		}
	}
}

// InputsOfDerived yields the inputs whose picture has a derived record among pairs.
func InputsOfDerived(r Reader, pairs []Pair, yield func(ord uint32)) error {
	for _, p := range pairs {
		if !IsDerivedKey(p.Key) {
			continue
		}
		picture := p.Key[1:][:pictureBytes]
		if err := r.ords(append(r.app.key(tableBlob, len(picture)), picture...), func(ord uint32) bool {
			yield(ord)
			return true
		}); err != nil {
			return err
		}
	}
	return nil
}

// Wipe deletes an application's state and the undo records of pending operations. It marks the records that the state
// referred to for cleanup.
func Wipe(tx *kv.Overlay, app AppID) {
	w := Write(tx, app)
	w.deleteTables(stateTables[:])
	w.deleteTables([]byte{tableUndo})
	w.scheduleFullCleanup()
	w.scheduleObjectCleanup()
}

// ScheduleDerivedCleanup marks unreferenced derived records and objects for cleanup.
func ScheduleDerivedCleanup(w kv.Writer, app AppID) {
	w.Put(app.TidyKey(string(tidyDerived)), nil)
	ScheduleObjectCleanup(w, app)
}
