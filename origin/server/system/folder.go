package system

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/sightline-dev/sightline/core/blob"
)

// Folder is a folder of the operating system that implements the file system of core's stores. A name
// that leads out of it by a symbolic link or ".." is an error. Folder is safe for concurrent use.
type Folder struct{ root *os.Root }

var _ blob.FS = (*Folder)(nil)

// OpenFolder opens dir. If dir does not exist, OpenFolder creates it so that only this user can enter it.
func OpenFolder(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Folder{root}, nil
}

// Close closes the folder. Its open files stay open.
func (f *Folder) Close() error { return f.root.Close() }

// Sub opens a folder in f, which must exist.
func (f *Folder) Sub(name string) (*Folder, error) {
	root, err := f.root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	return &Folder{root}, nil
}

// Scratch creates an empty temporary folder that only this user can enter. dir is its path. done closes and deletes it.
func Scratch() (dir string, files blob.FS, done func(), err error) { return ScratchIn("")() }

// ScratchIn returns a function that does what Scratch does, in the folder parent.
func ScratchIn(parent string) func() (dir string, files blob.FS, done func(), err error) {
	return func() (dir string, files blob.FS, done func(), err error) {
		if dir, err = os.MkdirTemp(parent, TempPrefix); err != nil {
			return "", nil, nil, err
		}
		f, err := OpenFolder(dir)
		if err != nil {
			return "", nil, nil, errors.Join(err, os.Remove(dir))
		}
		return dir, f, func() { _ = errors.Join(f.Close(), os.RemoveAll(dir)) }, nil
	}
}

// Create creates a file. It returns fs.ErrExist if the file exists.
func (f *Folder) Create(name string) (blob.File, error) {
	file, err := f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return startable{file}, nil
}

// WriteFile creates a file with the given content and syncs it. It returns fs.ErrExist if the file exists.
func (f *Folder) WriteFile(name string, content []byte) error {
	file, err := f.Create(name)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// Open opens a file for reading.
func (f *Folder) Open(name string) (io.ReadCloser, error) {
	file, err := f.root.Open(name)
	if err != nil {
		return nil, err
	}
	return file, nil
}

// Rename renames from to to. If to exists, Rename atomically replaces it.
func (f *Folder) Rename(from, to string) error { return f.root.Rename(from, to) }

// Remove removes a file or an empty folder.
func (f *Folder) Remove(name string) error { return f.root.Remove(name) }

// RemoveAll removes a file, or a folder with its content. If name does not exist, it returns
// nil.
func (f *Folder) RemoveAll(name string) error { return f.root.RemoveAll(name) }

// Clear removes everything in the folder.
func (f *Folder) Clear() error {
	names, err := f.ReadDir(".")
	for _, name := range names {
		err = errors.Join(err, f.RemoveAll(name))
	}
	return err
}

// FS returns the folder as a read-only file system of package io/fs.
func (f *Folder) FS() fs.FS { return f.root.FS() }

// ReadDir returns the names in a folder, in any order.
func (f *Folder) ReadDir(name string) (names []string, err error) {
	dir, err := f.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	return dir.Readdirnames(-1)
}

// Size returns the length of a file in bytes.
func (f *Folder) Size(name string) (int64, error) {
	info, err := f.root.Stat(name)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// MkdirAll creates a folder and those above it. It returns nil if the folder exists.
func (f *Folder) MkdirAll(name string) error { return f.root.MkdirAll(name, 0o700) }

// SyncDir makes the entries of a folder durable.
func (f *Folder) SyncDir(name string) (err error) {
	dir, err := f.root.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	return dir.Sync()
}

// ReadIn returns the content of a file. If it is longer than limit bytes, ReadIn returns an error.
func ReadIn(files blob.FS, name string, limit int64) ([]byte, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	b, err := ReadAll(f, limit)
	return b, errors.Join(err, f.Close())
}

// ReplaceIn creates or atomically replaces a file at the top of files. After a crash the file has its old or all of its new content.
func ReplaceIn(files blob.FS, name string, content []byte) error {
	fresh := name + ".new"
	if err := files.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := files.Create(fresh)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := files.Rename(fresh, name); err != nil {
		return err
	}
	return files.SyncDir(".")
}
