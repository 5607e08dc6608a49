//go:build unix

package system

import (
	"time"

	"golang.org/x/sys/unix"
)

// ThreadTime returns the processor time that the calling thread has used. A goroutine that
// compares two of them must be locked to its thread in between.
func ThreadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0 // then only the clock counts
	}
	return time.Duration(t.Nano())
}
