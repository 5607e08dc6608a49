package catalog

import (
	"bytes"

	"github.com/sightline-dev/sightline/core/kv"
)

// An undo record stores the value that a key of the state has without the pending operations: those of a replica that are not in the log
// yet. The first pending operation that changes the key writes the undo record:
//
//	y key → 0            the key does not exist without them
//	y key → 1 ‖ value    the key has this value without them
//
// The state with all undo records applied is the state of the log, byte for byte.

// undoKey returns the key of the undo record of a key of the store.
func (a AppID) undoKey(key []byte) []byte { return append(a.key(tableUndo, len(key)), key...) }

// PutUndo records the value that a key has without the pending operations. nil means that the key does not exist without them.
func PutUndo(w kv.Writer, app AppID, key, value []byte) {
	undo := []byte{0}
	if value != nil {
		undo = append(append(make([]byte, 0, 1+len(value)), 1), value...)
	}
	w.Put(app.undoKey(key), undo)
}

// HasUndo reports whether a key already has its undo record.
func HasUndo(r kv.Reader, app AppID, key []byte) (bool, error) {
	undo, err := kv.Find(r, app.undoKey(key))
	return undo != nil, err
}

// HasAnyUndo reports whether there are undo records.
func HasAnyUndo(r kv.Reader, app AppID) (bool, error) {
	return kv.AnyWithPrefix(r, app.key(tableUndo, 0))
}

// Undo adds to tx the changes that undo all pending operations, and deletes the undo records. It yields the ordinals of the inputs that the
// operations changed, ascending.
func Undo(tx *kv.Overlay, app AppID, yield func(ord uint32)) (err error) {
	table := app.key(tableUndo, 0)
	inputs := app.key(tableInput, 0)
	some := false
	for k, v := range kv.WithPrefix(tx, table, &err) {
		some = true
		key := k[len(table):]
		if bytes.HasPrefix(key, inputs) {
			yield(ordAt(key))
		}
		if value := undoValue(v); value != nil {
			tx.Put(key, value)
		} else {
			tx.Delete(key)
		}
	}
	if some {
		kv.DeletePrefix(tx, table)
	}
	return err
}

// undoValue returns the value in an undo record, nil if the record has none.
func undoValue(v []byte) []byte {
	if len(v) == 0 || v[0] == 0 {
		return nil
	}
	return v[1:]
}

// WithoutPending returns r without the pending operations of an application. r must show one moment: a snapshot, or a store that nobody
// writes to.
func WithoutPending(r kv.Reader, app AppID) kv.Reader { return &before{r, app} }

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
	if v = undoValue(v); v == nil {
		return nil, kv.ErrNotFound
	}
	return v, nil
}

// Scan implements [kv.Reader].
func (b *before) Scan(lo, hi []byte, yield func(key, value []byte) bool) error {
	m := b.merge(lo, hi, yield)
	m.page, m.first = b.kv.Scan, func(a, b []byte) bool { return bytes.Compare(a, b) < 0 }
	m.next = func(last []byte) { m.lo = append(last, 0) }
	return m.run(b.kv.Scan, lo, hi)
}

// ScanBack implements [kv.Reader].
func (b *before) ScanBack(lo, hi []byte, yield func(key, value []byte) bool) error {
	m := b.merge(lo, hi, yield)
	m.page, m.first = b.kv.ScanBack, func(a, b []byte) bool { return bytes.Compare(a, b) > 0 }
	m.next = func(last []byte) { m.hi = last }
	return m.run(b.kv.ScanBack, lo, hi)
}

// undoPage is the number of undo records that a merge reads at once.
const undoPage = 128

type scanner func(lo, hi []byte, yield func(key, value []byte) bool) error

// undoMerge yields a range of keys with the values of their undo records.
type undoMerge struct {
	table   []byte
	lo, hi  []byte // range of the undo records that are not read yet
	page    scanner
	first   func(a, b []byte) bool // whether a comes before b in the scan's order
	next    func(last []byte)      // moves lo or hi past an undo record
	undo    [][2][]byte            // keys and values to yield
	ended   bool                   // no records are left
	yield   func(key, value []byte) bool
	stopped bool
	failed  error
}

func (b *before) merge(lo, hi []byte, yield func(key, value []byte) bool) *undoMerge {
	table := b.app.key(tableUndo, 0)
	m := &undoMerge{table: table, lo: b.app.undoKey(lo), hi: kv.PrefixEnd(table), yield: yield}
	if hi != nil {
		m.hi = b.app.undoKey(hi)
	}
	return m
}

func (m *undoMerge) run(scan scanner, lo, hi []byte) error {
	err := scan(lo, hi, func(key, value []byte) bool {
		for m.fill() && m.first(m.undo[0][0], key) {
			m.take()
		}
		if m.stopped || m.failed != nil {
			return false
		}
		if m.fill() && bytes.Equal(m.undo[0][0], key) {
			m.take()
		} else if m.failed == nil {
			m.stopped = !m.yield(key, value)
		}
		return !m.stopped && m.failed == nil
	})
	if err != nil {
		return err
	}
	for m.fill() {
		m.take()
	}
	return m.failed
}

// fill reads more undo records if necessary, and reports whether there is one to yield.
func (m *undoMerge) fill() bool {
	if m.stopped || m.failed != nil {
		return false
	}
	if len(m.undo) > 0 || m.ended {
		return len(m.undo) > 0
	}
	var last []byte
	m.failed = m.page(m.lo, m.hi, func(k, v []byte) bool {
		last = bytes.Clone(k)
		m.undo = append(m.undo, [2][]byte{last[len(m.table):], bytes.Clone(v)})
		return len(m.undo) < undoPage
	})
	if len(m.undo) < undoPage {
		m.ended = true
	} else {
		m.next(last)
	}
	return m.failed == nil && len(m.undo) > 0
}

// take yields the first undo record if its key exists without the pending operations.
func (m *undoMerge) take() {
	u := m.undo[0]
	m.undo = m.undo[1:]
	if value := undoValue(u[1]); value != nil {
		m.stopped = !m.yield(u[0], value)
	}
}

// DiffInput returns the records of an ordinal's input in two states, and whether they differ. A record is nil if the state has no such
// input; both are nil if they do not differ.
func DiffInput(before, after Reader, ord uint32) (was, is *Input, differ bool, err error) {
	key := before.app.uint32Key(tableInput, ord)
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

// IsPositionKey reports whether a key of the store contains the progress of the fold, of the partition or of a site instead of a record.
func IsPositionKey(app AppID, key []byte) bool {
	table := app.key(tableHeader, 0)
	n := len(table) - 1
	return len(key) > n && bytes.Equal(key[:n], table[:n]) && (key[n] == tableHeader || key[n] == tableSite)
}
