package blob_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/blob/blobtest"
	"github.com/sightline-dev/sightline/core/testkit"
)

var options = blob.Options{MaxBytes: blobtest.MaxBytes}

func openFolder(t testing.TB, fsys *blobtest.FS) *blob.Folder {
	t.Helper()
	f, err := blob.OpenFolder(fsys, options)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func openHosted(t testing.TB, o blob.HostedOptions) *blob.HostedNames {
	t.Helper()
	h, err := blob.OpenHosted(o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestMemory(t *testing.T) {
	blobtest.Blobs(t, func(*testing.T) blob.Blobs { return blob.NewMemory(options) })
}

func TestFolder(t *testing.T) {
	blobtest.Blobs(t, func(t *testing.T) blob.Blobs { return openFolder(t, blobtest.NewFS()) })
}

func TestHostedInMemory(t *testing.T) {
	blobtest.HostedNames(t, func(t *testing.T, o blob.HostedOptions) (*blob.HostedNames, blob.Blobs) {
		o.Blobs = blob.NewMemory(options)
		return openHosted(t, o), o.Blobs
	})
}

func TestHostedInFolder(t *testing.T) {
	blobtest.HostedNames(t, func(t *testing.T, o blob.HostedOptions) (*blob.HostedNames, blob.Blobs) {
		fsys := blobtest.NewFS()
		o.FS, o.Blobs = fsys, openFolder(t, fsys)
		return openHosted(t, o), o.Blobs
	})
}

func TestParseHash(t *testing.T) {
	h := blob.Sum([]byte("x"))
	if got, err := blob.ParseHash(h.String()); got != h || err != nil {
		t.Errorf("ParseHash(%v) = %v, %v", h, got, err)
	}
	s := h.String()
	for _, bad := range []string{"", s[1:], s + "0", strings.ToUpper(s), "g" + s[1:], "../" + s[3:]} {
		if _, err := blob.ParseHash(bad); err == nil {
			t.Errorf("ParseHash(%q) = nil, want an error", bad)
		}
	}
}

// TestPaths: all paths consist of fixed words and hex digits. No text of a request is in a path.
func TestPaths(t *testing.T) {
	fsys := blobtest.NewFS()
	h := openHosted(t, blob.HostedOptions{FS: fsys, Blobs: openFolder(t, fsys), Random: blobtest.Random(1)})
	name, hash, err := h.Add(t.Context(), blob.AppID{}, []byte("x"), "../../etc", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"blobs/" + hash.String()[:2] + "/" + hash.String(), "names/" + name[:2] + "/" + name}
	if got := fsys.Files(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("files = %v, want %v", got, want)
	}
}

func TestDamagedBlob(t *testing.T) {
	fsys := blobtest.NewFS()
	f := openFolder(t, fsys)
	data := bytes.Repeat([]byte("picture"), 1000)
	h, err := f.Put(t.Context(), bytes.NewReader(data), blob.Hash{})
	if err != nil {
		t.Fatal(err)
	}
	if fsys.Damage("blobs/") != 1 {
		t.Fatal("no file to damage")
	}
	if _, err := f.Get(t.Context(), h); !errors.Is(err, blob.ErrCorrupt) {
		t.Errorf("Get of a damaged blob = %v, want ErrCorrupt", err)
	}
	r, err := f.Open(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(r); !errors.Is(err, blob.ErrCorrupt) {
		t.Errorf("reading a damaged blob = %v, want ErrCorrupt", err)
	}
	if _, err := f.Put(t.Context(), bytes.NewReader(data), h); err != nil {
		t.Fatal(err)
	}
	if got, err := f.Get(t.Context(), h); err != nil || !bytes.Equal(got, data) {
		t.Errorf("Get after putting it again = %d bytes, %v, want it mended", len(got), err)
	}
}

func TestNamesSurviveRestart(t *testing.T) {
	fsys := blobtest.NewFS()
	o := blob.HostedOptions{FS: fsys, Blobs: openFolder(t, fsys), Random: blobtest.Random(1)}
	h := openHosted(t, o)
	ends := blobtest.Noon().Add(time.Hour)
	want := map[string]blob.Picture{}
	for i := range 10 {
		p := blob.Picture{App: blob.AppID{0: byte(i % 3)}, ContentType: "image/" + strings.Repeat("x", 28*i)[:min(28*i, 249)]}
		if i%2 == 0 {
			p.Expires = ends
		}
		name, hash, err := h.Add(t.Context(), p.App, []byte{byte(i / 3)}, p.ContentType, p.Expires)
		if err != nil {
			t.Fatal(err)
		}
		p.Hash = hash
		want[name] = p
	}
	o.Blobs = openFolder(t, fsys)
	h = openHosted(t, o)
	for name, p := range want {
		if got, err := h.Lookup(name, blobtest.Noon()); got != p || err != nil {
			t.Errorf("Lookup after a restart = %v, %v, want %v", got, err, p)
		}
	}
	if n, err := h.Sweep(t.Context(), ends); n != 5 || err != nil {
		t.Errorf("Sweep after a restart = %d, %v, want 5", n, err)
	}
	if n, err := h.Collect(t.Context()); n != 0 || err != nil {
		t.Errorf("Collect = %d, %v, want 0: every blob has a name", n, err)
	}
}

func TestDamagedNames(t *testing.T) {
	fsys := blobtest.NewFS()
	o := blob.HostedOptions{FS: fsys, Blobs: openFolder(t, fsys), Random: blobtest.Random(1)}
	h := openHosted(t, o)
	name, _, err := h.Add(t.Context(), blob.AppID{}, []byte("x"), "image/png", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	fsys.Damage("names/")
	h = openHosted(t, o)
	if _, err := h.Lookup(name, blobtest.Noon()); !errors.Is(err, blob.ErrNotFound) || h.CountDamaged() != 1 {
		t.Errorf("Lookup of a damaged name = %v, want ErrNotFound; Damaged() = %d, want 1", err, h.CountDamaged())
	}
	if n, err := h.Collect(t.Context()); n != 1 || err != nil || h.CountDamaged() != 0 {
		t.Errorf("Collect = %d, %v, %d still damaged, want its blob gone and no damage", n, err, h.CountDamaged())
	}
	if files := fsys.Files(); len(files) != 0 {
		t.Errorf("files left: %v", files)
	}
}

// TestNamesOfDeletedApplicationAfterCrashes deletes an application and fails each file operation of the sweep that follows. After a power
// cut there, no name of the application is found, and the next sweep deletes the other names and all their pictures.
func TestNamesOfDeletedApplicationAfterCrashes(t *testing.T) {
	for at := 1; ; at++ {
		fsys := blobtest.NewFS()
		ended := false
		app := blob.AppID{1}
		o := blob.HostedOptions{
			FS: fsys, Blobs: openFolder(t, fsys), Random: blobtest.Random(1),
			AppDeleted: func(a blob.AppID) (bool, error) { return ended && a == app, nil },
		}
		h := openHosted(t, o)
		var names []string
		for i := range 3 {
			name, _, err := h.Add(t.Context(), app, []byte{byte(i)}, "image/png", time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, name)
		}
		ended = true
		fsys.FailAt(at, true)
		_, err := h.Sweep(t.Context(), blobtest.Noon())
		done := fsys.Ops() < at
		if !done && !errors.Is(err, blobtest.ErrFault) || done && err != nil {
			t.Errorf("Sweep with a fault at %d = %v", at, err)
		}
		fsys.FailAt(0, false)
		fsys.Crash(rand.New(rand.NewPCG(uint64(at), 4)))
		o.Blobs = openFolder(t, fsys)
		h = openHosted(t, o)
		for _, name := range names {
			if p, err := h.Lookup(name, blobtest.Noon()); !errors.Is(err, blob.ErrNotFound) {
				t.Errorf("fault at %d: Lookup = %v, %v, want ErrNotFound", at, p, err)
			}
		}
		if _, err := h.Sweep(t.Context(), blobtest.Noon()); err != nil {
			t.Error(err)
		}
		if _, err := h.Collect(t.Context()); err != nil {
			t.Error(err)
		}
		if files := fsys.Files(); len(files) != 0 || h.Len() != 0 {
			t.Errorf("fault at %d: %d names and files %v are left", at, h.Len(), files)
		}
		if done {
			return
		}
	}
}

// TestEveryFault runs a session of adds, removals and sweeps in which every file operation fails once. Each name that Add returned exists,
// then and after a crash, and has its complete picture. A failed operation succeeds when it is repeated.
func TestEveryFault(t *testing.T) {
	for _, forAll := range []bool{false, true} {
		for at := 1; ; at++ {
			if faultAt(t, at, forAll) {
				break
			}
			if t.Failed() {
				t.Fatalf("failed at operation %d, forAll %v", at, forAll)
			}
		}
	}
}

// faultAt runs a session in which operation at fails, and all later ones if forAll is set. It reports whether the session ended before
// operation at.
func faultAt(t *testing.T, at int, forAll bool) (done bool) {
	fsys := blobtest.NewFS()
	ctx := t.Context()
	o := blob.HostedOptions{FS: fsys, Blobs: openFolder(t, fsys), Random: blobtest.Random(uint64(at))}
	h := openHosted(t, o)
	contents := map[string][]byte{}
	fsys.FailAt(at, forAll)
	for i := range 6 {
		data := []byte{byte(i / 2)}
		ends := time.Time{}
		if i%3 == 0 {
			ends = blobtest.Noon()
		}
		name, _, err := h.Add(ctx, blob.AppID{}, data, "image/png", ends)
		switch {
		case err == nil && !ends.IsZero():
		case err == nil:
			contents[name] = data
		case !errors.Is(err, blobtest.ErrFault) || name != "":
			t.Errorf("Add = %q, %v, want the fault alone", name, err)
		}
		if i == 3 {
			for name := range contents {
				delete(contents, name) // Remove may delete the name even if it fails
				if err := h.Remove(ctx, name); err != nil && !errors.Is(err, blobtest.ErrFault) {
					t.Errorf("Remove = %v", err)
				}
				break
			}
		}
	}
	if _, err := h.Sweep(ctx, blobtest.Noon()); err != nil && !errors.Is(err, blobtest.ErrFault) {
		t.Errorf("Sweep = %v", err)
	}
	done = fsys.Ops() < at
	fsys.FailAt(0, false)
	if _, err := h.Sweep(ctx, blobtest.Noon()); err != nil {
		t.Errorf("Sweep after the fault = %v", err)
	}
	check(t, fsys, h, o.Blobs, contents, false)

	rng := rand.New(rand.NewPCG(uint64(at), 3))
	fsys.Crash(rng)
	o.Blobs = openFolder(t, fsys)
	h = openHosted(t, o)
	if h.CountDamaged() != 0 {
		t.Errorf("%d names damaged by a crash", h.CountDamaged())
	}
	if _, err := h.Collect(ctx); err != nil {
		t.Error(err)
	}
	check(t, fsys, h, o.Blobs, contents, true)
	return done
}

// check compares names with the guarantees of Add and Remove. After a crash there may be names that a failed Add left or that a failed
// Remove did not delete. They have their blobs too.
func check(t *testing.T, fsys *blobtest.FS, h *blob.HostedNames, s blob.Blobs, contents map[string][]byte, crashed bool) {
	t.Helper()
	for name, data := range contents {
		p, err := h.Lookup(name, blobtest.Noon().Add(-1))
		if err != nil {
			t.Errorf("Lookup = %v, want a picture", err)
			continue
		}
		if got, err := s.Get(context.Background(), p.Hash); err != nil || !bytes.Equal(got, data) {
			t.Errorf("Get = %v, %v, want %v", got, err, data)
		}
	}
	for _, file := range fsys.Files() {
		p, err := h.Lookup(path.Base(file), time.Time{})
		if !strings.HasPrefix(file, "names/") || err != nil {
			continue
		}
		if ok, err := s.Has(context.Background(), p.Hash); !ok || err != nil {
			t.Errorf("%s has no blob: %v", file, err)
		}
	}
	err := s.Each(context.Background(), blob.Hash{}, func(hash blob.Hash) error {
		_, err := s.Get(context.Background(), hash)
		return err
	})
	if err != nil {
		t.Errorf("a blob that is there cannot be read: %v", err)
	}
	if !crashed && h.Len() < len(contents) {
		t.Errorf("Len() = %d, want at least %d", h.Len(), len(contents))
	}
}

// TestLazy: storing a picture lazily needs no sync and never replaces a durable copy. The picture becomes durable when it is pinned.
func TestLazy(t *testing.T) {
	syncs := &countSyncs{FS: blobtest.NewFS()}
	folder, err := blob.OpenFolder(syncs, blob.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := openHosted(t, blob.HostedOptions{Blobs: folder, Random: blobtest.Random(1), Lazy: true})
	count := func(name string, want bool, do func() error) {
		t.Helper()
		syncs.n = 0
		if err := do(); err != nil || syncs.n > 0 != want {
			t.Errorf("%s: %d syncs, %v", name, syncs.n, err)
		}
	}
	add := func(ends time.Time) func() error {
		return func() error {
			_, _, err := h.Add(t.Context(), blob.AppID{}, []byte("picture"), "image/png", ends)
			return err
		}
	}
	count("Add until noon", false, add(blobtest.Noon()))
	count("Pin", true, func() error { _, err := h.Pin(t.Context(), []byte("picture")); return err })
	count("Add until noon again", false, add(blobtest.Noon()))
	count("Add for ever", true, add(time.Time{}))
	if got, err := folder.Get(t.Context(), blob.Sum([]byte("picture"))); err != nil || string(got) != "picture" {
		t.Errorf("Get = %q, %v", got, err)
	}
}

type countSyncs struct {
	blob.FS
	n int
}

func (c *countSyncs) SyncDir(name string) error {
	c.n++
	return c.FS.SyncDir(name)
}

func (c *countSyncs) Create(name string) (blob.File, error) {
	f, err := c.FS.Create(name)
	return countFile{f, c}, err
}

type countFile struct {
	blob.File
	c *countSyncs
}

func (f countFile) Sync() error {
	f.c.n++
	return f.File.Sync()
}

// TestCrashes crashes random sessions at random moments.
func TestCrashes(t *testing.T) {
	for seed := range testkit.Seeds(t, 300, 20_000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		fsys := blobtest.NewFS()
		o := blob.HostedOptions{FS: fsys, Random: blobtest.Random(seed)}
		contents := map[string][]byte{}
		for range 3 {
			o.Blobs = openFolder(t, fsys)
			h := openHosted(t, o)
			if _, err := h.Collect(t.Context()); err != nil {
				t.Fatal(err)
			}
			check(t, fsys, h, o.Blobs, contents, true)
			fsys.FailAt(1+rng.IntN(80), true) // all later operations fail, as without power
			for range 10 {
				data := []byte{byte(rng.IntN(4))}
				if name, _, err := h.Add(t.Context(), blob.AppID{}, data, "", time.Time{}); err == nil {
					contents[name] = data
				}
				if rng.IntN(3) == 0 {
					for name := range contents {
						delete(contents, name) // Remove may delete the name even if it fails
						_ = h.Remove(t.Context(), name)
						break
					}
				}
			}
			fsys.Crash(rng)
		}
	}
}

func TestOpenFails(t *testing.T) {
	for at := 1; at <= 8; at++ {
		fsys := blobtest.NewFS()
		fsys.FailAt(at, false)
		_, err1 := blob.OpenFolder(fsys, options)
		_, err2 := blob.OpenHosted(blob.HostedOptions{FS: fsys, Blobs: blob.NewMemory(options), Random: blobtest.Random(1)})
		if err := errors.Join(err1, err2); fsys.Ops() >= at && !errors.Is(err, blobtest.ErrFault) {
			t.Errorf("opening with operation %d failing = %v, want the fault", at, err)
		}
	}
}

func ExampleHostedNames() {
	blobs := blob.NewMemory(blob.Options{})
	hosted, err := blob.OpenHosted(blob.HostedOptions{Blobs: blobs, Random: blobtest.Random(1)})
	if err != nil {
		fmt.Println(err)
		return
	}
	noon := blobtest.Noon()
	name, _, err := hosted.Add(context.Background(), blob.AppID{}, []byte("a picture"), "image/png", noon.Add(24*time.Hour))
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := hosted.Lookup(name, noon)
	fmt.Println(p.ContentType, err)
	_, err = hosted.Lookup(name, noon.Add(24*time.Hour))
	fmt.Println(err)
	n, err := hosted.Sweep(context.Background(), noon.Add(24*time.Hour))
	fmt.Println(n, err)
	// Output:
	// image/png <nil>
	// no such blob
	// 1 <nil>
}

func BenchmarkFolderGet(b *testing.B) {
	f, err := blob.OpenFolder(blobtest.NewFS(), blob.Options{})
	if err != nil {
		b.Fatal(err)
	}
	data := make([]byte, 1<<20)
	h, err := f.Put(b.Context(), bytes.NewReader(data), blob.Hash{})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := f.Get(b.Context(), h); err != nil {
			b.Fatal(err)
		}
	}
}

// slowSyncs is a file system whose syncs take a second.
type slowSyncs struct{ countSyncs }

func (s *slowSyncs) SyncDir(name string) error {
	time.Sleep(time.Second)
	return s.countSyncs.SyncDir(name)
}

// TestPutsShareSyncs stores pictures at the same time, in one folder of the store. Those that wait for a sync share the next one.
func TestPutsShareSyncs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const files = 8
		syncs := &slowSyncs{countSyncs{FS: blobtest.NewFS()}}
		folder, err := blob.OpenFolder(syncs, blob.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var puts sync.WaitGroup
		for n, found := 0, 0; found < files; n++ {
			data := strconv.AppendInt(nil, int64(n), 10)
			if blob.Sum(data)[0] != 7 {
				continue
			}
			found++
			puts.Go(func() {
				if _, err := folder.Put(t.Context(), bytes.NewReader(data), blob.Hash{}); err != nil {
					t.Error(err)
				}
			})
		}
		puts.Wait()
		// The first picture needs a sync of the folder and of the folder above it. The others share one.
		if got := syncs.n; got != files+3 {
			t.Errorf("%d syncs, want %d: of each file, and three of folders", got, files+3)
		}
	})
}
