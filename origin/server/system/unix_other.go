//go:build unix && !linux

package system

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// checkPeer trusts the socket's mode.
func checkPeer(net.Conn) error { return nil }

// syncFS writes out all file systems.
func syncFS(*os.File) error {
	unix.Sync()
	return nil
}
