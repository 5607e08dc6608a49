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
	if !s.closed {
		snap.pebble = s.db.NewSnapshot()
		s.snapshots[snap] = struct{}{}
	}
	return snap
}

// snapshot is the store at one moment.
type snapshot struct {
	store  *Store
	pebble *pebble.Snapshot
	closed bool // store.mu
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
func (s *snapshot) Get(key []byte) ([]byte, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.store.exit()
	return get(s.pebble, key)
}

// Scan implements [kv.Reader].
func (s *snapshot) Scan(lo, hi []byte, yield func(key, value []byte) bool) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.store.exit()
	return scan(s.pebble, lo, hi, yield)
}

// ScanBack implements [kv.Reader].
func (s *snapshot) ScanBack(lo, hi []byte, yield func(key, value []byte) bool) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.store.exit()
	return scanBack(s.pebble, lo, hi, yield)
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

func get(r pebble.Reader, key []byte) ([]byte, error) {
	value, closer, err := r.Get(key)
	if err != nil {
		return nil, translate(err)
	}
	value = append([]byte{}, value...)
	return value, translate(closer.Close())
}

func scan(r pebble.Reader, lo, hi []byte, yield func(key, value []byte) bool) error {
	return iterate(r, lo, hi, (*pebble.Iterator).First, (*pebble.Iterator).Next, yield)
}

func scanBack(r pebble.Reader, lo, hi []byte, yield func(key, value []byte) bool) error {
	return iterate(r, lo, hi, (*pebble.Iterator).Last, (*pebble.Iterator).Prev, yield)
}

// iterate yields the keys lo ≤ key < hi that an iterator meets from its start on. It closes the iterator, panic or not.
func iterate(r pebble.Reader, lo, hi []byte, start, next func(*pebble.Iterator) bool, yield func(key, value []byte) bool) (err error) {
	if hi != nil && bytes.Compare(lo, hi) >= 0 {
		return nil
	}
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
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
