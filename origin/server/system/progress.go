package system

import (
	"context"
	"sync"
	"time"
)

// EstimateProgress returns a function that estimates how much of a work is done, in percent below 100. It compares the processor time that
// the process uses from now on with the usual time of the work. Where that is unknown, it compares the time that passes.
func EstimateProgress(pid int, usual time.Duration) func() int {
	begun := Now()
	before, known := processTime(pid)
	return func() int {
		spent := Now().Sub(begun)
		if now, ok := processTime(pid); ok && known {
			spent = now - before
		}
		return min(int(100*spent/usual), 99)
	}
}

// Repeat calls f in another goroutine: at once, and then at each interval until stop. After stop has returned, f is not called.
func Repeat(interval time.Duration, f func()) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		f()
		Every(ctx, interval, func(context.Context) { f() })
	})
	return func() {
		cancel()
		running.Wait()
	}
}
