// Package memkv is a [kv.Store] in memory: a persistent B-tree whose copies are free, so
// that a snapshot or a scan holds one moment without stopping writers.
//
//	Apply ──▶ journal, if there is one ──▶ tree ◀── Get
//	                                        │ copy on write
//	                                        ├──▶ Snapshot
//	                                        └──▶ Scan
//
// With a [Journal] it outlives its process: a browser journals to its private file system ([Filed]),
// and a test to a slice that can be cut anywhere. Without one, wait returns at once, since nothing outlives anything.
//
// The tree is tidwall's. It is no cache: nothing is ever dropped.
package memkv

import (
	"bytes"
	"errors"
	"fmt"
	"sync"

	"github.com/tidwall/btree"

	"github.com/sightline-dev/sightline/core/kv"
)

// Journal keeps encoded batches, in order, where they outlive the process.
type Journal interface {
	// Replay calls yield with all batches kept, until it returns an error, which Replay
	// returns. A batch is borrowed until yield returns.
	Replay(yield func(batch []byte) error) error

	// Append keeps the batch after all before. The batch is borrowed until Append returns;
	// wait returns nil once it, and all before it, outlive a crash; it may be called any number of
	// times. Calls of Append do not overlap.
	Append(batch []byte) (wait func() error, err error)
}

// Options says how a store is kept.
type Options struct {
	Journal  Journal // nil keeps the store in memory only
	MaxBytes int64   // of keys and values, above which Room returns kv.ErrFull; 0 means no limit
}

// Store is a store in memory. Its methods may be called concurrently.
type Store struct {
	options Options

	mu     sync.RWMutex
	tree   *tree
	frozen *tree        // a copy of tree, made for the first reader since the last change; or nil
	bytes  int64        // of all keys and values
	last   func() error // the journal's wait for the newest batch, or nil
	err    error        // what every write returns: closed or failed
	closed bool
}

type tree = btree.BTreeG[pair]

// pair is a key, and in the rest of its capacity the value: one allocation that never changes, and half of the
// room that two slices take in a node. To look for a key, the key alone will do.
type pair []byte

func newTree() *tree {
	return btree.NewBTreeGOptions(func(a, b pair) bool {
		return bytes.Compare(a, b) < 0
	}, btree.Options{NoLocks: true})
}

var (
	_ kv.Store    = (*Store)(nil)
	_ kv.Snapshot = (*snapshot)(nil)
)

// New returns an empty store without a journal.
func New() *Store { return &Store{tree: newTree()} }

// Open returns the store that the journal's batches make. A batch that is none gives kv.ErrCorrupt.
func Open(o Options) (*Store, error) {
	s := New()
	s.options = o
	if o.Journal == nil {
		return s, nil
	}
	err := o.Journal.Replay(func(data []byte) error {
		b, err := kv.BorrowBatch(data)
		if err != nil {
			return fmt.Errorf("%w: %w", kv.ErrCorrupt, err)
		}
		s.apply(b)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	s.compact()
	return s, nil
}

// Get implements [kv.Reader].
func (s *Store) Get(key []byte) ([]byte, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, kv.ErrClosed
	}
	return get(s.tree, key)
}

// Scan implements [kv.Reader].
func (s *Store) Scan(lo, hi []byte, yield func(key, value []byte) bool) error {
	t, err := s.freeze()
	if err != nil {
		return err
	}
	scan(t, lo, hi, yield)
	return nil
}

// ScanBack implements [kv.Reader].
func (s *Store) ScanBack(lo, hi []byte, yield func(key, value []byte) bool) error {
	t, err := s.freeze()
	if err != nil {
		return err
	}
	scanBack(t, lo, hi, yield)
	return nil
}

// freeze returns a tree that does not change.
func (s *Store) freeze() (*tree, error) {
	s.mu.RLock()
	t, closed := s.frozen, s.closed
	s.mu.RUnlock()
	if closed {
		return nil, kv.ErrClosed
	}
	if t != nil {
		return t, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.frozen == nil {
		s.frozen = s.tree.Copy()
	}
	return s.frozen, nil
}

// Apply implements [kv.Store].
func (s *Store) Apply(b *kv.Batch) error {
	_, err := s.write(b)
	return err
}

// Commit implements [kv.Store].
func (s *Store) Commit(b *kv.Batch) (wait func() error, err error) {
	journalled, err := s.write(b)
	if err != nil {
		return nil, err
	}
	return func() error {
		if err := journalled(); err != nil {
			s.fail(err)
		}
		s.mu.RLock()
		defer s.mu.RUnlock()
		if errors.Is(s.err, kv.ErrFailed) {
			return s.err
		}
		return nil
	}, nil
}

func (s *Store) write(b *kv.Batch) (wait func() error, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	if s.options.Journal != nil && b.Len() > 0 {
		if wait, err = s.options.Journal.Append(b.Bytes()); err != nil {
			s.err = fmt.Errorf("%w: %w", kv.ErrFailed, err)
			return nil, s.err
		}
		s.last = wait
	}
	s.apply(b)
	s.compact()
	if s.last == nil {
		return func() error { return nil }, nil
	}
	return s.last, nil
}

// pairBytes is about what a journal spends on a key and its value beside their bytes.
const pairBytes = 6

// compact has a journal compacted that asks for it; mu is held.
func (s *Store) compact() {
	if c, ok := s.options.Journal.(compacter); ok && c.due(s.bytes+pairBytes*int64(s.tree.Len())) {
		c.compact(&snapshot{tree: s.tree.Copy()})
	}
}

// fail stops the store for good.
func (s *Store) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = fmt.Errorf("%w: %w", kv.ErrFailed, err)
	}
}

