package certificate

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/origin/server/system"
)

var start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func local(t testing.TB, dir string, now time.Time, hosts ...string) (fresh bool) {
	t.Helper()
	fresh, err := CreateLocal(dir, hosts, now, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return fresh
}

// handshake makes a TLS handshake with a server that uses certificate. The client trusts the authority in folder dir.
func handshake(t testing.TB, dir, name string, now time.Time, certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)) error {
	t.Helper()
	pem, err := os.ReadFile(filepath.Join(dir, AuthorityFile))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		t.Fatal("no authority")
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{GetCertificate: certificate, Time: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan bool)
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		_ = c.(*tls.Conn).Handshake()
		_ = c.Close()
	}()
	c, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{RootCAs: roots, ServerName: name, Time: func() time.Time { return now }})
	if err == nil {
		_ = c.Close()
	}
	<-done
	_ = l.Close()
	return err
}

func open(t testing.TB, dir string, now *time.Time, log *bytes.Buffer) *Files {
	t.Helper()
	f, err := OpenFiles(filepath.Join(dir, CertificateFile), filepath.Join(dir, KeyFile), func() time.Time { return *now }, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestLocal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "certificates")
	now := start
	if !local(t, dir, now, "Sightline.test", "192.168.7.1") {
		t.Error("the first authority is not new")
	}
	var log bytes.Buffer
	f := open(t, dir, &now, &log)
	for name, good := range map[string]bool{
		"localhost": true, "127.0.0.1": true, "::1": true, "sightline.test": true, "192.168.7.1": true,
		"other.test": false, "x.sightline.test": false, "127.0.0.2": false,
	} {
		if err := handshake(t, dir, name, now, f.Certificate); (err == nil) != good {
			t.Errorf("%s: %v, want good: %v", name, err, good)
		}
	}
	if err := handshake(t, dir, "localhost", now.Add(398*24*time.Hour), f.Certificate); err == nil {
		t.Error("good for ever")
	}
	for name, mode := range map[string]fs.FileMode{AuthorityFile: 0o644, AuthorityKeyFile: 0o600, CertificateFile: 0o644, KeyFile: 0o600, ".": 0o700 | fs.ModeDir} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v; want %v", name, info.Mode(), err, mode)
		}
	}
}

