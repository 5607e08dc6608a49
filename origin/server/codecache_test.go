package server

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/origin/server/system"
)

// TestCodeCache checks that compiled modules are in the user's folder for all data folders, or else in each data folder. Each folder has one
// key, which only this user can read, and which is replaced if it is damaged.
func TestCodeCache(t *testing.T) {
	user, data := filepath.Join(t.TempDir(), "cache"), t.TempDir()
	open := func(user, data string) CodeCache {
		t.Helper()
		c, err := OpenCodeCache(user, data, DecoderCode)
		if err != nil || !system.IsDir(c.Dir) || c.Key == [32]byte{} {
			t.Fatalf("OpenCodeCache(%q, %q) = %+v, %v", user, data, c, err)
		}
		return c
	}
	own := open("", data)
	if own.Dir != filepath.Join(data, DecoderCode) || own.Shared {
		t.Errorf("without a user's folder: %+v", own)
	}
	first, second := open(user, data), open(user, t.TempDir())
	if first != second || !first.Shared || first.Dir != filepath.Join(user, DecoderCode) || first.Key == own.Key {
		t.Errorf("two data folders have %+v and %+v", first, second)
	}
	if left, err := os.ReadDir(data); err != nil || len(left) != 0 {
		t.Errorf("the data folder keeps %v, %v", left, err)
	}
	key := filepath.Join(user, DecoderCode+".key")
	if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file: %v, %v", info, err)
	}
	for _, damaged := range []string{"", "ab", "x"} {
		if err := os.WriteFile(key, []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		if again := open(user, data); again.Key == first.Key || open(user, data) != again {
			t.Errorf("in place of %q: %+v", damaged, again)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if c := open(file, data); c.Shared || c.Dir != own.Dir {
		t.Errorf("with a user's folder that cannot be used: %+v", c)
	}
	if c, err := OpenCodeCache("", "", DecoderCode); err == nil {
		t.Errorf("without any folder: %+v", c)
	}
}

// TestPrune deletes files of other programs that are older than 30 days.
func TestPrune(t *testing.T) {
	c, err := OpenCodeCache("", t.TempDir(), ModuleCode)
	if err != nil {
		t.Fatal(err)
	}
	for name, age := range map[string]int{"own": 40, "old": 31, "old.sightline-1": 31, "recent": 29, "LOCK": 40} {
		file := filepath.Join(c.Dir, name)
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if at := system.Now().AddDate(0, 0, -age); os.Chtimes(file, at, at) != nil {
			t.Fatal("cannot set the time of a file")
		}
	}
	if err := c.Prune("own"); err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, name := range []string{"own", "old", "old.sightline-1", "recent", "LOCK"} {
		if c.Has(name) {
			left = append(left, name)
		}
	}
	if want := []string{"own", "recent", "LOCK"}; !slices.Equal(left, want) {
		t.Errorf("%v are left, want %v", left, want)
	}
}
