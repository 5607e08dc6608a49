//go:build unix

package system

import (
	"time"

	"golang.org/x/sys/unix"
)

// ThreadTime returns the processor time that the calling thread has used. A goroutine that
// compares two results must be locked to its thread between the calls.
func ThreadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0 // the caller then measures by the clock only
	}
	return time.Duration(t.Nano())
}
