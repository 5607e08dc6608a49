package predict

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// threadTime returns the processor time of the calling thread. On a shared machine elapsed time varies too much.
func threadTime(t testing.TB) time.Duration {
	t.Helper()
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		t.Fatal(err)
	}
	return time.Duration(ts.Nano())
}
