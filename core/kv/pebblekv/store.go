//go:build !wasip1

package pebblekv

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sightline-dev/sightline/core/kv"
)

// Store is a store in a folder. Its methods are safe for concurrent use.
type Store struct {
	reader
	dir     string
	options Options
	disk    *disk
	health  *health
	db      *pebble.DB

	write sync.Mutex // held while a batch enters Pebble, so that batches are in the order of the calls
	moves uint64     // health's count of memtable moves at the last check of memory; guarded by write

	mu        sync.Mutex
	idle      sync.Cond // signals that users is 0
	users     int       // running reads and writes
	snapshots map[*snapshot]struct{}
	closed    bool
}

var (
	_ kv.Store    = (*Store)(nil)
	_ kv.Snapshot = (*snapshot)(nil)
)

// Open opens the store in the folder dir. It creates a missing folder.
//
// It returns kv.ErrForeign for a folder with other contents, kv.ErrNewer for the store of a newer version, kv.ErrInUse while it is open
// elsewhere, and kv.ErrCorrupt for a damaged store. With these errors nothing is changed.
func Open(dir string, o Options) (_ *Store, err error) {
	o.setDefaults()
	s := &Store{dir: dir, options: o, health: newHealth(&o), snapshots: map[*snapshot]struct{}{}}
	s.idle.L = &s.mu
	s.reader = reader{enter: s.enter, exit: s.exit, of: func() pebble.Reader { return s.db }}
	s.disk = &disk{dir: dir, health: s.health, FS: vfs.OnDiskFull(o.FS, func() {
		s.releaseBallast()
		s.health.diskFull()
	})}
	s.health.reserve = s.reserveBallast
	if err := s.open(); err != nil {
		return nil, fmt.Errorf("store %s: %w", dir, err)
	}
	return s, nil
}

func (s *Store) open() error {
	fsys := s.options.FS
	state, _, err := readMarker(fsys, s.dir)
	if err == nil && state == "" {
		err = checkEmpty(fsys, s.dir)
	}
	if err != nil {
		return err
	}
	if err := makeDir(fsys, s.dir); err != nil {
		return err
	}
	lock, err := pebble.LockDirectory(s.dir, fsys)
	if err != nil {
		return lockError(err)
	}
	defer lock.Close() // Pebble keeps its own reference
	state, files, err := readMarker(fsys, s.dir)
	if err != nil {
		return err
	}
	switch state {
	case "":
		if err := writeMarker(fsys, s.dir, stateCreating, nil); err != nil {
			return err
		}
	case stateCreating:
		if err := removeTorn(fsys, s.dir); err != nil {
			return err
		}
	case stateOpen:
		if err := checkTails(fsys, s.dir); err != nil {
			return err
		}
	case stateSealed:
		if err := checkSeal(fsys, s.dir, files); err != nil {
			return err
		}
		if err := writeMarker(fsys, s.dir, stateOpen, nil); err != nil {
			return err
		}
	}
	mustExist := state == stateOpen || state == stateSealed
	if err := s.openPebble(lock, mustExist); err != nil {
		return err
	}
	if !mustExist {
		// Pebble creates a database with a log in an older format, which does not contain the durable length. So the store opens the
		// database again, and writes to the next log.
		if err := s.db.Close(); err != nil {
			return translate(err)
		}
		if err := s.openPebble(lock, true); err != nil {
			return err
		}
	}
	if !mustExist {
		if err := writeMarker(fsys, s.dir, stateOpen, nil); err != nil {
			return errors.Join(err, s.db.Close())
		}
	}
	if err := s.reserveBallast(); err != nil {
		s.options.Logger.Warn("cannot reserve disk space", "err", err)
	}
	if err := s.health.serve(); err != nil {
		return errors.Join(translate(err), s.db.Close())
	}
	return nil
}

// openPebble opens the database and checks its format.
func (s *Store) openPebble(lock *pebble.Lock, mustExist bool) error {
	db, err := openDB(s.dir, s.pebbleOptions(lock, mustExist))
	switch {
	case err == nil:
	case errors.Is(err, pebble.ErrDBDoesNotExist):
		return fmt.Errorf("%w: its manifest is missing: %w", kv.ErrCorrupt, err)
	case strings.Contains(err.Error(), "unknown format major version"):
		return fmt.Errorf("%w: %w", kv.ErrNewer, err)
	default:
		return translate(err)
	}
	s.db = db
	if got := db.FormatMajorVersion(); got != pebble.FormatNewest {
		return errors.Join(fmt.Errorf("pebble's format is %d, want %d", got, pebble.FormatNewest), db.Close())
	}
	if err := s.health.failure(); err != nil {
		return errors.Join(translate(err), db.Close())
	}
	return nil
}

// openDB calls pebble.Open and returns its panics, which some file errors cause, as errors.
func openDB(dir string, o *pebble.Options) (db *pebble.DB, err error) {
	defer func() {
		if r := recover(); r != nil {
			db, err = nil, fmt.Errorf("open: %v", r)
		}
	}()
	return pebble.Open(dir, o)
}

func lockError(err error) error {
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) || strings.Contains(err.Error(), "lock held") {
		return fmt.Errorf("%w: %w", kv.ErrInUse, err)
	}
	return err
}

