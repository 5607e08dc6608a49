package data

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/origin/server/system"
)

func mustOpen(t *testing.T, dir string, o Options) *Folder {
	t.Helper()
	f, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func commit(f *Folder, key, value string) error {
	var b kv.Batch
	b.Put([]byte(key), []byte(value))
	wait, err := f.Store.Commit(&b)
	if err != nil {
		return err
	}
	return wait()
}

func TestOneProcessUsesAFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	f := mustOpen(t, dir, Options{})
	if _, err := Open(dir, Options{}); !errors.Is(err, system.ErrLocked) {
		t.Errorf("Open twice = %v, want ErrLocked", err)
	}
	if err := commit(f, "k", "v"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f = mustOpen(t, dir, Options{})
	defer f.Close()
	if v, err := f.Store.Get([]byte("k")); string(v) != "v" || err != nil {
		t.Errorf("after opening again k = %q, %v", v, err)
	}
}

func TestForeignStoreIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, storeDir), 0o700); err != nil {
		t.Fatal(err)
	}
	note := filepath.Join(dir, storeDir, "CURRENT")
	if err := os.WriteFile(note, []byte("another program's"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{}); !errors.Is(err, kv.ErrForeign) {
		t.Errorf("Open = %v, want ErrForeign", err)
	}
	if b, err := os.ReadFile(note); string(b) != "another program's" || err != nil {
		t.Errorf("the other program's file is %q, %v", b, err)
	}
	if names, err := os.ReadDir(filepath.Join(dir, storeDir)); len(names) != 1 || err != nil {
		t.Errorf("the folder holds %v, %v", names, err)
	}
}

func TestLittleSpaceRefusesWrites(t *testing.T) {
	var free atomic.Int64
	free.Store(1 << 30)
	f := mustOpen(t, t.TempDir(), Options{Free: func() (int64, error) { return free.Load(), nil }, MinFree: 1 << 20})
	defer f.Close()
	h, err := f.Blobs.Put(t.Context(), bytes.NewReader([]byte("before")), blob.Hash{})
	if err != nil || f.Ready() != nil {
		t.Fatalf("with space: %v, %v", err, f.Ready())
	}
	free.Store(1<<20 - 1)
	if err := f.Ready(); !errors.Is(err, kv.ErrFull) {
		t.Errorf("Ready = %v, want ErrFull", err)
	}
	if _, err := f.Blobs.Put(t.Context(), bytes.NewReader([]byte("after")), blob.Hash{}); !errors.Is(err, kv.ErrFull) {
		t.Errorf("Put = %v, want ErrFull", err)
	}
	if b, err := f.Blobs.Get(t.Context(), h); string(b) != "before" || err != nil {
		t.Errorf("Get = %q, %v", b, err)
	}
	if err := f.Blobs.Delete(t.Context(), h); err != nil {
		t.Errorf("Delete = %v", err)
	}
	free.Store(1 << 30)
	if _, err := f.Blobs.Put(t.Context(), bytes.NewReader([]byte("after")), blob.Hash{}); err != nil || f.Ready() != nil {
		t.Errorf("with space again: %v, %v", err, f.Ready())
	}
}

// fullDisk makes every write to a new file fail.
type fullDisk struct{ blob.FS }

func (d fullDisk) Create(name string) (blob.File, error) {
	f, err := d.FS.Create(name)
	return fullFile{f}, err
}

type fullFile struct{ blob.File }

func (f fullFile) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Err: syscall.ENOSPC}
}

func TestFullDiskFailsPutAsFull(t *testing.T) {
	f := mustOpen(t, t.TempDir(), Options{BlobFS: func(fs blob.FS) blob.FS { return fullDisk{fs} }})
	defer f.Close()
	if _, err := f.Blobs.Put(t.Context(), bytes.NewReader([]byte("x")), blob.Hash{}); !errors.Is(err, kv.ErrFull) {
		t.Errorf("Put = %v, want ErrFull", err)
	}
	if err := f.Blobs.Each(t.Context(), blob.Hash{}, func(h blob.Hash) error { return errors.New(h.String()) }); err != nil {
		t.Errorf("a blob was kept: %v", err)
	}
}

