//go:build unix

package system

import (
	"errors"

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
