package process

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// muteTime is the time after which Mute opens a connection again, because the server has closed the previous one by then.
const muteTime = 15 * time.Second

// Mute keeps connections to a server open that send a request and read nothing, until the test ends. It returns once all have sent
// theirs. request returns the bytes of the nth connection, of which the server need not take all.
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

// mute sends a request from the nth loopback address, with a small buffer for the answer. It returns nil if the server does not accept
// it.
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
