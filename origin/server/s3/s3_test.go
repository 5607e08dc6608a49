package s3_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/blob/blobtest"
	"github.com/sightline-dev/sightline/origin/server/control"
	"github.com/sightline-dev/sightline/origin/server/s3"
	"github.com/sightline-dev/sightline/origin/server/s3/s3test"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// options returns the options of a store in the bucket of a server, without a cache.
func options(t testing.TB, server *s3test.Server) s3.Options {
	t.Helper()
	at, err := s3.ParseLocation(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return s3.Options{
		Location: at, Credentials: s3.Credentials{AccessKey: server.AccessKey, Secret: server.Secret},
		Resolve: system.Resolve, Dial: system.Dial, Now: system.Now,
	}
}

// withCache adds a cache in a new folder to o, and returns the folder.
func withCache(t testing.TB, o *s3.Options) string {
	t.Helper()
	dir := t.TempDir()
	folder, err := system.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = folder.Close() })
	o.Cache = folder
	return dir
}

func open(t testing.TB, o s3.Options) *s3.Store {
	t.Helper()
	s, err := s3.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// path returns the path of a blob's file in a folder.
func path(folder string, parts ...string) string {
	return filepath.Join(append([]string{folder}, parts...)...)
}

func objectPath(server *s3test.Server, h blob.Hash) string {
	return path(server.Folder, "0", "blobs", h.String()[:2], h.String())
}

func cachePath(dir string, h blob.Hash) string { return path(dir, "blobs", h.String()[:2], h.String()) }

func put(t testing.TB, s blob.Blobs, data []byte) blob.Hash {
	t.Helper()
	h, err := s.Put(t.Context(), bytes.NewReader(data), blob.Hash{})
	if err != nil {
		t.Fatalf("Put: %v", err)
	}
	return h
}

func check(t testing.TB, s blob.Blobs, want []byte) {
	t.Helper()
	if got, err := s.Get(t.Context(), blob.Sum(want)); err != nil || !bytes.Equal(got, want) {
		t.Errorf("Get = %d bytes, %v, want %d", len(got), err, len(want))
	}
	r, err := s.Open(t.Context(), blob.Sum(want))
	if err != nil {
		t.Errorf("Open: %v", err)
		return
	}
	got, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil || !bytes.Equal(got, want) {
		t.Errorf("Open gives %d bytes, %v, want %d", len(got), err, len(want))
	}
}

// damage changes the middle byte of a file. It does not replace the file, whose attributes belong to the server.
func damage(t testing.TB, name string) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// empty deletes all objects of a server.
func empty(t testing.TB, s *s3.Store) {
	t.Helper()
	err := s.Each(t.Context(), blob.Hash{}, func(h blob.Hash) error { return s.Delete(t.Context(), h) })
	if err != nil {
		t.Fatal(err)
	}
}

func TestBlobs(t *testing.T) {
	server := s3test.New(t)
	for _, tt := range []struct {
		name string
		with func(t *testing.T, o *s3.Options)
	}{
		{"without a cache", func(*testing.T, *s3.Options) {}},
		{"with a cache", func(t *testing.T, o *s3.Options) { withCache(t, o) }},
		{"with a small cache", func(t *testing.T, o *s3.Options) { withCache(t, o); o.CacheBytes = blobtest.MaxBytes + 1000 }},
		{"always stored again", func(t *testing.T, o *s3.Options) { withCache(t, o); o.Rewrite = func() bool { return true } }},
		{"cache on a full disk", func(t *testing.T, o *s3.Options) { withCache(t, o); o.Cache = fullDisk{o.Cache} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			blobtest.Blobs(t, func(t *testing.T) blob.Blobs {
				o := options(t, server)
				o.MaxBytes = blobtest.MaxBytes
				tt.with(t, &o)
				s := open(t, o)
				empty(t, s)
				return s
			})
		})
	}
}

// fullDisk refuses new files.
type fullDisk struct{ blob.FS }

func (fullDisk) Create(string) (blob.File, error) { return nil, errors.New("no space left on device") }

// TestOutage stops the server. Requests fail within a bounded time and cached pictures are readable. A failed Put leaves nothing.
func TestOutage(t *testing.T) {
	server := s3test.New(t)
	o := options(t, server)
	withCache(t, &o)
	s := open(t, o)
	before, during := bytes.Repeat([]byte("before"), 1000), bytes.Repeat([]byte("during"), 1000)
	h := put(t, s, before)
	server.Stop()
	check(t, s, before)
	if n, err := s.Len(t.Context(), h); n != int64(len(before)) || err != nil {
		t.Errorf("Len of a cached picture = %d, %v", n, err)
	}
	absent := blob.Sum(during)
	t.Run("calls", func(t *testing.T) { // it ends when its parallel parts have ended
		for name, call := range map[string]func(context.Context) error{
			"Put":    func(ctx context.Context) error { _, err := s.Put(ctx, bytes.NewReader(during), absent); return err },
			"Get":    func(ctx context.Context) error { _, err := s.Get(ctx, absent); return err },
			"Open":   func(ctx context.Context) error { _, err := s.Open(ctx, absent); return err },
			"OpenAt": func(ctx context.Context) error { _, err := s.OpenAt(ctx, absent); return err },
			"Has":    func(ctx context.Context) error { _, err := s.Has(ctx, absent); return err },
			"Delete": func(ctx context.Context) error { return s.Delete(ctx, absent) },
			"Each":   func(ctx context.Context) error { return s.Each(ctx, blob.Hash{}, func(blob.Hash) error { return nil }) },
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				began := time.Now()
				if err := call(t.Context()); !errors.Is(err, blob.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v, want ErrUnavailable", err)
				}
				if took := time.Since(began); took > 4*time.Second {
					t.Errorf("the error comes after %v, want at most 3 s", took)
				}
			})
		}
	})
	server.Start()
	if _, err := os.Stat(objectPath(server, absent)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the failed Put left an object: %v", err)
	}
	put(t, s, during)
	check(t, s, during)
}

