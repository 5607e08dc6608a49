package system

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestIsDir(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !IsDir(dir) || IsDir(file) || IsDir(filepath.Join(dir, "missing")) {
		t.Error("IsDir is wrong")
	}
}

func TestTree(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	for _, name := range []string{filepath.Join(dir, "caf\xe9.jpg"), filepath.Join(outside, "b.jpg")} {
		if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		"absolute": filepath.Join(dir, "caf\xe9.jpg"), "relative": "./absolute", "out": filepath.Join(outside, "b.jpg"), "missing": "nothing", "cycle": "cycle",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := OpenTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	entries, err := fs.ReadDir(tree, ".")
	if err != nil || len(entries) != 6 {
		t.Fatalf("ReadDir = %v, %v", entries, err)
	}
	for _, name := range []string{"absolute", "relative"} {
		if target, err := tree.Follow(name); target != "caf\xe9.jpg" || err != nil {
			t.Errorf("Follow(%s) = %q, %v", name, target, err)
		}
	}
	if b, err := fs.ReadFile(tree, "caf\xe9.jpg"); string(b) != "x" || err != nil {
		t.Errorf("ReadFile = %q, %v", b, err)
	}
	for _, name := range []string{"out", "missing", "cycle"} {
		if _, err := tree.Follow(name); err == nil || name == "out" && !errors.Is(err, ErrOutside) {
			t.Errorf("Follow(%s) = %v", name, err)
		}
		if _, err := tree.Open(name); err == nil {
			t.Errorf("Open(%s) succeeded", name)
		}
	}
	if _, err := OpenTree(filepath.Join(dir, "missing")); err == nil {
		t.Error("a missing folder was opened")
	}
}

func TestReadFileHasALimit(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := ReadFile(name, 5); string(b) != "12345" || err != nil {
		t.Errorf("ReadFile at the limit = %q, %v", b, err)
	}
	if _, err := ReadFile(name, 4); err == nil {
		t.Error("ReadFile over the limit succeeded")
	}
	if _, err := ReadFile(name+"x", 4); !os.IsNotExist(err) {
		t.Errorf("ReadFile of nothing = %v", err)
	}
	if _, err := ReadAll(io.MultiReader(strings.NewReader("123"), strings.NewReader("45")), 4); err == nil {
		t.Error("ReadAll over the limit succeeded")
	}
}

func TestIsBrokenPipe(t *testing.T) {
	IgnoreBrokenPipes()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = w.WriteString("x")
	if !IsBrokenPipe(err) || !IsBrokenPipe(fmt.Errorf("wrapped: %w", err)) || IsBrokenPipe(syscall.EIO) {
		t.Errorf("IsBrokenPipe(%v) is wrong", err)
	}
	_ = w.Close()
}

func TestReplaceFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	if err := MakeFolder(dir); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "file")
	for i, content := range []string{"first", "the second"} {
		if err := ReplaceFile(name, []byte(content), 0o640); err != nil {
			t.Fatal(err)
		}
		got, err := ReadFile(name, 100)
		if err != nil || string(got) != content {
			t.Errorf("%d: %q, %v; want %q", i, got, err, content)
		}
		if _, size, err := ModTimeAndSize(name); err != nil || size != int64(len(content)) {
			t.Errorf("%d: Changed tells %d bytes, %v", i, size, err)
		}
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := ReplaceFile(dir, []byte("x"), 0o600); err == nil {
		t.Error("a folder is replaced by a file")
	}
	if err := ReplaceFile(filepath.Join(dir, "missing", "file"), nil, 0o600); err == nil {
		t.Error("a file is made in a folder that is not there")
	}
	for _, folder := range []string{dir, filepath.Dir(dir)} {
		if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 {
			t.Errorf("%s holds %v, %v; want one entry, nothing left over", folder, entries, err)
		}
	}
	if _, _, err := ModTimeAndSize(filepath.Join(dir, "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Changed of nothing: %v", err)
	}
}
