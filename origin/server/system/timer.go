package system

import (
	"context"
	"net"
	"time"
)

// NewTimer calls time.NewTimer.
func NewTimer(d time.Duration) *time.Timer { return time.NewTimer(d) }

// AfterFunc calls time.AfterFunc: f runs in a new goroutine, after d.
func AfterFunc(d time.Duration, f func()) *time.Timer { return time.AfterFunc(d, f) }

// connectTime is the time limit of Connect.
const connectTime = 10 * time.Second

// Connect connects to address ("host:port"), where host is a name or an IP address. It fails after ten seconds.
func Connect(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: connectTime}
	return d.DialContext(ctx, network, address)
}
