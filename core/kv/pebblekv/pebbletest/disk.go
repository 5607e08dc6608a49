//go:build !wasip1

package pebbletest

import (
	"math/rand/v2"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Disk is Pebble's crashable file system in memory, whose power may be cut while it is written to. That one's own
// ReuseForWrite takes a lock for reading twice, and hangs where a clone asks for it in between (v2.1.7).
type Disk struct{ *vfs.MemFS }

// New is an empty disk.
func New() Disk { return Disk{vfs.NewCrashableMem()} }

// Cut returns what a power failure now would leave: all that was synced, and of the rest percent of its
// blocks, drawn from rng, which may be nil for 0.
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
