//go:build !linux

package nn_test

import "time"

var epoch = time.Now()

// cpuTime returns the time on the wall, for want of better.
func cpuTime() time.Duration { return time.Since(epoch) }
