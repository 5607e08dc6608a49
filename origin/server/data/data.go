// Package data manages a data folder: all data of a server, opened by one process at a time.
//
//	DIR/LOCK          held by the process that has the folder open
//	DIR/control.sock  where that process takes the owner's commands
//	DIR/store/        records, logs and indexes of all applications   (package pebblekv)
//	DIR/blobs/        pictures by SHA-256                              (package blob)
//	DIR/names/        the public names of temporary pictures           (package blob)
//	DIR/bundles/      the networks that serve the applications, by hash
//	DIR/BOOT          the start of the machine at which the folder was last used
//	DIR/RESTORED      where a restored folder came from
//	DIR/RESTORING     in a folder whose restore has not finished, or never will
//
// The store and the blobs share a disk. Below a least amount of free space both refuse writes, [Folder.Ready] returns the reason, and
// reads continue. After a failed sync of the store or of a picture both refuse writes, and the process must end. Opening the folder again
// reads the durable data.
//
// [Folder.Backup] copies a folder that is in use, [Restore] makes a new folder from the copy, and [Folder.Check] reads all data and reports
// faults.
package data

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/pebblekv"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// storeDir is the folder of the store.
const storeDir = "store"

// DefaultMinFree is the default number of bytes that stay free on a disk.
const DefaultMinFree = 512 << 20

// MinCache is the least size of the store's cached blocks in bytes.
const MinCache = pebblekv.MinCacheBytes

// defaultCache returns the default size of the store's cached blocks in bytes: a part of the memory that the process may use. 24 GiB give 384 MiB.
func defaultCache() int64 { return min(max(system.MemoryLimit()/64, MinCache), 1<<30) }

// Options are the settings of a folder.
type Options struct {
	MinFree int64        // free bytes on the disk below which the folder refuses writes; 0 means DefaultMinFree
	Cache   int64        // bytes of the store's cached blocks, at least MinCache; 0 means a 64th of the memory
	Fatal   func(error)  // called once if a write has failed for good, from any goroutine; the process should then end. nil: not called
	Log     *slog.Logger // nil: nothing is logged

	Free    func() (int64, error) // returns the number of free bytes; nil: of the folder's disk
	StoreFS vfs.FS                // file system of the store; nil: the operating system's
	BlobFS  func(blob.FS) blob.FS // wraps the files of the blobs; nil: unwrapped
}

// Blobs is the store of a folder's pictures. *blob.Folder implements it.
type Blobs interface {
	blob.Blobs

	// OpenAt returns a reader of parts of a blob; see [blob.Folder.OpenAt].
	OpenAt(ctx context.Context, h blob.Hash) (blob.ReaderAt, error)
}

// Folder is an open data folder.
type Folder struct {
	Dir    string // absolute path
	Files  blob.FS
	Store  *pebblekv.Store
	Blobs  Blobs // the pictures: those of the folder, unless [Folder.UseBlobs] was called
	local  *blob.Folder
	folder *system.Folder
	unlock func() error
}

// Open locks and opens the data folder dir, and creates it if it is missing. It returns system.ErrLocked for a folder that another process
// has open, and ErrUnwritable for one that does not accept writes. It returns package kv's errors for a store that is foreign, newer or
// damaged. After an error the folder is unchanged.
func Open(dir string, o Options) (_ *Folder, err error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MinFree == 0 {
		o.MinFree = DefaultMinFree
	}
	f := &Folder{}
	defer func() {
		if err != nil {
			err = explain(f.Dir, errors.Join(err, f.Close()))
		}
	}()
	if f.Dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	if f.unlock, err = system.Lock(f.Dir); err != nil {
		return nil, err
	}
	if f.folder, err = system.OpenFolder(f.Dir); err != nil {
		return nil, err
	}
	if err := f.checkRestored(); err != nil {
		return nil, err
	}
	if o.Cache == 0 {
		o.Cache = defaultCache()
	}
	if o.Free == nil {
		o.Free = func() (int64, error) { return system.FreeBytes(f.Dir) }
	}
	if o.StoreFS == nil {
		o.StoreFS = storeFS
	}
	f.Store, err = pebblekv.Open(filepath.Join(f.Dir, storeDir), pebblekv.Options{
		FS: o.StoreFS, Logger: o.Log, Fatal: o.Fatal, Free: o.Free, Watermark: o.MinFree, Ballast: min(o.MinFree/4, 64<<20),
		CacheBytes: o.Cache,
	})
	if err != nil {
		return nil, err
	}
	f.Files = f.folder
	if o.BlobFS != nil {
		f.Files = o.BlobFS(f.Files)
	}
	f.Files = spaceGuard{f.Files, f.Store}
	f.local, err = blob.OpenFolder(f.Files, blob.Options{})
	f.Blobs = f.local
	return f, err
}

// UseBlobs makes another store the one of the pictures. over returns it for the store of the folder.
func (f *Folder) UseBlobs(over func(local *blob.Folder) Blobs) { f.Blobs = over(f.local) }

// ErrUnwritable is returned by [Open] if the folder cannot be opened because it does not accept writes.
var ErrUnwritable = errors.New("the data folder takes no writes")

// unwritable is an ErrUnwritable with its cause. Its text contains the fix.
type unwritable struct {
	error
	cause error
}

// Unwrap returns ErrUnwritable and the cause.
func (u unwritable) Unwrap() []error { return []error{ErrUnwritable, u.cause} }

// explain adds the fix to the error of opening the folder dir.
func explain(dir string, err error) error {
	switch {
	case errors.Is(err, kv.ErrFull), system.IsFull(err):
		return unwritable{fmt.Errorf("the disk of data folder %s is full: free some space on it, then start again (%w)", dir, err), err}
	case system.IsUnwritable(err):
		return unwritable{fmt.Errorf("data folder %s cannot be written: make it writable for this user, then start again (%w)", dir, err), err}
	}
	return fmt.Errorf("data folder: %w", err)
}

// Ready returns the reason why the folder refuses writes, or nil. The disk is nearly full, or the store is damaged or has failed.
func (f *Folder) Ready() error { return f.Store.Room() }

// Close closes the folder and releases its lock.
func (f *Folder) Close() error {
	var errs []error
	if f.Store != nil {
		errs = append(errs, f.Store.Close())
	}
	if f.folder != nil {
		errs = append(errs, f.folder.Close())
	}
	if f.unlock != nil {
		errs = append(errs, f.unlock())
	}
	return errors.Join(errs...)
}
