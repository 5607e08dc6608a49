package partition_test

import (
	"syscall"
	"testing"
	"time"
)

// processorTime is what the process has used so far; elapsed time says little on a shared machine.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
