package httpd

import (
	"context"
	"syscall"
	"time"

	"github.com/sightline-dev/sightline/origin/server/system"
)

// watch implements [api.Request.Watch] for the current request. Nothing else may read from the connection until the caller calls stop.
func (c *conn) watch(ctx context.Context) (watched context.Context, stop func()) {
	watched, cancel := context.WithCancel(ctx)
	socket, ok := c.raw.(syscall.Conn)
	if !ok {
		return watched, cancel
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return watched, cancel
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		hungUp := false
		if raw.Read(func(fd uintptr) bool { hungUp = system.HungUp(fd); return hungUp }) == nil && hungUp {
			cancel()
		}
	}()
	return watched, func() {
		_ = c.raw.SetReadDeadline(time.Unix(1, 0)) // ends the Read unless a closed connection has already ended it
		<-done
		_ = c.raw.SetReadDeadline(time.Time{}) // the library sets a deadline for the next request
		cancel()
	}
}
