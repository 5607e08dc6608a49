//go:build !linux

package train

import (
	"testing"
	"time"
)

func perProcessor(*testing.B) (report func()) { return func() {} }

// threadTime is by the clock where a thread's own time is not to be had.
func threadTime(*testing.B) time.Duration { return time.Since(started) }

var started = time.Now()
