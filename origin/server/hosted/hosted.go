// Package hosted serves the pictures and videos that have public names.
//
//	name ─▶ picture ─▶ plan ─▶ pieces of 64 KB ─▶ answer
//	                     │        read at their place, checked, place removed
//	                     └ made by one pass over the file, kept in memory
//
// A stored file is read once from its beginning to its end: to make its plan. The plan has a checksum of each piece and the edits that
// remove the place where the picture was taken; see package location. Each later read costs only the pieces that it needs. Readers of one
// file share its plan, also while it is made. Nothing of a plan is on disk.
//
// The package decides neither who may read a file nor how often. The idea of checksums for parts of a file that has one hash comes from the
// block tables of LSM stores.
package hosted

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/origin/server/httpd"
)

// Options are the settings of [Files]. All are required, except Fetch and KeepLocation.
type Options struct {
	Picture   func(name string) (blob.Picture, error) // returns the picture with a public name; the error wraps blob.ErrNotFound
	Thumbnail func(name string) ([]byte, error)       // returns the small JPEG of a picture; likewise
	Owner     func(p *blob.Picture) string            // returns the account that a picture belongs to
	Blobs     Blobs

	// Fetch downloads a picture that is not stored here. nil: all pictures are stored.
	Fetch func(ctx context.Context, h blob.Hash) error

	KeepLocation bool // everybody gets the stored bytes
	Workers      int  // number of plans that are made at once
}

// Blobs is the store of the files. *blob.Folder implements it.
type Blobs interface {
	Get(ctx context.Context, h blob.Hash) ([]byte, error)
	Len(ctx context.Context, h blob.Hash) (int64, error)
	OpenAt(ctx context.Context, h blob.Hash) (blob.ReaderAt, error)
}

var _ Blobs = (*blob.Folder)(nil)

// Files serves hosted files. It is safe for concurrent use.
type Files struct {
	o     Options
	plans *plans
}

// New returns the hosted files of a data folder. The caller must call Close.
func New(o Options) *Files { return &Files{o, newPlans(o.Blobs, o.Workers)} }

// Close ends the plans in progress and waits for them.
func (f *Files) Close() error {
	f.plans.close()
	return nil
}

// Entity tags of hosted pictures. They can be constants: the bytes of a name never change, and no two pictures share a URL. A tag derived
// from the bytes would reveal the hash of a picture to strangers.
const (
	tagReduced  = `"3"` // without the place; increase it when package location removes more
	tagOriginal = `"0"`
)

// Open returns the file for the path name below /hosted/.
//
//	NAME            without the place where the picture or the video was taken, unless a setting keeps it
//	NAME/SHA256     the original: only callers who may read the input know its hash
//	NAME/thumbnail
//
// While Open downloads a missing picture, it watches whether the client of r is connected.
func (f *Files) Open(ctx context.Context, r *api.Request, name string) (httpd.Picture, error) {
	if picture, ok := strings.CutSuffix(name, api.ThumbnailPath); ok {
		thumb, err := f.o.Thumbnail(picture)
		open := func(_ context.Context, _ *api.Request, from, to int64) (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(thumb[from:to])), nil
		}
		return httpd.Picture{ContentType: "image/jpeg", Tag: tagReduced, Size: int64(len(thumb)), Open: open}, err
	}
	name, hash, original := strings.Cut(name, "/")
	p, err := f.o.Picture(name)
	if err == nil && original && p.Hash.String() != hash {
		err = blob.ErrNotFound
	}
	if err != nil {
		return httpd.Picture{}, err
	}
	size, err := f.o.Blobs.Len(ctx, p.Hash)
	if errors.Is(err, blob.ErrNotFound) && f.o.Fetch != nil {
		watched, stop := watch(ctx, r)
		if err = f.o.Fetch(watched, p.Hash); err == nil {
			size, err = f.o.Blobs.Len(ctx, p.Hash)
		}
		stop()
	}
	if err != nil {
		return httpd.Picture{}, err
	}
	out := httpd.Picture{ContentType: p.ContentType, Tag: tagOriginal, Size: size}
	reduced := !original && !f.o.KeepLocation
	if reduced {
		out.Tag = tagReduced
	}
	out.Open = func(ctx context.Context, r *api.Request, from, to int64) (io.ReadCloser, error) {
		return f.part(ctx, r, f.o.Owner(&p), key{p.Hash, reduced}, size, from, to)
	}
	return out, nil
}

// Part returns a reader of the bytes from ≤ i < to of a stored file, for a caller. The errors are those of [httpd.Picture.Open].
func (f *Files) Part(ctx context.Context, r *api.Request, caller string, h blob.Hash, from, to int64) (io.ReadCloser, error) {
	size, err := f.o.Blobs.Len(ctx, h)
	if err != nil {
		return nil, err
	}
	return f.part(ctx, r, caller, key{h, false}, size, from, min(to, size))
}

// part returns a reader of a part of a file of the given size. While it waits for the plan, it watches whether the client of r is
// connected. If the file had another size when its plan was made, the error is blob.ErrCorrupt.
func (f *Files) part(ctx context.Context, r *api.Request, owner string, k key, size, from, to int64) (io.ReadCloser, error) {
	p := f.plans.find(k)
	if p == nil {
		watched, stop := watch(ctx, r)
		var err error
		p, err = f.plans.get(watched, owner, k)
		if stop(); err != nil {
			return nil, err
		}
	}
	if p.size != size {
		return nil, fmt.Errorf("%v has %d bytes, its plan %d: %w", k.hash, size, p.size, blob.ErrCorrupt)
	}
	if r.Memory != nil && !r.Memory.Reserve(pieceBytes+p.bytes()) {
		return nil, api.ErrBusy
	}
	file, err := f.o.Blobs.OpenAt(ctx, k.hash)
	if err != nil {
		return nil, err
	}
	return &partReader{file: file, hash: k.hash, plan: p, at: from, end: to}, nil
}

// watch returns a context that ends when the client of r disconnects. The caller must call stop.
func watch(ctx context.Context, r *api.Request) (watched context.Context, stop func()) {
	if r.Watch == nil {
		return ctx, func() {}
	}
	return r.Watch(ctx)
}
