package blob

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"slices"
)

const (
	blobsDir   = "blobs"
	blobsSpool = "blobs.new"
)

// Folder is a store of blobs as files. It is safe for concurrent use in one process. Two processes must not share a folder.
//
//	blobs/3f/3f9a…   64 hex digits: the bytes with this SHA-256, and nothing else
//	blobs.new/17     a file that is being written; OpenFolder empties the folder
//
// Put writes a blob to a temporary file, syncs it and renames it. So a crash at any moment leaves all of the blob or nothing, and the blob
// survives once Put has returned. Delete does not sync: after a crash a deleted blob may exist again. PutLazy omits the syncs, for
// blobs that may be lost.
type Folder struct {
	fsys  FS
	limit int64
	spool *spool
}

var _ Blobs = (*Folder)(nil)

// OpenFolder opens the store in fsys, or creates it.
func OpenFolder(fsys FS, o Options) (*Folder, error) {
	if err := fsys.MkdirAll(blobsDir); err != nil {
		return nil, fmt.Errorf("blobs: %w", err)
	}
	s, err := openSpool(fsys, blobsSpool)
	if err != nil {
		return nil, fmt.Errorf("blobs: %w", err)
	}
	return &Folder{fsys: fsys, limit: o.withDefaults().MaxBytes, spool: s}, nil
}

// Put implements [Blobs]. It writes bytes again that are already stored, which repairs a
// damaged file.
func (f *Folder) Put(ctx context.Context, r io.Reader, want Hash) (Hash, error) {
	return f.put(ctx, synced, r, want)
}

// PutLazy stores data, whose hash is h, without waiting for the disk. The blob survives the end of the program,
// but a power failure may lose or damage it. PutLazy does not write a blob
// that is already stored.
func (f *Folder) PutLazy(ctx context.Context, data []byte, h Hash) error {
	if n, err := f.Len(ctx, h); err == nil && n == int64(len(data)) {
		return nil
	}
	_, err := f.put(ctx, lazy, bytes.NewReader(data), h)
	return err
}

func (f *Folder) put(ctx context.Context, d durability, r io.Reader, want Hash) (Hash, error) {
	var h Hash
	err := f.spool.write(d, func(w io.Writer) (string, error) {
		var err error
		if h, err = Receive(ctx, w, r, want, f.limit); err != nil {
			return "", err
		}
		return place(blobsDir, h.String()), nil
	})
	if err != nil {
		return Hash{}, fmt.Errorf("put blob: %w", err)
	}
	return h, nil
}

// Get implements [Blobs].
func (f *Folder) Get(ctx context.Context, h Hash) ([]byte, error) {
	n, err := f.Len(ctx, h)
	if err != nil {
		return nil, err
	}
	if n > f.limit {
		return nil, fmt.Errorf("%v: %d bytes: %w", h, n, ErrCorrupt)
	}
	r, err := f.Open(ctx, h)
	if err != nil {
		return nil, err
	}
	data := make([]byte, 0, n+1) // one byte more, so that reading to the end does not grow it
	for err == nil {
		if len(data) == cap(data) {
			data = slices.Grow(data, 1)
		}
		var k int
		k, err = r.Read(data[len(data):cap(data)])
		data = data[:len(data)+k]
	}
	if err == io.EOF {
		err = nil
	}
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, err
	}
	return data, nil
}

// Open implements [Blobs].
func (f *Folder) Open(ctx context.Context, h Hash) (io.ReadCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	file, err := f.fsys.Open(place(blobsDir, h.String()))
	if err != nil {
		return nil, notFound(h, err)
	}
	return &verifyingReader{file: file, want: h, sum: sha256.New()}, nil
}

// ReaderAt reads any part of a file.
type ReaderAt interface {
	io.ReaderAt
	io.Closer
}

// OpenAt returns a reader of any part of the blob, which the caller closes. It does not check the hash: the caller checks the bytes, for
// example by checksums from an earlier read of the complete blob. The files of the folder's FS must implement [ReaderAt]; otherwise the
// error is errors.ErrUnsupported. A reader stays valid if the blob is deleted meanwhile.
func (f *Folder) OpenAt(ctx context.Context, h Hash) (ReaderAt, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	file, err := f.fsys.Open(place(blobsDir, h.String()))
	if err != nil {
		return nil, notFound(h, err)
	}
	at, ok := file.(ReaderAt)
	if !ok {
		return nil, errors.Join(fmt.Errorf("blob: read a part: %w", errors.ErrUnsupported), file.Close())
	}
	return at, nil
}

// Has implements [Blobs].
func (f *Folder) Has(ctx context.Context, h Hash) (bool, error) {
	_, err := f.Len(ctx, h)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Len implements [Blobs].
func (f *Folder) Len(ctx context.Context, h Hash) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	n, err := f.fsys.Size(place(blobsDir, h.String()))
	if err != nil {
		return 0, notFound(h, err)
	}
	return n, nil
}

// Delete implements [Blobs].
func (f *Folder) Delete(ctx context.Context, h Hash) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := remove(f.fsys, place(blobsDir, h.String())); err != nil {
		return fmt.Errorf("delete blob: %w", err)
	}
	return nil
}

// Each implements [Blobs].
func (f *Folder) Each(ctx context.Context, from Hash, yield func(Hash) error) error {
	return list(f.fsys, blobsDir, len(Hash{}), from.String(), func(name string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		h, err := ParseHash(name)
		if err != nil {
			return err
		}
		return yield(h)
	})
}

func notFound(h Hash, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%v: %w", h, ErrNotFound)
	}
	return fmt.Errorf("blob: %w", err)
}

// verifyingReader reads a file and compares its hash at the end.
type verifyingReader struct {
	file io.ReadCloser
	want Hash
	sum  hash.Hash
}

func (c *verifyingReader) Read(p []byte) (int, error) {
	n, err := c.file.Read(p)
	c.sum.Write(p[:n])
	if err == io.EOF && Hash(c.sum.Sum(nil)) != c.want {
		return n, fmt.Errorf("%v: %w", c.want, ErrCorrupt)
	}
	return n, err
}

func (c *verifyingReader) Close() error { return c.file.Close() }

// Receive copies at most limit bytes of r to w and returns their hash. It stops when ctx ends. If want is not zero and differs from
// the hash, Receive returns ErrHash. If r has more bytes, it returns ErrTooLarge. [Blobs] use it to implement Put.
func Receive(ctx context.Context, w io.Writer, r io.Reader, want Hash, limit int64) (Hash, error) {
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(w, sum), io.LimitReader(interruptible{ctx, r}, limit+1))
	if err != nil {
		return Hash{}, err
	}
	if n > limit {
		return Hash{}, fmt.Errorf("over %d bytes: %w", limit, ErrTooLarge)
	}
	h := Hash(sum.Sum(nil))
	if !want.IsZero() && h != want {
		return Hash{}, fmt.Errorf("got %v, want %v: %w", h, want, ErrHash)
	}
	return h, nil
}

// interruptible is a reader that fails when its context ends.
type interruptible struct {
	ctx context.Context
	r   io.Reader
}

func (i interruptible) Read(p []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	return i.r.Read(p)
}

func sortedDir(fsys FS, dir string) ([]string, error) {
	names, err := fsys.ReadDir(dir)
	slices.Sort(names)
	return names, err
}
