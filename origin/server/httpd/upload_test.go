package httpd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sightline-dev/sightline/core/api"
)

// by returns a Forward that answers every request with send.
func by(send Forwarder) func(context.Context, *api.Request) (Forwarder, error) {
	return func(context.Context, *api.Request) (Forwarder, error) { return send, nil }
}

// received is an answer of another node.
func received(r *http.Request, status int, body io.Reader, length int64) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(body), ContentLength: length, Request: r}
}

// bodyOf returns a body of n bytes with a length, and in chunks.
func bodyOf(n int) (body, declared, chunked string) {
	var period, c strings.Builder
	for period.Len() < 49_999 { // no size of a buffer is a multiple
		fmt.Fprintf(&period, "%d ", period.Len())
	}
	body = strings.Repeat(period.String(), n/period.Len()+1)[:n]
	for rest := body; len(rest) > 0; {
		part := rest[:min(len(rest), 50_000)]
		rest = rest[len(part):]
		fmt.Fprintf(&c, "%x;x=y\r\n%s\r\n", len(part), part)
	}
	return body, fmt.Sprintf("Content-Length: %d\r\n\r\n%s", n, body), "Transfer-Encoding: chunked\r\n\r\n" + c.String() + "0\r\n\r\n"
}

// TestForwardedBodies forwards bodies of many sizes. The other node gets the same bytes. Bodies up to 1 MB can be sent again, if their
// caller has memory left.
func TestForwardedBodies(t *testing.T) {
	var got string
	_, heard := startNode(t, options(&answering{serve: func(_ context.Context, r *api.Request) api.Response {
		got = string(r.Body)
		return api.Response{Status: 200}
	}}))
	o := options(&echo{})
	var length int64
	var again, chunked bool
	forward := to(t, heard.Addr().String())
	o.Forward = func(ctx context.Context, r *api.Request) (Forwarder, error) {
		send, err := forward(ctx, r)
		return func(r *http.Request) (*http.Response, error) {
			length, again, chunked = r.ContentLength, r.GetBody != nil, len(r.TransferEncoding) > 0
			if again {
				if _, err := send(r); err != nil || got == "" {
					t.Errorf("the first attempt: %d bytes, %v", len(got), err)
				}
				got = ""
				r.Body, _ = r.GetBody()
			}
			return send(r)
		}, err
	}
	o.MaxBody = 32 << 20
	s, address := start(t, o)
	const lines = "PUT /v2/x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
	for _, n := range []int{0, 1, 8191, 8192, 8193, firstBytes + 1, heldBytes - 1, heldBytes, heldBytes + 1, 5<<20 + 3, 20 << 20} {
		body, one, two := bodyOf(n)
		for _, raw := range []string{one, two, "Expect: 100-continue\r\n" + one} {
			got = ""
			res, _, err := ask(t, address, lines+raw)
			if err != nil || res.StatusCode != 200 || got != body {
				t.Fatalf("%d bytes: %v, %v; the other node gets %d, equal: %t", n, res, err, len(got), got == body)
			}
			small, unknown := n <= heldBytes, raw == two && n > heldBytes
			if again != (small && n > 0) || chunked != unknown || !unknown && length != int64(n) {
				t.Errorf("%d bytes, %.20q: length %d, chunked %t, again %t", n, raw, length, chunked, again)
			}
		}
	}
	s.bodies.Force("taken", s.o.BodyBudget)
	s.unknown.Force("taken", s.unknown.Free())
	for _, n := range []int{20_000, 200_000} {
		body, one, two := bodyOf(n)
		for _, raw := range []string{one, two} {
			if res, _, err := ask(t, address, lines+raw); err != nil || res.StatusCode != 200 || got != body || again {
				t.Errorf("%d bytes without memory: %v, %v; %d bytes, again %t", n, res, err, len(got), again)
			}
		}
	}
	s.bodies.Release("taken", s.o.BodyBudget)
	if s.bodies.Free() != s.o.BodyBudget {
		t.Errorf("%d bytes of %d are left after all", s.bodies.Free(), s.o.BodyBudget)
	}
	large := fmt.Sprintf("Content-Length: %d\r\n\r\n%s", 33<<20, strings.Repeat("x", 9000))
	if res, _, err := ask(t, address, lines+large); err != nil || res.StatusCode != 413 {
		t.Errorf("a body above the limit: %v, %v", res, err)
	}
	_, _, two := bodyOf(33 << 20)
	if res, _, err := ask(t, address, lines+two); err != nil || res.StatusCode != 413 {
		t.Errorf("chunks above the limit: %v, %v", res, err)
	}
}

