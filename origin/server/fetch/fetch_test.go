package fetch

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sightline-dev/sightline/core/predict/raster"
)

// picture counts as a picture here, because the fetcher checks only its first bytes.
var picture = append([]byte("\xff\xd8\xff\xe0"), bytes.Repeat([]byte("picture "), 4000)...)

type payload struct {
	url     string
	answers []netip.Addr // DNS answers for the host of url
}

// payloads reads the corpus of addresses that the fetcher must not connect to.
func payloads(t testing.TB) []payload {
	t.Helper()
	b, err := os.ReadFile("testdata/ssrf.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var out []payload
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		quoted, answers, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		raw, err := strconv.Unquote(quoted)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		p := payload{url: raw}
		for _, a := range strings.FieldsFunc(answers, func(r rune) bool { return r == ',' }) {
			p.answers = append(p.answers, netip.MustParseAddr(a))
		}
		out = append(out, p)
	}
	return out
}

// pipes is a network of in-memory connections. serve answers each connection.
type pipes struct {
	mu     sync.Mutex
	dialed []string
	serve  func(c net.Conn)
	wg     sync.WaitGroup
}

func (p *pipes) dial(_ context.Context, network, address string, control func(network, address string) error) (net.Conn, error) {
	if err := control(network, address); err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.dialed = append(p.dialed, address)
	p.mu.Unlock()
	client, server := net.Pipe()
	p.wg.Go(func() {
		defer server.Close()
		if _, err := http.ReadRequest(bufio.NewReader(server)); err == nil && p.serve != nil {
			p.serve(server)
		}
	})
	return client, nil
}

func answering(addresses ...string) func(context.Context, string) ([]netip.Addr, error) {
	return func(context.Context, string) ([]netip.Addr, error) {
		var out []netip.Addr
		for _, a := range addresses {
			out = append(out, netip.MustParseAddr(a))
		}
		return out, nil
	}
}

func respond(status, headers string, body []byte) func(net.Conn) {
	return func(c net.Conn) {
		fmt.Fprintf(c, "HTTP/1.1 %s\r\n%s\r\n", status, headers)
		_, _ = c.Write(body) // the fetcher may have read enough and closed
	}
}

func lengthOf(b []byte) string { return fmt.Sprintf("Content-Length: %d\r\n", len(b)) }

// TestSSRF fetches every address of the corpus, directly and through a redirect. The fetcher connects to none of them, and every
// failure has the same text.
func TestSSRF(t *testing.T) {
	corpus := payloads(t)
	if len(corpus) < 152 {
		t.Fatalf("the corpus has %d payloads, want at least 152", len(corpus))
	}
	hits := 0
	for _, p := range corpus {
		resolve := func(_ context.Context, host string) ([]netip.Addr, error) {
			if host == "start.example" {
				return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
			}
			if len(p.answers) == 0 && strings.Contains(p.url, "127.0.0.1") {
				return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil // as an old resolver parses it
			}
			return p.answers, nil
		}
		network := &pipes{serve: respond("200 OK", lengthOf(picture), picture)}
		_, err := New(Options{Resolve: resolve, Dial: network.dial}).Fetch(t.Context(), p.url)
		if len(network.dialed) > 0 || err == nil {
			t.Errorf("Fetch(%q) = %v after dialling %q", p.url, err, network.dialed)
			hits++
		} else if err.Error() != (&Failure{}).Error() {
			t.Errorf("Fetch(%q) fails with a text of its own: %q", p.url, err)
		}
		network.wg.Wait()

		if p.url == "" || strings.HasPrefix(p.url, "/") || strings.HasPrefix(p.url, "x.png") || strings.HasPrefix(p.url, "http:93") ||
			strings.HasPrefix(p.url, "//93") || p.url == "http:/93.184.216.34/" {
			continue // a relative reference leads back to the public start
		}
		first := true
		network = &pipes{}
		network.serve = func(c net.Conn) {
			if first {
				first = false
				respond("302 Found", "Location: "+p.url+"\r\nContent-Length: 0\r\n", nil)(c)
				return
			}
			respond("200 OK", lengthOf(picture), picture)(c)
		}
		_, err = New(Options{Resolve: resolve, Dial: network.dial}).Fetch(t.Context(), "http://start.example/")
		network.wg.Wait()
		if len(network.dialed) != 1 || err == nil {
			t.Errorf("redirect to %q = %v after dialling %q", p.url, err, network.dialed)
			hits++
		} else if reason := err.(*Failure).Reason(); reason != "" {
			t.Errorf("redirect to %q: the caller gets the reason %q", p.url, reason)
		}
	}
	t.Logf("%d payloads, directly and as redirects: %d hits", len(corpus), hits)
}

