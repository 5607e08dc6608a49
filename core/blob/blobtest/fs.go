package blobtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/sightline-dev/sightline/core/blob"
)

// ErrFault is the error of an operation that fails because of [FS.FailAt].
var ErrFault = errors.New("injected fault")

// FS is a file system in memory that can fail and crash. It separates the visible state from that of the disk:
//
//	write            visible at once, lost in a crash unless Sync returned
//	create, rename   visible at once, lost in a crash unless SyncDir of the folder returned (for a
//	and remove       rename: of the target's folder); a crash keeps a random number of the first
//	                 unsynced changes of each folder
//
// It is safe for concurrent use.
type FS struct {
	mu      sync.Mutex
	files   map[string]*node // visible state
	disk    map[string]*node // state after a crash
	folders map[string]bool
	pending []change

	ops    int // operations since FailAt
	failAt int // number of the operation that fails, counted from 1; 0: none
	forAll bool
}

var _ blob.FS = (*FS)(nil)

type node struct {
	data   []byte
	synced []byte
}

// change is a create (from empty), a rename, or a remove (to empty).
type change struct {
	from, to string
	node     *node
}

// NewFS returns an empty file system.
func NewFS() *FS {
	return &FS{files: map[string]*node{}, disk: map[string]*node{}, folders: map[string]bool{".": true}}
}

// FailAt makes the n-th operation from now fail with ErrFault, counted from 1. With forAll all later
// operations fail too. If n is 0, none fails. A failing write writes half of its bytes.
func (f *FS) FailAt(n int, forAll bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ops, f.failAt, f.forAll = 0, n, forAll
}

// Ops returns the number of operations since FailAt.
func (f *FS) Ops() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ops
}

// step counts an operation; mu is held.
func (f *FS) step(op, name string) error {
	f.ops++
	if f.failAt > 0 && (f.ops == f.failAt || f.forAll && f.ops > f.failAt) {
		return fmt.Errorf("%s %s: %w", op, name, ErrFault)
	}
	return nil
}

// Crash discards unsynced data. rng determines the number of unsynced changes that each folder keeps, and the content of unsynced
// files. Files open for writing are lost.
func (f *FS) Crash(rng *rand.Rand) {
	f.mu.Lock()
	defer f.mu.Unlock()
	folders := map[string]bool{}
	for _, c := range f.pending {
		folders[c.folder()] = true
	}
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		f.flush(folder, rng.IntN(len(f.pending)+1))
	}
	f.pending = nil
	f.files = map[string]*node{}
	for _, name := range slices.Sorted(maps.Keys(f.disk)) {
		old := f.disk[name]
		data := slices.Clone(old.synced)
		if !bytes.Equal(old.data, old.synced) && rng.IntN(2) == 0 {
			data = slices.Clone(old.data[:rng.IntN(len(old.data)+1)])
			if rng.IntN(2) == 0 {
				clear(data) // as if blocks were allocated and not written
			}
		}
		f.files[name] = &node{data: data, synced: slices.Clone(data)}
	}
	f.disk = map[string]*node{}
	for name, n := range f.files {
		f.disk[name] = n
	}
	f.failAt = 0
}

// folder returns the folder whose SyncDir makes the change durable.
func (c *change) folder() string {
	if c.to != "" {
		return path.Dir(c.to)
	}
	return path.Dir(c.from)
}

// flush applies the first n pending changes of a folder to the disk; mu is held.
func (f *FS) flush(folder string, n int) {
	f.pending = slices.DeleteFunc(f.pending, func(c change) bool {
		if c.folder() != folder || n == 0 {
			return false
		}
		n--
		delete(f.disk, c.from)
		if c.to != "" {
			f.disk[c.to] = c.node
		}
		return true
	})
}

// Damage flips a bit of every file under prefix that is at least one byte long. It returns the
// number of these files.
func (f *FS) Damage(prefix string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for name, file := range f.files {
		if strings.HasPrefix(name, prefix) && len(file.data) > 0 {
			file.data = slices.Clone(file.data)
			file.data[len(file.data)/2] ^= 4
			n++
		}
	}
	return n
}

// Files returns the paths of all files, sorted.
func (f *FS) Files() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.files))
}

