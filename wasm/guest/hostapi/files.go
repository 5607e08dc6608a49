package hostapi

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/wasm/abi"
)

// Files is a read-only file system. The host returns the complete content of a file by its name.
type Files struct {
	names []string // ascending
	read  func(name string, dst []byte) int64
}

var _ fs.ReadFileFS = (*Files)(nil)

// Bundles returns a file system of the bundles' files that have these names.
func Bundles(from Imports, names []string) *Files { return newFiles(names, from.Bundle) }

// Older returns the files of the older network whose base is base. If the host has no such network or fails, Older returns fs.ErrNotExist.
func Older(from Imports, base [32]byte) (*Files, error) {
	list, err := fill(make([]byte, 4<<10), func(dst []byte) int64 { return from.Older(&base, "", dst) })
	if err != nil || len(list) == 0 {
		return nil, fs.ErrNotExist
	}
	return newFiles(strings.Split(strings.TrimSuffix(string(list), "\n"), "\n"), func(name string, dst []byte) int64 {
		return from.Older(&base, name, dst)
	}), nil
}

func newFiles(names []string, read func(name string, dst []byte) int64) *Files {
	f := &Files{read: read}
	for _, name := range names {
		if fs.ValidPath(name) && name != "." {
			f.names = append(f.names, name)
		}
	}
	slices.Sort(f.names)
	f.names = slices.Compact(f.names)
	return f
}

// find returns the entry with a name: a file, or the files below a folder.
func (f *Files) find(op, name string) (entry, error) {
	if !fs.ValidPath(name) {
		return entry{}, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	e := entry{files: f, name: name}
	if name == "." {
		e.below = f.names
		e.folder = true
		return e, nil
	}
	if _, file := slices.BinarySearch(f.names, name); file {
		if e.size = f.read(name, nil); e.size < 0 {
			return entry{}, &fs.PathError{Op: op, Path: name, Err: notExist(abi.Errno(-e.size))}
		}
		return e, nil
	}
	at, _ := slices.BinarySearch(f.names, name+"/")
	for at+len(e.below) < len(f.names) && strings.HasPrefix(f.names[at+len(e.below)], name+"/") {
		e.below = f.names[at : at+len(e.below)+1]
	}
	if e.folder = len(e.below) > 0; !e.folder {
		return entry{}, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	return e, nil
}

func notExist(no abi.Errno) error {
	if no == abi.KeyNotFound {
		return fs.ErrNotExist
	}
	return no.Err()
}

// Open implements [fs.FS].
func (f *Files) Open(name string) (fs.File, error) {
	e, err := f.find("open", name)
	if err != nil {
		return nil, err
	}
	return &fileHandle{entry: e}, nil
}

// ReadFile implements [fs.ReadFileFS].
func (f *Files) ReadFile(name string) ([]byte, error) {
	e, err := f.find("open", name)
	if err != nil {
		return nil, err
	}
	return e.data()
}

// entry is a file or a folder.
type entry struct {
	files  *Files
	name   string
	size   int64
	folder bool
	below  []string // names of all files below a folder
}

func (e entry) data() ([]byte, error) {
	if e.folder {
		return nil, &fs.PathError{Op: "read", Path: e.name, Err: errors.New("is a folder")}
	}
	data, err := fill(make([]byte, e.size), func(dst []byte) int64 { return e.files.read(e.name, dst) })
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: e.name, Err: err}
	}
	return data, nil
}

func (e entry) list() ([]fs.DirEntry, error) {
	if !e.folder {
		return nil, &fs.PathError{Op: "readdir", Path: e.name, Err: errors.New("is not a folder")}
	}
	var out []fs.DirEntry
	last := ""
	for _, name := range e.below {
		first, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(name, strings.TrimPrefix(e.name, ".")), "/"), "/")
		if first == last {
			continue
		}
		last = first
		in, err := e.files.find("readdir", path.Join(e.name, first))
		if errors.Is(err, fs.ErrNotExist) {
			continue // the host does not have it yet
		}
		if err != nil {
			return out, err
		}
		out = append(out, in)
	}
	return out, nil
}

// Name implements [fs.FileInfo] and [fs.DirEntry].
func (e entry) Name() string { return path.Base(e.name) }

// Size implements [fs.FileInfo].
func (e entry) Size() int64 { return e.size }

// Mode implements [fs.FileInfo].
func (e entry) Mode() fs.FileMode { return e.Type() | 0o444 }

// Type implements [fs.DirEntry].
func (e entry) Type() fs.FileMode {
	if e.folder {
		return fs.ModeDir
	}
	return 0
}

// ModTime implements [fs.FileInfo].
func (e entry) ModTime() time.Time { return time.Time{} }

// IsDir implements [fs.FileInfo] and [fs.DirEntry].
func (e entry) IsDir() bool { return e.folder }

// Sys implements [fs.FileInfo].
func (e entry) Sys() any { return nil }

// Info implements [fs.DirEntry].
func (e entry) Info() (fs.FileInfo, error) { return e, nil }

// fileHandle is a file being read, or a folder being listed.
type fileHandle struct {
	entry
	content *bytes.Reader // content of a file; nil before the first Read
	listed  []fs.DirEntry // entries that ReadDir has not returned yet; nil before the first ReadDir
}

// Stat implements [fs.File].
func (o *fileHandle) Stat() (fs.FileInfo, error) { return o.entry, nil }

// Close implements [fs.File].
func (o *fileHandle) Close() error { return nil }

// Read implements [fs.File].
func (o *fileHandle) Read(p []byte) (int, error) {
	if o.content == nil {
		data, err := o.data()
		if err != nil {
			return 0, err
		}
		o.content = bytes.NewReader(data)
	}
	return o.content.Read(p)
}

// ReadDir implements [fs.ReadDirFile].
func (o *fileHandle) ReadDir(n int) (out []fs.DirEntry, err error) {
	if o.listed == nil {
		if o.listed, err = o.list(); err != nil {
			return nil, err
		}
	}
	if n <= 0 {
		n = len(o.listed)
	} else if len(o.listed) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(o.listed))
	out, o.listed = o.listed[:n], o.listed[n:]
	return out, nil
}
