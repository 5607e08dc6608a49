package server

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"
)

func TestPublicURL(t *testing.T) {
	at := func(text string) net.Addr {
		a, err := net.ResolveTCPAddr("tcp", text)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	for _, tt := range []struct {
		address string
		secure  bool
		name    string
		want    string
		strict  bool
	}{
		{"127.0.0.1:80", false, "", "http://127.0.0.1:80", false},
		{"127.0.0.1:8443", true, "", "https://127.0.0.1:8443", false},
		{"[::]:8443", true, "localhost", "https://localhost:8443", false},
		{"[::]:443", true, "a.example", "https://a.example", true},
		{"0.0.0.0:8443", true, "a.example", "https://a.example:8443", true},
	} {
		got := publicURL(at(tt.address), tt.secure, tt.name)
		if got != tt.want || strict(got) != tt.strict {
			t.Errorf("publicURL(%s, %v, %q) = %s, strict %v; want %s, %v", tt.address, tt.secure, tt.name, got, strict(got), tt.want, tt.strict)
		}
	}
}

// TestConnectionsOfOneClient checks that connections per client are limited only if clients connect directly from other machines.
func TestConnectionsOfOneClient(t *testing.T) {
	for _, tt := range []struct {
		listen   string
		proxy    bool
		maxConns int
		want     int
	}{
		{"127.0.0.1:8080", false, 2048, 0},
		{"localhost:8443", false, 2048, 0},
		{":443", true, 2048, 0},
		{":443", false, 2048, 256},
		{"203.0.113.1:443", false, 20, 16},
	} {
		srv := &Server{Node: &Node{Settings: Settings{Listen: tt.listen, BehindProxy: tt.proxy, MaxConns: tt.maxConns}}}
		if got := srv.connsPerIP(); got != tt.want {
			t.Errorf("%s, behind a proxy %v, %d in all: %d, want %d", tt.listen, tt.proxy, tt.maxConns, got, tt.want)
		}
	}
}

// TestACMEFailuresAreLogged checks that failures for configured names are logged at most once a minute.
func TestACMEFailuresAreLogged(t *testing.T) {
	var log strings.Builder
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	get := logTLSFailures(func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, errors.New("no such authority") },
		[]string{"ours.test"}, func() time.Time { return now }, slog.New(slog.NewTextHandler(&log, nil)))
	for range 3 {
		for range 5 {
			for _, name := range []string{"other.test", "Ours.test"} {
				if _, err := get(&tls.ClientHelloInfo{ServerName: name}); err == nil {
					t.Errorf("%s: the error is lost", name)
				}
			}
			now = now.Add(time.Second)
		}
		now = now.Add(time.Minute)
	}
	if n := strings.Count(log.String(), "no such authority"); n != 3 || strings.Contains(log.String(), "other.test") {
		t.Errorf("told %d times, want 3:\n%s", n, log.String())
	}
}
