package process

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// muteTime is the time after which Mute opens a connection again. By then the server has closed the previous connection.
const muteTime = 15 * time.Second

// Mute opens count connections to a server, which send a request and never read the answer. It returns once it has tried all of them, and
// renews them until the test ends. request returns the bytes that connection n sends; n starts at 0. The server need not read all bytes.
func Mute(t testing.TB, address string, count int, request func(n int) string) {
	t.Helper()
	ending := make(chan struct{})
	var all, begun sync.WaitGroup
	begun.Add(count)
	for n := range count {
		all.Go(func() {
			begin := sync.OnceFunc(begun.Done)
			defer begin()
			for ended := false; !ended; {
				c := mute(address, n, request(n))
				begin()
				select {
				case <-ending:
					ended = true
				case <-time.After(muteTime):
				}
				if c != nil {
					_ = c.Close()
				}
			}
		})
	}
	t.Cleanup(func() {
		close(ending)
		all.Wait()
	})
	begun.Wait()
}

// mute sends a request from the nth loopback address, with a small buffer for the answer. It returns nil if it cannot connect to the
// server.
func mute(address string, n int, request string) net.Conn {
	from := &net.TCPAddr{IP: net.IPv4(127, 0, byte(1+n/250), byte(1+n%250))}
	d := net.Dialer{LocalAddr: from, Timeout: 5 * time.Second}
	c, err := d.Dial("tcp", address)
	if err != nil {
		return nil
	}
	_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
	_ = c.SetWriteDeadline(time.Now().Add(2 * time.Second))
	_, _ = io.WriteString(c, request)
	return c
}
