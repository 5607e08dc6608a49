package partition_test

import (
	"syscall"
	"testing"
	"time"
)

// processorTime returns the processor time of the process; on a shared machine elapsed time varies too much.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
