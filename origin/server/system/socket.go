//go:build unix

package system

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxSocketPath is the length in bytes of the longest path of a socket that every Unix accepts. The final zero comes after it.
const maxSocketPath = 103

// ErrPeer is returned for a connection of another user.
var ErrPeer = errors.New("the connection belongs to another user")

// ListenUnix listens on the socket name in the folder dir. Only this user and root can connect
// to it. ListenUnix first removes a file of that name: the caller holds the folder's lock, so the
// process that created the file has ended. Closing the listener removes the socket.
func ListenUnix(ctx context.Context, dir, name string) (net.Listener, error) {
	path := filepath.Join(dir, name)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		if e := c.Control(func(fd uintptr) { err = unix.Fchmod(int(fd), 0o600) }); e != nil {
			return e
		}
		if errors.Is(err, unix.EINVAL) {
			return nil // some systems cannot set the mode of a socket without a name
		}
		return err
	}}
	var l net.Listener
	err := shortPath(dir, name, func(short string) (err error) {
		l, err = lc.Listen(ctx, "unix", short)
		return err
	})
	if err != nil {
		return nil, err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // its path may be the temporary one of shortPath
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &unixListener{l, path}, nil
}

// DialUnix connects to the socket name in the folder dir.
func DialUnix(ctx context.Context, dir, name string) (c net.Conn, err error) {
	err = shortPath(dir, name, func(short string) error {
		var d net.Dialer
		c, err = d.DialContext(ctx, "unix", short)
		return err
	})
	return c, err
}

// shortPath calls use with a path of dir/name that fits a socket's address. The path is valid only until use returns.
func shortPath(dir, name string, use func(string) error) (err error) {
	path := filepath.Join(dir, name)
	if len(path) <= maxSocketPath {
		return use(path)
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	short := "/proc/self/fd/" + strconv.Itoa(int(f.Fd()))
	if _, err := os.Stat(short); err != nil {
		return fmt.Errorf("%s: the path is too long for a socket; use at most %d bytes", path, maxSocketPath)
	}
	return use(filepath.Join(short, name))
}

// unixListener accepts only connections of this user and of root.
type unixListener struct {
	net.Listener
	path string
}

// Accept closes other users' connections and waits for the next one. The socket's mode already
// prevents them, except on a file system without modes.
func (l *unixListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if err := checkPeer(c); err == nil {
			return c, nil
		}
		_ = c.Close()
	}
}

// Close stops listening and removes the socket.
func (l *unixListener) Close() error {
	err := l.Listener.Close()
	if e := os.Remove(l.path); e != nil && !errors.Is(e, os.ErrNotExist) {
		err = errors.Join(err, e)
	}
	return err
}

// IsNotListening reports whether err means that no process listens on a socket, that the socket does not exist, or that
// the listening process has ended without reading everything.
func IsNotListening(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, os.ErrNotExist) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
