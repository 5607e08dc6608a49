package system

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// ReadFile reads a file that a person named, of at most limit bytes.
func ReadFile(name string, limit int64) (data []byte, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return ReadAll(f, limit)
}

// Open opens a file that a person named, for reading, and reports whether it is a regular file.
func Open(name string) (f *os.File, regular bool, err error) {
	if f, err = os.Open(name); err != nil {
		return nil, false, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, false, errors.Join(err, f.Close())
	}
	return f, info.Mode().IsRegular(), nil
}

// ReadAll reads r to its end, of at most limit bytes.
func ReadAll(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("more than %d bytes", limit)
	}
	return data, nil
}

// IsDir reports whether name is a folder, or a link to one.
func IsDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// Files calls yield with every regular file below dir, in the order of names, and with the first bytes of each (at most 1 KB). It does
// not follow links. It passes files that cannot be read to failed.
func Files(dir string, yield func(name string, start []byte), failed func(error)) {
	_ = filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			failed(err)
			if entry != nil && entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		start, err := firstBytes(name)
		if err != nil {
			failed(err)
			return nil
		}
		yield(name, start)
		return nil
	})
}

func firstBytes(name string) (start []byte, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return io.ReadAll(io.LimitReader(f, 1<<10))
}

// IsBrokenPipe reports whether err says that nobody reads what is written any more.
func IsBrokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }

// Spool returns a new file for reading and writing that has no name and is deleted when it is closed, or when the process dies.
func Spool() (*os.File, error) {
	f, err := os.CreateTemp("", "sightline-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// DirFS is the folder dir for reading.
func DirFS(dir string) fs.FS { return os.DirFS(dir) }

// CreateFile makes a new file that gets its name when it is complete. finish is called after the file was closed: with whole the file
// exists, durably, else it never did. A file of that name that exists already is an error.
func CreateFile(name string) (f *os.File, finish func(whole bool) error, err error) {
	if _, err := os.Lstat(name); err == nil {
		return nil, nil, fmt.Errorf("%s: %w", name, fs.ErrExist)
	}
	part := name + ".part"
	if f, err = os.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
		return nil, nil, err
	}
	return f, func(whole bool) error {
		if !whole {
			return os.Remove(part)
		}
		if err := syncPath(part); err != nil {
			return err
		}
		if err := os.Rename(part, name); err != nil {
			return err
		}
		return syncPath(filepath.Dir(name))
	}, nil
}

// NewFolder makes a folder, or takes one that is empty.
func NewFolder(name string) error {
	if err := os.MkdirAll(name, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(name)
	if err == nil && len(entries) > 0 {
		return fmt.Errorf("folder %s is not empty", name)
	}
	return err
}

// CacheFolder returns the program's folder in the user's cache folder, which this user alone can enter, and makes it.
func CacheFolder() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, "sightline")
	if err := MakeFolder(dir); err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o700) // others may have been allowed
}

// syncPath makes a file's content, or a folder's entries, durable.
func syncPath(name string) (err error) {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return f.Sync()
}

// TempPrefix begins the names of temporary folders.
const TempPrefix = "sightline-"

// TempFolder makes a folder in parent, or in the system's place for such when that is empty;
// done removes it with all that is in it.
func TempFolder(parent string) (dir string, done func(), err error) {
	if dir, err = os.MkdirTemp(parent, TempPrefix); err != nil {
		return "", nil, err
	}
	return dir, func() { _ = os.RemoveAll(dir) }, nil // what stays is the system's to tidy
}

// ModTimeAndSize returns two facts that change when a file is replaced or written: its time, and its size.
func ModTimeAndSize(name string) (when time.Time, size int64, err error) {
	info, err := os.Stat(name)
	if err != nil {
		return time.Time{}, 0, err
	}
	return info.ModTime(), info.Size(), nil
}

// Restrict sets the mode of a file so that only this user reads and writes it.
func Restrict(name string) error { return os.Chmod(name, 0o600) }

// MakeFolder makes a folder for this user alone, unless there is one.
func MakeFolder(name string) error { return os.MkdirAll(name, 0o700) }

// ReplaceFile gives a file of that name its content and mode, whole or not at all.
func ReplaceFile(name string, content []byte, mode fs.FileMode) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // the first error is the one to tell
		}
	}()
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return err
	}
	return syncPath(filepath.Dir(name))
}
