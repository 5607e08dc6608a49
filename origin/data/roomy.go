package data

import (
	"fmt"
	"io/fs"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/origin/system"
)

// roomy is files that take nothing more while there is no room, and that say of a full disk
// what the store says: kv.ErrFull.
type roomy struct {
	blob.FS
	room func() error
}

// Create implements [blob.FS].
func (r roomy) Create(name string) (blob.File, error) {
	if err := r.room(); err != nil {
		return nil, err
	}
	f, err := r.FS.Create(name)
	if err != nil {
		return nil, full(err)
	}
	return roomyFile{f}, nil
}

// MkdirAll implements [blob.FS].
func (r roomy) MkdirAll(name string) error { return full(r.FS.MkdirAll(name)) }

// Rename implements [blob.FS].
func (r roomy) Rename(from, to string) error { return full(r.FS.Rename(from, to)) }

// SyncDir implements [blob.FS].
func (r roomy) SyncDir(name string) error { return full(r.FS.SyncDir(name)) }

type roomyFile struct{ blob.File }

// Write implements [blob.File].
func (f roomyFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	return n, full(err)
}

// Sync implements [blob.File].
func (f roomyFile) Sync() error { return full(f.File.Sync()) }

// Close implements [blob.File].
func (f roomyFile) Close() error { return full(f.File.Close()) }

// full gives the disk's own error the store's name.
func full(err error) error {
	if system.IsFull(err) {
		return fmt.Errorf("%w: %w", kv.ErrFull, err)
	}
	return err
}

// readOnly is files that another process uses: nothing of them is changed, and tidying that
// whoever opens them would do is left out.
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
