//go:build !wasip1

package pebblekv

import (
	"bytes"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/sightline-dev/sightline/core/kv"
)

// Snapshot implements [kv.Store].
func (s *Store) Snapshot() kv.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	snap := &snapshot{store: s, closed: s.closed}
	snap.reader = reader{enter: snap.enter, exit: s.exit, of: func() pebble.Reader { return snap.pebble }, take: snap.take, keep: snap.keep}
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

	take func() *pebble.Iterator     // returns the iterator of an earlier scan, or nil; nil: none are kept
	keep func(*pebble.Iterator) bool // keeps an iterator for a later scan, unless it returns false
}

// snapshot is the state of the store at one moment.
type snapshot struct {
	reader
	store  *Store
	pebble *pebble.Snapshot
	closed bool             // guarded by store.mu
	idle   *pebble.Iterator // of the last scan, for the next one, since opening an iterator costs more than a short scan; guarded by store.mu
}

func (s *snapshot) take() *pebble.Iterator {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	it := s.idle
	s.idle = nil
	return it
}

func (s *snapshot) keep(it *pebble.Iterator) bool {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	if s.closed || s.idle != nil {
		return false
	}
	s.idle = it
	return true
}

// release closes the snapshot. The caller holds store.mu.
func (s *snapshot) release() error {
	s.closed = true
	if s.idle == nil {
		return s.pebble.Close()
	}
	return errors.Join(s.idle.Close(), s.pebble.Close())
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
	delete(s.store.snapshots, s)
	return s.release()
}

// iterator returns an iterator over the keys lo ≤ key < hi.
func (r *reader) iterator(lo, hi []byte) (*pebble.Iterator, error) {
	if r.take != nil {
		if it := r.take(); it != nil {
			it.SetBounds(lo, hi)
			return it, nil
		}
	}
	return r.of().NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
}

// iterate yields the keys lo ≤ key < hi in the order of start and next. The iterator ends with the scan, or with the snapshot, even if yield panics.
func (r *reader) iterate(lo, hi []byte, start, next func(*pebble.Iterator) bool, yield func(key, value []byte) bool) (err error) {
	if err := r.enter(); err != nil {
		return err
	}
	defer r.exit()
	if hi != nil && bytes.Compare(lo, hi) >= 0 {
		return nil
	}
	it, err := r.iterator(lo, hi)
	if err != nil {
		return translate(err)
	}
	defer func() {
		if it.Error() == nil && r.keep != nil && r.keep(it) {
			return
		}
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