// TestDamagedObject changes a byte of an object. Each read reports it, and a Put in the first minute of a primary repairs it.
func TestDamagedObject(t *testing.T) {
	server := s3test.New(t)
	o := options(t, server)
	rewrite := false
	o.Rewrite = func() bool { return rewrite }
	s := open(t, o)
	data := bytes.Repeat([]byte("picture"), 1000)
	h := put(t, s, data)
	damage(t, objectPath(server, h))
	if _, err := s.Get(t.Context(), h); !errors.Is(err, blob.ErrCorrupt) {
		t.Errorf("Get = %v, want ErrCorrupt", err)
	}
	r, err := s.Open(t.Context(), h)
	if err == nil {
		_, err = io.Copy(io.Discard, r)
	}
	if !errors.Is(err, blob.ErrCorrupt) {
		t.Errorf("Open and read = %v, want ErrCorrupt", err)
	}
	rewrite = true
	put(t, s, data)
	check(t, s, data)
}

// TestDamagedCache damages files of the cache: one that this process wrote, and one of an earlier process. Both are read from S3 again.
func TestDamagedCache(t *testing.T) {
	server := s3test.New(t)
	o := options(t, server)
	dir := withCache(t, &o)
	s := open(t, o)
	data := bytes.Repeat([]byte("picture"), 1000)
	h := put(t, s, data)
	damage(t, cachePath(dir, h))
	check(t, s, data)
	if b, err := os.ReadFile(cachePath(dir, h)); err != nil || !bytes.Equal(b, data) {
		t.Errorf("the cache has %d bytes, %v, want the picture", len(b), err)
	}
	for name, spoil := range map[string]func(){
		"changed": func() { damage(t, cachePath(dir, h)) },
		"cut": func() {
			if err := os.Truncate(cachePath(dir, h), 5); err != nil {
				t.Fatal(err)
			}
		},
		"deleted": func() {
			if err := os.Remove(cachePath(dir, h)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		spoil()
		s := open(t, o)
		if n, err := s.Len(t.Context(), h); n != int64(len(data)) || err != nil {
			t.Errorf("%s: Len = %d, %v, want %d", name, n, err, len(data))
		}
		r, err := s.OpenAt(t.Context(), h)
		if err != nil {
			t.Fatal(err)
		}
		part := make([]byte, 7)
		if _, err := r.ReadAt(part, 7); string(part) != "picture" || err != nil {
			t.Errorf("%s: ReadAt = %q, %v", name, part, err)
		}
		if err := r.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		check(t, s, data)
	}
}

// cacheSize returns the number and the bytes of the pictures in a cache.
func cacheSize(t testing.TB, dir string) (files int, size int64) {
	t.Helper()
	err := filepath.WalkDir(path(dir, "blobs"), func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			files, size = files+1, size+info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files, size
}

// TestCacheBound stores more pictures than the cache may have. The cache keeps the most recently used ones, and a smaller bound deletes files
// at the start.
func TestCacheBound(t *testing.T) {
	server := s3test.New(t)
	o := options(t, server)
	dir := withCache(t, &o)
	o.CacheBytes = 10_000
	s := open(t, o)
	first := bytes.Repeat([]byte("f"), 1000)
	put(t, s, first)
	for i := range 30 {
		put(t, s, bytes.Repeat([]byte{byte(i)}, 1000))
		check(t, s, first)
	}
	if files, size := cacheSize(t, dir); files != 10 || size != 10_000 {
		t.Errorf("the cache has %d pictures with %d bytes, want 10 with 10000", files, size)
	}
	if _, err := os.Stat(cachePath(dir, blob.Sum(first))); err != nil {
		t.Errorf("the most used picture is not cached: %v", err)
	}
	put(t, s, make([]byte, 10_001))
	if files, _ := cacheSize(t, dir); files != 10 {
		t.Errorf("a picture larger than the cache leaves %d pictures, want 10", files)
	}
	o.CacheBytes = 3500
	open(t, o)
	if files, _ := cacheSize(t, dir); files != 3 {
		t.Errorf("a start with a smaller bound leaves %d pictures, want 3", files)
	}
}

// TestLazy stores pictures in the cache only. If S3 has the picture too, a deletion reaches S3.
func TestLazy(t *testing.T) {
	server := s3test.New(t)
	o := options(t, server)
	withCache(t, &o)
	s := open(t, o)
	local, both := []byte("local"), []byte("both")
	for _, data := range [][]byte{local, both} {
		if err := s.PutLazy(t.Context(), data, blob.Sum(data)); err != nil {
			t.Fatal(err)
		}
		check(t, s, data)
	}
	put(t, s, both)
	if err := s.PutLazy(t.Context(), both, blob.Sum(both)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(objectPath(server, blob.Sum(local))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a picture of PutLazy is in S3: %v", err)
	}
	if err := s.Delete(t.Context(), blob.Sum(both)); err != nil {
		t.Errorf("Delete: %v", err)
	}
	server.Stop()
	if err := s.Delete(t.Context(), blob.Sum(local)); err != nil {
		t.Errorf("Delete of a local picture needs S3: %v", err)
	}
	server.Start()
	for _, data := range [][]byte{local, both} {
		if has, err := s.Has(t.Context(), blob.Sum(data)); has || err != nil {
			t.Errorf("Has(%s) = %v, %v, want false", data, has, err)
		}
	}
}

// TestPutAfterDeletionByOtherNode deletes a picture from S3 that this node has in its cache. A Put stores it again.
func TestPutAfterDeletionByOtherNode(t *testing.T) {
	server := s3test.New(t)
	o := options(t, server)
	withCache(t, &o)
	s, other := open(t, o), open(t, options(t, server))
	data := []byte("picture")
	h := put(t, s, data)
	if err := other.Delete(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	put(t, s, data)
	check(t, other, data)
}

// TestRestore deletes a picture late, after a new primary has stored it again. Restore stores it once more.
func TestRestore(t *testing.T) {
	server := s3test.New(t)
	o := options(t, server)
	withCache(t, &o)
	rewrite := true
	o.Rewrite = func() bool { return rewrite }
	s, deposed := open(t, o), open(t, options(t, server))
	data := []byte("picture")
	h := put(t, deposed, data)
	put(t, s, data)
	if err := deposed.Delete(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	rewrite = false
	if err := s.Restore(t.Context()); err != nil {
		t.Errorf("Restore: %v", err)
	}
	check(t, deposed, data)
	if err := errors.Join(s.Delete(t.Context(), h), s.Restore(t.Context())); err != nil {
		t.Errorf("Restore: %v", err)
	}
	if has, err := deposed.Has(t.Context(), h); has || err != nil {
		t.Errorf("Has after a second Restore = %v, %v, want false", has, err)
	}
}

// TestEachOlder lists pictures by their age.
func TestEachOlder(t *testing.T) {
	server := s3test.New(t)
	s := open(t, options(t, server))
	old, young := []byte("old"), []byte("young")
	put(t, s, old)
	put(t, s, young)
	now := time.Now()
	past := now.Add(-25 * time.Hour)
	if err := os.Chtimes(objectPath(server, blob.Sum(old)), past, past); err != nil {
		t.Fatal(err)
	}
	var got []blob.Hash
	err := s.EachOlder(t.Context(), now.Add(-24*time.Hour), blob.Hash{}, func(h blob.Hash) error { got = append(got, h); return nil })
	if err != nil || len(got) != 1 || got[0] != blob.Sum(old) {
		t.Errorf("EachOlder = %v, %v, want the old picture", got, err)
	}
}

// TestManyObjects lists more objects than fit in one answer.
func TestManyObjects(t *testing.T) {
	server := s3test.New(t)
	const n = 1050
	memory := blob.NewMemory(blob.Options{})
	for i := range n {
		put(t, memory, fmt.Appendf(nil, "picture %d", i))
	}
	s := open(t, options(t, server))
	reports := 0
	progress := func(done, total control.BackupStats) {
		if reports++; total.Files != n || done.Files > n {
			t.Errorf("progress(%v, %v), want %d in total", done, total, n)
		}
	}
	if done, err := s.Upload(t.Context(), memory, progress); err != nil || done.Files != n || reports != n/64 {
		t.Errorf("Upload = %v, %v with %d reports, want %d and %d", done, err, reports, n, n/64)
	}
	var want, got []blob.Hash
	list := func(of blob.Blobs, to *[]blob.Hash) {
		if err := of.Each(t.Context(), blob.Hash{}, func(h blob.Hash) error { *to = append(*to, h); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	list(memory, &want)
	list(s, &got)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("Each gives %d pictures, want %d in order", len(got), len(want))
	}

	// A second Upload sends only what is missing or has another size.
	if err := os.Truncate(objectPath(server, want[0]), 1); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), want[1]); err != nil {
		t.Fatal(err)
	}
	metrics := prometheus.NewPedanticRegistry()
	s = open(t, options(t, server))
	metrics.MustRegister(s.Collectors()...)
	if done, err := s.Upload(t.Context(), memory, func(_, _ control.BackupStats) {}); err != nil || done.Files != n {
		t.Errorf("a second Upload = %v, %v", done, err)
	}
	if puts := count(t, metrics, "sightline_s3_seconds", "put"); puts != 2 {
		t.Errorf("the second Upload sends %d pictures, want 2", puts)
	}
	for _, h := range want[:2] {
		if _, err := s.Get(t.Context(), h); err != nil {
			t.Errorf("Get: %v", err)
		}
	}
}

// TestUploadFails uploads a damaged picture, and uploads while the server is stopped.
func TestUploadFails(t *testing.T) {
	server := s3test.New(t)
	dir := t.TempDir()
	files, err := system.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	folder, err := blob.OpenFolder(files, blob.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		put(t, folder, fmt.Appendf(nil, "picture %d", i))
	}
	damage(t, cachePath(dir, blob.Sum([]byte("picture 50"))))
	s := open(t, options(t, server))
	if _, err := s.Upload(t.Context(), folder, func(_, _ control.BackupStats) {}); !errors.Is(err, blob.ErrCorrupt) {
		t.Errorf("Upload of a damaged picture = %v, want ErrCorrupt", err)
	}
	server.Stop()
	began := time.Now()
	_, err = s.Upload(t.Context(), folder, func(_, _ control.BackupStats) {})
	if !errors.Is(err, blob.ErrUnavailable) || time.Since(began) > 5*time.Second {
		t.Errorf("Upload to a stopped server = %v after %v, want ErrUnavailable", err, time.Since(began))
	}
}

// count returns the number of observations, or the value, of a metric for an operation.
func count(t testing.TB, of prometheus.Gatherer, name, operation string) int {
	t.Helper()
	families, err := of.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.Metric {
			if f.GetName() == name && m.Label[0].GetValue() == operation {
				return int(m.Histogram.GetSampleCount()) + int(m.Counter.GetValue())
			}
		}
	}
	t.Fatalf("no metric %s of %s", name, operation)
	return 0
}

// TestMetrics counts failed requests. The request for a missing picture does not count.
func TestMetrics(t *testing.T) {
	server := s3test.New(t)
	s := open(t, options(t, server))
	metrics := prometheus.NewPedanticRegistry()
	metrics.MustRegister(s.Collectors()...)
	_, missing := s.Get(t.Context(), blob.Hash{1})
	server.Stop()
	_, failed := s.Get(t.Context(), blob.Hash{1})
	if !errors.Is(missing, blob.ErrNotFound) || !errors.Is(failed, blob.ErrUnavailable) {
		t.Errorf("Get = %v and %v", missing, failed)
	}
	if n, all := count(t, metrics, "sightline_s3_errors_total", "get"), count(t, metrics, "sightline_s3_seconds", "get"); n != 1 || all != 2 {
		t.Errorf("%d of %d requests failed, want 1 of 2", n, all)
	}
}
