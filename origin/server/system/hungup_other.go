//go:build unix && !linux

package system

import "golang.org/x/sys/unix"

// HungUp reports whether the other end of a stream socket has stopped sending. While unread bytes remain, it returns false.
func HungUp(fd uintptr) bool {
	n, _, err := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
	return err == nil && n == 0
}
