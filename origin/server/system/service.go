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

// A process and any supervisor use the protocols of systemd, sd_listen_fds(3) and sd_notify(3):
//
//	supervisor ── LISTEN_FDS ──▶ a socket that outlives the process
//	           ◀─ NOTIFY_SOCKET ─ READY=1 · WATCHDOG=1, again and again · STOPPING=1

// unnumbered is the LISTEN_PID that [Supervise] sets, because a parent cannot know the process id of its child in advance.
const unnumbered = "0"

// InheritedListener returns the TCP socket that this process inherited from its supervisor, or nil if it inherited none. More or other
// sockets are an error.
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

// WatchdogInterval returns the maximum time between two notices "WATCHDOG=1" that the supervisor accepts. 0 means that it expects none, or
// that there is no supervisor.
func WatchdogInterval() (time.Duration, error) {
	if os.Getenv("NOTIFY_SOCKET") == "" {
		return 0, nil
	}
	return daemon.SdWatchdogEnabled(false)
}

// Executable returns the path of this program's file.
func Executable() (string, error) { return os.Executable() }

// Supervise returns the environment of a supervised process, based on environ. The process must inherit one socket as its file 3,
// send its notices to n, and send "WATCHDOG=1" again before the time within has passed.
func Supervise(environ []string, n *Notices, within time.Duration) []string {
	ours := slices.DeleteFunc(slices.Clone(environ), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return strings.HasPrefix(name, "LISTEN_") || strings.HasPrefix(name, "WATCHDOG_") || name == "NOTIFY_SOCKET"
	})
	return append(ours, "LISTEN_PID="+unnumbered, "LISTEN_FDS=1", "NOTIFY_SOCKET="+n.path,
		"WATCHDOG_USEC="+strconv.FormatInt(within.Microseconds(), 10))
}

// Notices receives the messages that a supervised process sends with [Notify].
type Notices struct {
	conn *net.UnixConn
	path string
}

// ListenNotices creates the socket for notices, in a new folder that only this user can access.
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

// Next waits for the next notice and returns it, cut to 4096 bytes. After Close the error is net.ErrClosed.
func (n *Notices) Next() (string, error) {
	b := make([]byte, 4096)
	size, err := n.conn.Read(b)
	return string(b[:size]), err
}

// Close closes the socket and deletes its folder.
func (n *Notices) Close() error {
	return errors.Join(n.conn.Close(), os.RemoveAll(filepath.Dir(n.path)))
}

// IgnoreHangups makes this process and its later children ignore SIGHUP, so that they outlive the terminal.
func IgnoreHangups() { signal.Ignore(syscall.SIGHUP) }
