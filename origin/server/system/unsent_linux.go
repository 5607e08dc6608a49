package system

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// LimitUnsent limits the bytes that the kernel holds for a TCP connection before it sends them. Otherwise it holds up to 4 MB, and a client
// that reads 100 KB a second frees none of them for more than ten seconds, like a client that has stopped reading. For other kinds of
// connections it does nothing.
func LimitUnsent(c any, bytes int) {
	socket, ok := c.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return // the connection is closed
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, bytes) // fails for other kinds
	})
}