func TestFetchConnectsToTheCheckedAddress(t *testing.T) {
	network := &pipes{serve: respond("200 OK", lengthOf(picture), picture)}
	lookups := 0
	resolve := func(context.Context, string) ([]netip.Addr, error) {
		if lookups++; lookups > 1 { // a rebinding resolver: public first, then private
			return answering("127.0.0.1")(nil, "")
		}
		return answering("93.184.216.34", "2606:2800:220::1")(nil, "")
	}
	got, err := New(Options{Resolve: resolve, Dial: network.dial}).Fetch(t.Context(), "http://rebind.example/p.jpg")
	network.wg.Wait()
	if err != nil || !bytes.Equal(got, picture) {
		t.Fatalf("Fetch = %d bytes, %v", len(got), err)
	}
	if lookups != 1 || len(network.dialed) != 1 || network.dialed[0] != "93.184.216.34:80" {
		t.Errorf("resolved %d times and dialled %q, want once and 93.184.216.34:80", lookups, network.dialed)
	}
}

// TestControlChecksDialledAddress uses a dialler that connects to another address than the given one.
func TestControlChecksDialledAddress(t *testing.T) {
	for _, target := range []string{"127.0.0.1:80", "93.184.216.34:22", "nonsense"} {
		dial := func(_ context.Context, network, _ string, control func(string, string) error) (net.Conn, error) {
			if err := control(network, target); err != nil {
				return nil, err
			}
			t.Errorf("control let %s through", target)
			return nil, errors.New("let through")
		}
		_, err := New(Options{Resolve: answering("93.184.216.34"), Dial: dial}).Fetch(t.Context(), "http://a.example/")
		if err == nil {
			t.Errorf("Fetch through a dialler to %s succeeded", target)
		}
	}
}

func TestFetchTriesTheNextAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &pipes{serve: respond("200 OK", lengthOf(picture), picture)}
		dial := func(ctx context.Context, n, address string, control func(string, string) error) (net.Conn, error) {
			if strings.HasPrefix(address, "93.") {
				<-ctx.Done() // packets vanish
				return nil, ctx.Err()
			}
			return network.dial(ctx, n, address, control)
		}
		start := time.Now()
		got, err := New(Options{Resolve: answering("93.184.216.34", "2606:2800:220::1"), Dial: dial}).Fetch(t.Context(), "http://a.example/")
		network.wg.Wait()
		if err != nil || len(got) != len(picture) {
			t.Errorf("Fetch = %d bytes, %v", len(got), err)
		}
		if d := time.Since(start); d > 4*time.Second {
			t.Errorf("the dead address held the fetch for %v", d)
		}
	})
}

func TestFetchRequest(t *testing.T) {
	var got *http.Request
	dial := func(context.Context, string, string, func(string, string) error) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			got, _ = http.ReadRequest(bufio.NewReader(server))
			respond("200 OK", lengthOf(picture), picture)(server)
		}()
		return client, nil
	}
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:3128")
	t.Setenv("http_proxy", "http://127.0.0.1:3128")
	if _, err := New(Options{Resolve: answering("93.184.216.34"), Dial: dial}).Fetch(t.Context(), "http://a.example/p?q=1#f"); err != nil {
		t.Fatal(err)
	}
	if got.Host != "a.example" || got.RequestURI != "/p?q=1" {
		t.Errorf("asked %q at host %q, want /p?q=1 at a.example", got.RequestURI, got.Host)
	}
	for name, want := range map[string]string{"Accept-Encoding": "identity", "Cookie": "", "Referer": "", "Authorization": ""} {
		if v := got.Header.Get(name); v != want {
			t.Errorf("%s: %q, want %q", name, v, want)
		}
	}
}