// TestFailedSyncIsFatal makes a sync of the store fail. That write and all later ones are not acknowledged, and the process is notified
// once. The folder, opened again, has every acknowledged write.
func TestFailedSyncIsFatal(t *testing.T) {
	var failing atomic.Bool
	fs := errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if failing.Load() && (op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo) {
			return syscall.EIO
		}
		return nil
	}))
	var fatal atomic.Int32
	dir := t.TempDir()
	f := mustOpen(t, dir, Options{StoreFS: fs, Fatal: func(error) { fatal.Add(1) }})
	if err := commit(f, "good", "1"); err != nil {
		t.Fatal(err)
	}
	failing.Store(true)
	for range 3 {
		if err := commit(f, "bad", "1"); !errors.Is(err, kv.ErrFailed) {
			t.Errorf("commit on a failing disk = %v, want ErrFailed", err)
		}
	}
	if err := f.Ready(); !errors.Is(err, kv.ErrFailed) || fatal.Load() != 1 {
		t.Errorf("Ready = %v, Fatal called %d times; want ErrFailed and once", err, fatal.Load())
	}
	failing.Store(false)
	if err := f.Close(); !errors.Is(err, kv.ErrFailed) {
		t.Errorf("Close = %v, want ErrFailed", err)
	}
	f = mustOpen(t, dir, Options{})
	defer f.Close()
	if v, err := f.Store.Get([]byte("good")); string(v) != "1" || err != nil {
		t.Errorf("the acknowledged write is %q, %v", v, err)
	}
}

// failingSyncs makes syncs of files or of folders fail while its flags are set.
type failingSyncs struct {
	blob.FS
	files, folders *atomic.Bool
}

func (d failingSyncs) Create(name string) (blob.File, error) {
	f, err := d.FS.Create(name)
	return failingFile{f, d.files}, err
}

func (d failingSyncs) SyncDir(name string) error {
	if d.folders.Load() {
		return &os.PathError{Op: "sync", Path: name, Err: syscall.EIO}
	}
	return d.FS.SyncDir(name)
}

type failingFile struct {
	blob.File
	failing *atomic.Bool
}

func (f failingFile) Sync() error {
	if f.failing.Load() {
		return &os.PathError{Op: "sync", Err: syscall.EIO}
	}
	return f.File.Sync()
}

// TestFaultFailedSyncOfPicture fails one sync of a picture's file, then one of its folder. After that the folder accepts no picture, no
// hosted name and no record, although the disk works again. The process is notified once. Reads continue, and the folder, opened again, has
// everything that was acknowledged.
func TestFaultFailedSyncOfPicture(t *testing.T) {
	for _, target := range []string{"file", "folder"} {
		t.Run(target, func(t *testing.T) {
			var files, folders atomic.Bool
			var fatal atomic.Int32
			dir := t.TempDir()
			f := mustOpen(t, dir, Options{
				BlobFS: func(fsys blob.FS) blob.FS { return failingSyncs{fsys, &files, &folders} },
				Fatal:  func(error) { fatal.Add(1) },
			})
			put := func(f *Folder, data string) (blob.Hash, error) {
				return f.Blobs.Put(t.Context(), strings.NewReader(data), blob.Hash{})
			}
			good, err := put(f, "good")
			if err != nil {
				t.Fatal(err)
			}
			if err := commit(f, "good", "1"); err != nil {
				t.Fatal(err)
			}
			hosted, err := blob.OpenHosted(blob.HostedOptions{FS: f.Files, Blobs: f.Blobs, Random: system.Random, References: func(blob.Hash) bool { return true }})
			if err != nil {
				t.Fatal(err)
			}
			begun, err := f.Files.Create("blobs.new/begun")
			if err != nil {
				t.Fatal(err)
			}
			files.Store(target == "file")
			folders.Store(target == "folder")
			if _, err := put(f, "bad"); !errors.Is(err, kv.ErrFailed) {
				t.Errorf("a picture whose sync failed: %v, want ErrFailed", err)
			}
			files.Store(false)
			folders.Store(false)
			if err := f.Ready(); !errors.Is(err, kv.ErrFailed) || fatal.Load() != 1 {
				t.Errorf("Ready = %v, Fatal called %d times; want ErrFailed and once", err, fatal.Load())
			}
			if _, err := put(f, "later"); !errors.Is(err, kv.ErrFailed) {
				t.Errorf("a later picture: %v, want ErrFailed", err)
			}
			if err := f.local.PutLazy(t.Context(), []byte("lazy"), blob.Sum([]byte("lazy"))); !errors.Is(err, kv.ErrFailed) {
				t.Errorf("a later copy: %v, want ErrFailed", err)
			}
			if _, _, err := hosted.Add(t.Context(), blob.AppID{}, []byte("good"), "image/png", time.Time{}); !errors.Is(err, kv.ErrFailed) {
				t.Errorf("a later name: %v, want ErrFailed", err)
			}
			if err := begun.Sync(); !errors.Is(err, kv.ErrFailed) {
				t.Errorf("a sync of a file that was begun before: %v, want ErrFailed", err)
			}
			if err := f.Files.Rename("blobs.new/begun", "begun"); !errors.Is(err, kv.ErrFailed) {
				t.Errorf("its rename: %v, want ErrFailed", err)
			}
			if err := begun.Close(); err != nil {
				t.Error(err)
			}
			if err := commit(f, "later", "1"); !errors.Is(err, kv.ErrFailed) {
				t.Errorf("a later record: %v, want ErrFailed", err)
			}
			if b, err := f.Blobs.Get(t.Context(), good); string(b) != "good" || err != nil {
				t.Errorf("a read: %q, %v", b, err)
			}
			if err := f.Close(); !errors.Is(err, kv.ErrFailed) {
				t.Errorf("Close = %v, want ErrFailed", err)
			}
			f = mustOpen(t, dir, Options{})
			defer f.Close()
			if b, err := f.Blobs.Get(t.Context(), good); string(b) != "good" || err != nil {
				t.Errorf("the acknowledged picture is %q, %v", b, err)
			}
			if v, err := f.Store.Get([]byte("good")); string(v) != "1" || err != nil {
				t.Errorf("the acknowledged record is %q, %v", v, err)
			}
			if _, err := put(f, "bad"); err != nil {
				t.Errorf("after opening again: %v", err)
			}
		})
	}
}

