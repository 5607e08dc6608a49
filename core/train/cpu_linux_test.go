package train

import (
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// perProcessor reports the processor time of an operation when the returned function is called;
// elapsed time says little on a shared machine.
func perProcessor(b *testing.B) (report func()) {
	b.Helper()
	now := func() float64 {
		var r syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
			b.Fatal(err)
		}
		return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e6
	}
	start := now()
	return func() { b.ReportMetric((now()-start)/float64(b.N), "cpu-ms/op") }
}

// threadTime returns the processor time of the calling thread.
func threadTime(b *testing.B) time.Duration {
	b.Helper()
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		b.Fatal(err)
	}
	return time.Duration(ts.Nano())
}
