package httpd

import (
	"fmt"
	"math"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/sync/feed"
)

// TestIdleClientsCostLittle measures a client that receives no changes, on a stream and on a WebSocket. The server sends it at most 1,024
// bytes a minute, framing included. If timing counts, the client takes at most 32 KiB of memory, without its pipe.
func TestIdleClientsCostLittle(t *testing.T) {
	for name, upgrade := range map[string]string{
		"stream": "",
		"socket": "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			pullable(t, feed.Limits{}, func(t *testing.T, p *feedServer) {
				if each := idle(t, p, upgrade); testkit.Timing() && (each <= 0 || each > 32<<10) {
					t.Errorf("each takes %d bytes of memory, want at most %d", each, 32<<10)
				}
			})
		})
	}
}

// idle checks the number of bytes that a client gets in a minute, and returns the bytes of memory that each client takes.
func idle(t *testing.T, p *feedServer, upgrade string) int64 {
	const clients, minutes = 100, 10
	buffer := make([]byte, 64<<10)
	begin := func() net.Conn {
		c := p.l.dial("192.0.2.1")
		fmt.Fprintf(c, "GET /v2/sync/changes?app=%s&since=0&live=stream HTTP/1.1\r\nHost: h\r\nAuthorization: Key %s\r\n%s\r\n%s\r\n", p.App, p.Key, protocol, upgrade)
		return c
	}
	// receive reads for the duration d, and returns the number of bytes and the first line.
	receive := func(c net.Conn, d time.Duration) (n int, first string) {
		_ = c.SetReadDeadline(time.Now().Add(d))
		for {
			m, err := c.Read(buffer)
			if n == 0 {
				first, _, _ = strings.Cut(string(buffer[:m]), "\r\n")
			}
			if n += m; err != nil {
				return n, first
			}
		}
	}
	one := begin()
	if n, first := receive(one, time.Second); n == 0 || !strings.HasPrefix(first, "HTTP/1.1 200") && !strings.HasPrefix(first, "HTTP/1.1 101") {
		t.Fatalf("%d bytes: %s", n, first)
	}
	n, _ := receive(one, minutes*time.Minute)
	if n == 0 || n > minutes*1024 {
		t.Errorf("%d bytes in %d minutes, want some, and at most %d", n, minutes, minutes*1024)
	}
	_ = one.Close()
	before := memoryInUse()
	var pipes []net.Conn
	for range clients {
		client, server := net.Pipe()
		pipes = append(pipes, client, server)
		receive(client, 50*time.Millisecond)
		receive(server, 50*time.Millisecond)
	}
	pipe := int64(memoryInUse()) - int64(before)
	runtime.KeepAlive(pipes)
	pipes = nil
	each := int64(math.MaxInt64)
	for range 3 { // other work of the process only adds memory, so the minimum is the best estimate
		before = memoryInUse()
		var more []net.Conn
		for range clients {
			c := begin()
			more = append(more, c)
			if n, _ := receive(c, 20*time.Millisecond); n == 0 {
				t.Fatal("a client hears nothing")
			}
		}
		time.Sleep(3 * time.Second) // the library frees the memory of served requests after a while
		each = min(each, (int64(memoryInUse())-int64(before)-pipe)/clients)
		for _, c := range more {
			_ = c.Close()
		}
		time.Sleep(20 * time.Second)
	}
	t.Logf("each takes %d bytes a minute, and %d of memory", n/minutes, each)
	return each
}

// memoryInUse returns the memory that is in use, heap and stacks.
func memoryInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}