// TestLocalKeepsAuthority creates certificates in one folder. The authority, which users trust, is replaced only if necessary.
func TestLocalKeepsAuthority(t *testing.T) {
	dir := t.TempDir()
	for i, tt := range []struct {
		name  string
		now   time.Time
		do    func()
		hosts []string
		fresh bool
	}{
		{"first", start, func() {}, []string{"a.test", "b.test"}, true},
		{"fewer hosts", start, func() {}, []string{"b.test"}, false},
		{"a year on", start.Add(365 * 24 * time.Hour), func() {}, []string{"a.test", "10.0.0.1"}, true},
		{"ten years on", start.Add(10 * 365 * 24 * time.Hour), func() {}, []string{"a.test"}, true},
		{"clock put back", start, func() {}, []string{"a.test"}, true},
		{"without its key", start, func() { _ = os.Remove(filepath.Join(dir, AuthorityKeyFile)) }, []string{"a.test"}, true},
	} {
		tt.do()
		if fresh := local(t, dir, tt.now, tt.hosts...); fresh != tt.fresh {
			t.Errorf("%d, %s: a new authority: %v, want %v", i, tt.name, fresh, tt.fresh)
		}
		var log bytes.Buffer
		for _, host := range tt.hosts {
			if err := handshake(t, dir, host, tt.now, open(t, dir, &tt.now, &log).Certificate); err != nil {
				t.Errorf("%s: %s: %v", tt.name, host, err)
			}
		}
	}
	for name, damage := range map[string]string{AuthorityFile: "-----BEGIN", AuthorityKeyFile: "nothing"} {
		path := filepath.Join(dir, name)
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(damage), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := CreateLocal(dir, nil, start, rand.Reader); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("a damaged %s: %v, want that it is named", name, err)
		}
		if err := os.WriteFile(path, good, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	other := t.TempDir()
	local(t, other, start)
	if err := os.Rename(filepath.Join(other, AuthorityKeyFile), filepath.Join(dir, AuthorityKeyFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := CreateLocal(dir, nil, start, rand.Reader); err == nil {
		t.Error("another authority's key is taken")
	}
}

// TestAuthorityIsValidOnlyForItsHosts signs a certificate for another host with the authority's key. Clients that trust the authority
// reject that certificate.
func TestAuthorityIsValidOnlyForItsHosts(t *testing.T) {
	dir := t.TempDir()
	local(t, dir, start, "a.test")
	a, err := openAuthority(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.issue(dir, []string{"bank.test"}, nil, start, rand.Reader); err != nil {
		t.Fatal(err)
	}
	now := start
	var log bytes.Buffer
	err = handshake(t, dir, "bank.test", now, open(t, dir, &now, &log).Certificate)
	var invalid x509.CertificateInvalidError
	if !errors.As(err, &invalid) || invalid.Reason != x509.CANotAuthorizedForThisName {
		t.Errorf("a certificate for another host: %v, want that the authority may not", err)
	}
}

func TestLocalRefusesHosts(t *testing.T) {
	for _, host := range []string{"", "a b", "-a", "a-", "a..b", ".a", "a.", "*.a", "http://a", "a:80", "fe80::1%eth0", strings.Repeat("a", 64), strings.Repeat("a.", 127) + "a", "é"} {
		if _, err := CreateLocal(t.TempDir(), []string{host}, start, rand.Reader); !errors.Is(err, ErrHost) {
			t.Errorf("%q: %v, want ErrHost", host, err)
		}
	}
	if _, err := CreateLocal(t.TempDir(), nil, start, bytes.NewReader(nil)); err == nil {
		t.Error("made without chance")
	}
}

// TestChangedFilesAreReloaded replaces the files of a running server: both, one after the other, with invalid data, and with empty files.
func TestChangedFilesAreReloaded(t *testing.T) {
	dir, next := t.TempDir(), t.TempDir()
	local(t, dir, start)
	local(t, next, start)
	now := start
	var log bytes.Buffer
	f := open(t, dir, &now, &log)
	serial := func() string {
		c, err := f.Certificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		return c.Leaf.SerialNumber.String()
	}
	first := serial()
	if f.Current().Leaf.SerialNumber.String() != first {
		t.Error("the current certificate is another")
	}
	replace := func(name string) {
		b, err := os.ReadFile(filepath.Join(next, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := system.ReplaceFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(filepath.Join(dir, name), now.Add(time.Hour), now.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	replace(CertificateFile)
	if got := serial(); got != first {
		t.Error("looked before a second had passed")
	}
	for range 3 {
		now = now.Add(recheck)
		if got := serial(); got != first {
			t.Error("half a pair is served")
		}
	}
	if n := strings.Count(log.String(), "level=ERROR"); n != 1 {
		t.Errorf("%d errors are logged for one change:\n%s", n, log.String())
	}
	replace(KeyFile)
	now = now.Add(recheck)
	second := serial()
	if second == first {
		t.Error("the new pair is not served")
	}
	if err := handshake(t, next, "localhost", now, f.Certificate); err != nil {
		t.Errorf("with the new pair: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, KeyFile)); err != nil {
		t.Fatal(err)
	}
	now = now.Add(recheck)
	if serial() != second {
		t.Error("without files nothing is served")
	}
	replace(KeyFile)
	now = now.Add(-time.Hour) // a clock that is set back must not stop the checks
	if serial() != second {
		t.Error("the pair is not served again")
	}
	if strings.Contains(log.String(), "PRIVATE") {
		t.Errorf("the log holds a key:\n%s", log.String())
	}
	if n := strings.Count(log.String(), "level=INFO"); n != 2 {
		t.Errorf("%d readings are logged, want 2:\n%s", n, log.String())
	}
}

func TestOpenFilesNeedsAPair(t *testing.T) {
	dir := t.TempDir()
	local(t, dir, start)
	clock := func() time.Time { return start }
	for _, names := range [][2]string{{"missing", KeyFile}, {CertificateFile, "missing"}, {CertificateFile, AuthorityKeyFile}, {KeyFile, CertificateFile}} {
		if _, err := OpenFiles(filepath.Join(dir, names[0]), filepath.Join(dir, names[1]), clock, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%q: opened", names)
		}
	}
}
