// Package system provides the environment of the process: the clock, the random source, the file system, the resolver, the dialler,
// listeners and signals.
//
//	program ──▶ system.Now, Random, Folder, Dial, Resolve, Listen, Lock
//	               │ as arguments
//	               ▼
//	httpd, fetch, jobs, core/…: they get what they need as arguments
//
// Other packages get these functions as arguments, so that tests can pass a clock that they move, a resolver that lies and a disk that
// fails. TestOnlySystemUsesTheOS in core bans the direct use of clock, random source, files and dialler elsewhere.
package system

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Now returns the wall clock's time, with a monotonic reading.
func Now() time.Time { return time.Now() }

// Random is the operating system's cryptographic random source. Its Read never fails.
var Random io.Reader = rand.Reader

// Every calls f once per interval until ctx ends. It returns when ctx has ended and f has returned.
// If a call takes longer than the interval, the next call starts later. Calls never overlap.
func Every(ctx context.Context, interval time.Duration, f func(ctx context.Context)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f(ctx)
		}
	}
}

// Pause waits for d, or until ctx ends.
func Pause(ctx context.Context, d time.Duration) { Await(ctx, nil, d) }

// Await waits until it receives from moved, d has passed or ctx ends.
func Await(ctx context.Context, moved <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-moved:
	case <-timer.C:
	}
}

// CancelOnSignal returns a context that ends at SIGTERM or SIGINT. A second signal kills the
// process as usual. stop restores the default handling of both signals.
func CancelOnSignal(ctx context.Context) (_ context.Context, stop func()) {
	ctx, stop = signal.NotifyContext(ctx, syscall.SIGTERM, os.Interrupt)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// Listen opens a TCP listener on address ("host:port").
func Listen(ctx context.Context, address string) (net.Listener, error) {
	var lc net.ListenConfig
	return lc.Listen(ctx, "tcp", address)
}

// Dial connects to address, which must be an IP address and a port: Dial does not resolve names. If control is not nil, Dial calls it with
// the address that it will connect to, after it has created the socket and before it sends a packet. If control returns an error, Dial
// returns that error and does not connect.
func Dial(ctx context.Context, network, address string, control func(network, address string) error) (net.Conn, error) {
	if _, err := netip.ParseAddrPort(address); err != nil {
		return nil, err
	}
	d := net.Dialer{
		KeepAlive: -1,
		Resolver:  &net.Resolver{PreferGo: true, Dial: noResolver},
	}
	if control != nil {
		d.Control = func(network, address string, _ syscall.RawConn) error { return control(network, address) }
	}
	return d.DialContext(ctx, network, address)
}

func noResolver(context.Context, string, string) (net.Conn, error) {
	return nil, errors.New("a dialler resolves no names")
}

// IsLoopback reports whether host is "localhost" or an IP address that only this machine can reach.
func IsLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.Unmap().IsLoopback()
}

// Resolve returns all IP addresses of host. It converts IPv4 addresses in IPv6 form to IPv4.
func Resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	r := net.Resolver{PreferGo: true}
	addresses, err := r.LookupNetIP(ctx, "ip", host)
	for i := range addresses {
		addresses[i] = addresses[i].Unmap()
	}
	return addresses, err
}

// Cores returns the number of threads that can run Go code at the same time, without the reserved ones.
func Cores() int { return runtime.GOMAXPROCS(0) - int(reserved.Load()) }

var reserved atomic.Int64 // threads of ReserveThreads

// ReserveThreads lets n more threads run Go code at the same time. The program then uses only as many threads as the machine has cores for
// long work. The operating system's scheduler runs short work, such as answering "busy", at once on the reserved threads. Without them
// the runtime's scheduler would make it wait for a time slice of each long task.
func ReserveThreads(n int) {
	reserved.Add(int64(n))
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + n)
}

// MemoryLimit returns the number of bytes that this process may use: the least of GOMEMLIMIT, the
// control group's limit and the machine's memory. If none of them is known, it returns 1 GiB.
func MemoryLimit() int64 {
	limit := debug.SetMemoryLimit(-1)
	for _, path := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		if b, err := os.ReadFile(path); err == nil {
			if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && n > 0 {
				limit = min(limit, n)
			}
		}
	}
	if b, err := os.ReadFile("/proc/meminfo"); err == nil {
		limit = min(limit, memTotal(string(b)))
	}
	if limit > 1<<50 {
		return 1 << 30
	}
	return limit
}

// memTotal returns the machine's memory in bytes, from the first line of /proc/meminfo: "MemTotal:  24682752 kB". For other text it
// returns 1<<62.
func memTotal(meminfo string) int64 {
	line, _, _ := strings.Cut(meminfo, "\n")
	f := strings.Fields(line)
	if len(f) < 2 || f[0] != "MemTotal:" {
		return 1 << 62
	}
	kB, err := strconv.ParseInt(f[1], 10, 64)
	if err != nil || kB <= 0 {
		return 1 << 62
	}
	return kB << 10
}

// IgnoreBrokenPipes makes writes to a closed standard output return an error. Without it the
// runtime ends the process.
func IgnoreBrokenPipes() { signal.Ignore(syscall.SIGPIPE) }
