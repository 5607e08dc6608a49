package node

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/sightline-dev/sightline/origin/system"
	"github.com/sightline-dev/sightline/wasm"
	"github.com/sightline-dev/sightline/wasm/host"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// folder opens a new data folder, and says where it is.
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

// TestModuleOfFolder puts modules into a folder and takes them out again; what a crash left of one is
// no hindrance.
func TestModuleOfFolder(t *testing.T) {
	dir, name := folder(t)
	own := func() bool {
		b, err := module(dir, quiet)
		want, _, e := builtIn()
		return errors.Is(err, wasm.ErrNotBuilt) && errors.Is(e, wasm.ErrNotBuilt) || err == nil && slices.Equal(b, want)
	}
	if !own() {
		t.Error("a new folder has a module of its own")
	}
	if err := os.WriteFile(filepath.Join(name, moduleFile+".new"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "two"} {
		if err := putModule(dir, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if b, err := module(dir, quiet); string(b) != text || err != nil {
			t.Errorf("module = %q, %v, want %q", b, err, text)
		}
	}
	for range 2 { // there may be none
		if err := putModule(dir, nil); err != nil {
			t.Fatal(err)
		}
	}
	if !own() {
		t.Error("the folder kept its module")
	}
}

// TestCacheKey has a folder keep one key, that this user alone reads, and make another for one that
// is damaged.
func TestCacheKey(t *testing.T) {
	dir, name := folder(t)
	first, err := cacheKey(dir)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := cacheKey(dir); again != first || err != nil {
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
		other, err := cacheKey(dir)
		if err != nil || other == first || other == [32]byte{} {
			t.Errorf("in the place of %q: key %x, %v", damaged, other, err)
		}
		if again, err := cacheKey(dir); again != other || err != nil {
			t.Errorf("the new key is not kept: %v", err)
		}
	}
}

// TestPrune drops what older programs' modules were compiled to.
func TestPrune(t *testing.T) {
	dir, name := folder(t)
	cache, err := openCache(dir)
	if err != nil {
		t.Fatal(err)
	}
	own, other, old := sha256.Sum256([]byte("own")), sha256.Sum256([]byte("other")), sha256.Sum256([]byte("old"))
	for _, file := range []string{
		hex.EncodeToString(own[:]) + "-trusted", hex.EncodeToString(other[:]) + "-deadlines", hex.EncodeToString(old[:]) + "-trusted", "what.new",
	} {
		if err := os.WriteFile(filepath.Join(name, compiledDir, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := prune(cache, own, other); err != nil {
		t.Fatal(err)
	}
	entries, err := fs.ReadDir(os.DirFS(name), compiledDir)
	if err != nil || len(entries) != 2 {
		t.Errorf("%d files are left, %v, want 2: %v", len(entries), err, entries)
	}
	if err := prune(&host.Cache{Files: cache.Files}, own, other); err != nil {
		t.Errorf("with nothing to drop: %v", err)
	}
}

// TestReleasedModule serves a folder from what the origin has released, unless an operator has put a module there.
func TestReleasedModule(t *testing.T) {
	dir, name := folder(t)
	released := []byte("released")
	hash := sha256.Sum256(released)
	for file, text := range map[string]string{
		"modules.json": fmt.Sprintf(`{"seen":{"version":2,"sha256":"%x"},"current":{"version":2,"sha256":"%x"},"tries":1}`, hash, hash),
		filepath.Join("modules", hex.EncodeToString(hash[:])+".wasm"): string(released),
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(name, file)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(name, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	serves := func(want string) {
		t.Helper()
		if b, err := module(dir, quiet); string(b) != want || err != nil {
			t.Errorf("module = %q, %v, want %q", b, err, want)
		}
	}
	e := &engine{dir: dir, log: quiet}
	serves("released")
	if kept := releasedHashes(dir, quiet); !slices.Equal(kept, [][32]byte{hash}) || e.held() {
		t.Errorf("kept %x, held %v", kept, e.held())
	}
	if err := putModule(dir, []byte("an operator's")); err != nil {
		t.Fatal(err)
	}
	serves("an operator's")
	if !e.held() {
		t.Error("an operator's module is not seen")
	}
	if err := putModule(dir, nil); err != nil {
		t.Fatal(err)
	}
	for range 3 { // starts that end before it has proved itself
		serves("released")
		if err := e.begin(); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := module(dir, quiet); string(b) == "released" {
		t.Errorf("after three starts %q serves, %v", b, err)
	}
	if err := os.WriteFile(filepath.Join(name, "modules.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := e.begin(); err != nil {
		t.Errorf("a damaged file keeps the edge from starting: %v", err)
	}
}

// TestReleaseKey learns the origin's key where it enrols, or from the first release, and keeps it.
func TestReleaseKey(t *testing.T) {
	dir, _ := folder(t)
	who := &identity{Origin: "https://origin.test", Seed: make([]byte, 32), ID: "e"}
	if who.releases() != nil {
		t.Error("a key that nobody has told")
	}
	for _, bad := range []string{"x", "abcd", strings.Repeat("0", 66)} {
		if err := who.told(bad); err == nil || who.releases() != nil {
			t.Errorf("told %q: %v, %x", bad, err, who.releases())
		}
	}
	key := ed25519.NewKeyFromSeed(make([]byte, 32)).Public().(ed25519.PublicKey)
	if err := who.told(""); err != nil {
		t.Errorf("an origin that releases nothing: %v", err)
	}
	if err := who.told(hex.EncodeToString(key)); err != nil || !who.releases().Equal(key) {
		t.Errorf("told: %v, %x", err, who.releases())
	}
	other := bytes.Repeat([]byte{7}, 32)
	if err := who.learn(dir, other); err != nil {
		t.Fatal(err)
	}
	again, err := readIdentity(dir)
	if err != nil || !bytes.Equal(again.releases(), other) || again.ID != "e" {
		t.Errorf("read again: %+v, %v", again, err)
	}
}
