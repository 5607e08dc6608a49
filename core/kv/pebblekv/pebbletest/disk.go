//go:build !wasip1

package pebbletest

import (
	"math/rand/v2"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Disk is Pebble's crashable file system in memory. A test may cut its power during a write. Disk replaces ReuseForWrite, because
// MemFS.ReuseForWrite (v2.1.7) takes a read lock twice and deadlocks if CrashClone requests the lock between the two.
type Disk struct{ *vfs.MemFS }

// New returns an empty disk.
func New() Disk { return Disk{vfs.NewCrashableMem()} }

// Cut returns a copy of d as a power failure would leave it now: all synced data, and each unsynced block and directory entry with a
// probability of percent. rng makes the choices; it may be nil if percent is 0. d does not change.
func (d Disk) Cut(percent int, rng *rand.Rand) Disk {
	return Disk{d.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})}
}

// ReuseForWrite implements [vfs.FS].
func (d Disk) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := d.Rename(oldname, newname); err != nil {
		return nil, err
	}
	return d.OpenReadWrite(newname, category)
}
