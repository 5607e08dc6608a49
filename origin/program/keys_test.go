package program

import (
	"bytes"
	"context"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/control"
	"github.com/sightline-dev/sightline/origin/server/data"
)

var discard = slog.New(slog.DiscardHandler)

// runCode runs a command without input.
func runCode(t testing.TB, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = cli.Run(t.Context(), New(), server.Env{Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Environ: func() []string { return nil }})
	return code, out.String(), errs.String()
}

func rewrite(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// keys holds the keys of the tests' servers, by host and port. Servers in a separate process are also listed by data folder.
var keys sync.Map

// keyTransport adds the key of the server that a request goes to.
type keyTransport struct{ http.RoundTripper }

func (k keyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
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

// contextThatEnds returns a context and its cancel function.
func contextThatEnds(t testing.TB) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithCancel(t.Context())
}

type change = kv.Writer

// commitTo commits the changes of do to a store, and waits until they are durable.
func commitTo(t testing.TB, s kv.Store, do func(change)) {
	t.Helper()
	var b kv.Batch
	do(&b)
	wait, err := s.Commit(&b)
	if err == nil {
		err = wait()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// deleteSome deletes the first n keys below a prefix.
func deleteSome(t testing.TB, f *data.Folder, tx change, prefix []byte, n int) {
	t.Helper()
	end := append(bytes.Clone(prefix), 0xff)
	err := f.Store.Scan(prefix, end, func(key, _ []byte) bool {
		tx.Delete(key)
		n--
		return n > 0
	})
	if err != nil || n > 0 {
		t.Fatalf("%d keys are missing below %x: %v", n, prefix, err)
	}
}

// noSockets is a folder without the socket file that a killed server leaves behind.
type noSockets struct{ fs.FS }

func (n noSockets) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(n.FS, name)
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return e.Name() == control.Socket }), err
}
