package system

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrOutside is returned for a link that leads out of its folder.
var ErrOutside = errors.New("link that leads out of the folder")

// Tree is a folder to read as an [fs.FS]. The names of its files may be any bytes; those of [os.DirFS] must be UTF-8. It opens nothing outside the
// folder, also if a link appears while it is read.
type Tree struct {
	root *os.Root
	path string // absolute, without links
}

// OpenTree opens a folder.
func OpenTree(dir string) (*Tree, error) {
	path, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return &Tree{root, path}, nil
}

// Open implements [fs.FS].
func (t *Tree) Open(name string) (fs.File, error) {
	f, err := t.root.Open(name)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Follow returns the path of the target of a link, without links in it.
func (t *Tree) Follow(name string) (string, error) {
	path, err := filepath.EvalSymlinks(filepath.Join(t.path, name))
	if wrong := new(fs.PathError); errors.As(err, &wrong) {
		err = wrong.Err // its path is absolute
	}
	if err != nil {
		return "", fmt.Errorf("link: %w", err)
	}
	target, err := filepath.Rel(t.path, path)
	if err != nil || !filepath.IsLocal(target) {
		return "", ErrOutside
	}
	return target, nil
}

// Close closes the folder. Its open files stay open.
func (t *Tree) Close() error { return t.root.Close() }
