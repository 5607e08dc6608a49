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

// FS is the host's file system for [Folder] and [HostedNames]. If the host has only numbered files, package pack makes one of two of them.
// Paths are relative to its root and separated by slashes, and consist of hashes, hex digits and fixed words only. A missing file or
// folder is fs.ErrNotExist (errors.Is). Methods may be called concurrently.
type FS interface {
	// Create makes a new file and fails with fs.ErrExist where there is one.
	Create(name string) (File, error)
	Open(name string) (io.ReadCloser, error)
	// Rename replaces to atomically: opening it finds the old file or all of the new one.
	Rename(from, to string) error
	Remove(name string) error
	// ReadDir returns the names in a folder, in any order.
	ReadDir(name string) ([]string, error)
	// Size returns the length of a file in bytes.
	Size(name string) (int64, error)
	// MkdirAll makes a folder and those above it; one that is there is no error.
	MkdirAll(name string) error
	// SyncDir makes what was created, renamed and removed in a folder outlive a crash.
	SyncDir(name string) error
}

// File is a file being written.
type File interface {
	io.Writer
	// Sync makes what was written outlive a crash.
	Sync() error
	io.Closer
}

// spool writes files so that they appear completely or not at all: first to a separate folder, synced, then renamed.
type spool struct {
	fsys FS
	dir  string

	mu   sync.Mutex
	next uint64 // name of the next unfinished file
}

// openSpool empties dir, where only a crash leaves anything.
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
	return &spool{fsys: fsys, dir: dir}, nil
}

// durability is whether a written file survives a crash.
type durability bool

const (
	synced durability = true  // the machine's loss of power
	lazy   durability = false // the program alone
)

// write calls fill with a new file and, when it returns a path, moves the file there,
// replacing a file of that name. When anything fails, or fill returns no path, nothing is left.
func (s *spool) write(d durability, fill func(io.Writer) (to string, err error)) (err error) {
	s.mu.Lock()
	from := path.Join(s.dir, strconv.FormatUint(s.next, 10))
	s.next++
	s.mu.Unlock()

	f, err := s.fsys.Create(from)
	if err != nil {
		return err
	}
	moved := false
	defer func() {
		if !moved {
			err = errors.Join(err, s.fsys.Remove(from))
		}
	}()
	to, err := fill(f)
	if err == nil && to != "" && d == synced {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil || to == "" {
		return err
	}
	if err := s.fsys.MkdirAll(path.Dir(to)); err != nil {
		return err
	}
	if d == synced {
		if err := s.fsys.SyncDir(path.Dir(path.Dir(to))); err != nil {
			return err
		}
	}
	if err := s.fsys.Rename(from, to); err != nil {
		return err
	}
	moved = true
	if d == synced {
		return s.fsys.SyncDir(path.Dir(to))
	}
	return nil
}

// remove removes a file; one that is not there is no error.
func remove(fsys FS, name string) error {
	if err := fsys.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// place returns the path of a name of hex digits: one folder for each first two digits.
func place(dir, name string) string { return path.Join(dir, name[:2], name) }

// list calls yield with the names under dir that place stored there, with n bytes in hex and from from, in ascending order. It skips
// other files.
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
