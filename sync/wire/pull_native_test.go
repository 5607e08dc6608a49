//go:build !wasip1

package wire_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/pebblekv"
)

func init() {
	stores["pebble"] = func(b *testing.B) kv.Store {
		store, err := pebblekv.Open("data", pebblekv.Options{FS: vfs.NewMem()})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			if err := store.Close(); err != nil {
				b.Error(err)
			}
		})
		return store
	}
}

// processorTime returns the processor time of the process, since elapsed time varies too much on a shared machine.
func processorTime() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
