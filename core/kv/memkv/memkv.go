// Package memkv is a [kv.Store] in memory: a packed tree with free copies, so that a snapshot or a scan shows one moment without stopping
// writers.
//
//	Apply ──▶ journal, if there is one ──▶ tree ◀── Get
//	                                        │ copy on write
//	                                        ├──▶ Snapshot
//	                                        └──▶ Scan
//
// With [Files] the store survives its process, as in a browser's private file system. Large values then stay in the files, and memory has
// keys, small values and the places of large values. With a [Journal] it survives, too: a test uses a slice that can be cut anywhere.
// Without either, wait returns at once, since nothing survives.
//
// The tree's leaves are in a B-tree of tidwall's. The store is not a cache: it never drops data, and reads values in files each time.
package memkv

import (
	"errors"
	"fmt"
	"sync"

	"github.com/sightline-dev/sightline/core/kv"
)

// Journal stores encoded batches in order, so that they survive the process.
type Journal interface {
	// Replay calls yield with all stored batches in order. It stops at the first error of yield and returns it. A batch is borrowed until
	// yield returns.
	Replay(yield func(batch []byte) error) error

	// Append stores the batch after all earlier ones. The batch is borrowed until Append returns. wait returns nil once the batch, and all
	// before it, survive a crash; it may be called any number of times. Calls of Append do not overlap. After kv.ErrFull nothing of the
	// batch is stored.
	Append(batch []byte) (wait func() error, err error)
}

// Options select where a store keeps its data.
type Options struct {
	Files    *Files  // storage in files; nil if there are none
	Journal  Journal // used if Files is nil; if both are nil, the store is in memory only
	MaxBytes int64   // bytes of keys and values above which Room returns kv.ErrFull; 0 means no limit
}

// Store is a store in memory. Its methods may be called concurrently.
type Store struct {
	options Options
	files   *fileStore // nil without files

	mu     sync.RWMutex
	tree   *tree
	frozen *tree        // copy of tree for readers, made by the first one since the last change; or nil
	bytes  int64        // of all keys and values
	last   func() error // the journal's wait for the newest batch, or nil
	err    error        // error of every further write: closed or failed
	closed bool
}

var (
	_ kv.Store    = (*Store)(nil)
	_ kv.Snapshot = (*view)(nil)
)

// New returns an empty store without a journal.
func New() *Store { return &Store{tree: newTree()} }

// Open returns the store with the content of the files, or of the journal's batches. An invalid batch gives kv.ErrCorrupt.
func Open(o Options) (*Store, error) {
	s := New()
	s.options = o
	if o.Files != nil {
		s.files = newFileStore(*o.Files)
		if err := s.files.open(s.apply); err != nil {
			return nil, fmt.Errorf("journal: %w", err)
		}
		s.compact()
		return s, nil
	}
	if o.Journal == nil {
		return s, nil
	}
	err := o.Journal.Replay(func(data []byte) error {
		b, err := kv.BorrowBatch(data)
		if err != nil {
			return fmt.Errorf("%w: %w", kv.ErrCorrupt, err)
		}
		s.apply(b, nil)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	return s, nil
}

// Get implements [kv.Reader].
func (s *Store) Get(key []byte) ([]byte, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, kv.ErrClosed
	}
	return (&view{tree: s.tree, files: s.files}).Get(key)
}

// Scan implements [kv.Reader].
func (s *Store) Scan(lo, hi []byte, yield func(key, value []byte) bool) error {
	v, err := s.enter()
	if err != nil {
		return err
	}
	defer v.leave()
	return v.Scan(lo, hi, yield)
}

// ScanBack implements [kv.Reader].
func (s *Store) ScanBack(lo, hi []byte, yield func(key, value []byte) bool) error {
	v, err := s.enter()
	if err != nil {
		return err
	}
	defer v.leave()
	return v.ScanBack(lo, hi, yield)
}

// enter returns the present content of the store. The caller may read it until it calls leave.
func (s *Store) enter() (view, error) {
	if s.files != nil {
		s.files.enter() // first, so that the files keep all values of the tree
	}
	t, err := s.freeze()
	v := view{tree: t, files: s.files}
	if err != nil {
		v.leave()
	}
	return v, err
}

// freeze returns a copy of the tree that does not change.
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
		s.frozen = s.tree.copy()
	}
	return s.frozen, nil
}

// Apply implements [kv.Store].
func (s *Store) Apply(b *kv.Batch) error {
	_, err := s.write(b, false)
	return err
}

// Commit implements [kv.Store].
func (s *Store) Commit(b *kv.Batch) (wait func() error, err error) {
	journalled, err := s.write(b, true)
	if err != nil {
		return nil, err
	}
	return func() error {
		if err := journalled(); isFull(err) {
			return err
		} else if err != nil {
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

// isFull reports whether err leaves the store unchanged, so that a later write may find space.
func isFull(err error) bool { return errors.Is(err, kv.ErrFull) && !errors.Is(err, kv.ErrFailed) }

// write writes a batch to the journal and the tree. A Commit reaches the files at once, because they must reject a batch before readers see
// it.
func (s *Store) write(b *kv.Batch, commits bool) (wait func() error, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	var values []farOp
	switch {
	case b.Len() == 0:
	case s.files != nil:
		write := s.files.journal.Append
		if commits {
			write = s.files.journal.Write
		}
		values, wait, err = s.files.append(b, write)
	case s.options.Journal != nil:
		wait, err = s.options.Journal.Append(b.Bytes())
	}
	if isFull(err) {
		return nil, err
	}
	if err != nil {
		s.err = fmt.Errorf("%w: %w", kv.ErrFailed, err)
		return nil, s.err
	}
	if wait != nil {
		s.last = wait
	}
	s.apply(b, values)
	s.compact()
	if s.last == nil {
		return func() error { return nil }, nil
	}
	return s.last, nil
}

// journalBytes is the approximate overhead of a journal for a key and its value, in bytes.
const journalBytes = 6

// compact starts a compaction of the files if one is due. The caller holds mu.
func (s *Store) compact() {
	if s.files != nil && s.files.due(s.bytes+journalBytes*int64(s.tree.n)) {
		s.files.compact(s.tree.copy())
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

// apply changes the tree. values are the values of b that stay in the files. The caller holds mu.
func (s *Store) apply(b *kv.Batch, values []farOp) {
	s.frozen = nil
	i := 0
	for op := range b.Each {
		switch op.Kind {
		case kv.KindPut:
			v := value{near: op.Value}
			if len(values) > 0 && values[0].op == i {
				v, values = value{far: values[0].far, away: true}, values[1:]
			}
			s.bytes += int64(len(op.Key)) + v.size()
			if old, was := s.tree.put(op.Key, v); was {
				s.drop(op.Key, old)
			}
		case kv.KindDelete:
			if old, was := s.tree.delete(op.Key); was {
				s.drop(op.Key, old)
			}
		case kv.KindDeleteRange:
			s.tree.deleteRange(op.Key, op.Value, s.drop)
		}
		i++
	}
}

// drop subtracts a pair that is no longer in the tree from the counts.
func (s *Store) drop(key []byte, v value) {
	s.bytes -= int64(len(key)) + v.size()
	if v.away {
		s.files.drop(v.far)
	}
}

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
	if s.files != nil {
		return s.files.journal.Room()
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
	v, err := s.enter()
	v.err = err
	return &v
}
