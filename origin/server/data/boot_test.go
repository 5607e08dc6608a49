package data

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/sightline-dev/sightline/core/blob"
)

// TestDamagedCopiesAreDeletedAfterPowerLoss damages two of three blobs, as a power failure may do. It opens the folder in the same boot and
// in the next one. The damaged copy is deleted, and the input's picture stays.
func TestDamagedCopiesAreDeletedAfterPowerLoss(t *testing.T) {
	dir := t.TempDir()
	folder, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	blobs := folder.Blobs
	log := slog.New(slog.DiscardHandler)
	owned := []byte("the picture of an input")
	check := func(boot string) {
		t.Helper()
		if err := folder.CheckAfterPowerLoss(t.Context(), boot, func(h blob.Hash) bool { return h == blob.Sum(owned) }, log); err != nil {
			t.Fatal(err)
		}
	}
	check("first")
	good, bad := []byte("a whole picture"), []byte("a picture half written")
	for _, b := range [][]byte{good, bad, owned} {
		if _, err := blobs.Put(t.Context(), bytes.NewReader(b), blob.Hash{}); err != nil {
			t.Fatal(err)
		}
	}
	damage(t, dir, blob.Sum(bad).String())
	damage(t, dir, blob.Sum(owned).String())
	has := func() bool {
		ok, err := blobs.Has(t.Context(), blob.Sum(bad))
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	if check("first"); !has() {
		t.Error("a restart of the process alone checked the blobs")
	}
	if check("second"); has() {
		t.Error("the damaged blob is there after a start of the machine")
	}
	if _, err := blobs.Get(t.Context(), blob.Sum(good)); err != nil {
		t.Errorf("the good blob: %v", err)
	}
	if _, err := blobs.Get(t.Context(), blob.Sum(owned)); !errors.Is(err, blob.ErrCorrupt) {
		t.Errorf("an input's picture: %v, want ErrCorrupt", err)
	}
	check("")
	damage(t, dir, blob.Sum(good).String())
	check("") // without a boot ID, every start counts as a start of the machine
	if _, err := blobs.Get(t.Context(), blob.Sum(good)); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("the blob damaged later: %v, want ErrNotFound", err)
	}
}

func damage(t testing.TB, dir, hash string) {
	t.Helper()
	found := false
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err == nil && filepath.Base(path) == hash {
			found = true
			return os.Truncate(path, 5)
		}
		return err
	})
	if err != nil || !found {
		t.Fatalf("damage: %v, found %v", err, found)
	}
}
