package command

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
)

func read(t *testing.T, environ []string, args ...string) (settings, error) {
	t.Helper()
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	serveFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return loadSettings(flags, func() []string { return environ })
}

func TestSettingsDefaults(t *testing.T) {
	s, err := read(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := settings{
		listen: "127.0.0.1:8080", data: "sightline-data", language: "en", keepPredicted: 24 * time.Hour,
		maxBody: 96 << 20, minFree: 512 << 20, maxConns: 2048, logFormat: "auto", logLevel: slog.LevelInfo,
	}
	if fmt.Sprintf("%+v", s) != fmt.Sprintf("%+v", want) {
		t.Errorf("settings = %+v, want %+v", s, want)
	}
}

// TestSettingsPrecedence sets one thing in all places, and others in fewer.
func TestSettingsPrecedence(t *testing.T) {
	config := filepath.Join(t.TempDir(), "sightline.toml")
	text := `
data = "from-file"
public-app-id = "from-file"
log = "warn"
keep-predicted = "1h"
fetch-ports = [8080, 8443]
allow-private-fetch = true
max-connections = 7
`
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	environ := []string{"SIGHTLINE_DATA=from-environment", "SIGHTLINE_LOG=error", "SIGHTLINE_MAX_BODY=2MB", "DATA=x"}
	s, err := read(t, append(environ, "SIGHTLINE_CONFIG="+config), "--data", "from-flag")
	if err != nil {
		t.Fatal(err)
	}
	if s.data != "from-flag" || s.logLevel != slog.LevelError || s.publicAppID != "from-file" || s.keepPredicted != time.Hour ||
		!slices.Equal(s.fetchPorts, []uint16{8080, 8443}) || !s.allowPrivate || s.maxBody != 2<<20 || s.maxConns != 7 {
		t.Errorf("settings = %+v", s)
	}
	if s, err = read(t, environ, "--config", config); err != nil || s.data != "from-environment" {
		t.Errorf("settings = %+v, %v; want data from the environment", s, err)
	}
	if s, err = read(t, []string{"SIGHTLINE_FETCH_PORTS=81,82"}); err != nil || !slices.Equal(s.fetchPorts, []uint16{81, 82}) {
		t.Errorf("fetch ports = %v, %v; want 81 and 82", s.fetchPorts, err)
	}
	if s, err = read(t, nil, "--fetch-ports", "83,84"); err != nil || !slices.Equal(s.fetchPorts, []uint16{83, 84}) {
		t.Errorf("fetch ports = %v, %v; want 83 and 84", s.fetchPorts, err)
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
		{"--max-body", "0"},
		{"--max-body", "many"},
		{"--max-body", "99999999GB"},
		{"--max-body", "-1MB"},
		{"--keep-predicted", "-1s"},
		{"--log", "loud"},
		{"--log-format", "xml"},
		{"--fetch-ports", "0"},
		{"--fetch-ports", "70000"},
		{"--max-connections", "0"},
		{"--workers", "-1"},
		{"--data", ""},
		{"--config", "missing.toml"},
		{"--config", unknown},
	} {
		_, err := read(t, nil, args...)
		var usage usageError
		if !errors.As(err, &usage) {
			t.Errorf("%q: %v, want a mistake of usage", args, err)
		}
	}
	for _, listen := range []string{"127.0.0.1:0", "127.9.9.9:80", "[::1]:8080", "localhost:8080"} {
		if _, err := read(t, nil, "--listen", listen); err != nil {
			t.Errorf("--listen %s: %v", listen, err)
		}
	}
	_, err := read(t, []string{"SIGHTLINE_KEEP_PREDICTED=soon"})
	if err == nil || !strings.Contains(err.Error(), "keep-predicted") {
		t.Errorf("a bad variable: %v, want that it names the setting", err)
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{"1": 1, "1500": 1500, "64KB": 64 << 10, "96mb": 96 << 20, "1 GB": 1 << 30} {
		if got, err := parseSize(text); got != want || err != nil {
			t.Errorf("parseSize(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
}

func TestLogFormats(t *testing.T) {
	for format, want := range map[string]string{"json": `{"time":`, "auto": `{"time":`, "text": "time="} {
		var b strings.Builder
		newLog(&b, settings{logFormat: format}).Info("hello")
		if !strings.HasPrefix(b.String(), want) {
			t.Errorf("%s: %q, want it to start with %s", format, b.String(), want)
		}
	}
	if isTerminal(io.Discard) {
		t.Error("nothing is a terminal")
	}
}