// TestUploadsAreNotBuffered sends 20 MB through a node that reads slowly. At each moment the server holds less than 64 KB of them.
func TestUploadsAreNotBuffered(t *testing.T) {
	var sent atomic.Int64
	o := options(&echo{})
	o.Forward = by(func(r *http.Request) (*http.Response, error) {
		var got, most int64
		for b := make([]byte, 32<<10); ; {
			n, err := r.Body.Read(b)
			got += int64(n)
			synctest.Wait()
			most = max(most, sent.Load()-got)
			if got == 3<<20 {
				time.Sleep(10 * time.Minute) // virtual: the node delays the client
			}
			if err != nil {
				return received(r, 200, strings.NewReader(fmt.Sprint(got, most < 64<<10, err)), -1), nil
			}
		}
	})
	inBubble(t, o, func(t *testing.T, _ *Server, l *pipeListener) {
		c := l.dial("192.0.2.1")
		defer c.Close()
		const size = 20 << 20
		go func() {
			fmt.Fprintf(c, "POST /v2/x HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n", size)
			for b := make([]byte, 1<<10); sent.Load() < size; sent.Add(int64(len(b))) {
				if _, err := c.Write(b); err != nil {
					t.Error(err)
					return
				}
			}
		}()
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := text(t, res), fmt.Sprint(size, true, io.EOF); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// TestSlowUploads sends bodies below the minimum rate, and bodies that end too early. The Forwarder's Read fails, and the client gets the same
// answer as without a cluster.
func TestSlowUploads(t *testing.T) {
	for _, tt := range []struct {
		name, raw, want string
		ends            bool
	}{
		{"small", "Content-Length: 100000\r\n\r\n" + strings.Repeat("x", 20_000), "408", false},
		{"large", "Content-Length: 3000000\r\n\r\n" + strings.Repeat("x", 20_000), "408", false},
		{"chunks", "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("4000\r\n"+strings.Repeat("x", 16<<10)+"\r\n", 70) + "5\r\n", "408", false},
		{"bad chunks", "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("4000\r\n"+strings.Repeat("x", 16<<10)+"\r\n", 70) + "zz\r\n", "400", false},
		{"large that ends", "Content-Length: 3000000\r\n\r\n" + strings.Repeat("x", 20_000), "", true},
		{"chunks that end", "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("4000\r\n"+strings.Repeat("x", 16<<10)+"\r\n", 70), "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := options(&echo{})
			var failed error
			o.Forward = by(func(r *http.Request) (*http.Response, error) {
				_, failed = io.Copy(io.Discard, r.Body)
				return nil, failed
			})
			inBubble(t, o, func(t *testing.T, s *Server, l *pipeListener) {
				c := l.dial("192.0.2.1")
				start := time.Now()
				go func() {
					_, _ = io.WriteString(c, "POST /v2/x HTTP/1.1\r\nHost: h\r\n"+tt.raw) // the server may have closed
					if tt.ends {
						_ = c.Close()
					}
				}()
				all, _ := io.ReadAll(c)
				if status := strings.TrimPrefix(string(all[:min(len(all), 12)]), "HTTP/1.1 "); status != tt.want || time.Since(start) > 90*time.Second {
					t.Errorf("%.60q after %v, want %s", all, time.Since(start), tt.want)
				}
				_ = c.Close()
				synctest.Wait()
				if tt.name != "small" && failed == nil {
					t.Error("the Forwarder got a complete body")
				}
				if s.bodies.Free() != s.o.BodyBudget {
					t.Error("the bodies keep their memory")
				}
			})
		})
	}
}

// TestEarlyAnswers refuses large bodies at the other node before they arrive. The client gets the refusal, and its connection ends.
func TestEarlyAnswers(t *testing.T) {
	busy := options(&echo{})
	busy.Full = func(string) error { return errors.New("full") }
	_, _, address, _ := startPair(t, busy)
	_, declared, chunked := bodyOf(3 << 20)
	for _, raw := range []string{declared, chunked, "Expect: 100-continue\r\n" + declared} {
		res, body, err := ask(t, address, "POST /v2/x HTTP/1.1\r\nHost: h\r\n"+raw)
		if err != nil || res.StatusCode != 503 || !strings.Contains(body, errBusy.text) || !res.Close {
			t.Errorf("%.30q: %v %s, %v", raw, res, body, err)
		}
	}
}

// TestAnswerDuringUpload answers while the body still arrives. The client gets the complete answer, and nothing reads the body after it.
func TestAnswerDuringUpload(t *testing.T) {
	reading := make(chan error, 1)
	o := options(&echo{})
	o.Forward = by(func(r *http.Request) (*http.Response, error) {
		begun := make(chan bool)
		go func() {
			_, _ = r.Body.Read(make([]byte, 100))
			close(begun)
			_, err := io.Copy(io.Discard, r.Body)
			reading <- err
		}()
		<-begun
		return received(r, 200, strings.NewReader(strings.Repeat("a", 100_000)), -1), nil
	})
	_, address := start(t, o)
	res, body, err := ask(t, address, "POST /v2/x HTTP/1.1\r\nHost: h\r\nContent-Length: 3000000\r\n\r\n"+strings.Repeat("x", 100_000))
	if err != nil || res.StatusCode != 200 || len(body) != 100_000 || !res.Close {
		t.Errorf("%v with %d bytes, %v", res, len(body), err)
	}
	if err := <-reading; !errors.Is(err, errCut) && !errors.Is(err, errChunks) {
		t.Errorf("the rest of the body: %v, want it cut off", err)
	}
}

// TestDisconnectingClients makes clients disconnect in several phases of a call. The call's context ends each time.
func TestDisconnectingClients(t *testing.T) {
	type call struct {
		r    *http.Request
		body io.WriteCloser
	}
	calls := make(chan call, 3)
	o := options(&echo{})
	o.Forward = by(func(r *http.Request) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Opaque, "answer") {
			in, out := io.Pipe()
			calls <- call{r, out}
			context.AfterFunc(r.Context(), func() { _ = in.CloseWithError(r.Context().Err()) })
			return received(r, 200, in, -1), nil
		}
		calls <- call{r: r}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			calls <- call{r: r}
			return nil, err
		}
		<-r.Context().Done()
		calls <- call{r: r}
		return nil, r.Context().Err()
	})
	s, address := start(t, o)
	for _, tt := range []struct{ name, raw string }{
		{"no body", get},
		{"small body", "POST /v2/x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"},
		{"large body", "POST /v2/x HTTP/1.1\r\nHost: h\r\nContent-Length: 2000000\r\n\r\n" + strings.Repeat("x", 2_000_000)},
		{"during a body", "POST /v2/x HTTP/1.1\r\nHost: h\r\nContent-Length: 2000000\r\n\r\n" + strings.Repeat("x", 1_000_000)},
		{"before the answer", "GET /v2/answer HTTP/1.1\r\nHost: h\r\n\r\n"},
	} {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, tt.raw); err != nil {
			t.Fatal(err)
		}
		one := <-calls
		if one.body != nil {
			_, _ = io.WriteString(one.body, "first")
			if _, err := io.ReadFull(c, make([]byte, 12)); err != nil {
				t.Error(err)
			}
		}
		_ = c.Close()
		if one.body == nil {
			<-calls
		}
		<-one.r.Context().Done()
	}
	drainServer(t, s)
}
