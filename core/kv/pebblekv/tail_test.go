//go:build !wasip1

package pebblekv

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/sightline-dev/sightline/core/kv"
)

// TestDamageInTheLastBlock flips bytes of a log of less than one block, as a killed process leaves it. Either Open fails, or the store
// lacks at most the last two writes.
func TestDamageInTheLastBlock(t *testing.T) {
	live, dir := filepath.Join(t.TempDir(), "live"), filepath.Join(t.TempDir(), "copy")
	s, err := Open(live, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const writes = 12
	for i := range writes {
		var b kv.Batch
		b.Put(fmt.Appendf(nil, "key %02d", i), []byte("some value"))
		wait, err := s.Commit(&b)
		if err == nil {
			err = wait()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	image := filepath.Join(t.TempDir(), "image")
	for { // Pebble removes unused files in the background
		err = errors.Join(os.RemoveAll(image), os.CopyFS(image, os.DirFS(live)))
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	logs, err := filepath.Glob(filepath.Join(image, "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("logs %v, %v", logs, err)
	}
	data, err := os.ReadFile(logs[len(logs)-1])
	if err != nil {
		t.Fatal(err)
	}
	refused, short := 0, 0
	step := 3
	if testing.Short() {
		step = 37
	}
	for at := 0; at < len(data); at += step {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(dir, os.DirFS(image)); err != nil {
			t.Fatal(err)
		}
		damaged := append([]byte(nil), data...)
		damaged[at] ^= 0x10
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(logs[len(logs)-1])), damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Open(dir, Options{})
		if errors.Is(err, kv.ErrCorrupt) {
			refused++
			continue
		}
		if err != nil {
			t.Fatalf("byte %d: %v", at, err)
		}
		n := 0
		if err := c.Scan(nil, nil, func(_, _ []byte) bool { n++; return true }); err != nil {
			t.Fatal(err)
		}
		// Each write contains the durable length of the log before it. Pebble may record that length one write late, so two writes may be
		// lost.
		if n < writes-2 {
			t.Errorf("byte %d of %d damaged: %d of %d writes are there, and nothing was said", at, len(data), n, writes)
		}
		if n < writes {
			short++
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if refused == 0 {
		t.Error("no damage was refused")
	}
	t.Logf("%d bytes: %d damages refused, %d cost the last write", len(data), refused, short)
}
