package httpd

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fasthttp/websocket"

	"github.com/sightline-dev/sightline/core/api"
)

// events is a handler that streams the lines of a channel. It streams "end" if its call ends, and closes ended at the end.
func events(lines chan string, ended chan bool) *answering {
	return &answering{serve: func(ctx context.Context, r *api.Request) api.Response {
		return api.Response{Status: 200, ContentType: "application/x", Stream: func(w io.Writer) error {
			defer close(ended)
			line := "begin " + r.Authorization
			for {
				if _, err := io.WriteString(w, line+"\n"); err != nil {
					return err
				}
				if err := w.(flusher).Flush(); err != nil {
					return err
				}
				if line == "end" {
					return nil
				}
				select {
				case <-ctx.Done():
					line = "end"
				case line = <-lines:
				}
			}
		}}
	}}
}

// TestForwardedLiveStream sends each event after the client has received the previous one. When the first node drains, the stream breaks. When
// the second node drains, the stream ends.
func TestForwardedLiveStream(t *testing.T) {
	for _, first := range []bool{true, false} {
		lines, ended := make(chan string, 1), make(chan bool)
		a, b, address, _ := startPair(t, live(events(lines, ended)))
		res, err := http.Get("http://" + address + "/v2/live")
		if err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(res.Body)
		for _, next := range []string{"one", "two", "three"} {
			if got, err := r.ReadString('\n'); err != nil || got == "" {
				t.Fatal(got, err)
			}
			lines <- next
		}
		if got, err := r.ReadString('\n'); got != "three\n" {
			t.Errorf("%q, %v", got, err)
		}
		drained := a
		if !first {
			drained = b
		}
		drainServer(t, drained)
		rest, err := io.ReadAll(r)
		if first != (err != nil) || first != (string(rest) == "") {
			t.Errorf("the first node drains: %t: %q, %v", first, rest, err)
		}
		_ = res.Body.Close()
		untilEnded(lines, ended)
	}
}

// untilEnded sends lines until the handler ends: it notices a broken connection by its writes.
func untilEnded(lines chan string, ended chan bool) {
	for {
		select {
		case lines <- "more":
		case <-ended:
			return
		}
	}
}

// TestForwardedSocket opens a WebSocket through another node. It ends in several ways.
func TestForwardedSocket(t *testing.T) {
	for _, end := range []string{"client closes", "client disconnects", "first node drains", "second node drains"} {
		t.Run(end, func(t *testing.T) {
			lines, ended := make(chan string, 1), make(chan bool)
			a, b, address, heard := startPair(t, live(events(lines, ended)))
			d := websocket.Dialer{Subprotocols: []string{socketProtocol, credential}}
			k, res, err := d.Dial("ws://"+address+"/v2/live", nil)
			if err != nil {
				t.Fatal(res, err)
			}
			defer k.Close()
			if res.Header.Get("Sec-Websocket-Protocol") != socketProtocol || res.Header.Get("Content-Security-Policy") != apiPolicy {
				t.Errorf("headers %v", res.Header)
			}
			if head := heard.heads()[0]; !strings.Contains(head, "Upgrade: websocket\r\n") || !strings.Contains(head, "X-Forwarded-For: 127.0.0.1") {
				t.Errorf("the other node gets %q", head)
			}
			k.SetPongHandler(func(text string) error { lines <- "pong " + text; return nil })
			read := func(want string) {
				t.Helper()
				if _, got, err := k.ReadMessage(); err != nil || string(got) != want {
					t.Fatalf("%.50q, %v; want %.50q", got, err, want)
				}
			}
			read("begin Key k\n")
			for _, line := range []string{"one", "two", strings.Repeat("x", 100_000)} {
				lines <- line
				read(line + "\n")
			}
			if err := k.WriteControl(websocket.PingMessage, []byte("here"), time.Time{}); err != nil {
				t.Error(err)
			}
			read("pong here\n")
			switch end {
			case "client closes":
				_ = k.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Time{})
			case "client disconnects":
				_ = k.Close()
			case "first node drains":
				drainServer(t, a)
			case "second node drains":
				go func() { _ = b.Drain(context.Background()) }()
			}
			var last string
			for err == nil {
				var got []byte
				if _, got, err = k.ReadMessage(); err == nil {
					last = string(got)
				}
			}
			if end == "second node drains" && (last != "end\n" || !websocket.IsCloseError(err, websocket.CloseNormalClosure)) {
				t.Errorf("the last message is %q, then %v", last, err)
			}
			<-ended
		})
	}
}

// TestRefusedSocket asks another node for a WebSocket that it refuses, and for one that the first node cannot join.
func TestRefusedSocket(t *testing.T) {
	_, _, address, _ := startPair(t, live(ticking()))
	hello := "GET /v2/live HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
	if res, _, err := ask(t, address, hello); err != nil || res.StatusCode != 401 {
		t.Errorf("no credential: %v, %v", res, err)
	}
	o := options(&echo{})
	o.Forward = by(func(r *http.Request) (*http.Response, error) { return received(r, 101, strings.NewReader(""), 0), nil })
	_, address = start(t, o)
	if res, _, err := ask(t, address, get); err != nil || res.StatusCode != 503 {
		t.Errorf("an unexpected 101: %v, %v", res, err)
	}
}

