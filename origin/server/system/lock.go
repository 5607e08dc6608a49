//go:build unix

package system

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// ErrLocked is returned by [Lock] when another process holds the folder.
var ErrLocked = errors.New("the folder is in use by another process")

// Lock reserves the folder dir for this process, with an advisory lock on the file dir/LOCK. It
// creates dir if that is missing. The lock ends with release or with the process, even if the
// process is killed. Release does not delete the file: two processes could then lock two different
// files of the same name. The error is ErrLocked if another process holds the lock.
func Lock(dir string) (release func() error, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "LOCK"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close() // the caller gets the error of the lock
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w", dir, ErrLocked)
		}
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return f.Close, nil
}

// lockInterval is the time between two attempts of WaitLock.
const lockInterval = 100 * time.Millisecond

// WaitLock is [Lock], but waits while another process holds the lock, until ctx ends.
func WaitLock(ctx context.Context, dir string) (release func() error, err error) {
	for {
		release, err = Lock(dir)
		if !errors.Is(err, ErrLocked) || ctx.Err() != nil {
			return release, err
		}
		Pause(ctx, lockInterval)
	}
}