// Create implements [blob.FS].
func (f *FS) Create(name string) (blob.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.step("create", name); err != nil {
		return nil, err
	}
	if f.files[name] != nil || f.folders[name] {
		return nil, &fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}
	}
	if !f.folders[path.Dir(name)] {
		return nil, notExist("create", name)
	}
	n := &node{}
	f.files[name] = n
	f.pending = append(f.pending, change{to: name, node: n})
	return &file{fsys: f, name: name, node: n}, nil
}

// Open implements [blob.FS].
func (f *FS) Open(name string) (io.ReadCloser, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.step("open", name); err != nil {
		return nil, err
	}
	n := f.files[name]
	if n == nil {
		return nil, notExist("open", name)
	}
	return &reader{fsys: f, name: name, bytes: bytes.NewReader(n.data)}, nil
}

// Rename implements [blob.FS].
func (f *FS) Rename(from, to string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.step("rename", from); err != nil {
		return err
	}
	n := f.files[from]
	if n == nil || !f.folders[path.Dir(to)] {
		return notExist("rename", from)
	}
	delete(f.files, from)
	f.files[to] = n
	f.pending = append(f.pending, change{from: from, to: to, node: n})
	return nil
}

// Remove implements [blob.FS].
func (f *FS) Remove(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.step("remove", name); err != nil {
		return err
	}
	if f.files[name] == nil {
		return notExist("remove", name)
	}
	delete(f.files, name)
	f.pending = append(f.pending, change{from: name})
	return nil
}

// ReadDir implements [blob.FS]. The names come in descending order.
func (f *FS) ReadDir(name string) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.step("readdir", name); err != nil {
		return nil, err
	}
	if !f.folders[name] {
		return nil, notExist("readdir", name)
	}
	var names []string
	for _, set := range [][]string{slices.Collect(maps.Keys(f.files)), slices.Collect(maps.Keys(f.folders))} {
		for _, p := range set {
			if p != "." && path.Dir(p) == name {
				names = append(names, path.Base(p))
			}
		}
	}
	slices.Sort(names)
	slices.Reverse(names)
	return names, nil
}

// Size implements [blob.FS].
func (f *FS) Size(name string) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.step("size", name); err != nil {
		return 0, err
	}
	n := f.files[name]
	if n == nil {
		return 0, notExist("size", name)
	}
	return int64(len(n.data)), nil
}

// MkdirAll implements [blob.FS]. A crash never loses folders.
func (f *FS) MkdirAll(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.step("mkdir", name); err != nil {
		return err
	}
	for ; name != "."; name = path.Dir(name) {
		f.folders[name] = true
	}
	return nil
}

// SyncDir implements [blob.FS].
func (f *FS) SyncDir(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.step("syncdir", name); err != nil {
		return err
	}
	f.flush(name, len(f.pending))
	return nil
}

type file struct {
	fsys *FS
	name string
	node *node
}

func (w *file) Write(p []byte) (int, error) {
	w.fsys.mu.Lock()
	defer w.fsys.mu.Unlock()
	if err := w.fsys.step("write", w.name); err != nil {
		w.node.data = append(w.node.data, p[:len(p)/2]...)
		return len(p) / 2, err
	}
	w.node.data = append(w.node.data, p...)
	return len(p), nil
}

func (w *file) StartSync() {}

func (w *file) Sync() error {
	w.fsys.mu.Lock()
	defer w.fsys.mu.Unlock()
	if err := w.fsys.step("sync", w.name); err != nil {
		return err
	}
	w.node.synced = slices.Clone(w.node.data)
	return nil
}

func (w *file) Close() error {
	w.fsys.mu.Lock()
	defer w.fsys.mu.Unlock()
	return w.fsys.step("close", w.name)
}

type reader struct {
	fsys  *FS
	name  string
	bytes *bytes.Reader
}

// Read returns at most 1000 bytes at a time, since readers may return less than requested.
func (r *reader) Read(p []byte) (int, error) {
	r.fsys.mu.Lock()
	defer r.fsys.mu.Unlock()
	if err := r.fsys.step("read", r.name); err != nil {
		return 0, err
	}
	return r.bytes.Read(p[:min(len(p), 1000)])
}

// ReadAt implements [io.ReaderAt].
func (r *reader) ReadAt(p []byte, at int64) (int, error) {
	r.fsys.mu.Lock()
	defer r.fsys.mu.Unlock()
	if err := r.fsys.step("read", r.name); err != nil {
		return 0, err
	}
	return r.bytes.ReadAt(p, at)
}

func (r *reader) Close() error { return nil }

func notExist(op, name string) error {
	return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
}
