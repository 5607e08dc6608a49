package program

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/certificate"
	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// trusting returns a client configuration that trusts the certificates in PEM files.
func trusting(t testing.TB, files ...string) *tls.Config {
	t.Helper()
	roots := x509.NewCertPool()
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !roots.AppendCertsFromPEM(b) {
			t.Fatalf("%s holds no certificate", name)
		}
	}
	return &tls.Config{RootCAs: roots}
}

// secretly returns a TLS client whose idle connections close at the end of the test.
func secretly(t testing.TB, c *tls.Config) *http.Client {
	transport := &http.Transport{TLSClientConfig: c}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: keyTransport{transport}, Timeout: time.Minute}
}

// serveLocally starts a server with a certificate from the certificate command.
func serveLocally(t testing.TB, log *slog.Logger, change func(*server.Settings)) (srv *server.Server, address, dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "certificates")
	var out, errs bytes.Buffer
	if code := cli.Run(t.Context(), New(), server.Env{Args: []string{"certificate", "--dir", dir, "--json"}, Stdout: &out, Stderr: &errs}); code != 0 {
		t.Fatalf("certificate: %d %s", code, errs.String())
	}
	var files struct{ Certificate, Key string }
	if err := json.Unmarshal(out.Bytes(), &files); err != nil {
		t.Fatal(err)
	}
	s := testSettings(t)
	s.TLS = server.TLSSettings{Certificate: files.Certificate, Key: files.Key}
	if change != nil {
		change(&s)
	}
	srv, err := server.Start(t.Context(), s, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return srv, srv.Listener.Addr().String(), dir
}

func TestServeOverTLS(t *testing.T) {
	srv, address, dir := serveLocally(t, slog.New(slog.DiscardHandler), nil)
	var output strings.Builder
	if err := srv.CreateFirstApp(t.Context(), &output, "sightline"); err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(address)
	host := "localhost:" + port
	keys.Store(host, printedKey(output.String()))
	if want := "https://" + host; srv.Settings.PublicURL != want {
		t.Errorf("the public address is %s, want %s", srv.Settings.PublicURL, want)
	}
	client := secretly(t, trusting(t, filepath.Join(dir, certificate.AuthorityFile)))
	code, out := predictBy(t, client, "https://"+host, generalID, byBase64(dots(t, 3, 32)))
	if code != 200 || len(out.Outputs) != 1 || !strings.HasPrefix(out.Outputs[0].Input.Data.Image.URL, "https://"+host+"/hosted/") {
		t.Fatalf("predict over HTTPS: %d %+v", code, out)
	}
	if code, hosted := predictBy(t, client, "https://"+host, generalID, byURL(out.Outputs[0].Input.Data.Image.URL)); code != 200 {
		t.Errorf("the hosted copy by its address: %d %+v", code, hosted.Status)
	}
	res, err := client.Get(out.Outputs[0].Input.Data.Image.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != 200 || res.Header.Get("Strict-Transport-Security") != "" {
		t.Errorf("the hosted copy: %d; localhost is told %q", res.StatusCode, res.Header.Get("Strict-Transport-Security"))
	}
	clear, err := own(t).Get("http://" + host + "/v2/models")
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(clear.Body)
	_ = clear.Body.Close()
	if clear.StatusCode != 400 || !strings.Contains(string(b), "HTTPS") {
		t.Errorf("in the clear: %d %s, want a refusal", clear.StatusCode, b)
	}
}

// TestCertificateIsReplaced replaces the certificate of a running server.
func TestCertificateIsReplaced(t *testing.T) {
	_, address, dir := serveLocally(t, slog.New(slog.DiscardHandler), nil)
	config := trusting(t, filepath.Join(dir, certificate.AuthorityFile))
	serial := func() string {
		c, err := tls.Dial("tcp", address, config)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	before := serial()
	if _, err := certificate.CreateLocal(dir, nil, system.Now(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	for start := system.Now(); serial() == before; {
		if system.Now().Sub(start) > 2*time.Minute {
			t.Fatal("the new certificate is not served")
		}
	}
}

func TestServeNeedsItsCertificate(t *testing.T) {
	s := testSettings(t)
	s.TLS = server.TLSSettings{Certificate: "missing.pem", Key: "missing-key.pem"}
	if srv, err := server.Start(t.Context(), s, slog.New(slog.DiscardHandler)); err == nil {
		_ = srv.Stop()
		t.Error("served without a certificate")
	}
}

func TestCertificateCommand(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	run := func(args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		code := cli.Run(t.Context(), New(), server.Env{Args: append([]string{"certificate", "--dir", dir}, args...), Stdout: &out, Stderr: &errs})
		return code, out.String(), errs.String()
	}
	code, out, errs := run("--host", "sightline.test")
	if code != 0 || !strings.Contains(out, "update-ca-certificates") || !strings.Contains(out, "serve --tls-cert "+filepath.Join(dir, "certificate.pem")) {
		t.Errorf("the first: %d %s %s", code, out, errs)
	}
	if code, out, errs = run(); code != 0 || strings.Contains(out, "update-ca-certificates") {
		t.Errorf("the second, whose authority is trusted already: %d %s %s", code, out, errs)
	}
	if code, _, errs = run("--host", "a b"); code != server.ExitUsage || !strings.Contains(errs, `"a b"`) {
		t.Errorf("a bad host: %d %s", code, errs)
	}
	if code, _, _ = run("extra"); code != server.ExitUsage {
		t.Errorf("an argument: %d, want a mistake of usage", code)
	}
}

// TestBehindProxy: the server trusts a proxy's headers. If its public URL is HTTPS, its answers require browsers to use HTTPS.
func TestBehindProxy(t *testing.T) {
	var log safeBuffer
	s := testSettings(t)
	s.BehindProxy, s.PublicURL = true, "https://sightline.example"
	srv, err := server.Start(t.Context(), s, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+srv.Listener.Addr().String()+"/v2/models", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Forwarded-For", "198.51.100.9, 203.0.113.7")
	res, err := own(t).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if got := res.Header.Get("Strict-Transport-Security"); got == "" {
		t.Error("browsers are not told to come by HTTPS")
	}
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "remote=203.0.113.7") {
		t.Errorf("the log does not tell who asked:\n%s", log.String())
	}
}

// TestStalledHandshakes keeps many connections open in the middle of a handshake. Later clients are served, and the server stops without
// waiting for these connections.
func TestStalledHandshakes(t *testing.T) {
	srv, address, dir := serveLocally(t, slog.New(slog.DiscardHandler), func(s *server.Settings) { s.MaxConns = 64 })
	var stalled []net.Conn
	defer func() {
		for _, c := range stalled {
			_ = c.Close()
		}
	}()
	for range 200 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		stalled = append(stalled, c)
		if _, err := c.Write([]byte{22, 3, 1, 2, 0, 1}); err != nil {
			t.Fatal(err)
		}
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: trusting(t, filepath.Join(dir, certificate.AuthorityFile)), DisableKeepAlives: true}}
	res, err := client.Get("https://" + address + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != 200 {
		t.Errorf("/healthz: %d", res.StatusCode)
	}
	if err := srv.Stop(); err != nil {
		t.Errorf("stop with stalled handshakes: %v", err)
	}
}