// TestSSRFHostileOrigins fetches from origins that misbehave. Each fetch must fail within the time limits, and without reading more than
// the size limit.
func TestSSRFHostileOrigins(t *testing.T) {
	forever := func(c net.Conn, data []byte, every time.Duration) {
		for {
			if _, err := c.Write(data); err != nil {
				return
			}
			time.Sleep(every) // virtual time
		}
	}
	big := make([]byte, 64<<10)
	copy(big, picture)
	tests := []struct {
		name   string
		serve  func(net.Conn)
		limit  time.Duration
		reason string // that the caller gets; empty: none
	}{
		{"silent", func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) }, headerTimeout, ""},
		{"drips headers", func(c net.Conn) {
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\n")
			forever(c, []byte("X: y\r\n"), time.Second)
		}, headerTimeout, ""},
		{"endless headers", func(c net.Conn) {
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\n")
			forever(c, []byte("X: "+strings.Repeat("y", 1000)+"\r\n"), 0)
		}, time.Second, ""},
		{"drips the body", func(c net.Conn) {
			respond("200 OK", "Content-Length: 100000\r\n", picture[:2000])(c)
			forever(c, []byte("x"), time.Second)
		}, timeout, "its server sent it for longer than 30 seconds"},
		{"endless body", func(c net.Conn) {
			respond("200 OK", "", picture)(c)
			forever(c, big, 0)
		}, time.Second, "it has more than 20971520 bytes"},
		{"endless chunks", func(c net.Conn) {
			respond("200 OK", "Transfer-Encoding: chunked\r\n", nil)(c)
			fmt.Fprintf(c, "%x\r\n%s\r\n", len(picture), picture)
			forever(c, fmt.Appendf(nil, "%x\r\n%s\r\n", len(big), big), 0)
		}, time.Second, "it has more than 20971520 bytes"},
		{"declares too much", respond("200 OK", "Content-Length: 99999999999\r\n", picture), time.Second, "it has more than 20971520 bytes"},
		{"declares more than it sends", respond("200 OK", fmt.Sprintf("Content-Length: %d\r\n", len(picture)+1), picture), time.Second, "its server ended the transfer early"},
		{"redirects to itself", respond("302 Found", "Location: /again\r\nContent-Length: 0\r\n", nil), time.Second, "its server redirects more than 5 times"},
		{"redirects nowhere", respond("302 Found", "Content-Length: 0\r\n", nil), time.Second, ""},
		{"redirects twice at once", respond("302 Found", "Location: /a\r\nLocation: /b\r\nContent-Length: 0\r\n", nil), time.Second, ""},
		{"redirects to another scheme", respond("302 Found", "Location: file:///etc/passwd\r\nContent-Length: 0\r\n", nil), time.Second, ""},
		{"gzip bomb", respond("200 OK", "Content-Encoding: gzip\r\n"+lengthOf(picture), picture), time.Second, "its server compresses it with a Content-Encoding"},
		{"two lengths", respond("200 OK", "Content-Length: 5\r\nContent-Length: 6\r\n", picture), time.Second, ""},
		{"not found", respond("404 Not Found", lengthOf(picture), picture), time.Second, "its server answered with HTTP status 404"},
		{"partial", respond("206 Partial Content", lengthOf(picture), picture), time.Second, "its server answered with HTTP status 206"},
		{"empty", respond("200 OK", "Content-Length: 0\r\n", nil), time.Second, "it is empty"},
		{"no HTTP", func(c net.Conn) { fmt.Fprint(c, "220 mail.example ESMTP\r\n") }, time.Second, ""},
		{"informational for ever", func(c net.Conn) {
			forever(c, []byte("HTTP/1.1 103 Early Hints\r\n\r\n"), time.Second)
		}, headerTimeout, ""},
		{"hangs up", func(net.Conn) {}, time.Second, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := &pipes{serve: tt.serve}
				start := time.Now()
				got, err := New(Options{Resolve: answering("93.184.216.34"), Dial: network.dial}).Fetch(t.Context(), "http://a.example/p.jpg")
				took := time.Since(start)
				network.wg.Wait()
				if err == nil {
					t.Errorf("Fetch = %d bytes, want an error", len(got))
				} else if err.Error() != (&Failure{}).Error() {
					t.Errorf("Fetch fails with a text of its own: %q", err)
				} else if reason := err.(*Failure).Reason(); reason != tt.reason {
					t.Errorf("the reason is %q, want %q; cause: %v", reason, tt.reason, err.(*Failure).Cause())
				}
				if took > tt.limit {
					t.Errorf("Fetch took %v, want at most %v", took, tt.limit)
				}
			})
		})
	}
}

