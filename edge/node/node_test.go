package node

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
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
	"github.com/sightline-dev/sightline/wasm/host"
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

// TestCacheKey checks that a folder has one key, which only this user can read, and gets another one if the key is damaged.
func TestCacheKey(t *testing.T) {
	dir, name := folder(t)
	first, err := system.Key(dir, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := system.Key(dir, keyFile); again != first || err != nil {
		t.Errorf("the second key = %x, %v, want %x", again, err, first)
	}
	file := filepath.Join(name, keyFile)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file has mode %v, %v", info.Mode(), err)
	}
	for _, damaged := range []string{"", "ab", hex.EncodeToString(first[:])[1:] + "x"} {
		if err := os.WriteFile(file, []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		other, err := system.Key(dir, keyFile)
		if err != nil || other == first || other == [32]byte{} {
			t.Errorf("in the place of %q: key %x, %v", damaged, other, err)
		}
		if again, err := system.Key(dir, keyFile); again != other || err != nil {
			t.Errorf("the new key is not kept: %v", err)
		}
	}
}

// TestPrune deletes the compiled modules of older programs.
func TestPrune(t *testing.T) {
	dir, name := folder(t)
	cache, err := openCache(dir)
	if err != nil {
		t.Fatal(err)
	}
	own, old := sha256.Sum256([]byte("own")), sha256.Sum256([]byte("old"))
	for _, file := range []string{
		hex.EncodeToString(own[:]), hex.EncodeToString(own[:]) + ".new", hex.EncodeToString(old[:]) + "-trusted", "what.new",
	} {
		if err := os.WriteFile(filepath.Join(name, compiledDir, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := prune(cache, own); err != nil {
		t.Fatal(err)
	}
	entries, err := fs.ReadDir(os.DirFS(name), compiledDir)
	if err != nil || len(entries) != 2 {
		t.Errorf("%d files are left, %v, want 2: %v", len(entries), err, entries)
	}
	if err := prune(&host.Cache{Files: cache.Files}, own); err != nil {
		t.Errorf("with nothing to drop: %v", err)
	}
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
