//go:build unix

package system

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"
)

// A process and its supervisor use the protocols of systemd (sd_listen_fds(3), sd_notify(3)), with any supervisor:
//
//	supervisor ── LISTEN_FDS ──▶ a socket that outlives the process
//	           ◀─ NOTIFY_SOCKET ─ READY=1 · WATCHDOG=1, again and again · STOPPING=1

// unnumbered means that the process that started us could not know our process id.
const unnumbered = "0"

// InheritedListener returns the socket that a supervisor listens on for us; nil: there is none.
func InheritedListener() (net.Listener, error) {
	if os.Getenv("LISTEN_PID") == unnumbered {
		if err := os.Setenv("LISTEN_PID", strconv.Itoa(os.Getpid())); err != nil {
			return nil, err
		}
	}
	listeners, err := activation.Listeners()
	if err != nil {
		return nil, fmt.Errorf("inherited sockets: %w", err)
	}
	switch {
	case len(listeners) == 0:
		return nil, nil
	case len(listeners) == 1 && listeners[0] != nil:
		return listeners[0], nil
	}
	for _, l := range listeners {
		if l != nil {
			err = errors.Join(err, l.Close())
		}
	}
	return nil, errors.Join(fmt.Errorf("inherited sockets: expected one TCP socket, got %d", len(listeners)), err)
}

// Notify sends the state of the process to the supervisor: "READY=1", "STOPPING=1", "WATCHDOG=1", or "STATUS=" and a line. Without a
// supervisor it does nothing.
func Notify(state string) error {
	_, err := daemon.SdNotify(false, state)
	return err
}

// WatchdogInterval returns the time within which the supervisor wants "WATCHDOG=1", again and again; 0: it does
// not, or there is none.
func WatchdogInterval() (time.Duration, error) {
	if os.Getenv("NOTIFY_SOCKET") == "" {
		return 0, nil
	}
	return daemon.SdWatchdogEnabled(false)
}

// Executable is the path of this program's file.
func Executable() (string, error) { return os.Executable() }

// Supervise is the environment, made of ours, of a process that inherits one socket, its file 3, and
// says to the notices how it is, within this time at least.
func Supervise(environ []string, n *Notices, within time.Duration) []string {
	ours := slices.DeleteFunc(slices.Clone(environ), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return strings.HasPrefix(name, "LISTEN_") || strings.HasPrefix(name, "WATCHDOG_") || name == "NOTIFY_SOCKET"
	})
	return append(ours, "LISTEN_PID="+unnumbered, "LISTEN_FDS=1", "NOTIFY_SOCKET="+n.path,
		"WATCHDOG_USEC="+strconv.FormatInt(within.Microseconds(), 10))
}

// Notices are the messages of a supervised process by [Notify].
type Notices struct {
	conn *net.UnixConn
	path string
}

// ListenNotices makes the socket, in a folder of this user alone.
func ListenNotices() (*Notices, error) {
	dir, err := os.MkdirTemp("", "sightline-")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return nil, errors.Join(err, os.Remove(dir))
	}
	return &Notices{conn, path}, nil
}

// Next waits for the next notice; net.ErrClosed ends it.
func (n *Notices) Next() (string, error) {
	b := make([]byte, 4096)
	size, err := n.conn.Read(b)
	return string(b[:size]), err
}

// Close removes the socket.
func (n *Notices) Close() error {
	return errors.Join(n.conn.Close(), os.RemoveAll(filepath.Dir(n.path)))
}

// IgnoreHangups lets the process, and those that it starts, outlive the terminal that it was started in.
func IgnoreHangups() { signal.Ignore(syscall.SIGHUP) }