// translate returns the error of package kv for an error of Pebble.
func translate(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pebble.ErrNotFound):
		return kv.ErrNotFound
	case pebble.IsCorruptionError(err):
		return fmt.Errorf("%w: %w", kv.ErrCorrupt, err)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w: %w", kv.ErrFull, err)
	default:
		return err
	}
}

// enter begins a use of the database, which lasts until exit.
func (s *Store) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return kv.ErrClosed
	}
	s.users++
	return nil
}

func (s *Store) exit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users == 0 {
		s.idle.Broadcast()
	}
}

// Apply implements [kv.Store].
func (s *Store) Apply(b *kv.Batch) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.exit()
	pb := s.batch(b)
	defer pb.Close()
	return s.put(func() error { return s.db.Apply(pb, pebble.NoSync) })
}

// Commit implements [kv.Store].
func (s *Store) Commit(b *kv.Batch) (wait func() error, err error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.exit()
	pb := s.batch(b)
	if pb.Empty() { // Pebble would not sync an empty batch
		if err := pb.LogData(nil, nil); err != nil {
			return nil, err
		}
	}
	if err := s.put(func() error { return s.db.ApplyNoSyncWait(pb, pebble.Sync) }); err != nil {
		return nil, err
	}
	return func() error {
		if err := pb.SyncWait(); err != nil {
			s.health.fail(err)
		} else if err := pb.Close(); err != nil {
			return err
		}
		return s.health.failure()
	}, nil
}

// put writes a batch to Pebble, one at a time.
func (s *Store) put(apply func() error) (err error) {
	if err := s.health.writable(); err != nil { // returns at once, even if another call waits for space
		return err
	}
	s.write.Lock()
	defer s.write.Unlock()
	if err := s.makeRoom(); err != nil {
		return err
	}
	if err := apply(); err != nil {
		s.health.fail(err)
	}
	return s.health.failure()
}

// makeRoom waits until there is memory for another memtable. Pebble's first memtables are small. Pebble would wait as well, but forever if
// flushes fail for lack of space. The caller holds write.
func (s *Store) makeRoom() error {
	for {
		if err := s.health.writable(); err != nil {
			return err
		}
		moves := s.health.moveCount()
		if moves == s.moves {
			return nil
		}
		if s.db.Metrics().MemTable.Size < maxMemTables*uint64(s.options.MemTableBytes) {
			s.moves = moves
			return nil
		}
		if err := s.health.waitMove(moves); err != nil {
			return err
		}
	}
}

// batch returns b as a batch of Pebble.
func (s *Store) batch(b *kv.Batch) *pebble.Batch {
	pb := s.db.NewBatchWithSize(len(b.Bytes()) + 16)
	for op := range b.Each {
		var err error
		switch op.Kind {
		case kv.KindPut:
			err = pb.Set(op.Key, op.Value, nil)
		case kv.KindDelete:
			err = pb.Delete(op.Key, nil)
		case kv.KindDeleteRange:
			err = pb.DeleteRange(op.Key, op.Value, nil)
		}
		if err != nil {
			panic(err) // only another kind of Pebble batch returns an error
		}
	}
	return pb
}

// Room implements [kv.Store]. It also returns kv.ErrCorrupt once the store has noticed damage in the background.
func (s *Store) Room() error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.exit()
	return s.health.room()
}

// Fail stops the store until it is opened again. A caller reports a failed sync of files that records name. The store then behaves as after
// a failed sync of its log. Fail returns kv.ErrFailed with the cause of the first failure.
func (s *Store) Fail(cause error) error {
	s.health.fail(cause)
	return s.health.failure()
}

// Failure returns kv.ErrFailed with its cause if the store has failed, otherwise nil.
func (s *Store) Failure() error { return s.health.failure() }

// Close implements [kv.Store]. It also closes open snapshots.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return kv.ErrClosed
	}
	s.closed = true
	s.mu.Unlock()
	s.health.close()
	s.mu.Lock()
	for s.users > 0 {
		s.idle.Wait()
	}
	for snap := range s.snapshots {
		_ = snap.release() // it holds no resource that closing the database does not free
	}
	s.snapshots = nil
	s.mu.Unlock()
	err := s.db.Close()
	if failure := s.health.failure(); failure != nil {
		return failure
	}
	if err != nil {
		return translate(err)
	}
	s.releaseBallast()
	if err := seal(s.options.FS, s.dir); err != nil {
		return fmt.Errorf("seal: %w", err)
	}
	return nil
}

// reserveBallast creates the ballast file, which reserves disk space.
func (s *Store) reserveBallast() error {
	fsys := s.options.FS
	if s.options.Ballast <= 0 {
		return nil
	}
	if s.options.Free != nil {
		free, err := s.options.Free()
		if err != nil {
			return err
		}
		if free < s.options.Watermark+s.options.Ballast {
			return fmt.Errorf("%w: %d bytes free", kv.ErrFull, free)
		}
	}
	f, err := fsys.Create(fsys.PathJoin(s.dir, ballastName), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	return errors.Join(f.Preallocate(0, s.options.Ballast), f.Sync(), f.Close())
}

// releaseBallast deletes the ballast file to free its space.
func (s *Store) releaseBallast() {
	err := s.options.FS.Remove(s.options.FS.PathJoin(s.dir, ballastName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.options.Logger.Warn("ballast", "err", err)
	}
}
