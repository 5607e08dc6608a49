package system

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
)

func TestFolderKeepsBlobsAndNames(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	expires := Now().Add(time.Hour)
	picture := []byte("a picture")
	var name string
	for reopened := range 2 {
		f, err := OpenFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		blobs, err := blob.OpenFolder(f, blob.Options{})
		if err != nil {
			t.Fatal(err)
		}
		hosted, err := blob.OpenHosted(blob.HostedOptions{FS: f, Blobs: blobs, Random: Random})
		if err != nil {
			t.Fatal(err)
		}
		if reopened == 0 {
			if name, _, err = hosted.Add(t.Context(), blob.AppID{}, picture, "image/png", expires); err != nil {
				t.Fatal(err)
			}
		}
		p, err := hosted.Lookup(name, Now())
		if err != nil {
			t.Fatalf("opened %d times: %v", reopened+1, err)
		}
		r, err := blobs.Open(t.Context(), p.Hash)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, picture) {
			t.Errorf("read %q, %v", got, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder has mode %v, %v; want 0700", info.Mode(), err)
	}
}

func TestFolderRefusesPathsOutside(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, name := range []string{"../secret", "link/secret", filepath.Join(outside, "secret"), "a/../../secret"} {
		if r, err := f.Open(name); err == nil {
			t.Errorf("Open(%q) succeeded", name)
			_ = r.Close()
		}
		if w, err := f.Create(name + "2"); err == nil {
			t.Errorf("Create(%q) succeeded", name)
			_ = w.Close()
		}
	}
}

func TestFolderErrors(t *testing.T) {
	f, err := OpenFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Open("missing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open = %v, want ErrNotExist", err)
	}
	if _, err := f.Size("missing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Size = %v, want ErrNotExist", err)
	}
	if _, err := f.ReadDir("missing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ReadDir = %v, want ErrNotExist", err)
	}
	if err := f.SyncDir("missing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("SyncDir = %v, want ErrNotExist", err)
	}
	w, err := f.Create("one")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("12345")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Create("one"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Create again = %v, want ErrExist", err)
	}
	if n, err := f.Size("one"); n != 5 || err != nil {
		t.Errorf("Size = %d, %v", n, err)
	}
	if _, err := OpenFolder(filepath.Join("/proc", "self", "none")); err == nil {
		t.Error("OpenFolder where nothing can be made succeeded")
	}
}
