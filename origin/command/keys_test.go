package command

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
)

var discard = slog.New(slog.DiscardHandler)

// runCode runs a command without input.
func runCode(t testing.TB, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Run(t.Context(), Env{Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Environ: func() []string { return nil }})
	return code, out.String(), errs.String()
}

func rewrite(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// keys are those of the tests' servers, by host and port and, in processes, by data folder.
var keys sync.Map

// keyed adds the key of the server that a request goes to.
type keyed struct{ http.RoundTripper }

func (k keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	if key := keyOf(r.URL.Host); key != "" && r.Header.Get("Authorization") == "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Key "+key)
	}
	return k.RoundTripper.RoundTrip(r)
}

func keyOf(address string) string {
	key, _ := keys.Load(address)
	s, _ := key.(string)
	return s
}

// contextThatEnds is one that a test ends at a moment of its choice.
func contextThatEnds(t testing.TB) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithCancel(t.Context())
}
