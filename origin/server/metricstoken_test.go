package server

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMetricsToken checks that the token follows its file: it changes when the file does, and ends when the file is deleted or damaged.
func TestMetricsToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	var log strings.Builder
	open := func() (*metricsToken, error) {
		return openMetricsToken(file, func() time.Time { return now }, slog.New(slog.NewTextHandler(&log, nil)))
	}
	written := now
	write := func(text string) {
		t.Helper()
		written = written.Add(time.Minute)
		if err := errors.Join(os.WriteFile(file, []byte(text), 0o600), os.Chtimes(file, written, written)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := open(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	const first, second = "0123456789abcdef", "fedcba9876543210-._~+/="
	for _, bad := range []string{"", first[1:], " \n", first + " " + first, first + "\x00", first + "é", strings.Repeat("a", maxMetricsToken+1), strings.Repeat(" ", 5000) + first} {
		write(bad)
		if _, err := open(); err == nil {
			t.Errorf("%.40q was taken", bad)
		}
	}
	write(first + "\r\n")
	token, err := open()
	if err != nil {
		t.Fatal(err)
	}
	check := func(when, want string) {
		t.Helper()
		if got := token.current(); got != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	check("at first", first)
	write(second)
	check("within a second", first)
	now = now.Add(time.Second)
	check("after a second", second)
	if log.Len() > 0 {
		t.Errorf("the log has %s", log.String())
	}
	write("short")
	for range 3 {
		now = now.Add(time.Second)
		check("damaged", "")
	}
	write(first)
	now = now.Add(time.Second)
	check("mended", first)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		now = now.Add(time.Second)
		check("deleted", "")
	}
	if n := strings.Count(log.String(), "cannot read the token"); n != 2 {
		t.Errorf("%d errors in the log, want 2:\n%s", n, log.String())
	}
	for _, secret := range []string{first, second, "short"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("the log has %q", secret)
		}
	}
	if none, err := openMetricsToken("", nil, nil); err != nil || none.current() != "" {
		t.Errorf("without a setting: %v", err)
	}
}