// TestMissingFolderFailsNoSync syncs a folder that does not exist, and a folder while the process has no free file handle. No acknowledged
// data depends on these syncs.
func TestMissingFolderFailsNoSync(t *testing.T) {
	var open atomic.Bool
	f := mustOpen(t, t.TempDir(), Options{BlobFS: func(fsys blob.FS) blob.FS { return noFiles{fsys, &open} }})
	defer f.Close()
	if err := f.Files.SyncDir("missing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("SyncDir = %v, want ErrNotExist", err)
	}
	open.Store(true)
	if err := f.Files.SyncDir("blobs"); !errors.Is(err, syscall.EMFILE) {
		t.Errorf("SyncDir = %v, want EMFILE", err)
	}
	if err := f.Ready(); err != nil {
		t.Errorf("Ready = %v", err)
	}
}

// noFiles fails to open a folder for a sync while out is set, as if the process had no free file handle.
type noFiles struct {
	blob.FS
	out *atomic.Bool
}

func (d noFiles) SyncDir(name string) error {
	if d.out.Load() {
		return &os.PathError{Op: "openat", Path: name, Err: syscall.EMFILE}
	}
	return d.FS.SyncDir(name)
}

// TestOpenWithoutSpace opens a folder whose disk refuses all writes starting at the n-th one. It does so for every n, for full disks and
// for read-only folders. The folder opens and can be read, or the error has the reason and the remedy. Open never reports damage. With
// space again the folder has everything.
func TestOpenWithoutSpace(t *testing.T) {
	for cause, advice := range map[syscall.Errno]string{
		syscall.ENOSPC: "is full: free some space on it, then start again",
		syscall.EDQUOT: "is full: free some space on it, then start again",
		syscall.EROFS:  "cannot be written: make it writable for this user, then start again",
		syscall.EACCES: "cannot be written: make it writable for this user, then start again",
	} {
		dir := t.TempDir()
		f := mustOpen(t, dir, Options{MinFree: 1})
		if err := commit(f, "k", "v"); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		refused := 0
		for n := int64(1); ; n++ {
			var writes atomic.Int64
			fails := errorfs.InjectorFunc(func(op errorfs.Op) error {
				switch op.Kind {
				case errorfs.OpCreate, errorfs.OpFileWrite, errorfs.OpMkdirAll, errorfs.OpFilePreallocate, errorfs.OpReuseForWrite:
					if writes.Add(1) >= n {
						return cause
					}
				}
				return nil
			})
			f, err := Open(dir, Options{MinFree: 1, StoreFS: errorfs.Wrap(vfs.Default, fails)})
			if err == nil {
				if v, err := f.Store.Get([]byte("k")); string(v) != "v" || err != nil {
					t.Errorf("%v at write %d: k = %q, %v", cause, n, v, err)
				}
				_ = f.Close() // it may fail for lack of space
				if writes.Load() < n {
					break
				}
				continue
			}
			if refused++; errors.Is(err, kv.ErrCorrupt) || !strings.Contains(err.Error(), advice) || !strings.Contains(err.Error(), dir) {
				t.Errorf("%v at write %d: %v", cause, n, err)
			}
		}
		if refused < 3 {
			t.Errorf("%v: %d starts were refused", cause, refused)
		}
		f = mustOpen(t, dir, Options{MinFree: 1})
		if v, err := f.Store.Get([]byte("k")); string(v) != "v" || err != nil {
			t.Errorf("%v is over: k = %q, %v", cause, v, err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
