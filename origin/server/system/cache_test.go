//go:build unix

package system

import (
	"os"
	"path/filepath"
	"testing"
)

// TestCacheFolder checks that the cache folder is the unit's or the user's, and that nobody else can write to it.
func TestCacheFolder(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", home)
	lookup := os.Getenv
	dir, err := CacheFolder(lookup)
	if info, failed := os.Stat(dir); err != nil || failed != nil || dir != filepath.Join(home, "sightline") || info.Mode().Perm() != 0o700 {
		t.Errorf("CacheFolder = %q, %v", dir, err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := CacheFolder(lookup); err != nil {
		t.Errorf("a folder that this user can close: %v", err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder allows others: %v, %v", info.Mode(), err)
	}
	if err := os.Chmod(home, 0o777); err != nil {
		t.Fatal(err)
	}
	if dir, err := CacheFolder(lookup); err == nil {
		t.Errorf("CacheFolder = %q, in a folder that everyone can write to", dir)
	}
	unit := filepath.Join(t.TempDir(), "unit")
	t.Setenv("CACHE_DIRECTORY", unit+":/another")
	if dir, err := CacheFolder(lookup); dir != unit || err != nil {
		t.Errorf("CacheFolder of a unit = %q, %v, want %q", dir, err, unit)
	}
	if err := os.Chmod(unit, 0o770); err != nil {
		t.Fatal(err)
	}
	if dir, err := CacheFolder(lookup); err == nil {
		t.Errorf("CacheFolder = %q, although a group can write to it", dir)
	}
	if dir, err := CacheFolder(func(string) string { return "" }); err == nil {
		t.Errorf("CacheFolder = %q without a user's folder", dir)
	}
}