// apply changes the tree; mu is held.
func (s *Store) apply(b *kv.Batch) {
	s.frozen = nil
	for op := range b.Each {
		switch op.Kind {
		case kv.KindPut:
			p := newPair(op.Key, op.Value)
			old, _ := s.tree.Load(p) // faster than Set in order, as snapshots are written
			s.bytes += p.size() - old.size()
		case kv.KindDelete:
			old, _ := s.tree.Delete(pair(op.Key))
			s.bytes -= old.size()
		case kv.KindDeleteRange:
			s.deleteRange(op.Key, op.Value)
		}
	}
}

func (s *Store) deleteRange(lo, hi []byte) {
	var doomed []pair
	s.tree.Ascend(lo, func(p pair) bool {
		if bytes.Compare(p, hi) >= 0 {
			return false
		}
		doomed = append(doomed, p)
		return true
	})
	for _, p := range doomed {
		s.tree.Delete(p)
		s.bytes -= p.size()
	}
}

func newPair(key, value []byte) pair {
	p := make(pair, len(key)+len(value))
	copy(p[copy(p, key):], value)
	return p[:len(key)]
}

// key and value are the two parts, of which nobody can reach the other by appending.
func (p pair) key() []byte   { return p[:len(p):len(p)] }
func (p pair) value() []byte { return p[len(p):cap(p)] }

// size is 0 for what the tree returns in place of nothing.
func (p pair) size() int64 { return int64(cap(p)) }

// Room implements [kv.Store].
func (s *Store) Room() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.err != nil {
		return s.err
	}
	if limit := s.options.MaxBytes; limit > 0 && s.bytes > limit {
		return fmt.Errorf("%w: %d bytes of %d", kv.ErrFull, s.bytes, limit)
	}
	return nil
}

// Close implements [kv.Store].
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return kv.ErrClosed
	}
	s.closed = true
	s.tree, s.frozen = nil, nil
	if s.err != nil {
		return s.err
	}
	s.err = kv.ErrClosed
	if s.last == nil {
		return nil
	}
	return s.last()
}

// Snapshot implements [kv.Store].
func (s *Store) Snapshot() kv.Snapshot {
	t, err := s.freeze()
	return &snapshot{tree: t, err: err}
}

// snapshot is a tree that does not change.
type snapshot struct {
	tree *tree
	err  error // kv.ErrClosed, once that is so
}

// Get implements [kv.Reader].
func (s *snapshot) Get(key []byte) ([]byte, error) {
	if s.err != nil {
		return nil, s.err
	}
	return get(s.tree, key)
}

// Scan implements [kv.Reader].
func (s *snapshot) Scan(lo, hi []byte, yield func(key, value []byte) bool) error {
	if s.err != nil {
		return s.err
	}
	scan(s.tree, lo, hi, yield)
	return nil
}

// ScanBack implements [kv.Reader].
func (s *snapshot) ScanBack(lo, hi []byte, yield func(key, value []byte) bool) error {
	if s.err != nil {
		return s.err
	}
	scanBack(s.tree, lo, hi, yield)
	return nil
}

// Close implements [kv.Snapshot].
func (s *snapshot) Close() error {
	if s.err != nil {
		return s.err
	}
	s.tree, s.err = nil, kv.ErrClosed
	return nil
}

func get(t *tree, key []byte) ([]byte, error) {
	p, ok := t.Get(key)
	if !ok {
		return nil, kv.ErrNotFound
	}
	return append([]byte{}, p.value()...), nil
}

func scan(t *tree, lo, hi []byte, yield func(key, value []byte) bool) {
	t.Ascend(lo, func(p pair) bool {
		return (hi == nil || bytes.Compare(p, hi) < 0) && yield(p.key(), p.value())
	})
}

func scanBack(t *tree, lo, hi []byte, yield func(key, value []byte) bool) {
	down := func(p pair) bool {
		if hi != nil && bytes.Equal(p, hi) {
			return true
		}
		return bytes.Compare(p, lo) >= 0 && yield(p.key(), p.value())
	}
	if hi == nil {
		t.Reverse(down)
		return
	}
	t.Descend(hi, down)
}
