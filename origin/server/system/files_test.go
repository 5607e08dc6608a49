package system

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestFilesInOrder(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.jpg", "a/2.jpg", "a/1.jpg", "a.txt"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("start of "+name+strings.Repeat(".", 2000)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "b.jpg"), filepath.Join(dir, "link.jpg")); err != nil {
		t.Fatal(err)
	}
	var got []string
	var errs []error
	Files(dir, func(name string, start []byte) {
		rel, _ := filepath.Rel(dir, name)
		if len(start) != 1<<10 || !strings.HasPrefix(string(start), "start of "+rel) {
			t.Errorf("%s starts with %d bytes, %.30q", rel, len(start), start)
		}
		got = append(got, rel)
	}, func(err error) { errs = append(errs, err) })
	if want := []string{"a/1.jpg", "a/2.jpg", "a.txt", "b.jpg"}; !slices.Equal(got, want) || len(errs) != 0 {
		t.Errorf("Files = %q, %v; want %q", got, errs, want)
	}
	Files(filepath.Join(dir, "missing"), func(name string, _ []byte) { t.Errorf("found %s", name) }, func(err error) { errs = append(errs, err) })
	if len(errs) != 1 {
		t.Errorf("a missing folder: %v, want one error", errs)
	}
	if !IsDir(dir) || IsDir(filepath.Join(dir, "b.jpg")) || IsDir(filepath.Join(dir, "missing")) {
		t.Error("IsDir is wrong")
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
