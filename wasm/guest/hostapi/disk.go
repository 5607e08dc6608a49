package hostapi

import (
	"runtime"

	"github.com/sightline-dev/sightline/core/kv/journal"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// Disk reads and writes the host's numbered files. Each read and write yields to the collector's goroutines, which otherwise run only at
// the end of a call of the host. Without that, the collector would not finish during a long call, such as the installation of a snapshot,
// and the heap would grow.
type Disk struct{ From Imports }

var _ journal.Files = Disk{}

// Size implements [journal.Files].
func (d Disk) Size(file int) (int64, error) {
	n := d.From.FileSize(uint32(file))
	if n < 0 {
		return 0, abi.Errno(-n).Err()
	}
	return n, nil
}

// Read implements [journal.Files].
func (d Disk) Read(file int, off int64, p []byte) error {
	if len(p) == 0 {
		return nil
	}
	defer runtime.Gosched()
	return did(d.From.FileRead(uint32(file), off, p))
}

// Write implements [journal.Files].
func (d Disk) Write(file int, off int64, p []byte) error {
	if len(p) == 0 {
		return nil
	}
	defer runtime.Gosched()
	return did(d.From.FileWrite(uint32(file), off, p))
}

// Truncate implements [journal.Files].
func (d Disk) Truncate(file int, size int64) error {
	return did(d.From.FileTruncate(uint32(file), size))
}

// Sync implements [journal.Files].
func (d Disk) Sync(file int) error { return did(d.From.FileSync(uint32(file))) }
