package s3_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/crypto/acme/autocert"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/origin/server/s3"
	"github.com/sightline-dev/sightline/origin/server/s3/s3test"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// TestClaim claims buckets: an empty one, one of the same cluster, one of another cluster, and one with objects of an unknown cluster.
func TestClaim(t *testing.T) {
	server := s3test.New(t)
	s := open(t, options(t, server))
	for range 2 {
		if err := s.Claim(t.Context(), "c1"); err != nil {
			t.Errorf("Claim: %v", err)
		}
	}
	put(t, s, []byte("picture"))
	if err := s.Claim(t.Context(), "c1"); err != nil {
		t.Errorf("Claim of a bucket with pictures: %v", err)
	}
	if err := s.Claim(t.Context(), "c2"); !errors.Is(err, s3.ErrClaimed) || !strings.Contains(err.Error(), "belongs to cluster c1") {
		t.Errorf("Claim by another cluster = %v, want ErrClaimed", err)
	}
	if err := os.Remove(path(server.Folder, "0", "cluster")); err != nil {
		t.Fatal(err)
	}
	if err := s.Claim(t.Context(), "c1"); !errors.Is(err, s3.ErrClaimed) || !strings.Contains(err.Error(), "use an empty bucket") {
		t.Errorf("Claim of a bucket with objects = %v, want ErrClaimed", err)
	}
	empty(t, s)
	claims := make(chan error)
	for i := range 8 {
		go func() { claims <- s.Claim(t.Context(), fmt.Sprint("c", i)) }()
	}
	won := 0
	for range 8 {
		if err := <-claims; err == nil {
			won++
		} else if !errors.Is(err, s3.ErrClaimed) {
			t.Errorf("Claim: %v", err)
		}
	}
	if won != 1 {
		t.Errorf("%d of 8 clusters claimed the bucket, want 1", won)
	}

	for name, tt := range map[string]struct {
		change func(*s3.Options)
		want   string
	}{
		"bucket":      {func(o *s3.Options) { o.Location.Bucket = "another" }, "does not exist: create it first"},
		"credentials": {func(o *s3.Options) { o.Credentials.Secret = "wrong" }, "does not accept the credentials"},
		"user":        {func(o *s3.Options) { o.Credentials.AccessKey = "nobody" }, "the access key"},
		"server":      {func(o *s3.Options) { o.Location.Host = "127.0.0.1:1" }, "cannot be reached"},
	} {
		o := options(t, server)
		tt.change(&o)
		err := open(t, o).Claim(t.Context(), "c1")
		if !errors.Is(err, blob.ErrUnavailable) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("wrong %s: Claim = %v, want %q", name, err, tt.want)
		}
		if text := err.Error(); strings.Contains(text, server.Secret) {
			t.Errorf("wrong %s: the error has the secret", name)
		}
	}
}

// TestACME stores certificates and reads them with the same key and with another one.
func TestACME(t *testing.T) {
	server := s3test.New(t)
	s := open(t, options(t, server))
	key := bytes.Repeat([]byte{7}, 32)
	cache, err := s3.NewACMECache(s, key, system.Random)
	if err != nil {
		t.Fatal(err)
	}
	secret := []byte("-----BEGIN EC PRIVATE KEY-----")
	names := []string{"example.com", "example.com+rsa", "acme_account+key", "../x?%2f"}
	for _, name := range names {
		if _, err := cache.Get(t.Context(), name); !errors.Is(err, autocert.ErrCacheMiss) {
			t.Errorf("Get of a missing name = %v, want ErrCacheMiss", err)
		}
		if err := cache.Put(t.Context(), name, append(secret, name...)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range names {
		if got, err := cache.Get(t.Context(), name); err != nil || string(got) != string(secret)+name {
			t.Errorf("Get(%q) = %q, %v", name, got, err)
		}
	}
	entries, err := os.ReadDir(path(server.Folder, "0", "acme"))
	if err != nil || len(entries) != len(names) {
		t.Fatalf("%d objects, %v, want %d", len(entries), err, len(names))
	}
	first := path(server.Folder, "0", "acme", entries[0].Name())
	for _, e := range entries {
		b, err := os.ReadFile(path(server.Folder, "0", "acme", e.Name()))
		if err != nil || bytes.Contains(b, secret[5:15]) || bytes.Contains(b, []byte("example")) {
			t.Errorf("an object has the text of the key, %v", err)
		}
	}
	other, err := s3.NewACMECache(s, bytes.Repeat([]byte{8}, 32), system.Random)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Get(t.Context(), names[0]); !errors.Is(err, autocert.ErrCacheMiss) {
		t.Errorf("Get with another key = %v, want ErrCacheMiss", err)
	}
	if err := os.Rename(first, path(server.Folder, "0", "acme", entries[1].Name())); err != nil {
		t.Fatal(err)
	}
	missing := 0
	for _, name := range names {
		if _, err := cache.Get(t.Context(), name); errors.Is(err, autocert.ErrCacheMiss) {
			missing++
		}
	}
	if missing != 2 {
		t.Errorf("an object with another name: %d of its two names are missing, want 2", missing)
	}
	for _, name := range names {
		if err := errors.Join(cache.Delete(t.Context(), name), cache.Delete(t.Context(), name)); err != nil {
			t.Errorf("Delete: %v", err)
		}
	}
	server.Stop()
	if _, err := cache.Get(t.Context(), names[0]); !errors.Is(err, blob.ErrUnavailable) {
		t.Errorf("Get without a server = %v, want ErrUnavailable", err)
	}
	if _, err := s3.NewACMECache(s, key[:16], system.Random); err == nil {
		t.Error("NewACMECache takes a key of 16 bytes")
	}
}

// TestBundles stores bundles, replaces an earlier form of them, and deletes those of networks that serve nothing.
func TestBundles(t *testing.T) {
	server := s3test.New(t)
	o := options(t, server)
	now := time.Now()
	o.Now = func() time.Time { return now }
	b := s3.NewBundles(open(t, o))
	one, two := [32]byte{1}, [32]byte{2}
	if _, err := b.Bundles(one); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Bundles of a missing network = %v, want ErrNotExist", err)
	}
	form := func(text string) fstest.MapFS {
		return fstest.MapFS{"general/manifest.json": {Data: []byte(text)}, "general/weights.bin": {Data: bytes.Repeat([]byte("w"), 100_000)}}
	}
	for _, base := range [][32]byte{one, two} {
		for _, text := range []string{"earlier", "newer", "newer"} {
			if err := b.StoreBundles(base, form(text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	files, err := b.Bundles(one)
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(files, "general/manifest.json", "general/weights.bin"); err != nil {
		t.Error(err)
	}
	if text, err := fs.ReadFile(files, "general/manifest.json"); err != nil || string(text) != "newer" {
		t.Errorf("the manifest is %q, %v, want the newer form", text, err)
	}
	drop := func(want int) {
		t.Helper()
		if err := b.DropBundles(func(base [32]byte) bool { return base == two }); err != nil {
			t.Errorf("DropBundles: %v", err)
		}
		stored := 0
		for _, base := range [][32]byte{one, two} {
			if _, err := b.Bundles(base); err == nil {
				stored++
			}
		}
		if stored != want {
			t.Errorf("%d networks are stored, want %d", stored, want)
		}
	}
	drop(2)
	now = now.Add(25 * time.Hour)
	drop(1)
}
