package server

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/origin/server/httpd"
)

func read(t *testing.T, environ []string, args ...string) (Settings, error) {
	t.Helper()
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	flags.SetNormalizeFunc(FlagName)
	var o Options
	Flags(flags, &o)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return LoadSettings(flags, func() []string { return environ }, &o)
}

func TestSettingsDefaults(t *testing.T) {
	s, err := read(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := Settings{
		Listen: "127.0.0.1:8080", Data: "sightline-data", Language: "en", PredictedTTL: 24 * time.Hour,
		MaxBody: 96 << 20, MaxAnswer: 16 << 20, MaxVideo: 80 << 20, VideoTime: 15 * time.Minute, VideoCallTime: 20 * time.Minute, MinFree: 512 << 20, MaxConns: 2048, LogFormat: "auto", LogLevel: slog.LevelInfo,
		TokenLife: 15 * time.Minute, Rate: auth.Rate{PerSecond: 10, Burst: 100}, OperatorRate: auth.Rate{PerSecond: -1},
		Hosted: httpd.HostedRates{Requests: 100, Bytes: 32 << 20},
	}
	if fmt.Sprintf("%+v", s) != fmt.Sprintf("%+v", want) {
		t.Errorf("settings = %+v, want %+v", s, want)
	}
}

// TestSettingsPrecedence sets one setting in all sources, and other settings in fewer sources.
func TestSettingsPrecedence(t *testing.T) {
	config := filepath.Join(t.TempDir(), "sightline.toml")
	text := `
data = "from-file"
public-app-id = "main"
log = "warn"
predicted-ttl = "1h"
fetch-ports = [8080, 8443]
allow-private-fetch = true
max-connections = 7
token-ttl = "1h"
rate = 2.5
acme-domain = ["a.example", "B.example."]
acme-email = "me@a.example"
`
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	environ := []string{"SIGHTLINE_DATA=from-environment", "SIGHTLINE_LOG=error", "SIGHTLINE_MAX_BODY=2MB", "SIGHTLINE_BURST=7", "SIGHTLINE_CLI_KEY_RATE=1", "DATA=x"}
	s, err := read(t, append(environ, "SIGHTLINE_CONFIG="+config), "--data", "from-flag")
	if err != nil {
		t.Fatal(err)
	}
	if s.Data != "from-flag" || s.LogLevel != slog.LevelError || s.PublicAppID != "main" || s.PredictedTTL != time.Hour ||
		!slices.Equal(s.FetchPorts, []uint16{8080, 8443}) || !s.AllowPrivate || s.MaxBody != 2<<20 || s.MaxConns != 7 ||
		s.TokenLife != time.Hour || s.Rate != (auth.Rate{PerSecond: 2.5, Burst: 7}) || s.OperatorRate != (auth.Rate{PerSecond: 1, Burst: 7}) ||
		!slices.Equal(s.TLS.Domains, []string{"a.example", "b.example"}) || s.TLS.Email != "me@a.example" {
		t.Errorf("settings = %+v", s)
	}
	if s, err = read(t, environ, "--config", config); err != nil || s.Data != "from-environment" {
		t.Errorf("settings = %+v, %v; want data from the environment", s, err)
	}
	if s, err = read(t, []string{"SIGHTLINE_FETCH_PORTS=81,82"}); err != nil || !slices.Equal(s.FetchPorts, []uint16{81, 82}) {
		t.Errorf("fetch ports = %v, %v; want 81 and 82", s.FetchPorts, err)
	}
	if s, err = read(t, []string{"SIGHTLINE_ACME_DOMAIN=a.example,b.example"}, "--listen", ":443"); err != nil || !slices.Equal(s.TLS.Domains, []string{"a.example", "b.example"}) {
		t.Errorf("domains = %v, %v; want a.example and b.example", s.TLS.Domains, err)
	}
	for given, want := range map[string]string{"auto": "", "null": "null", "": ""} {
		if s, err = read(t, nil, "--config", config, "--public-app-id", given); err != nil || s.PublicAppID != want {
			t.Errorf("public-app-id %q = %q, %v; want %q", given, s.PublicAppID, err, want)
		}
	}
	if s, err = read(t, nil, "--fetch-ports", "83,84"); err != nil || !slices.Equal(s.FetchPorts, []uint16{83, 84}) {
		t.Errorf("fetch ports = %v, %v; want 83 and 84", s.FetchPorts, err)
	}
}

// TestOldNamesOfSettings uses the names that some settings had in version 0.1.0.
func TestOldNamesOfSettings(t *testing.T) {
	config := filepath.Join(t.TempDir(), "sightline.toml")
	if err := os.WriteFile(config, []byte("min-free = '1GB'\nkeep-predicted = '1h'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := read(t, []string{"SIGHTLINE_KEEP_PREDICTED=2h"}, "--config", config, "--operator-rate", "3")
	if err != nil {
		t.Fatal(err)
	}
	if s.MinFree != 1<<30 || s.PredictedTTL != 2*time.Hour || s.OperatorRate.PerSecond != 3 {
		t.Errorf("settings = %+v, want those of the file, the environment and the flag", s)
	}
	if s, err = read(t, nil, "--config", config, "--predicted-ttl", "3h"); err != nil || s.PredictedTTL != 3*time.Hour {
		t.Errorf("settings = %+v, %v; want the flag's duration", s, err)
	}
	if err := os.WriteFile(config, []byte("min-free-space = '2GB'\nmin-free = '1GB'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err = read(t, nil, "--config", config); err != nil || s.MinFree != 2<<30 {
		t.Errorf("settings = %+v, %v; want the setting with the current name", s, err)
	}
}

func TestSettingsRefused(t *testing.T) {
	unknown := filepath.Join(t.TempDir(), "unknown.toml")
	if err := os.WriteFile(unknown, []byte("datta = 'x'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"--listen", "0.0.0.0:8080"},
		{"--listen", ":8080"},
		{"--listen", "192.168.1.1:80"},
		{"--listen", "[::]:80"},
		{"--listen", "example.com:80"},
		{"--listen", "127.0.0.1"},
		{"--listen", "127.0.0.1:http"},
		{"--listen", "127.0.0.1:99999"},
		{"--metrics", "closed"},
		{"--max-answer", "1MB"},
		{"--max-answer", "many"},
		{"--store-cache", "63MB"},
		{"--store-cache", "0"},
		{"--max-body", "0"},
		{"--max-body", "many"},
		{"--max-body", "99999999GB"},
		{"--max-body", "-1MB"},
		{"--max-video", "many"},
		{"--video-time", "10ms"},
		{"--video-call-timeout", "0"},
		{"--predicted-ttl", "-1s"},
		{"--log", "loud"},
		{"--log-format", "xml"},
		{"--fetch-ports", "0"},
		{"--fetch-ports", "70000"},
		{"--max-connections", "0"},
		{"--workers", "-1"},
		{"--data", ""},
		{"--public-app-id", "mian"},
		{"--tls-cert", "a"},
		{"--tls-key", "a"},
		{"--tls-cert", "a", "--tls-key", "b", "--acme-domain", "a.example"},
		{"--acme-domain", "localhost"},
		{"--acme-domain", "192.0.2.1"},
		{"--acme-domain", "*.example.org"},
		{"--acme-domain", "https://a.example"},
		{"--acme-email", "me@a.example"},
		{"--acme-directory", "https://ca.example"},
		{"--acme-domain", "a.example", "--acme-directory", "http://ca.example"},
		{"--behind-proxy"},
		{"--token-ttl", "0s"},
		{"--token-ttl", "49h1s"},
		{"--rate", "-1"},
		{"--rate", "1e9"},
		{"--cli-key-rate", "NaN"},
		{"--burst", "0"},
		{"--config", "missing.toml"},
		{"--config", unknown},
	} {
		_, err := read(t, nil, args...)
		var usage UsageError
		if !errors.As(err, &usage) {
			t.Errorf("%q: %v, want a mistake of usage", args, err)
		}
	}
	for _, listen := range []string{"127.0.0.1:0", "127.9.9.9:80", "[::1]:8080", "localhost:8080"} {
		if _, err := read(t, nil, "--listen", listen); err != nil {
			t.Errorf("--listen %s: %v", listen, err)
		}
	}
	for _, args := range [][]string{
		{"--listen", ":443", "--acme-domain", "a.example"},
		{"--listen", "0.0.0.0:443", "--tls-cert", "a", "--tls-key", "b"},
		{"--listen", ":8080", "--behind-proxy", "--public-url", "https://a.example"},
	} {
		if _, err := read(t, nil, args...); err != nil {
			t.Errorf("%q: %v", args, err)
		}
	}
	_, err := read(t, []string{"SIGHTLINE_PREDICTED_TTL=soon"})
	if err == nil || !strings.Contains(err.Error(), "predicted-ttl") {
		t.Errorf("a bad variable: %v, want that it names the setting", err)
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{"1": 1, "1500": 1500, "64KB": 64 << 10, "96mb": 96 << 20, "1 GB": 1 << 30} {
		if got, err := ParseSize(text); got != want || err != nil {
			t.Errorf("ParseSize(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
}

func TestLogFormats(t *testing.T) {
	for format, want := range map[string]string{"json": `{"time":`, "auto": `{"time":`, "text": "time="} {
		var b strings.Builder
		newLog(&b, Settings{LogFormat: format}).Info("hello")
		if !strings.HasPrefix(b.String(), want) {
			t.Errorf("%s: %q, want it to start with %s", format, b.String(), want)
		}
	}
	if IsTerminal(io.Discard) {
		t.Error("nothing is a terminal")
	}
}
