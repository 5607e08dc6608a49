package server

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/sightline-dev/sightline/origin/server/system"
)

// Bounds of a token for the metrics. A shorter one could be guessed.
const (
	minMetricsToken = 16
	maxMetricsToken = 1024
)

// errMetricsToken is returned for a file without a usable token.
var errMetricsToken = fmt.Errorf("the token must have %d to %d printable ASCII characters without spaces", minMetricsToken, maxMetricsToken)

// metricsToken is the token in a file, which another program may replace while the server runs. A nil metricsToken has no token. It is safe
// for concurrent use.
type metricsToken struct {
	file string
	now  func() time.Time
	log  *slog.Logger

	mu      sync.Mutex
	token   string    // empty: the file has no usable token
	changed time.Time // modification time of the file at the last attempt to read it
	size    int64
	checked time.Time
}

// openMetricsToken reads the file. Without a file it returns nil.
func openMetricsToken(file string, now func() time.Time, log *slog.Logger) (*metricsToken, error) {
	if file == "" {
		return nil, nil
	}
	t := &metricsToken{file: file, now: now, log: log}
	if err := t.read(); err != nil {
		return nil, fmt.Errorf("metrics-token: %w", err)
	}
	return t, nil
}

// current returns the token. It checks the file at most once a second. It returns "" while the file has no usable token, so a deleted file
// ends its token.
func (t *metricsToken) current() string {
	if t == nil {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if age := t.now().Sub(t.checked); age >= 0 && age < time.Second {
		return t.token
	}
	if err := t.read(); err != nil {
		t.log.Error("cannot read the token for the metrics", "error", err)
	}
	return t.token
}

// read reads the file if it has changed. It returns an error once for each change.
func (t *metricsToken) read() error {
	first := t.checked.IsZero()
	t.checked = t.now()
	changed, size, err := system.ModTimeAndSize(t.file)
	if !first && changed.Equal(t.changed) && size == t.size {
		return nil
	}
	t.changed, t.size, t.token = changed, size, ""
	if err != nil {
		return err
	}
	text, err := system.ReadFile(t.file, maxMetricsToken+2)
	if err != nil {
		return fmt.Errorf("file %s: %w", t.file, err)
	}
	token := strings.TrimSpace(string(text))
	isInvalid := func(r rune) bool { return r <= ' ' || r > '~' }
	if len(token) < minMetricsToken || len(token) > maxMetricsToken || strings.ContainsFunc(token, isInvalid) {
		return fmt.Errorf("file %s: %w", t.file, errMetricsToken)
	}
	t.token = token
	return nil
}
