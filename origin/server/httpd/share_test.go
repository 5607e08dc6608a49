package httpd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sightline-dev/sightline/core/api"
)

// heavy answers with size bytes, except for paths that end in small.
type heavy struct {
	echo
	size int
}

func (h *heavy) Serve(ctx context.Context, r *api.Request) api.Response {
	if strings.HasSuffix(r.Path, "small") {
		return h.echo.Serve(ctx, r)
	}
	return api.Response{Status: 200, ContentType: "text/plain", Body: make([]byte, h.size)}
}

// asks connects and sends a request with a caller's credential.
func asks(l *pipeListener, caller, path string) net.Conn {
	c := l.dial("192.0.2.1")
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: h\r\nConnection: close\r\nAuthorization: %s\r\n\r\n", path, caller)
	return c
}

// readAnswer reads an answer, and returns its status and the bytes of its body.
func readAnswer(c net.Conn) (status string, size int) {
	defer c.Close()
	b, _ := io.ReadAll(c)
	header, body, _ := strings.Cut(string(b), "\r\n\r\n")
	return header[:min(len(header), len("HTTP/1.1 200"))], len(body)
}

// TestHostileReaders makes 200 connections of one caller request large answers and read nothing. They use half of the memory for answers,
// and other callers still get answers. After stallTimeout the server closes these connections and frees the memory.
func TestHostileReaders(t *testing.T) {
	o := options(&heavy{size: 1 << 20})
	o.AnswerBudget = 16 << 20
	inBubble(t, o, func(t *testing.T, s *Server, l *pipeListener) {
		var mute []net.Conn
		for range 200 {
			mute = append(mute, asks(l, "mute", "/v2/big"))
		}
		synctest.Wait()
		if left := s.answers.Free(); left < o.AnswerBudget/2 || left > o.AnswerBudget/2+1<<20 {
			t.Errorf("%d bytes are left of %d, want about half", left, o.AnswerBudget)
		}
		for path, want := range map[string]int{"/v2/big": 1 << 20, "/v2/small": 70} {
			if status, size := readAnswer(asks(l, "other", path)); status != "HTTP/1.1 200" || size < want {
				t.Errorf("another caller, %s: %s with %d bytes", path, status, size)
			}
		}
		if status, size := readAnswer(asks(l, "mute", "/v2/small")); status != "HTTP/1.1 200" || size == 0 {
			t.Errorf("the same caller, a small answer: %s with %d bytes", status, size)
		}
		if status, _ := readAnswer(asks(l, "mute", "/v2/big")); status != "HTTP/1.1 503" {
			t.Errorf("the same caller, a large answer: %s, want 503", status)
		}
		time.Sleep(stallTimeout + time.Second) // virtual
		synctest.Wait()
		if left, open := s.answers.Free(), s.openConnections(); left != o.AnswerBudget || open != 0 {
			t.Errorf("%d bytes are left of %d and %d connections are open, want all and none", left, o.AnswerBudget, open)
		}
		for _, c := range mute {
			_ = c.Close()
		}
	})
}

