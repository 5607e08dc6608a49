package httpd

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pipeListener is a listener for in-memory connections, which work with virtual time.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func newPipes() *pipeListener {
	return &pipeListener{make(chan net.Conn), make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}
func (l *pipeListener) Close() error   { close(l.closed); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// from is a connection with a fake remote address.
type from struct {
	net.Conn
	remote net.Addr
}

func (f from) RemoteAddr() net.Addr { return f.remote }

func (l *pipeListener) dial(ip string) net.Conn {
	client, server := net.Pipe()
	l.conns <- from{server, &net.TCPAddr{IP: net.ParseIP(ip), Port: 1}}
	return client
}

// inBubble runs a server and a test in virtual time.
func inBubble(t *testing.T, o Options, test func(t *testing.T, s *Server, l *pipeListener)) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		l := newPipes()
		done := make(chan error)
		go func() { done <- s.Serve(l) }()
		test(t, s, l)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if err := s.Drain(ctx); err != nil {
			t.Errorf("Drain: %v", err)
		}
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
		settle()
	})
}

// settle gives the library's worker pool two virtual seconds to notice that it has stopped.
func settle() { time.Sleep(2 * time.Second) }

// drip sends raw, then one byte every interval. It returns the answer and the time until the server closed the connection.
func drip(l *pipeListener, raw string, interval time.Duration) (answer string, after time.Duration) {
	c := l.dial("192.0.2.1")
	start := time.Now()
	got := make(chan string)
	go func() {
		b, _ := io.ReadAll(c)
		got <- string(b)
	}()
	stop := make(chan struct{})
	go func() {
		_, err := io.WriteString(c, raw)
		for err == nil {
			select {
			case <-stop:
				return
			case <-time.After(interval):
				_, err = io.WriteString(c, "x")
			}
		}
	}()
	answer = <-got
	after = time.Since(start)
	close(stop)
	_ = c.Close()
	return answer, after
}

func TestSlowClientsAreCut(t *testing.T) {
	tests := []struct {
		name, raw, want string
		limit           time.Duration
	}{
		{"silent", "", "HTTP/1.1 408", 10 * time.Second},
		{"dripping header", "GET / HTTP/1.1\r\nHost: h\r\nX: ", "HTTP/1.1 408", 10 * time.Second},
		{"small body never comes", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n", "HTTP/1.1 408", 5 * time.Second},
		{"big body never comes", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 90000000\r\n\r\n" + strings.Repeat("x", 9000), "HTTP/1.1 408", 6 * time.Second},
		{"dripping body", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 90000000\r\n\r\n" + strings.Repeat("x", 90_000), "HTTP/1.1 408", 11 * time.Second},
		{"dripping chunks", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5;", "HTTP/1.1 408", 6 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, options(&echo{}), func(t *testing.T, _ *Server, l *pipeListener) {
				answer, after := drip(l, tt.raw, time.Second)
				if !strings.HasPrefix(answer, tt.want) || after > tt.limit {
					t.Errorf("cut after %v with %.60q, want %s within %v", after, answer, tt.want, tt.limit)
				}
			})
		})
	}
}

// TestPacedBody sends bodies at a sufficient rate and below it. A body that takes longer than the maximum time is refused, even at a
// sufficient rate.
func TestPacedBody(t *testing.T) {
	for _, tt := range []struct {
		name   string
		rate   int // bytes a second
		length int
		want   string
	}{
		{"just enough", 20 << 10, 1 << 20, "HTTP/1.1 200"},
		{"for ever", 20 << 10, 10 << 20, "HTTP/1.1 408"},
		{"too slow", 8 << 10, 1 << 20, "HTTP/1.1 408"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, options(&echo{}), func(t *testing.T, _ *Server, l *pipeListener) {
				c := l.dial("192.0.2.1")
				start := time.Now()
				got := make(chan string)
				go func() {
					b := make([]byte, 20)
					n, _ := io.ReadFull(c, b)
					got <- string(b[:n])
					_, _ = io.Copy(io.Discard, c)
				}()
				go func() {
					_, err := fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: %d\r\n\r\n", tt.length)
					for sent := 0; sent < tt.length && err == nil; sent += tt.rate {
						time.Sleep(time.Second) // virtual
						_, err = c.Write(make([]byte, min(tt.rate, tt.length-sent)))
					}
				}()
				if answer := <-got; !strings.HasPrefix(answer, tt.want) || time.Since(start) > 61*time.Second {
					t.Errorf("%q after %v, want %s", answer, time.Since(start), tt.want)
				}
				_ = c.Close()
			})
		})
	}
}
