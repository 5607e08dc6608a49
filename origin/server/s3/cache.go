package s3

import (
	"container/list"
	"context"
	"errors"
	"io"
	"sync"

	"github.com/sightline-dev/sightline/core/blob"
)

// cache has pictures in a local folder. It deletes those that were not used for the longest time. A nil cache has none. Its methods may be
// called concurrently. The files decide what is cached; the index is only for their sizes and the order of use.
type cache struct {
	folder *blob.Folder
	limit  int64 // bytes

	mu        sync.Mutex
	known     map[blob.Hash]*list.Element
	recent    *list.List // of *cached, most recently used first; a start does not know the order
	bytes     int64      // of the known files
	deletions uint64     // number of calls of remove
}

// cached is a file in the cache.
type cached struct {
	hash     blob.Hash
	size     int64
	verified bool // this process wrote the file, or read all of it
	local    bool // the picture is not in S3
}

func openCache(fsys blob.FS, limit, maxBytes int64) (*cache, error) {
	folder, err := blob.OpenFolder(fsys, blob.Options{MaxBytes: maxBytes})
	if err != nil {
		return nil, err
	}
	c := &cache{folder: folder, limit: limit, known: map[blob.Hash]*list.Element{}, recent: list.New()}
	ctx := context.Background()
	err = folder.Each(ctx, blob.Hash{}, func(h blob.Hash) error {
		n, err := folder.Len(ctx, h)
		if err == nil {
			c.insert(cached{hash: h, size: n})
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return c, c.evict(ctx)
}

// deletion returns the number of deletions. A caller of add takes it before it reads or writes the picture in S3.
func (c *cache) deletion() uint64 {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.deletions
}

// add stores a picture of S3, and makes room for it. If a picture was deleted since the deletion at, add stores nothing: it may be this one.
func (c *cache) add(ctx context.Context, data []byte, h blob.Hash, at uint64) error {
	if c == nil || int64(len(data)) > c.limit {
		return nil
	}
	if err := c.folder.PutLazy(ctx, data, h); err != nil {
		return err
	}
	c.mu.Lock()
	late := c.deletions != at
	if !late {
		c.insert(cached{hash: h, size: int64(len(data)), verified: c.isNew(h)})
	}
	c.mu.Unlock()
	if late {
		return c.deleteFiles(ctx, h)
	}
	return c.evict(ctx)
}

// addLocal stores a picture that is not in S3, unless it is cached.
func (c *cache) addLocal(ctx context.Context, data []byte, h blob.Hash) error {
	if err := c.folder.PutLazy(ctx, data, h); err != nil {
		return err
	}
	c.mu.Lock()
	if c.known[h] == nil {
		c.insert(cached{hash: h, size: int64(len(data)), verified: true, local: true})
	}
	c.mu.Unlock()
	return c.evict(ctx)
}

// isNew reports whether this process wrote a file, or read all of it; mu is held. PutLazy does not replace a file, so it may be damaged.
func (c *cache) isNew(h blob.Hash) bool {
	e := c.known[h]
	return e == nil || e.Value.(*cached).verified
}

// insert adds a file to the index as the most recently used one; mu is held.
func (c *cache) insert(e cached) {
	c.forget(e.hash)
	c.known[e.hash] = c.recent.PushFront(&e)
	c.bytes += e.size
}

// forget removes a file from the index; mu is held.
func (c *cache) forget(h blob.Hash) {
	if e := c.known[h]; e != nil {
		c.recent.Remove(e)
		delete(c.known, h)
		c.bytes -= e.Value.(*cached).size
	}
}

// evict deletes files until the others fit.
func (c *cache) evict(ctx context.Context) error {
	var over []blob.Hash
	c.mu.Lock()
	for c.bytes > c.limit {
		h := c.recent.Back().Value.(*cached).hash
		c.forget(h)
		over = append(over, h)
	}
	c.mu.Unlock()
	return c.deleteFiles(ctx, over...)
}

// deleteFiles deletes files that the index no longer has. It ignores the end of ctx, because nothing else would delete them before the next
// start.
func (c *cache) deleteFiles(ctx context.Context, hashes ...blob.Hash) error {
	var failed error
	for _, h := range hashes {
		failed = errors.Join(failed, c.folder.Delete(context.WithoutCancel(ctx), h))
	}
	return failed
}

// remove deletes a picture that was deleted in S3.
func (c *cache) remove(ctx context.Context, h blob.Hash) error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	c.deletions++
	c.forget(h)
	c.mu.Unlock()
	return c.deleteFiles(ctx, h)
}

// drop deletes a file for which a read returned err, if it is damaged or missing.
func (c *cache) drop(ctx context.Context, h blob.Hash, err error) {
	if !errors.Is(err, blob.ErrCorrupt) && !errors.Is(err, blob.ErrNotFound) {
		return
	}
	c.mu.Lock()
	c.forget(h)
	c.mu.Unlock()
	_ = c.deleteFiles(ctx, h) // the next read finds the damage again
}

// use makes a file the most recently used one. The caller has checked all of it.
func (c *cache) use(h blob.Hash) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.known[h]; e != nil {
		c.recent.MoveToFront(e)
		e.Value.(*cached).verified = true
	}
}

// entry returns the index's entry of a file, or a zero one.
func (c *cache) entry(h blob.Hash) cached {
	if c == nil {
		return cached{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.known[h]; e != nil {
		return *e.Value.(*cached)
	}
	return cached{}
}

// isLocal reports whether a picture was stored in the cache only.
func (c *cache) isLocal(h blob.Hash) bool { return c.entry(h).local }

// get returns the bytes of a cached picture. After an error the caller reads S3.
func (c *cache) get(ctx context.Context, h blob.Hash) ([]byte, error) {
	if c == nil {
		return nil, blob.ErrNotFound
	}
	data, err := c.folder.Get(ctx, h)
	if err != nil {
		c.drop(ctx, h, err)
		return nil, err
	}
	c.use(h)
	return data, nil
}

// open returns a reader of a cached picture, which was checked before.
func (c *cache) open(ctx context.Context, h blob.Hash) (io.ReadCloser, error) {
	if c == nil {
		return nil, blob.ErrNotFound
	}
	if err := c.verify(ctx, h); err != nil {
		return nil, err
	}
	r, err := c.folder.Open(ctx, h)
	if err != nil {
		c.drop(ctx, h, err)
		return nil, err
	}
	c.use(h)
	return &dropping{r, func(err error) { c.drop(ctx, h, err) }}, nil
}

// verify reads a file to its end, unless this process has. If the file is damaged, verify drops it and returns an error.
func (c *cache) verify(ctx context.Context, h blob.Hash) error {
	if c.entry(h).verified {
		return nil
	}
	r, err := c.folder.Open(ctx, h)
	if err == nil {
		_, err = io.Copy(io.Discard, r)
		err = errors.Join(err, r.Close())
	}
	if err != nil {
		c.drop(ctx, h, err)
		return err
	}
	c.use(h)
	return nil
}

// dropping is a reader that reports its errors.
type dropping struct {
	io.ReadCloser
	failed func(error)
}

func (d *dropping) Read(p []byte) (int, error) {
	n, err := d.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		d.failed(err)
	}
	return n, err
}

// openAt returns a reader of any part of a cached picture, which was checked before.
func (c *cache) openAt(ctx context.Context, h blob.Hash) (blob.ReaderAt, error) {
	if c == nil {
		return nil, blob.ErrNotFound
	}
	if err := c.verify(ctx, h); err != nil {
		return nil, err
	}
	r, err := c.folder.OpenAt(ctx, h)
	if err != nil {
		c.drop(ctx, h, err)
		return nil, err
	}
	c.use(h)
	return r, nil
}

// len returns the number of bytes of a cached picture.
func (c *cache) len(ctx context.Context, h blob.Hash) (int64, error) {
	if c == nil {
		return 0, blob.ErrNotFound
	}
	if err := c.verify(ctx, h); err != nil { // a power failure may have cut the file
		return 0, err
	}
	return c.folder.Len(ctx, h)
}
