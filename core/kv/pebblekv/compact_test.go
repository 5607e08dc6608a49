//go:build !wasip1

package pebblekv_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/pebblekv"
)

// TestCompactRemovesDeletedData: deleted and overwritten data is removed from the disk, at the next start at the latest. Neighbouring data
// stays.
func TestCompactRemovesDeletedData(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	const marker, stays = "zebrafinch", "waxwing"
	store, err := pebblekv.Open(dir, pebblekv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		var b kv.Batch
		b.Put(fmt.Appendf(nil, "a%03d", i), []byte(marker))
		b.Put(fmt.Appendf(nil, "b%03d", i), []byte(stays))
		b.Put([]byte("c"), fmt.Appendf(nil, "%s %d", marker, i))
		if err := store.Apply(&b); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil { // writes the data into tables
		t.Fatal(err)
	}
	if store, err = pebblekv.Open(dir, pebblekv.Options{}); err != nil {
		t.Fatal(err)
	}
	var b kv.Batch
	b.DeleteRange([]byte("a"), []byte("b"))
	b.Put([]byte("c"), []byte(stays))
	if err := store.Apply(&b); err != nil {
		t.Fatal(err)
	}
	for _, bounds := range [][2]string{{"a", "b"}, {"c", "d"}} {
		if err := store.Compact(t.Context(), []byte(bounds[0]), []byte(bounds[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := store.Compact(t.Context(), []byte("a"), []byte("b")); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("Compact of a closed store = %v, want ErrClosed", err)
	}
	if store, err = pebblekv.Open(dir, pebblekv.Options{}); err != nil {
		t.Fatal(err)
	}
	found := false
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the store has removed the file
		}
		if bytes.Contains(data, []byte(marker)) {
			t.Errorf("%s holds what was deleted", filepath.Base(path))
		}
		found = found || bytes.Contains(data, []byte(stays))
		return err
	})
	if err != nil || !found {
		t.Errorf("what stays is on the disk: %v, %v", found, err)
	}
	n := 0
	if err := store.Scan([]byte("b"), []byte("c"), func(_, value []byte) bool { n++; return string(value) == stays }); err != nil || n != 200 {
		t.Errorf("%d neighbours are left, %v", n, err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}
