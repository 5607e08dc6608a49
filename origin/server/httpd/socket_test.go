package httpd

import (
	"bufio"
	"context"
	"encoding/base64"
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

// ticking returns a handler that streams "begin", the elapsed time every 15 s, and "end" when its call ends.
func ticking() *answering {
	return &answering{serve: func(ctx context.Context, r *api.Request) api.Response {
		if r.Authorization != "Key k" {
			return api.Response{Status: 401, ContentType: "application/json", Body: []byte("{}")}
		}
		return api.Response{Status: 200, ContentType: "application/x", Stream: func(w io.Writer) error {
			began := time.Now()
			line := "begin"
			for {
				if _, err := io.WriteString(w, line+"\n"); err != nil {
					return err
				}
				if err := w.(interface{ Flush() error }).Flush(); err != nil {
					return err
				}
				if line == "end" {
					return nil
				}
				select {
				case <-ctx.Done():
					line = "end"
				case <-time.After(15 * time.Second):
					line = fmt.Sprint(time.Since(began))
				}
			}
		}}
	}}
}

func live(h Handler) Options {
	o := options(h)
	o.Mounts = []Mount{{Prefix: "/v2/live", Handler: h, Caller: anyone, Live: true, CallTimeout: time.Hour}, {Prefix: "/v2", Handler: h, Caller: anyone}}
	return o
}

// dialSocket connects a WebSocket that sends its credential as a page does.
func dialSocket(t *testing.T, l *pipeListener, offers ...string) (*websocket.Conn, net.Conn, *http.Response, error) {
	t.Helper()
	c := l.dial("192.0.2.1")
	d := websocket.Dialer{
		NetDial:        func(string, string) (net.Conn, error) { return c, nil },
		ReadBufferSize: 1024, WriteBufferSize: 8 << 10,
	}
	k, res, err := d.Dial("ws://h/v2/live", http.Header{"Sec-WebSocket-Protocol": {strings.Join(offers, ", ")}})
	return k, c, res, err
}

var credential = credentialOf("Key k")

// credentialOf returns a credential in the form in which a page offers it as a protocol.
func credentialOf(authorization string) string {
	return "authorization." + base64.RawURLEncoding.EncodeToString([]byte(authorization))
}

func TestLiveStream(t *testing.T) {
	inBubble(t, live(ticking()), func(t *testing.T, s *Server, l *pipeListener) {
		c := l.dial("192.0.2.1")
		fmt.Fprint(c, "GET /v2/live HTTP/1.1\r\nHost: h\r\nAuthorization: Key k\r\n\r\n")
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || res.StatusCode != 200 {
			t.Fatal(res, err)
		}
		lines, began := bufio.NewScanner(res.Body), time.Now()
		for _, want := range []string{"begin", "15s", "30s", "45s"} {
			if !lines.Scan() || lines.Text() != want {
				t.Fatalf("%q, want %q: %v", lines.Text(), want, lines.Err())
			}
		}
		if d := time.Since(began); d != 45*time.Second {
			t.Errorf("three lines took %v: each goes out with its flush", d)
		}
		drain := make(chan error)
		go func() { drain <- s.Drain(t.Context()) }()
		if !lines.Scan() || lines.Text() != "end" || lines.Scan() || lines.Err() != nil {
			t.Errorf("a draining server ends with %q, %v", lines.Text(), lines.Err())
		}
		if err := <-drain; err != nil || time.Since(began) > 50*time.Second {
			t.Errorf("Drain: %v after %v", err, time.Since(began))
		}
		_ = c.Close()
	})
}

func TestSocket(t *testing.T) {
	inBubble(t, live(ticking()), func(t *testing.T, s *Server, l *pipeListener) {
		k, _, res, err := dialSocket(t, l, "sightline.sync", credential)
		if err != nil || res.Header.Get("Sec-WebSocket-Protocol") != "sightline.sync" {
			t.Fatal(res, err)
		}
		for _, want := range []string{"begin\n", "15s\n", "30s\n"} {
			kind, got, err := k.ReadMessage()
			if err != nil || kind != websocket.BinaryMessage || string(got) != want {
				t.Fatalf("%d %q, want %q: %v", kind, got, want, err)
			}
		}
		ponged := make(chan string, 1)
		k.SetPongHandler(func(text string) error { ponged <- text; return nil })
		if err := k.WriteControl(websocket.PingMessage, []byte("here"), time.Time{}); err != nil {
			t.Error(err)
		}
		if _, got, err := k.ReadMessage(); string(got) != "45s\n" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		if got := <-ponged; got != "here" {
			t.Errorf("the ping is answered with %q", got)
		}
		drain := make(chan error)
		go func() { drain <- s.Drain(t.Context()) }()
		if _, got, err := k.ReadMessage(); string(got) != "end\n" || err != nil {
			t.Errorf("a draining server ends with %q, %v", got, err)
		}
		if _, _, err := k.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
			t.Errorf("then %v, want a normal closure", err)
		}
		if err := <-drain; err != nil || s.sockets.Load() != 0 {
			t.Errorf("Drain: %v, %d sockets are open", err, s.sockets.Load())
		}
	})
}