// TestBrokenForwards ends the other node's connection in several phases of an answer. The client notices that its answer is incomplete.
func TestBrokenForwards(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\n"
	for name, answer := range map[string]string{
		"length":         head + "Content-Length: 100000\r\n\r\n" + strings.Repeat("x", 50_000),
		"chunks":         head + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
		"part of chunk":  head + "Transfer-Encoding: chunked\r\n\r\n5\r\nhel",
		"no answer":      "",
		"part of a head": head + "Content-",
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					_, _ = http.ReadRequest(bufio.NewReader(c))
					_, _ = io.WriteString(c, answer)
					_ = c.Close()
				}
			}()
			defer l.Close()
			o := options(&echo{})
			o.Forward = to(t, l.Addr().String())
			_, address := start(t, o)
			res, body, err := ask(t, address, get)
			if whole := strings.Contains(answer, "\r\n\r\n"); whole && err == nil || !whole && (err != nil || res.StatusCode != 503) {
				t.Errorf("%v with %d bytes, %v", res, len(body), err)
			}
		})
	}
}

// closing reports when a body is closed.
type closing struct {
	io.Reader
	closed chan struct{}
}

func (c closing) Close() error { close(c.closed); return nil }

// TestSlowClientsOfForwards lets clients read nothing, or a part. The server cuts them off as without a cluster, and ends the other node's
// answer. A client of a live stream may wait for hours.
func TestSlowClientsOfForwards(t *testing.T) {
	for _, tt := range []struct {
		name, path string
		endless    bool
	}{{"answer", "/v2/x", true}, {"live", "/v2/live", true}, {"quiet live stream", "/v2/live", false}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in, out := io.Pipe()
				closed := make(chan struct{})
				o := live(&echo{})
				o.Forward = by(func(r *http.Request) (*http.Response, error) {
					res := received(r, 200, nil, -1)
					res.Body = closing{in, closed}
					return res, nil
				})
				s, err := New(o)
				if err != nil {
					t.Fatal(err)
				}
				l := newPipes()
				done := make(chan error)
				go func() { done <- s.Serve(l) }()
				c := l.dial("192.0.2.1")
				fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: h\r\n\r\n", tt.path)
				go func() {
					for err := error(nil); err == nil; {
						_, err = out.Write(make([]byte, 1000))
						if !tt.endless {
							time.Sleep(time.Hour) // virtual
						}
					}
				}()
				start := time.Now()
				if tt.endless {
					<-closed
					if d := time.Since(start); d > stallTimeout+time.Second {
						t.Errorf("cut off after %v", d)
					}
				} else if n, err := io.ReadFull(c, make([]byte, 10_000)); err != nil || time.Since(start) < 5*time.Hour {
					t.Errorf("%d bytes, %v after %v", n, err, time.Since(start))
				}
				_ = c.Close()
				_ = in.Close()
				if err := s.Drain(t.Context()); err != nil {
					t.Error(err)
				}
				<-done
				<-closed
				time.Sleep(2 * time.Hour) // the writer notices the end
			})
		})
	}
}

// TestDrainWithForwards drains the first node and the second one during a call. The client gets its answer, with Connection: close.
func TestDrainWithForwards(t *testing.T) {
	for _, first := range []bool{true, false} {
		began, end := make(chan bool), make(chan bool)
		a, b, address, _ := startPair(t, options(&echo{do: func(context.Context, *api.Request) {
			began <- true
			<-end
		}}))
		answer := make(chan *http.Response)
		go func() {
			res, _, err := ask(t, address, get)
			if err != nil {
				t.Error(err)
			}
			answer <- res
		}()
		<-began
		drained := a
		if !first {
			drained = b
		}
		done, draining, pause := make(chan error), make(chan bool, 1), drained.o.Pause
		drained.o.Pause = func(ctx context.Context, d time.Duration) {
			select {
			case draining <- true:
			default:
			}
			pause(ctx, d)
		}
		go func() { done <- drained.Drain(t.Context()) }()
		<-draining
		close(end)
		if res := <-answer; res == nil || res.StatusCode != 200 || res.Close != first {
			t.Errorf("the first node drains: %t: %v", first, res)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// TestDrainGivesUpForwards drains a node for which the other node has no answer.
func TestDrainGivesUpForwards(t *testing.T) {
	began := make(chan bool)
	o := options(&echo{})
	o.Forward = by(func(r *http.Request) (*http.Response, error) {
		began <- true
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	s, address := start(t, o)
	answer := make(chan int)
	go func() {
		res, _, err := ask(t, address, get)
		if err != nil {
			t.Error(err)
		}
		answer <- res.StatusCode
	}()
	<-began
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = s.Drain(ctx)
	if got := <-answer; got != 503 {
		t.Errorf("the call gets %d, want 503", got)
	}
}

// BenchmarkForward measures a small call at a server, and through another node.
func BenchmarkForward(b *testing.B) {
	_, heard := startNode(b, options(&echo{}))
	o := options(&echo{})
	o.Forward = to(b, heard.Addr().String())
	_, address := start(b, o)
	for name, address := range map[string]string{"direct": heard.Addr().String(), "forwarded": address} {
		b.Run(name, func(b *testing.B) {
			var c net.Conn
			var r *bufio.Reader
			b.ReportAllocs()
			for calls := 0; b.Loop(); calls++ {
				if calls%5000 == 0 { // below the maximum of a connection
					var err error
					if c, err = net.Dial("tcp", address); err != nil {
						b.Fatal(err)
					}
					defer c.Close()
					r = bufio.NewReader(c)
				}
				fmt.Fprint(c, "POST /v2/x HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}")
				res, err := http.ReadResponse(r, nil)
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, res.Body) // an error ends the next read
			}
		})
	}
}
