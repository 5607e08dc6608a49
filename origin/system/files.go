package system

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
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

// Files calls yield with every regular file below dir, in the order of names, and with the
// first bytes of each (at most 1 KB). Links are not followed. What cannot be read is passed
// to failed and left out.
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

// Spool returns a new file for reading and writing that has no name and is gone when it is
// closed, or when the process dies.
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
