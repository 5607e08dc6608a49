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

// ReadFile returns the content of a file. If it is longer than limit bytes, ReadFile returns an error.
func ReadFile(name string, limit int64) (data []byte, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return ReadAll(f, limit)
}

// Open opens a file for reading, and reports whether it is a regular file.
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

// ReadAll reads r to its end. If r has more than limit bytes, ReadAll returns an error.
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

// IsBrokenPipe reports whether err means that the reader of a pipe or socket has closed it.
func IsBrokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }

// Spool returns a new file without a name, for reading and writing. The system deletes it when the file is closed or the process ends.
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

// DirFS returns the folder dir as a read-only file system. It follows links out of dir.
func DirFS(dir string) fs.FS { return os.DirFS(dir) }

// CreateFile creates a file that gets its name when it is complete. Until then its name ends in ".part". The caller closes f and then calls
// finish. If complete is true, finish syncs and renames the file; otherwise it deletes the file. If name exists, the error is fs.ErrExist.
func CreateFile(name string) (f *os.File, finish func(complete bool) error, err error) {
	if _, err := os.Lstat(name); err == nil {
		return nil, nil, fmt.Errorf("%s: %w", name, fs.ErrExist)
	}
	part := name + ".part"
	if f, err = os.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
		return nil, nil, err
	}
	return f, func(complete bool) error {
		if !complete {
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

// NewFolder creates a folder and those above it. It accepts an existing folder if that is empty.
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

// syncPath makes a file's content, or a folder's entries, durable.
func syncPath(name string) (err error) {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return f.Sync()
}

// TempPrefix is the prefix of the names of temporary folders.
const TempPrefix = "sightline-"

// TempFolder creates a folder in parent, or in the system's folder for temporary files if parent
// is empty. done deletes the folder and its content.
func TempFolder(parent string) (dir string, done func(), err error) {
	if dir, err = os.MkdirTemp(parent, TempPrefix); err != nil {
		return "", nil, err
	}
	return dir, func() { _ = os.RemoveAll(dir) }, nil // the system deletes the rest
}

// ModTimeAndSize returns the modification time and the size of a file. If a file is replaced or written, one of them usually changes.
func ModTimeAndSize(name string) (when time.Time, size int64, err error) {
	info, err := os.Stat(name)
	if err != nil {
		return time.Time{}, 0, err
	}
	return info.ModTime(), info.Size(), nil
}

// RestrictMode sets the mode of a file so that only this user can read and write it.
func RestrictMode(name string) error { return os.Chmod(name, 0o600) }

// MakeFolder creates a folder, and those above it, that only this user can enter. If the folder exists, it keeps its mode.
func MakeFolder(name string) error { return os.MkdirAll(name, 0o700) }

// ReplaceFile creates or atomically replaces a file with the given content and mode. The change is durable when it returns nil.
func ReplaceFile(name string, content []byte, mode fs.FileMode) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // the caller gets the first error
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
