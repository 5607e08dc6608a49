package node

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/system"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// folder opens a new data folder, and returns its path.
func folder(t *testing.T) (*system.Folder, string) {
	t.Helper()
	name := t.TempDir()
	dir, err := system.OpenFolder(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dir.Close(); err != nil {
			t.Error(err)
		}
	})
	return dir, name
}

// TestEarlierIdentity reads the identity of a folder whose edge followed the releases of its origin.
func TestEarlierIdentity(t *testing.T) {
	dir, name := folder(t)
	earlier := fmt.Sprintf(`{"origin":"https://origin.test","seed":%q,"id":"e","name":"attic","apps":["a"],"release_key":%[1]q}`,
		base64.StdEncoding.EncodeToString(make([]byte, ed25519.SeedSize)))
	if err := os.WriteFile(filepath.Join(name, identityFile), []byte(earlier), 0o600); err != nil {
		t.Fatal(err)
	}
	if id, err := readIdentity(dir); err != nil || id.ID != "e" || id.Name != "attic" || !slices.Equal(id.Apps, []string{"a"}) {
		t.Errorf("readIdentity = %+v, %v", id, err)
	}
	if content, err := os.ReadFile(filepath.Join(name, identityFile)); err != nil || string(content) != earlier {
		t.Errorf("the file is %s, %v", content, err)
	}
}

// TestListenAfterKilled checks that a server that starts while the previous one still ends gets the folder and the address eventually.
func TestListenAfterKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := t.TempDir()
		release, err := system.Lock(data)
		if err != nil {
			t.Fatal(err)
		}
		dying, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		var logs bytes.Buffer
		s, log := &server.Settings{Listen: dying.Addr().String(), Data: data}, slog.New(slog.NewTextHandler(&logs, nil))
		got := make(chan error)
		var next net.Listener
		go func() {
			l, err := listen(t.Context(), s, log)
			next = l
			got <- err
		}()
		synctest.Wait()
		select {
		case err := <-got:
			t.Fatalf("listen = %v while the previous server has the address", err)
		default:
		}
		if err := errors.Join(dying.Close(), release()); err != nil {
			t.Fatal(err)
		}
		if err := <-got; err != nil {
			t.Fatal(err)
		}
		if next.Addr().String() != s.Listen || strings.Count(logs.String(), "waiting") != 1 {
			t.Errorf("listens on %v, want %s; log: %s", next.Addr(), s.Listen, &logs)
		}
		if err := next.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestListenInUse checks that listen fails at once if another program has the address, and after endTime if a running server has it.
func TestListenInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		data, begun := t.TempDir(), time.Now()
		s, log := &server.Settings{Listen: other.Addr().String(), Data: data}, slog.New(slog.DiscardHandler)
		if _, err := listen(t.Context(), s, log); !errors.Is(err, syscall.EADDRINUSE) || time.Since(begun) > 0 {
			t.Errorf("listen = %v after %v, want EADDRINUSE at once", err, time.Since(begun))
		}
		release, err := system.Lock(data)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := listen(t.Context(), s, log); !errors.Is(err, syscall.EADDRINUSE) || time.Since(begun) != endTime {
			t.Errorf("listen = %v after %v, want EADDRINUSE after %v", err, time.Since(begun), endTime)
		}
		if err := errors.Join(other.Close(), release()); err != nil {
			t.Fatal(err)
		}
	})
}
