package data

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"sync"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/origin/server/control"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// backupFile is the file that describes a backup. Backup writes it last: a folder without it is incomplete.
const backupFile = "BACKUP"

// ErrBackup is returned for a folder that is not a complete backup.
var ErrBackup = errors.New("not a complete backup")

// manifest is the content of backupFile.
type manifest struct {
	Format  string              `json:"format"`
	Version int                 `json:"version"`
	Created string              `json:"created_at"`
	Blobs   control.BackupStats `json:"blobs"`
	Names   int                 `json:"names"`
}

const (
	backupFormat  = "sightline-backup"
	backupVersion = 1
)

// Backup copies the folder into the new folder to, which is then a closed data folder. The store's copy is from one moment; the pictures
// may include later additions. The caller must prevent deletions of pictures meanwhile. Backup verifies every picture as it copies it.
// If the copy fails, the new folder is empty again.
func (f *Folder) Backup(ctx context.Context, to string, progress func(done, total control.BackupStats)) (_ control.BackupStats, err error) {
	if !filepath.IsAbs(to) {
		return control.BackupStats{}, fmt.Errorf("%w: %s is not an absolute path", control.ErrArgument, to)
	}
	if err := system.NewFolder(to); err != nil {
		return control.BackupStats{}, fmt.Errorf("%w: %w", control.ErrArgument, err)
	}
	target, err := system.OpenFolder(to)
	if err != nil {
		return control.BackupStats{}, err
	}
	defer func() { err = closeNew(target, err) }()
	if err := f.Store.Checkpoint(filepath.Join(to, storeDir)); err != nil {
		return control.BackupStats{}, err
	}
	m := manifest{Format: backupFormat, Version: backupVersion, Created: system.Now().UTC().Format("2006-01-02T15:04:05Z")}
	if m.Blobs, err = copyBlobs(ctx, target, f.Blobs, progress); err == nil {
		m.Names, err = copyTree(target, f.folder, namesDir)
	}
	for _, name := range []string{bundlesDir, CredentialFile} {
		if err == nil {
			_, err = copyTree(target, f.folder, name)
		}
	}
	if err == nil {
		err = system.SyncDisk(to)
	}
	var b []byte
	if err == nil {
		b, err = json.MarshalIndent(m, "", "  ")
	}
	if err == nil {
		err = system.ReplaceIn(target, backupFile, append(b, '\n'))
	}
	return m.Blobs, err
}

// closeNew closes a new folder. After an error it also empties the folder, because a full disk may need the space.
func closeNew(target *system.Folder, err error) error {
	if err != nil {
		err = errors.Join(err, target.Clear())
	}
	return errors.Join(err, target.Close())
}

// copyBlobs copies all blobs of from, without syncs, and verifies each.
func copyBlobs(
	ctx context.Context, target *system.Folder, from blob.Blobs, progress func(done, total control.BackupStats),
) (control.BackupStats, error) {
	to, err := blob.OpenFolder(target, blob.Options{})
	if err != nil {
		return control.BackupStats{}, err
	}
	return CopyBlobs(ctx, from, 1, func(ctx context.Context, h blob.Hash) (int64, error) {
		b, err := from.Get(ctx, h)
		if err == nil {
			err = to.PutLazy(ctx, b, h)
		}
		return int64(len(b)), err
	}, progress)
}

// CopyBlobs calls copyOne with every blob of from, in several goroutines, until one call fails. copyOne returns the number of bytes of the
// blob. progress is called after each 64 blobs, by one goroutine at a time.
func CopyBlobs(
	ctx context.Context, from blob.Blobs, workers int,
	copyOne func(ctx context.Context, h blob.Hash) (int64, error), progress func(done, total control.BackupStats),
) (done control.BackupStats, err error) {
	var total control.BackupStats
	err = from.Each(ctx, blob.Hash{}, func(h blob.Hash) error {
		n, err := from.Len(ctx, h)
		total.Files++
		total.Bytes += n
		return err
	})
	if err != nil {
		return done, err
	}
	var (
		mu      sync.Mutex // guards done
		running sync.WaitGroup
		hashes  = make(chan blob.Hash)
	)
	working, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	for range workers {
		running.Go(func() {
			for h := range hashes {
				n, err := copyOne(working, h)
				if err != nil {
					fail(err)
					return
				}
				mu.Lock()
				done.Files++
				done.Bytes += n
				if done.Files%64 == 0 {
					progress(done, control.BackupStats{Files: max(total.Files, done.Files), Bytes: max(total.Bytes, done.Bytes)})
				}
				mu.Unlock()
			}
		})
	}
	err = from.Each(working, blob.Hash{}, func(h blob.Hash) error {
		select {
		case hashes <- h:
			return nil
		case <-working.Done():
			return context.Cause(working)
		}
	})
	close(hashes)
	running.Wait()
	if cause := context.Cause(working); cause != nil { // the first error, not one that follows from it
		err = cause
	}
	return done, err
}

