//go:build unix

package system

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Free returns the bytes that this user may still write to the file system of dir.
func Free(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}

// IsFull reports whether err says that a disk, or a user's part of it, is full.
func IsFull(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

// IsUnwritable reports whether err says that this user may not write a file, or nobody may.
func IsUnwritable(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS)
}

// IsTooManyFiles reports whether err says that the process or the machine has no file left to open.
func IsTooManyFiles(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE)
}

// SyncDisk makes all that was written to the file system of dir outlive a loss of power.
func SyncDisk(dir string) (err error) {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return syncFS(f)
}
