//go:build unix && !linux

package system

import "net"

// checkPeer trusts the socket's mode.
func checkPeer(net.Conn) error { return nil }
