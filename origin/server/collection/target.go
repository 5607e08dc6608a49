package collection

import (
	"archive/zip"
	"errors"
	"io"
	"path"
	"strings"

	"github.com/sightline-dev/sightline/core/blob"
)

// folder is a target that writes files into a folder.
type folder struct {
	to   blob.FS
	dirs map[string]bool
}

// NewFolder returns a target that writes into an empty folder.
func NewFolder(to blob.FS) Target {
	return &folder{to: to, dirs: map[string]bool{".": true}}
}

// Create implements [Target]. Close of the file syncs it.
func (f *folder) Create(name string) (io.WriteCloser, error) {
	dir := path.Dir(name)
	if !f.dirs[dir] {
		if err := f.to.MkdirAll(dir); err != nil {
			return nil, err
		}
		f.dirs[dir] = true
	}
	file, err := f.to.Create(name)
	if err != nil {
		return nil, err
	}
	return syncedFile{file}, nil
}

// Close implements [Target].
func (f *folder) Close() error {
	var errs []error
	for dir := range f.dirs {
		errs = append(errs, f.to.SyncDir(dir))
	}
	return errors.Join(errs...)
}

type syncedFile struct{ blob.File }

func (s syncedFile) Close() error { return errors.Join(s.Sync(), s.File.Close()) }

// archive is a target that writes a zip file.
type archive struct {
	to  io.Closer
	zip *zip.Writer
}

// NewZip returns a target that writes a zip archive to to. Close closes to.
func NewZip(to io.WriteCloser) Target {
	return &archive{to: to, zip: zip.NewWriter(to)}
}

// Create implements [Target]. It stores pictures uncompressed, since their formats are compressed.
func (a *archive) Create(name string) (io.WriteCloser, error) {
	method := zip.Deflate
	if strings.HasPrefix(name, PicturesDir+"/") {
		method = zip.Store
	}
	w, err := a.zip.CreateHeader(&zip.FileHeader{Name: name, Method: method})
	return NopCloser(w), err
}

// Close implements [Target].
func (a *archive) Close() error { return errors.Join(a.zip.Close(), a.to.Close()) }

// NopCloser returns w with a Close that does nothing, for a writer that its owner closes.
func NopCloser(w io.Writer) io.WriteCloser { return nopWriteCloser{w} }

type nopWriteCloser struct{ io.Writer }

func (nopWriteCloser) Close() error { return nil }
