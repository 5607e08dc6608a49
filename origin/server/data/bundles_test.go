package data

import (
	"errors"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/sightline-dev/sightline/origin/server/system"
)

// TestBundles stores the bundles of two networks and deletes one.
func TestBundles(t *testing.T) {
	dir := t.TempDir()
	open := func() *Folder {
		t.Helper()
		folder, err := system.OpenFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = folder.Close() })
		return &Folder{folder: folder}
	}
	f := open()
	first, second := [32]byte{1}, [32]byte{2}
	bundles := fstest.MapFS{
		"general/manifest.json": {Data: []byte("{}")},
		"general/names/en.tsv":  {Data: []byte("a\tb\n")},
	}
	if _, err := f.Bundles(first); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Bundles before any = %v", err)
	}
	if err := f.DropBundles(func([32]byte) bool { return false }); err != nil {
		t.Errorf("DropBundles before any = %v", err)
	}
	// A crash while bundles are written leaves incomplete files, which are ignored.
	if err := f.folder.MkdirAll(newBundlesDir + "/general"); err != nil {
		t.Fatal(err)
	}
	if err := system.ReplaceIn(f.folder, newBundlesDir+"/general/torn", []byte("x")); err != nil {
		t.Fatal(err)
	}
	for _, base := range [][32]byte{first, second, first} {
		if err := f.StoreBundles(base, bundles); err != nil {
			t.Fatal(err)
		}
	}
	got, err := open().Bundles(first)
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(got, "general/manifest.json", "general/names/en.tsv"); err != nil {
		t.Error(err)
	}
	if _, err := fs.Stat(got, "general/torn"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a part of an older attempt is among them: %v", err)
	}
	// A copy whose manifests match the bundles is complete and is not written again.
	names := func() string {
		t.Helper()
		stored, err := f.Bundles(first)
		if err != nil {
			t.Fatal(err)
		}
		data, err := fs.ReadFile(stored, "general/names/en.tsv")
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	bundles["general/names/en.tsv"] = &fstest.MapFile{Data: []byte("not read\n")}
	if err := f.StoreBundles(first, bundles); err != nil || names() != "a\tb\n" {
		t.Errorf("KeepBundles of the same = %v, names %q", err, names())
	}
	// Bundles in another format replace the copy, because the next network's program reads that format.
	bundles["general/manifest.json"] = &fstest.MapFile{Data: []byte(`{"format":2}`)}
	bundles["general/names/en.tsv"] = &fstest.MapFile{Data: []byte("c\td\n")}
	if err := f.StoreBundles(first, bundles); err != nil || names() != "c\td\n" {
		t.Errorf("KeepBundles of another form = %v, names %q", err, names())
	}
	if err := f.DropBundles(func(base [32]byte) bool { return base == second }); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Bundles(first); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("dropped bundles = %v", err)
	}
	if _, err := f.Bundles(second); err != nil {
		t.Errorf("bundles that are wanted = %v", err)
	}
}
