package system

import (
	"os"

	"golang.org/x/sys/unix"
)

// startable is a file whose bytes the system can begin to write before a Sync waits for them.
type startable struct{ *os.File }

// StartSync implements [blob.File].
func (f startable) StartSync() {
	_ = unix.SyncFileRange(int(f.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WRITE) // Sync reports what fails
}
