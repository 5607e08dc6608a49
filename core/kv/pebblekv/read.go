//go:build !wasip1

package pebblekv

import (
	"bytes"

	"github.com/cockroachdb/pebble/v2"

	"github.com/sightline-dev/sightline/core/kv"
)

// Snapshot implements [kv.Store].
func (s *Store) Snapshot() kv.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	snap := &snapshot{store: s, closed: s.closed}
	snap.reader = reader{enter: snap.enter, exit: s.exit, of: func() pebble.Reader { return snap.pebble }}
	if !s.closed {
		snap.pebble = s.db.NewSnapshot()
		s.snapshots[snap] = struct{}{}
	}
	return snap
}

// reader reads the store or a snapshot. enter begins a read, which lasts until exit. enter fails once the store or snapshot is closed.
type reader struct {
	enter func() error
	exit  func()
	of    func() pebble.Reader
}

// snapshot is the state of the store at one moment.
type snapshot struct {
	reader
	store  *Store
	pebble *pebble.Snapshot
	closed bool // guarded by store.mu
}

func (s *snapshot) enter() error {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	if s.closed {
		return kv.ErrClosed
	}
	s.store.users++
	return nil
}

// Get implements [kv.Reader].
func (r *reader) Get(key []byte) ([]byte, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	defer r.exit()
	value, closer, err := r.of().Get(key)
	if err != nil {
		return nil, translate(err)
	}
	value = append([]byte{}, value...)
	return value, translate(closer.Close())
}

// Scan implements [kv.Reader].
func (r *reader) Scan(lo, hi []byte, yield func(key, value []byte) bool) error {
	return r.iterate(lo, hi, (*pebble.Iterator).First, (*pebble.Iterator).Next, yield)
}

// ScanBack implements [kv.Reader].
func (r *reader) ScanBack(lo, hi []byte, yield func(key, value []byte) bool) error {
	return r.iterate(lo, hi, (*pebble.Iterator).Last, (*pebble.Iterator).Prev, yield)
}

// Close implements [kv.Snapshot].
func (s *snapshot) Close() error {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	if s.closed {
		return kv.ErrClosed
	}
	s.closed = true
	delete(s.store.snapshots, s)
	return s.pebble.Close()
}

// iterate yields the keys lo ≤ key < hi in the order of start and next. It closes the iterator even if yield panics.
func (r *reader) iterate(lo, hi []byte, start, next func(*pebble.Iterator) bool, yield func(key, value []byte) bool) (err error) {
	if err := r.enter(); err != nil {
		return err
	}
	defer r.exit()
	if hi != nil && bytes.Compare(lo, hi) >= 0 {
		return nil
	}
	it, err := r.of().NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
	if err != nil {
		return translate(err)
	}
	defer func() {
		closed := it.Close() // repeats the iterator's own error
		if err == nil {
			err = translate(closed)
		}
	}()
	for ok := start(it); ok; ok = next(it) {
		value, err := it.ValueAndErr()
		if err != nil || !yield(it.Key(), value) {
			return translate(err)
		}
	}
	return translate(it.Error())
}
