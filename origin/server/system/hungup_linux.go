package system

import "golang.org/x/sys/unix"

// HungUp reports whether the other end of a stream socket has stopped sending. Unread bytes do not matter.
func HungUp(fd uintptr) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n == 1
}
