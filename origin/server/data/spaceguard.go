package data

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/pebblekv"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// spaceGuard refuses new files while the disk has too little free space. It reports a full disk as the store's error, kv.ErrFull. A failed
// sync of a file stops the store, and a failed store stops all changes to files. The reason: after a failed sync the next sync may succeed
// although the first write is lost.
type spaceGuard struct {
	blob.FS
	store *pebblekv.Store
}

// Create implements [blob.FS].
func (r spaceGuard) Create(name string) (blob.File, error) {
	if err := r.store.Room(); err != nil {
		return nil, err
	}
	f, err := r.FS.Create(name)
	if err != nil {
		return nil, full(err)
	}
	return roomyFile{f, r}, nil
}

// MkdirAll implements [blob.FS].
func (r spaceGuard) MkdirAll(name string) error {
	return r.change(func() error { return r.FS.MkdirAll(name) })
}

// Rename implements [blob.FS].
func (r spaceGuard) Rename(from, to string) error {
	return r.change(func() error { return r.FS.Rename(from, to) })
}

// Remove implements [blob.FS].
func (r spaceGuard) Remove(name string) error {
	return r.change(func() error { return r.FS.Remove(name) })
}

// SyncDir implements [blob.FS].
func (r spaceGuard) SyncDir(name string) error {
	return r.sync(func() error { return r.FS.SyncDir(name) })
}

// change runs op unless the store has failed.
func (r spaceGuard) change(op func() error) error {
	if err := r.store.Failure(); err != nil {
		return err
	}
	return full(op())
}

// sync runs op, a sync, and stops the store if op fails. A full disk and a folder that cannot be opened do not stop the store: the call
// fails, and no acknowledged data depends on it.
func (r spaceGuard) sync(op func() error) error {
	err := r.change(op)
	if err == nil || errors.Is(err, kv.ErrFull) || errors.Is(err, fs.ErrNotExist) || system.IsTooManyFiles(err) {
		return err
	}
	return r.store.Fail(err)
}

type roomyFile struct {
	blob.File
	fsys spaceGuard
}

// Write implements [blob.File].
func (f roomyFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	return n, full(err)
}

// Sync implements [blob.File].
func (f roomyFile) Sync() error { return f.fsys.sync(f.File.Sync) }

// Close implements [blob.File].
func (f roomyFile) Close() error { return full(f.File.Close()) }

// full adds kv.ErrFull to the operating system's error for a full disk.
func full(err error) error {
	if system.IsFull(err) {
		return fmt.Errorf("%w: %w", kv.ErrFull, err)
	}
	return err
}

// readOnly gives access to files that another process uses. It changes nothing, and skips the cleanup when a blob folder opens.
type readOnly struct{ blob.FS }

// Create implements [blob.FS].
func (readOnly) Create(string) (blob.File, error) { return nil, fs.ErrPermission }

// Rename implements [blob.FS].
func (readOnly) Rename(string, string) error { return fs.ErrPermission }

// Remove implements [blob.FS].
func (readOnly) Remove(string) error { return nil }

// MkdirAll implements [blob.FS].
func (readOnly) MkdirAll(string) error { return nil }

// SyncDir implements [blob.FS].
func (readOnly) SyncDir(string) error { return nil }
