package httpd

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/acme"
)

// newTLSConfigs returns a server's configuration with a new certificate for "h", and a client's that trusts it.
func newTLSConfigs(t testing.TB) (server, client *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"h"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	server = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, NextProtos: []string{"h2", acme.ALPNProto}}
	return server, &tls.Config{RootCAs: roots, ServerName: "h", NextProtos: []string{"h2", "http/1.1"}}
}

func TestTLS(t *testing.T) {
	o := options(&echo{})
	var client *tls.Config
	o.TLS, client = newTLSConfigs(t)
	var log strings.Builder
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	s, addr := start(t, o)

	transport := &http.Transport{TLSClientConfig: client, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	body := strings.Repeat("b", 3<<20)
	for range 2 {
		res, err := (&http.Client{Transport: transport}).Post("https://"+addr+"/v2/x", "text/plain", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		got := text(t, res)
		_ = res.Body.Close()
		if res.StatusCode != 200 || res.Proto != "HTTP/1.1" || res.TLS.Version != tls.VersionTLS13 || !strings.Contains(got, `"body":3145728`) {
			t.Errorf("%d %s %x: %.100s", res.StatusCode, res.Proto, res.TLS.Version, got)
		}
	}
	for name, change := range map[string]func(*tls.Config){
		"TLS 1.1":      func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 },
		"another name": func(c *tls.Config) { c.ServerName = "other" },
		"HTTP/2 alone": func(c *tls.Config) { c.NextProtos = []string{"h2"} },
	} {
		c := client.Clone()
		change(c)
		if conn, err := tls.Dial("tcp", addr, c); err == nil {
			t.Errorf("%s: shakes hands", name)
			_ = conn.Close()
		}
	}
	c := client.Clone()
	c.NextProtos = []string{acme.ALPNProto}
	conn, err := tls.Dial("tcp", addr, c)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, get)
	if b, _ := io.ReadAll(conn); len(b) != 0 {
		t.Errorf("who comes for a challenge is served %q", b)
	}
	_ = conn.Close()
	drainServer(t, s)
	if n := strings.Count(log.String(), "msg=request"); n != 2 {
		t.Errorf("%d requests are logged, want 2:\n%s", n, log.String())
	}
}

// TestUnencryptedRequestOnTLSPort sends an unencrypted request to the TLS port. The server refuses it with the reason, and never redirects
// or serves it.
func TestUnencryptedRequestOnTLSPort(t *testing.T) {
	h := &echo{}
	o := options(h)
	o.TLS, _ = newTLSConfigs(t)
	s, addr := start(t, o)
	for _, raw := range []string{
		get,
		"POST /v2/x HTTP/1.1\r\nHost: h\r\nAuthorization: Key k\r\nContent-Length: 300000\r\n\r\n" + strings.Repeat("x", 300_000),
		"DELETE /v2/x HTTP/1.1\r\nHost: h\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n",
	} {
		answers, rest := exchange(t, addr, raw)
		if statusesOf(answers) != "400" || answers[0].Header.Get("Location") != "" || !strings.Contains(text(t, answers[0]), "HTTPS") {
			t.Errorf("%.20q: %s %s, want one 400 that says why", raw, statusesOf(answers), rest)
		}
	}
	for _, raw := range []string{"SSH-2.0-x\r\n\r\n", "\x00\x00\x00\x00\x00\x00\x00"} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(c, raw)
		if b, _ := io.ReadAll(c); bytes.Contains(b, []byte("HTTP")) {
			t.Errorf("%q reads %q", raw, b)
		}
		_ = c.Close()
	}
	drainServer(t, s)
	if len(h.calls) != 0 {
		t.Errorf("served in the clear: %q", h.calls)
	}
}