// TestSocketOffers calls with protocols in several forms. The handler gets the credential and the version that a page offers; a header of the
// request counts first.
func TestSocketOffers(t *testing.T) {
	got := make(chan string, 1)
	_, addr := start(t, live(&answering{serve: func(_ context.Context, r *api.Request) api.Response {
		got <- fmt.Sprintf("%q %q %q", r.Authorization, r.Header("Sync-Protocol"), r.Header("Host"))
		return api.Response{Status: 426, ContentType: "application/json", Body: []byte("{}")}
	}}))
	offer := func(protocols string) string { return "Sec-WebSocket-Protocol: " + protocols + "\r\n" }
	for _, tt := range []struct{ name, headers, want string }{
		{"both", offer("sightline.sync, sync-protocol.2, " + credential), `"Key k" "2" "h"`},
		{"both in another order", offer(credential + ",sync-protocol.2,sightline.sync"), `"Key k" "2" "h"`},
		{"a version and no credential", offer("sync-protocol.2"), `"" "2" "h"`},
		{"a credential and no version", offer("sightline.sync, " + credential), `"Key k" "" "h"`},
		{"an empty version", offer("sync-protocol., " + credential), `"Key k" "" "h"`},
		{"the first of two", offer("sync-protocol.3, sync-protocol.2"), `"" "3" "h"`},
		{"headers", "Authorization: Key j\r\nSync-Protocol: 1\r\n" + offer("sync-protocol.2, "+credential), `"Key j" "1" "h"`},
		{"no offer", "", `"" "" "h"`},
	} {
		answers, _ := exchange(t, addr, "GET /v2/live HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"+tt.headers+"\r\n")
		if have := <-got; have != tt.want || statusesOf(answers) != "426" {
			t.Errorf("%s: %s, status %s, want %s and 426", tt.name, have, statusesOf(answers), tt.want)
		}
	}
	exchange(t, addr, "GET /v2/live HTTP/1.1\r\nHost: h\r\n"+offer("sync-protocol.2, "+credential)+"\r\n")
	if have := <-got; have != `"" "" "h"` {
		t.Errorf("without an upgrade the handler gets %s", have)
	}
}

// TestSocketEndsWithClient: the call ends if its client closes the socket, hangs up, or sends too large a message.
func TestSocketEndsWithClient(t *testing.T) {
	for name, leave := range map[string]func(*websocket.Conn, net.Conn){
		"closes":   func(k *websocket.Conn, _ net.Conn) { _ = k.WriteControl(websocket.CloseMessage, nil, time.Time{}) },
		"hangs up": func(_ *websocket.Conn, c net.Conn) { _ = c.Close() },
		"shouts":   func(k *websocket.Conn, _ net.Conn) { _ = k.WriteMessage(websocket.BinaryMessage, make([]byte, 5<<10)) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, live(ticking()), func(t *testing.T, s *Server, l *pipeListener) {
				k, c, _, err := dialSocket(t, l, "sightline.sync", credential)
				if err != nil {
					t.Fatal(err)
				}
				if _, _, err := k.ReadMessage(); err != nil {
					t.Fatal(err)
				}
				go func() {
					leave(k, c)
				}()
				go func() {
					for {
						if _, _, err := k.ReadMessage(); err != nil {
							return
						}
					}
				}()
				time.Sleep(14 * time.Second) // virtual, and before the next message
				synctest.Wait()
				if n := s.sockets.Load(); n != 0 {
					t.Errorf("%d sockets are open", n)
				}
				_ = c.Close()
			})
		})
	}
}

// TestSlowSocketIsCut has a client that stops reading. The server closes its connection ten seconds after a message.
func TestSlowSocketIsCut(t *testing.T) {
	inBubble(t, live(ticking()), func(t *testing.T, s *Server, l *pipeListener) {
		k, c, _, err := dialSocket(t, l, "sightline.sync", credential)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := k.ReadMessage(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(24 * time.Second) // virtual
		synctest.Wait()
		if n := s.sockets.Load(); n != 1 {
			t.Fatalf("%d sockets after 24 s, want it to have a second more", n)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if n := s.sockets.Load(); n != 0 {
			t.Errorf("%d sockets after 29 s", n)
		}
		_ = c.Close()
	})
}

func TestSocketRefused(t *testing.T) {
	o := live(ticking())
	_, addr := start(t, o)
	hello := func(path, more string) string {
		return "GET " + path + " HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" + more + "\r\n"
	}
	key := "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
	good := "Sec-WebSocket-Protocol: sightline.sync, " + credential + "\r\n"
	for _, tt := range []struct{ name, raw, want string }{
		{"no credential", hello("/v2/live", key), "401"},
		{"a credential that is no base64", hello("/v2/live", key+"Sec-WebSocket-Protocol: authorization.!\r\n"), "401"},
		{"no key", hello("/v2/live", good), "400"},
		{"an old version", hello("/v2/live", good+"Sec-WebSocket-Version: 8\r\n"), "400"},
		{"credentials among offers elsewhere", hello("/v2/other", key+good), "401"},
	} {
		answers, rest := exchange(t, addr, tt.raw)
		if statusesOf(answers) != tt.want || rest != "" {
			t.Errorf("%s: %s %q, want %s", tt.name, statusesOf(answers), rest, tt.want)
		}
	}
	if answers, _ := exchange(t, addr, strings.Replace(hello("/v2/live", good+key), "GET", "HEAD", 1)); statusesOf(answers) == "101" {
		t.Error("HEAD opens a socket")
	}
}

// TestSocketForAFile asks for a WebSocket where the answer has a length. The client gets the answer itself. A socket would hold up to a
// megabyte of it for a client that reads nothing, in nobody's share.
func TestSocketForAFile(t *testing.T) {
	file := func(w io.Writer) error {
		_, err := io.WriteString(w, "file")
		return err
	}
	_, addr := start(t, live(&answering{serve: func(context.Context, *api.Request) api.Response {
		return api.Response{Status: 200, ContentType: "application/x", Length: 4, Stream: file}
	}}))
	answers, rest := exchange(t, addr, "GET /v2/live HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
	if statusesOf(answers) != "200" || rest != "" {
		t.Errorf("%s %q, want 200 with the file", statusesOf(answers), rest)
	}
}
