package httpd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sightline-dev/sightline/core/api"
)

// TestFloodEvictsTheLongestWaiting opens more connections than the limit. New clients are served, the oldest silent connections are closed,
// and a request in progress is not.
func TestFloodEvictsTheLongestWaiting(t *testing.T) {
	h := &echo{}
	o := options(h)
	o.MaxConns = 10
	inBubble(t, o, func(t *testing.T, s *Server, l *pipeListener) {
		inside, leave := make(chan bool), make(chan bool) // belong to this bubble
		h.do = func(_ context.Context, r *api.Request) {
			if r.Path == "/v2/hold" {
				inside <- true
				<-leave
			}
		}
		active := l.dial("192.0.2.1")
		fmt.Fprint(active, "GET /v2/hold HTTP/1.1\r\nHost: h\r\n\r\n")
		<-inside
		var flood []net.Conn
		for i := range 50 {
			flood = append(flood, l.dial(fmt.Sprintf("198.51.100.%d", i)))
		}
		synctest.Wait()
		if n := s.openConnections(); n != 10 {
			t.Errorf("%d connections are open, want 10", n)
		}
		innocent := l.dial("192.0.2.2")
		fmt.Fprint(innocent, get)
		if b := make([]byte, 12); !readFull(innocent, b) || string(b) != "HTTP/1.1 200" {
			t.Errorf("the innocent gets %q", b)
		}
		_ = innocent.Close()
		if n, err := flood[0].Read(make([]byte, 1)); err == nil {
			t.Errorf("the first of the flood still reads %d bytes", n)
		}
		leave <- true
		if b := make([]byte, 12); !readFull(active, b) || string(b) != "HTTP/1.1 200" {
			t.Errorf("the request that was worked on gets %q", b)
		}
		_ = active.Close()
		for _, c := range flood {
			_ = c.Close()
		}
	})
}

func readFull(c net.Conn, b []byte) bool {
	_, err := io.ReadFull(c, b)
	return err == nil
}

func TestConnectionsPerClient(t *testing.T) {
	o := options(&echo{})
	o.MaxConnsPerIP = 2
	inBubble(t, o, func(t *testing.T, _ *Server, l *pipeListener) {
		a, b := l.dial("2001:db8::1"), l.dial("2001:db8::2") // one /64 counts as one client
		third := l.dial("2001:db8::ffff")
		answer, _ := io.ReadAll(third)
		if !strings.HasPrefix(string(answer), "HTTP/1.1 429") || !strings.Contains(string(answer), `"code":11005`) {
			t.Errorf("the third connection reads %q, want 429", answer)
		}
		other := l.dial("2001:db8:0:1::1")
		fmt.Fprint(other, get)
		if b := make([]byte, 12); !readFull(other, b) || string(b) != "HTTP/1.1 200" {
			t.Errorf("another client gets %q", b)
		}
		for _, c := range []net.Conn{a, b, third, other} {
			_ = c.Close()
		}
		synctest.Wait()
		fourth := l.dial("2001:db8::3")
		fmt.Fprint(fourth, get)
		if b := make([]byte, 12); !readFull(fourth, b) || string(b) != "HTTP/1.1 200" {
			t.Errorf("the client that has closed gets %q", b)
		}
		_ = fourth.Close()
	})
}

// TestDrain drains a server with a call in progress, an idle connection, a silent one and one in the middle of a request body. The call and
// the request with the body are answered, with Connection: close.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inside := make(chan bool)
		h := &echo{do: func(ctx context.Context, r *api.Request) {
			if r.Path == "/v2/hold" {
				inside <- true
				time.Sleep(3 * time.Second) // virtual work
			}
		}}
		s, err := New(options(h))
		if err != nil {
			t.Fatal(err)
		}
		l := newPipes()
		done := make(chan error)
		go func() { done <- s.Serve(l) }()
		working, idle, quiet, arriving := l.dial("192.0.2.1"), l.dial("192.0.2.2"), l.dial("192.0.2.3"), l.dial("192.0.2.4")
		fmt.Fprint(idle, get)
		if b := make([]byte, 12); !readFull(idle, b) {
			t.Fatal("no answer before draining")
		}
		go func() { _, _ = io.Copy(io.Discard, idle) }()
		fmt.Fprint(working, "GET /v2/hold HTTP/1.1\r\nHost: h\r\n\r\n")
		<-inside
		fmt.Fprint(arriving, "POST /v2/late HTTP/1.1\r\nHost: h\r\nContent-Length: 10000\r\n\r\n", strings.Repeat("x", 5000))
		synctest.Wait()

		drained := make(chan error)
		start := time.Now()
		go func() { drained <- s.Drain(t.Context()) }()
		read := func(c net.Conn) chan string {
			out := make(chan string, 1)
			go func() {
				b, _ := io.ReadAll(c)
				out <- string(b)
			}()
			return out
		}
		gotWorking, gotQuiet, gotArriving := read(working), read(quiet), read(arriving)
		time.Sleep(time.Second) // virtual
		fmt.Fprint(arriving, strings.Repeat("x", 5000))
		if err := <-drained; err != nil {
			t.Errorf("Drain: %v", err)
		}
		for name, got := range map[string]string{"working": <-gotWorking, "arriving": <-gotArriving} {
			if !strings.HasPrefix(got, "HTTP/1.1 200") || !strings.Contains(got, "Connection: close") {
				t.Errorf("%s: %.200q, want 200 and a close", name, got)
			}
		}
		if got := <-gotQuiet; got != "" {
			t.Errorf("the silent connection reads %q", got)
		}
		if d := time.Since(start); d > 4*time.Second {
			t.Errorf("drained in %v, want the 3 s of the work and a little", d)
		}
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
		_ = idle.Close()
		settle()
	})
}

// TestDrainGivesUp cancels a call that does not end, and lets it answer.
func TestDrainGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inside := make(chan bool)
		h := &echo{do: func(ctx context.Context, _ *api.Request) {
			inside <- true
			<-ctx.Done()
		}}
		s, err := New(options(h))
		if err != nil {
			t.Fatal(err)
		}
		l := newPipes()
		done := make(chan error)
		go func() { done <- s.Serve(l) }()
		c := l.dial("192.0.2.1")
		fmt.Fprint(c, get)
		<-inside
		got := make(chan string)
		go func() {
			b, _ := io.ReadAll(c)
			got <- string(b)
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
		defer cancel()
		start := time.Now()
		if err := s.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Drain = %v, want DeadlineExceeded", err)
		}
		if d := time.Since(start); d > 9*time.Second {
			t.Errorf("Drain took %v", d)
		}
		if answer := <-got; !strings.HasPrefix(answer, "HTTP/1.1 200") {
			t.Errorf("the cancelled call answers %q", answer)
		}
		<-done
		settle()
	})
}
