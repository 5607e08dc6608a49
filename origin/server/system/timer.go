package system

import (
	"context"
	"net"
	"time"
)

// NewTimer is that of package time: it fires once, after d, and can be set again.
func NewTimer(d time.Duration) *time.Timer { return time.NewTimer(d) }

// AfterFunc is time's: f runs in a new goroutine, after d.
func AfterFunc(d time.Duration, f func()) *time.Timer { return time.AfterFunc(d, f) }

// connectTime bounds the time in which a connection is made.
const connectTime = 10 * time.Second

// Connect connects to a host by its name or address ("host:port"), within ten seconds.
func Connect(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: connectTime}
	return d.DialContext(ctx, network, address)
}
