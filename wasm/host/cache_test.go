package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/testkit"
)

// diskFolder is a folder of the system.
type diskFolder struct{ dir string }

func (f diskFolder) Create(name string) (blob.File, error) {
	file, err := os.OpenFile(filepath.Join(f.dir, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	return diskFile{file}, err
}

// diskFile is a file of a diskFolder.
type diskFile struct{ *os.File }

func (diskFile) StartSync() {}

func (f diskFolder) Open(name string) (io.ReadCloser, error) {
	return os.Open(filepath.Join(f.dir, name))
}

func (f diskFolder) Rename(from, to string) error {
	return os.Rename(filepath.Join(f.dir, from), filepath.Join(f.dir, to))
}
func (f diskFolder) Remove(name string) error { return os.Remove(filepath.Join(f.dir, name)) }
func (f diskFolder) ReadDir(name string) (names []string, err error) {
	entries, err := os.ReadDir(filepath.Join(f.dir, name))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

func (f diskFolder) Size(name string) (int64, error) {
	info, err := os.Stat(filepath.Join(f.dir, name))
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f diskFolder) MkdirAll(name string) error {
	return os.MkdirAll(filepath.Join(f.dir, name), 0o700)
}
func (f diskFolder) SyncDir(string) error { return nil }

func newCache(t testing.TB) *Cache {
	t.Helper()
	return &Cache{
		Files: diskFolder{t.TempDir()}, Key: [32]byte{1, 2, 3},
		Scratch: func() (string, blob.FS, func(), error) {
			dir := t.TempDir()
			return dir, diskFolder{dir}, func() { os.RemoveAll(dir) }, nil
		},
	}
}

// cacheFile returns the one file of a cache.
func cacheFile(t testing.TB, c *Cache) string {
	t.Helper()
	names, err := c.Files.ReadDir(".")
	if err != nil || len(names) != 1 {
		t.Fatalf("the cache holds %v, %v", names, err)
	}
	return filepath.Join(c.Files.(diskFolder).dir, names[0])
}

// start makes a runtime with a cache, has it answer, and reports whether it compiled.
func start(t testing.TB, module []byte, c *Cache) (compiled bool) {
	t.Helper()
	o := options(module)
	o.Cache = c
	rt := newRuntime(t, o)
	in := open(t, rt, testServices(t))
	if got := in.Begin(context.Background(), &api.Request{Method: "GET", Path: "/v2/models"}).Response(); got.Status != 200 {
		t.Fatalf("%+v", got)
	}
	return rt.WasCompiled()
}

func TestCacheIsRead(t *testing.T) {
	module, c := newGuest().encode(), newCache(t)
	if !start(t, module, c) || start(t, module, c) {
		t.Error("the second start compiles, or the first does not")
	}
	if start(t, module, nil) != true {
		t.Error("without a cache nothing is compiled")
	}
	g := newGuest()
	g.pages = 2
	if !start(t, g.encode(), c) {
		t.Error("another module is read from the first one's file")
	}
	c.Scratch = func() (string, blob.FS, func(), error) { return "", nil, nil, fs.ErrPermission }
	if !start(t, module, c) {
		t.Error("read without a scratch folder")
	}
}

// TestCacheOfAnotherVersionIsReplaced starts with a valid file that wazero does not use, as after an update of wazero. The first start
// compiles and replaces it, the second loads the new one.
func TestCacheOfAnotherVersionIsReplaced(t *testing.T) {
	module, c := newGuest().encode(), newCache(t)
	start(t, module, c)
	name := filepath.Base(cacheFile(t, c))
	for _, file := range []string{"wazero-v0-other/compiled"} {
		dir := t.TempDir()
		if err := errors.Join(os.Mkdir(filepath.Join(dir, filepath.Dir(file)), 0o700), os.WriteFile(filepath.Join(dir, file), []byte("code"), 0o600)); err != nil {
			t.Fatal(err)
		}
		if err := c.store(diskFolder{dir}, name, file, "test"); err != nil {
			t.Fatal(err)
		}
		if !start(t, module, c) || start(t, module, c) {
			t.Errorf("%s: the second start compiles, or the first does not", file)
		}
	}
}

// TestReplacedCacheIsCompiled replaces a file of the cache in every way that a stranger to the key can: each time the module is compiled
// again, never loaded, and the file is restored.
func TestReplacedCacheIsCompiled(t *testing.T) {
	module, c := newGuest().encode(), newCache(t)
	start(t, module, c)
	name := cacheFile(t, c)
	good, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	other := newCache(t)
	other.Key[0]++
	start(t, module, other)
	otherData, err := os.ReadFile(cacheFile(t, other))
	if err != nil {
		t.Fatal(err)
	}
	otherCache := newCache(t)
	g := newGuest()
	g.bodies["serve"] = trap
	start2 := newRuntime(t, Options{Module: g.encode(), Cache: otherCache, Now: options(nil).Now, Rand: newSeeded()})
	if !start2.WasCompiled() {
		t.Fatal("not compiled")
	}
	swapped, err := os.ReadFile(cacheFile(t, otherCache))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string][]byte{
		"empty": {}, "another key's": otherData, "another module's, by the same key": swapped,
		"longer": append(good[:len(good):len(good)], 0), "shorter": good[:len(good)-1], "head alone": good[:sealBytes+4],
		"what wazero wrote, unsealed": good[sealBytes+4:],
	}
	draw := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		at := draw.IntN(len(good))
		flipped := append([]byte(nil), good...)
		flipped[at] ^= 1 << draw.IntN(8)
		tests[fmt.Sprintf("flipped at %d", at)] = flipped
	}
	for change, bad := range tests {
		if err := os.WriteFile(name, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if !start(t, module, c) {
			t.Errorf("%s: loaded", change)
		}
		if start(t, module, c) {
			t.Errorf("%s: the file is not replaced", change)
		}
	}
}

// TestUnreadableCacheIsCompiled compiles what wazero cannot read for all its seal, as after a change of wazero itself.
func TestUnreadableCacheIsCompiled(t *testing.T) {
	module, c := newGuest().encode(), newCache(t)
	start(t, module, c)
	name := cacheFile(t, c)
	sealed, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	scratch := diskFolder{t.TempDir()}
	file, err := c.unseal(filepath.Base(name), bytes.NewReader(sealed), scratch)
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := os.ReadFile(filepath.Join(scratch.dir, unsealed))
	if err != nil {
		t.Fatal(err)
	}
	if err := scratch.MkdirAll(filepath.Dir(file)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(scratch.dir, file), compiled[:10], 0o600); err != nil {
		t.Fatal(err)
	}
	var useless bytes.Buffer
	if err := c.seal(&useless, filepath.Base(name), scratch, file); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, useless.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if !start(t, module, c) {
		t.Error("ten bytes are loaded")
	}
}

// sharedCache keeps the compiled modules of tests next to the project, so that each build of a module is compiled once. The seal makes
// that safe.
func sharedCache(t testing.TB) *Cache {
	t.Helper()
	dir := filepath.Join(testkit.Root(t), ".cache", "compiled")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	old, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range old {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > 24*time.Hour {
			os.Remove(filepath.Join(dir, e.Name()))
		}
	}
	c := newCache(t)
	c.Files = diskFolder{dir}
	return c
}
