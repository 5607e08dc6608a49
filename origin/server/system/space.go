//go:build unix

package system

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// FreeBytes returns the number of bytes that this user can still write to the file system of dir.
func FreeBytes(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}

// IsFull reports whether err means that a disk is full or a user's quota is used up.
func IsFull(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

// IsUnwritable reports whether err means that this user lacks a permission, or that the file system is read-only.
func IsUnwritable(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS)
}

// IsTooManyFiles reports whether err means that the process or the machine has reached its limit of open files.
func IsTooManyFiles(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE)
}

// SyncDisk makes all completed writes to the file system of dir durable.
func SyncDisk(dir string) (err error) {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return syncFS(f)
}