// TestSlowClientsAreCutUnderTLS checks that the server closes connections that stall during or after the handshake.
func TestSlowClientsAreCutUnderTLS(t *testing.T) {
	server, client := newTLSConfigs(t)
	hello := helloOf(t, client)
	for _, tt := range []struct {
		name  string
		limit time.Duration
		do    func(c net.Conn)
	}{
		{"silent", 10 * time.Second, func(net.Conn) {}},
		{"half a hello", 10 * time.Second, func(c net.Conn) { _, _ = c.Write(hello[:len(hello)/2]) }},
		{"dripping hello", 10 * time.Second, func(c net.Conn) {
			for _, b := range hello {
				if _, err := c.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(100 * time.Millisecond) // in virtual time; the whole hello takes longer than a handshake may
			}
		}},
		{"hello, and never reads", 10 * time.Second, func(c net.Conn) { _, _ = c.Write(hello) }},
		{"a header never comes", 10 * time.Second, func(c net.Conn) {
			s := tls.Client(c, client)
			_ = s.Handshake()
			_, _ = io.Copy(io.Discard, s)
		}},
		{"dripping body", 12 * time.Second, func(c net.Conn) {
			s := tls.Client(c, client)
			fmt.Fprint(s, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 90000000\r\n\r\n", strings.Repeat("x", 90_000))
			go func() { _, _ = io.Copy(io.Discard, s) }()
			for {
				time.Sleep(time.Second)
				if _, err := s.Write([]byte("x")); err != nil {
					return
				}
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := options(&echo{})
			o.TLS = server
			inBubble(t, o, func(t *testing.T, s *Server, l *pipeListener) {
				start := time.Now()
				c := l.dial("192.0.2.1")
				done := make(chan bool)
				go func() { tt.do(c); close(done) }()
				for s.openConnections() > 0 {
					time.Sleep(100 * time.Millisecond) // virtual
					if time.Since(start) > time.Minute {
						break
					}
				}
				if d := time.Since(start); d > tt.limit+2*time.Second { // writing a refusal may take a second
					t.Errorf("hung up after %v, want %v", d, tt.limit)
				}
				_ = c.Close()
				<-done
			})
		})
	}
}

// helloOf returns the first record that a client sends.
func helloOf(t testing.TB, c *tls.Config) []byte {
	t.Helper()
	client, server := net.Pipe()
	go func() {
		_ = tls.Client(client, c).Handshake()
		_ = client.Close()
	}()
	b := make([]byte, 16<<10)
	n, err := server.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	_ = server.Close()
	return b[:n]
}

// TestConnectionLimitsUnderTLS opens many silent connections. Without any handshake, the server counts them for their client, and closes
// them if other clients need connections.
func TestConnectionLimitsUnderTLS(t *testing.T) {
	o := options(&echo{})
	o.MaxConns, o.MaxConnsPerIP = 10, 5
	var client *tls.Config
	o.TLS, client = newTLSConfigs(t)
	client.Time = nil
	inBubble(t, o, func(t *testing.T, s *Server, l *pipeListener) {
		var flood []net.Conn
		for i := range 50 {
			flood = append(flood, l.dial(fmt.Sprintf("198.51.100.%d", i)))
		}
		synctest.Wait()
		if n := s.openConnections(); n != 10 {
			t.Errorf("%d connections are open, want 10", n)
		}
		innocent := tls.Client(l.dial("192.0.2.2"), client)
		fmt.Fprint(innocent, strings.Replace(get, "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1))
		res, err := http.ReadResponse(bufio.NewReader(innocent), nil)
		if err != nil || res.StatusCode != 200 {
			t.Errorf("the innocent gets %v, %v", res, err)
		}
		_ = innocent.Close()
		for range 6 {
			flood = append(flood, l.dial("2001:db8::1"))
		}
		if b, _ := io.ReadAll(flood[len(flood)-1]); len(b) != 0 {
			t.Errorf("a sixth connection of one client reads %q", b)
		}
		for _, c := range flood {
			_ = c.Close()
		}
	})
}

// TestStreamOverTLS cuts an answer off under TLS, and checks that the client notices.
func TestStreamOverTLS(t *testing.T) {
	o := options(streaming(func(_ context.Context, w io.Writer) error {
		_, err := w.Write(make([]byte, 1<<20))
		if err == nil {
			err = errCut
		}
		return err
	}))
	var client *tls.Config
	o.TLS, client = newTLSConfigs(t)
	_, addr := start(t, o)
	transport := &http.Transport{TLSClientConfig: client}
	defer transport.CloseIdleConnections()
	res, err := (&http.Client{Transport: transport}).Get("https://" + addr + "/v2/x")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if n, err := io.Copy(io.Discard, res.Body); err == nil || n > 1<<20 {
		t.Errorf("%d bytes, %v; want them cut off", n, err)
	}
}