// TestPrivateAddressGivesNoReason checks that the answer of a private address, which a closed network allows, gives no reason.
func TestPrivateAddressGivesNoReason(t *testing.T) {
	for address, want := range map[string]string{"10.0.0.1": "", "93.184.216.34": "its server answered with HTTP status 404"} {
		network := &pipes{serve: respond("404 Not Found", lengthOf(picture), picture)}
		f := New(Options{Policy: Policy{AllowPrivate: true}, Resolve: answering(address), Dial: network.dial})
		_, err := f.Fetch(t.Context(), "http://a.example/")
		network.wg.Wait()
		if failure := new(Failure); !errors.As(err, &failure) || failure.Reason() != want {
			t.Errorf("%s: %v with the reason %q, want %q", address, err, failure.Reason(), want)
		}
	}
}

// TestRawBytes downloads camera raw and a TIFF, which may have more bytes than other pictures.
func TestRawBytes(t *testing.T) {
	for start, want := range map[string]bool{"II*\x00": true, "FUJIFILMCCD-RAW ": true, "\xff\xd8\xff\xe0": false} {
		w := Limits{Kind: raster.Picture, Bytes: MaxBytes}
		body := io.MultiReader(strings.NewReader(start), io.LimitReader(zeros{}, MaxBytes))
		err := read(&http.Response{StatusCode: http.StatusOK, ContentLength: -1, Body: io.NopCloser(body)}, &w, io.Discard)
		if (err == nil) != want || !want && !errors.Is(err, errTooLarge) {
			t.Errorf("%q: %v", start, err)
		}
	}
	w := Limits{Kind: raster.Picture, Bytes: MaxBytes}
	body := io.MultiReader(strings.NewReader("II*\x00"), io.LimitReader(zeros{}, MaxRawBytes))
	if err := read(&http.Response{StatusCode: http.StatusOK, ContentLength: -1, Body: io.NopCloser(body)}, &w, io.Discard); !errors.Is(err, errTooLarge) || w.Bytes != MaxRawBytes {
		t.Errorf("%d bytes at most: %v", w.Bytes, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestFetchLimits(t *testing.T) {
	exact := append([]byte("GIF89a"), make([]byte, 9994)...)
	for _, tt := range []struct {
		name string
		body []byte
		ok   bool
	}{{"at the limit", exact, true}, {"one over", append(exact[:len(exact):len(exact)], 0), false}} {
		for _, headers := range []string{lengthOf(tt.body), ""} {
			network := &pipes{serve: respond("200 OK", headers, tt.body)}
			f := New(Options{Resolve: answering("93.184.216.34"), Dial: network.dial})
			var got bytes.Buffer
			err := f.Download(t.Context(), "http://a.example/", Limits{raster.Picture, 10_000, timeout}, &got)
			network.wg.Wait()
			if (err == nil) != tt.ok || (tt.ok && !bytes.Equal(got.Bytes(), tt.body)) {
				t.Errorf("%s (%q): %d bytes, %v", tt.name, headers, got.Len(), err)
			}
		}
	}
}

func TestFetchFollowsAllowedRedirects(t *testing.T) {
	for _, tt := range []struct {
		redirects int
		ok        bool
	}{{0, true}, {2, true}, {maxRedirects, true}, {maxRedirects + 1, false}} {
		n := 0
		network := &pipes{}
		network.serve = func(c net.Conn) {
			if n++; n <= tt.redirects {
				status := []string{"301 Moved", "302 Found", "303 See", "307 Same", "308 Same"}[n%5]
				respond(status, fmt.Sprintf("Location: //b%d.example/next?n=%d\r\nContent-Length: 0\r\n", n, n), nil)(c)
				return
			}
			respond("200 OK", lengthOf(picture), picture)(c)
		}
		f := New(Options{Resolve: answering("93.184.216.34"), Dial: network.dial})
		_, err := f.Fetch(t.Context(), "http://a.example/")
		network.wg.Wait()
		if (err == nil) != tt.ok {
			t.Errorf("%d redirects: %v, want ok = %v", tt.redirects, err, tt.ok)
		}
	}
}

// TestFetchCutsOtherFiles checks that a caller cannot read an internal page as a "picture".
func TestFetchCutsOtherFiles(t *testing.T) {
	page := []byte("<html>" + strings.Repeat("secret ", 10_000))
	network := &pipes{serve: respond("200 OK", "Content-Type: image/jpeg\r\n"+lengthOf(page), page)}
	got, err := New(Options{Resolve: answering("93.184.216.34"), Dial: network.dial}).Fetch(t.Context(), "http://a.example/")
	network.wg.Wait()
	if err != nil || len(got) > sniffed || !bytes.HasPrefix(page, got) {
		t.Errorf("Fetch = %d bytes, %v; want the first %d", len(got), err, sniffed)
	}
}

func TestFetchPrivateWhenAllowed(t *testing.T) {
	network := &pipes{serve: respond("200 OK", lengthOf(picture), picture)}
	f := New(Options{Policy: Policy{AllowPrivate: true}, Resolve: answering("10.0.0.7"), Dial: network.dial})
	for _, u := range []string{"http://127.0.0.1:8123/p.jpg", "http://inside.example:9000/p.jpg", "http://[::1]:81/"} {
		if _, err := f.Fetch(t.Context(), u); err != nil {
			t.Errorf("Fetch(%s) = %v", u, err.(*Failure).Cause())
		}
	}
	network.wg.Wait()
	if want := "[127.0.0.1:8123 10.0.0.7:9000 [::1]:81]"; fmt.Sprint(network.dialed) != want {
		t.Errorf("dialled %v, want %v", network.dialed, want)
	}
}

func TestFailureRevealsOnlyCancellation(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dial := func(ctx context.Context, _, _ string, _ func(string, string) error) (net.Conn, error) {
		return nil, ctx.Err()
	}
	_, err := New(Options{Resolve: answering("93.184.216.34"), Dial: dial}).Fetch(ctx, "http://a.example/")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Fetch of a caller that left = %v, want context.Canceled inside", err)
	}
	failing := func(context.Context, string) ([]netip.Addr, error) { return nil, errors.New("no such host 10.0.0.1") }
	_, err = New(Options{Resolve: failing, Dial: dial}).Fetch(t.Context(), "http://a.example/")
	if errors.Is(err, context.Canceled) || errors.Unwrap(err) != nil || strings.Contains(err.Error(), "10.0.0.1") {
		t.Errorf("Fetch = %v, which tells more than that it failed", err)
	}
	var failure *Failure
	if !errors.As(err, &failure) || !strings.Contains(failure.Cause().Error(), "no such host") {
		t.Errorf("Cause() = %v, want the resolver's error", failure.Cause())
	}
}

// TestTemporaryFailures checks which failures count as temporary: those that the URL itself did not cause.
func TestTemporaryFailures(t *testing.T) {
	lookup := func(err error) func(context.Context, string) ([]netip.Addr, error) {
		return func(context.Context, string) ([]netip.Addr, error) { return nil, err }
	}
	public := answering("93.184.216.34")
	tests := []struct {
		name    string
		url     string
		resolve func(context.Context, string) ([]netip.Addr, error)
		serve   func(net.Conn)
		want    bool
	}{
		{"not a URL", "file:///etc/passwd", public, nil, false},
		{"private", "http://10.0.0.1/", public, nil, false},
		{"no such name", "http://a.example/", lookup(&net.DNSError{IsNotFound: true}), nil, false},
		{"a name server that is away", "http://a.example/", lookup(&net.DNSError{IsTemporary: true}), nil, true},
		{"no addresses", "http://a.example/", lookup(nil), nil, false},
		{"not found", "http://a.example/", public, respond("404 Not Found", lengthOf(picture), picture), false},
		{"too many requests", "http://a.example/", public, respond("429 Too Many Requests", lengthOf(picture), picture), true},
		{"their trouble", "http://a.example/", public, respond("503 Service Unavailable", lengthOf(picture), picture), true},
		{"encoded", "http://a.example/", public, respond("200 OK", "Content-Encoding: gzip\r\n"+lengthOf(picture), picture), false},
		{"empty", "http://a.example/", public, respond("200 OK", "Content-Length: 0\r\n", nil), false},
		{"a redirect to nowhere", "http://a.example/", public, respond("302 Found", "Content-Length: 0\r\n", nil), false},
		{"cut short", "http://a.example/", public, respond("200 OK", fmt.Sprintf("Content-Length: %d\r\n", len(picture)+1), picture), true},
		{"hangs up", "http://a.example/", public, func(net.Conn) {}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			network := &pipes{serve: tt.serve}
			_, err := New(Options{Resolve: tt.resolve, Dial: network.dial}).Fetch(t.Context(), tt.url)
			network.wg.Wait()
			var failure *Failure
			if !errors.As(err, &failure) || failure.Retryable() != tt.want {
				t.Errorf("Fetch = %v; %v", err, failure.Cause())
			}
		})
	}
}

func TestNewRequiresNetwork(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("New without Resolve and Dial did not panic")
		}
	}()
	New(Options{})
}
