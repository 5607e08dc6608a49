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
	// Sync makes the written bytes durable.
	Sync() error
	io.Closer
}

// spool writes files so that they appear completely or not at all. It writes to a separate folder, syncs, then renames.
type spool struct {
	fsys FS
	dir  string

	mu   sync.Mutex
	next uint64 // number in the name of the next temporary file
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
	return &spool{fsys: fsys, dir: dir}, nil
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