// TestPacedAnswer reads an answer at a rate. A client with at least the minimum rate gets all of it, however long that takes, and however
// long the server computes meanwhile. The rate is the same for a body, a stream and a hosted file.
func TestPacedAnswer(t *testing.T) {
	const size = 3 << 20
	stream := func(pause time.Duration) Options {
		return options(streaming(func(_ context.Context, w io.Writer) error {
			for range size / chunkBytes {
				time.Sleep(pause) // virtual
				if _, err := w.Write(make([]byte, chunkBytes)); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	file := options(&echo{})
	file.Hosted = pictures{p: Picture{ContentType: "image/jpeg"}, b: strings.Repeat("p", size)}.Open
	for _, tt := range []struct {
		name     string
		bytes    int // per read
		pause    time.Duration
		complete bool
	}{
		{"fast", 256 << 10, time.Millisecond, true},
		{"just enough", 64 << 10, 3500 * time.Millisecond, true},
		{"dripping", 64 << 10, 9 * time.Second, false},
		{"stalling", 1 << 20, 11 * time.Second, false},
	} {
		for kind, of := range map[string]struct {
			o    Options
			path string
		}{
			"body":                      {options(&heavy{size: size}), "/v2/big"},
			"stream":                    {stream(0), "/v2/x"},
			"stream of a slow producer": {stream(15 * time.Second), "/v2/x"},
			"file":                      {file, "/hosted/0123456789abcdef0123456789abcdef"},
		} {
			if kind == "stream of a slow producer" && tt.name == "dripping" {
				continue // the client is faster than the producer
			}
			t.Run(kind+"/"+tt.name, func(t *testing.T) {
				o := of.o
				o.Metrics = prometheus.NewRegistry()
				inBubble(t, o, func(t *testing.T, _ *Server, l *pipeListener) {
					c := asks(l, "a", of.path)
					defer c.Close()
					got, b := 0, make([]byte, tt.bytes)
					for err := error(nil); err == nil; time.Sleep(tt.pause) {
						var n int
						n, err = io.ReadFull(c, b)
						got += n
					}
					if complete := got > size; complete != tt.complete {
						t.Errorf("%d bytes of %d, whole: %t, want %t", got, size, complete, tt.complete)
					}
				})
			})
		}
	}
}

// TestStreamsReserveMemoryUntilEnd makes streams reserve memory that they keep until they end. Others get what is left, and all of it
// afterwards.
func TestStreamsReserveMemoryUntilEnd(t *testing.T) {
	o := options(&answering{serve: func(_ context.Context, r *api.Request) api.Response {
		if !r.Memory.Reserve(2 << 20) {
			return api.Response{Status: 503}
		}
		return api.Response{Status: 200, Stream: func(w io.Writer) error {
			_, err := w.Write(make([]byte, 1<<20))
			return err
		}}
	}})
	o.AnswerBudget = 8 << 20
	inBubble(t, o, func(t *testing.T, s *Server, l *pipeListener) {
		var mute []net.Conn
		for range 10 {
			mute = append(mute, asks(l, "mute", "/v2/x"))
		}
		synctest.Wait()
		if left := s.answers.Free(); left != o.AnswerBudget-2*(2<<20-smallAnswer) {
			t.Errorf("%d bytes are left of %d, want those of two streams taken", left, o.AnswerBudget)
		}
		if status, size := readAnswer(asks(l, "other", "/v2/x")); status != "HTTP/1.1 200" || size < 1<<20 {
			t.Errorf("another caller: %s with %d bytes", status, size)
		}
		for _, c := range mute {
			_ = c.Close()
		}
		synctest.Wait()
		if left := s.answers.Free(); left != o.AnswerBudget {
			t.Errorf("%d bytes are left of %d at the end", left, o.AnswerBudget)
		}
	})
}

// identifyCaller returns the credential as the caller. Without a credential it refuses closed paths, and returns the unknown caller for
// other paths.
func identifyCaller(_ context.Context, r *api.Request) (string, error) {
	if r.Authorization == "" && strings.HasPrefix(r.Path, "/v2/closed") {
		return "", api.ErrPath
	}
	return r.Authorization, nil
}

// TestHostileBodies makes 120 connections without a credential declare bodies and send a part. On a path that needs a credential they are
// refused at once. On another path they share a small budget. The bodies of other callers arrive.
func TestHostileBodies(t *testing.T) {
	h := &echo{}
	o := options(h)
	o.Mounts[0].Caller = identifyCaller
	o.MaxBody, o.BodyBudget = 8<<20, 64<<20
	inBubble(t, o, func(t *testing.T, s *Server, l *pipeListener) {
		var mute []net.Conn
		status := make(chan string)
		for i := range 120 {
			c := l.dial(fmt.Sprintf("198.51.100.%d", i))
			path, length := "/v2/closed", 8<<20
			if i >= 60 {
				path, length = "/v2/login", 1<<20
			}
			mute = append(mute, c)
			go func() {
				b := make([]byte, len("HTTP/1.1 200"))
				_, _ = io.ReadFull(c, b)
				if path == "/v2/closed" {
					status <- string(b)
				}
				_, _ = io.Copy(io.Discard, c)
			}()
			go fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", path, length, strings.Repeat("x", 300<<10))
		}
		for range 60 {
			if got := <-status; got != "HTTP/1.1 400" { // the status of this handler for an unknown path
				t.Errorf("without a credential where one is needed: %s", got)
			}
		}
		synctest.Wait()
		if s.bodies.Free() != o.BodyBudget || s.unknown.Free() == o.BodyBudget/16 {
			t.Errorf("strangers hold %d bytes of others and %d of their own, want none and some",
				o.BodyBudget-s.bodies.Free(), o.BodyBudget/16-s.unknown.Free())
		}
		for range 10 {
			c := l.dial("192.0.2.1")
			go fmt.Fprintf(c, "POST /v2/closed HTTP/1.1\r\nHost: h\r\nConnection: close\r\nAuthorization: a\r\nContent-Length: %d\r\n\r\n%s", o.MaxBody, strings.Repeat("x", int(o.MaxBody)))
			if got, _ := readAnswer(c); got != "HTTP/1.1 200" {
				t.Errorf("a body of a caller that is known: %s, want 200", got)
			}
		}
		c := l.dial("192.0.2.1")
		go fmt.Fprint(c, "POST /v2/login HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")
		if got, _ := readAnswer(c); got != "HTTP/1.1 200" {
			t.Errorf("a small body of a stranger: %s, want 200", got)
		}
		for _, c := range mute {
			_ = c.Close()
		}
		synctest.Wait()
		if left := s.unknown.Free(); left != o.BodyBudget/16 {
			t.Errorf("%d bytes are left to strangers, want %d", left, o.BodyBudget/16)
		}
	})
}

// TestBodiesReserveReceivedBytes declares large bodies and sends a small part. A body only reserves memory for received bytes.
func TestBodiesReserveReceivedBytes(t *testing.T) {
	o := options(&echo{})
	o.MaxBody, o.BodyBudget = 8<<20, 64<<20
	inBubble(t, o, func(t *testing.T, s *Server, l *pipeListener) {
		var slow []net.Conn
		for range 50 {
			c := l.dial("192.0.2.1")
			fmt.Fprintf(c, "POST /v2/x HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", o.MaxBody, strings.Repeat("x", 9<<10))
			slow = append(slow, c)
		}
		synctest.Wait()
		if reserved := o.BodyBudget - s.bodies.Free(); reserved != 50*firstBytes {
			t.Errorf("50 bodies of which 9 KB have come hold %d bytes, want %d", reserved, 50*firstBytes)
		}
		for _, c := range slow {
			_ = c.Close()
		}
	})
}

// TestRefusedCallerKeepsItsConnection sends a wrong credential with a small body, and then a valid credential over the same connection.
func TestRefusedCallerKeepsItsConnection(t *testing.T) {
	o := options(&echo{})
	o.Mounts[0].Caller = func(_ context.Context, r *api.Request) (string, error) {
		if r.Authorization != "right" {
			return "", errors.New("wrong")
		}
		return "right", nil
	}
	_, address := start(t, o)
	answers, _ := exchange(t, address, "POST /v2/x HTTP/1.1\r\nHost: h\r\nAuthorization: wrong\r\nContent-Length: 2\r\n\r\n{}"+
		"POST /v2/x HTTP/1.1\r\nHost: h\r\nAuthorization: right\r\nContent-Length: 2\r\n\r\n{}")
	if got := statusesOf(answers); got != "400 200" {
		t.Errorf("answers %s, want 400 200", got)
	}
	large := strings.Repeat("x", 5<<20)
	answers, _ = exchange(t, address, fmt.Sprintf("POST /v2/x HTTP/1.1\r\nHost: h\r\nAuthorization: wrong\r\nContent-Length: %d\r\n\r\n%s", len(large), large))
	if got := statusesOf(answers); got != "400" || answers[0].Header.Get("Connection") != "close" && answers[0].Close != true {
		t.Errorf("a large body: %s, want 400 and a close", got)
	}
	if _, ok := answers[0].Header[http.CanonicalHeaderKey("X-Request-Id")]; !ok {
		t.Error("the refusal has no request id")
	}
}

// TestAnswersWithoutMemory makes calls while there is no memory for a large answer. A call that only reads is refused. A call that has
// written reports success.
func TestAnswersWithoutMemory(t *testing.T) {
	o := options(&heavy{size: 1 << 20})
	o.AnswerBudget = 1 << 20
	_, address := start(t, o)
	for call, want := range map[string]string{
		"POST /v2/inputs": "200", "PATCH /v2/inputs": "200", "POST /v2/searches": "503", "GET /v2/inputs": "503", "HEAD /v2/inputs": "503", "GET /else": "503",
	} {
		answers, _ := exchange(t, address, call+" HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")
		if len(answers) != 1 || statusesOf(answers) != want {
			t.Errorf("%s: %s, want %s", call, statusesOf(answers), want)
			continue
		}
		if body := text(t, answers[0]); want == "200" && (!strings.Contains(body, `"code":10000`) || !strings.Contains(body, `"inputs":[]`)) {
			t.Errorf("%s: %s, want an empty list", call, body)
		}
	}
}
