//go:build !linux

package train

import (
	"testing"
	"time"
)

func perProcessor(*testing.B) (report func()) { return func() {} }

// threadTime returns elapsed time, since a thread's processor time is not available here.
func threadTime(*testing.B) time.Duration { return time.Since(started) }

var started = time.Now()
