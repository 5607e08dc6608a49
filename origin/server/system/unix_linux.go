package system

import (
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// checkPeer returns ErrPeer if the process at the other end of c belongs to neither this user nor root.
func checkPeer(c net.Conn) error {
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	if e := raw.Control(func(fd uintptr) { peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); e != nil {
		return e
	}
	if err != nil {
		return err
	}
	if int(peer.Uid) != os.Getuid() && peer.Uid != 0 {
		return fmt.Errorf("user %d: %w", peer.Uid, ErrPeer)
	}
	return nil
}

// syncFS makes the writes to the file system of f durable.
func syncFS(f *os.File) error { return unix.Syncfs(int(f.Fd())) }
