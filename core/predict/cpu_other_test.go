//go:build !linux

package predict

import (
	"testing"
	"time"
)

var start = time.Now()

// threadTime returns the elapsed time, because this platform has no processor time of a thread in the standard library.
func threadTime(t testing.TB) time.Duration {
	t.Helper()
	return time.Since(start)
}