// namesDir is the folder in which package blob keeps the names of temporary pictures.
const namesDir = "names"

// copyTree copies a file or a whole folder, if it exists, and returns the number of copied files. It skips files that are deleted
// meanwhile.
func copyTree(target, from *system.Folder, name string) (n int, err error) {
	err = fs.WalkDir(from.FS(), name, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return target.MkdirAll(name)
		}
		if err == nil {
			err = copyFile(target, from, name)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		n++
		return err
	})
	return n, err
}

// CredentialFile holds an edge's identity at its origin and its private key. Only the folder's user can read it.
const CredentialFile = "edge.json"

func copyFile(target, from *system.Folder, name string) (err error) {
	r, err := from.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	w, err := target.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return errors.Join(err, w.Close())
}

// restoredFile names the backup that a folder was restored from. An incomplete folder has restoringFile instead.
const (
	restoredFile  = "RESTORED"
	restoringFile = "RESTORING"
)

// errRestoring is returned for a folder whose restore is incomplete.
var errRestoring = errors.New("incomplete restore: delete the folder and restore the backup again")

// checkRestored refuses a folder whose restore was interrupted.
func (f *Folder) checkRestored() error {
	_, err := system.ReadIn(f.folder, restoringFile, maxNote)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil:
		err = errRestoring
	}
	return fmt.Errorf("%s: %w", f.Dir, err)
}

// Restore creates the new data folder dir from a backup. It verifies every picture as it copies it. The next start opens the
// logs as another epoch, so replicas of the backed-up folder find out what is missing. The backed-up folder and the restored one may both be used as replicas. If the copy
// fails, the new folder is empty again.
func Restore(ctx context.Context, backup, dir string, progress func(done, total control.BackupStats)) (_ control.BackupStats, err error) {
	from, err := openBackup(backup)
	if err != nil {
		return control.BackupStats{}, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	if err := system.NewFolder(dir); err != nil {
		return control.BackupStats{}, err
	}
	unlock, err := system.Lock(dir)
	if err != nil {
		return control.BackupStats{}, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	target, err := system.OpenFolder(dir)
	if err != nil {
		return control.BackupStats{}, err
	}
	defer func() { err = closeNew(target, err) }()
	if err := system.ReplaceIn(target, restoringFile, []byte(backup+"\n")); err != nil {
		return control.BackupStats{}, err
	}
	n, err := copyTree(target, from, storeDir)
	if err == nil && n == 0 {
		err = fmt.Errorf("%s has no store: %w", backup, ErrBackup)
	}
	if err != nil {
		return control.BackupStats{}, err
	}
	blobs, err := blob.OpenFolder(from, blob.Options{})
	if err != nil {
		return control.BackupStats{}, err
	}
	copied, err := copyBlobs(ctx, target, blobs, progress)
	if err != nil {
		return copied, err
	}
	for _, name := range []string{namesDir, bundlesDir, CredentialFile} {
		if _, err := copyTree(target, from, name); err != nil {
			return copied, err
		}
	}
	if err := system.SyncDisk(dir); err != nil {
		return copied, err
	}
	if err := system.ReplaceIn(target, restoredFile, []byte(backup+"\n")); err != nil {
		return copied, err
	}
	if err := target.Remove(restoringFile); err != nil {
		return copied, err
	}
	return copied, target.SyncDir(".")
}

// openBackup opens a complete backup. If the folder is not one, it returns ErrBackup, and for a backup of a newer version kv.ErrNewer.
func openBackup(name string) (*system.Folder, error) {
	if !system.IsDir(name) {
		return nil, fmt.Errorf("%s: %w", name, ErrBackup)
	}
	f, err := system.OpenFolder(name)
	if err != nil {
		return nil, err
	}
	note, err := system.ReadIn(f, backupFile, maxNote)
	var m manifest
	if err == nil {
		err = json.Unmarshal(note, &m)
	}
	switch {
	case err != nil || m.Format != backupFormat:
		err = fmt.Errorf("%s: %w", name, ErrBackup)
	case m.Version > backupVersion:
		err = fmt.Errorf("%s: %w", name, kv.ErrNewer)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
