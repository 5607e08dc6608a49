package blob

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"sync"
)

// FS is the host's file system for [Folder] and [HostedNames]. If the host has only numbered files, package pack builds an FS on two of
// them. Paths are relative to its root, separated by slashes, and consist only of hashes, hex digits and fixed words. The error for a
// missing file or folder is fs.ErrNotExist (errors.Is). Methods may be called concurrently.
type FS interface {
	// Create creates a new file. It returns fs.ErrExist if the file exists.
	Create(name string) (File, error)
	Open(name string) (io.ReadCloser, error)
	// Rename atomically replaces the file to: opening it finds the old file or all of the new one.
	Rename(from, to string) error
	Remove(name string) error
	// ReadDir returns the names in a folder, in any order.
	ReadDir(name string) ([]string, error)
	// Size returns the length of a file in bytes.
	Size(name string) (int64, error)
	// MkdirAll creates a folder and those above it. It returns nil if the folder exists.
	MkdirAll(name string) error
	// SyncDir makes the files created, renamed and removed in a folder durable.
	SyncDir(name string) error
}

// File is a file being written.
type File interface {
	io.Writer
	// StartSync lets the system write the bytes to the disk, without waiting, if the system can. So the Sync of several files takes little
	// longer than that of one.
	StartSync()
	// Sync makes the written bytes durable.
	Sync() error
	io.Closer
}

// spool writes files so that they appear completely or not at all. It writes to a separate folder, syncs, then renames. It syncs files that
// are complete at the same time together.
type spool struct {
	fsys FS
	dir  string

	mu      sync.Mutex
	next    uint64     // number in the name of the next temporary file
	waiting []*spooled // complete files that no writer commits yet
	commits bool       // a writer commits files
	ended   sync.Cond  // a commit has ended

	known map[string]bool // folders that are durable; only the writer that commits uses it
}

// spooled is a complete file of a spool.
type spooled struct {
	File
	from, to string
	moved    bool // it is at its path
	done     bool // its commit has ended, with err
	err      error
}

// openSpool creates or empties dir. Only a crash leaves files there.
func openSpool(fsys FS, dir string) (*spool, error) {
	if err := fsys.MkdirAll(dir); err != nil {
		return nil, err
	}
	left, err := fsys.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range left {
		if err := fsys.Remove(path.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	s := &spool{fsys: fsys, dir: dir, known: map[string]bool{}}
	s.ended.L = &s.mu
	return s, nil
}

// durability is the kind of crash that a written file survives.
type durability bool

const (
	synced durability = true  // power failure of the machine
	lazy   durability = false // end of the program only
)

// write calls fill with a new file. If fill returns a path, write moves the file there and
// replaces an existing file. If anything fails or fill returns no path, write leaves no file.
func (s *spool) write(d durability, fill func(io.Writer) (to string, err error)) (err error) {
	s.mu.Lock()
	from := path.Join(s.dir, strconv.FormatUint(s.next, 10))
	s.next++
	s.mu.Unlock()

	f, err := s.fsys.Create(from)
	if err != nil {
		return err
	}
	w := &spooled{File: f, from: from}
	defer func() {
		if !w.moved {
			err = errors.Join(err, s.fsys.Remove(from))
		}
	}()
	if w.to, err = fill(f); err != nil || w.to == "" {
		return errors.Join(err, f.Close())
	}
	if d == synced {
		return s.commit(w)
	}
	if err := f.Close(); err != nil {
		return err
	}
	return s.move(w, nil)
}

// commit makes a file durable at its path, together with the files of other callers that are waiting when it begins.
func (s *spool) commit(w *spooled) error {
	w.StartSync()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, w)
	for s.commits && !w.done {
		s.ended.Wait()
	}
	if !w.done {
		files := s.waiting
		s.waiting, s.commits = nil, true
		s.mu.Unlock()
		s.commitAll(files)
		s.mu.Lock()
		s.commits = false
		for _, w := range files {
			w.done = true
		}
		s.ended.Broadcast()
	}
	return w.err
}

// commitAll commits files and sets their errors.
func (s *spool) commitAll(files []*spooled) {
	for _, w := range files {
		w.err = errors.Join(w.Sync(), w.Close())
	}
	for _, w := range files {
		if w.err == nil {
			w.err = s.move(w, s.known)
		}
	}
	synced := map[string]error{} // folders, with the errors of their syncs
	for _, w := range files {
		if !w.moved {
			continue
		}
		dir := path.Dir(w.to)
		err, ok := synced[dir]
		if !ok {
			err = s.fsys.SyncDir(dir)
			synced[dir] = err
		}
		w.err = err
	}
}

// move moves a file to its path. If known is not nil, the folder of the path is durable afterwards and in known.
func (s *spool) move(w *spooled, known map[string]bool) error {
	dir := path.Dir(w.to)
	if err := s.fsys.MkdirAll(dir); err != nil {
		return err
	}
	if known != nil && !known[dir] {
		if err := s.fsys.SyncDir(path.Dir(dir)); err != nil {
			return err
		}
		known[dir] = true
	}
	if err := s.fsys.Rename(w.from, w.to); err != nil {
		return err
	}
	w.moved = true
	return nil
}

// remove removes a file. It returns nil if the file does not exist.
func remove(fsys FS, name string) error {
	if err := fsys.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// place returns the path of a name of hex digits. The first two digits are its folder.
func place(dir, name string) string { return path.Join(dir, name[:2], name) }

// list calls yield with the names under dir that place stored there, in ascending order, starting at from. The names have n bytes in hex.
// It skips other files.
func list(fsys FS, dir string, n int, from string, yield func(name string) error) error {
	folders, err := sortedDir(fsys, dir)
	if err != nil {
		return err
	}
	for _, folder := range folders {
		if !isHex(folder, 1) || from != "" && folder < from[:2] {
			continue
		}
		names, err := sortedDir(fsys, path.Join(dir, folder))
		if err != nil {
			return err
		}
		for _, name := range names {
			if !isHex(name, n) || name[:2] != folder || name < from {
				continue
			}
			if err := yield(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// readFile reads a file of at most limit bytes.
func readFile(fsys FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s: over %d bytes: %w", name, limit, ErrCorrupt)
	}
	return data, nil
}
