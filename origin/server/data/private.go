package data

import (
	"errors"
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sightline-dev/sightline/origin/server/system"
)

// private restricts the files and folders of a store to the current user, with modes 0600 and 0700. Pebble creates them with 0644 and 0755,
// and a checkpoint may go to a folder that other users can enter.
type private struct{ vfs.FS }

// storeFS is the operating system's file system, with access restricted, for a store.
var storeFS = private{vfs.Default}

var _ vfs.FS = private{}

// Create implements [vfs.FS].
func (p private) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := p.FS.Create(name, category)
	return restrict(f, name, err)
}

// OpenReadWrite implements [vfs.FS].
func (p private) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := p.FS.OpenReadWrite(name, category, opts...)
	return restrict(f, name, err)
}

// ReuseForWrite implements [vfs.FS].
func (p private) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := p.FS.ReuseForWrite(oldname, newname, category)
	return restrict(f, newname, err)
}

// Lock implements [vfs.FS].
func (p private) Lock(name string) (io.Closer, error) {
	l, err := p.FS.Lock(name)
	return restrict(l, name, err)
}

// MkdirAll implements [vfs.FS].
func (p private) MkdirAll(dir string, _ os.FileMode) error { return p.FS.MkdirAll(dir, 0o700) }

// Unwrap implements [vfs.FS].
func (p private) Unwrap() vfs.FS { return p.FS }

// restrict sets the mode of a file that was just opened. If that fails, it closes the file.
func restrict[T io.Closer](f T, name string, err error) (T, error) {
	if err != nil {
		return f, err
	}
	if err := system.RestrictMode(name); err != nil {
		var zero T
		return zero, errors.Join(err, f.Close())
	}
	return f, nil
}
