// Package s3 stores the pictures of a cluster in a bucket of an S3 server, with a cache in a local folder.
//
//	Put ──▶ S3 ──acknowledged──▶ cache
//	Get ──▶ cache ──missing or damaged──▶ S3 ──▶ cache
//
//	0/cluster              id of the cluster that the bucket belongs to      [Store.Claim]
//	0/blobs/3f/3f9a…       a picture, by the SHA-256 of its bytes            [Store]
//	0/bundles/HASH/HASH    the networks of earlier programs, a ZIP archive   [Bundles]
//	0/acme/HEX             certificates by ACME, encrypted                   [NewACMECache]
//
// The first segment is the shard, so that each shard can list its own pictures later. The client is minio-go. The cache is a folder of package
// blob and an index of sizes in memory. The cache need not survive anything: it finds a damaged file by the file's hash, and reads the
// picture from S3 again.
//
// The package neither decides which pictures may be deleted nor makes sure that only one node deletes. The caller does both.
package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sightline-dev/sightline/core/blob"
)

// Names of objects.
const (
	shard         = "0/"
	clusterObject = shard + "cluster"
	blobsPrefix   = shard + "blobs/"
	bundlesPrefix = shard + "bundles/"
	acmePrefix    = shard + "acme/"
)

// Defaults of [Options].
const (
	DefaultCacheBytes = 10 << 30
	DefaultMaxBytes   = 64 << 20
)

// Options are the settings of a [Store]. Location, Credentials, Resolve, Dial and Now are required.
type Options struct {
	Location    Location
	Credentials Credentials
	Region      string // "": the store asks the server

	// Resolve returns the addresses of a host, and Dial connects to an address, as those of package system do.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	Dial    func(ctx context.Context, network, address string, control func(network, address string) error) (net.Conn, error)
	Now     func() time.Time

	Cache      blob.FS // files of the cache; no other store may use them. nil: no cache
	CacheBytes int64   // maximum size of the cached pictures; 0 means DefaultCacheBytes
	MaxBytes   int64   // maximum size of one picture; 0 means DefaultMaxBytes

	// Rewrite reports whether Put also stores pictures that exist. It is true in the first minute of a primary, since late deletions of
	// the previous one may arrive then. After the minute the caller calls [Store.Restore]. nil: it is never true.
	Rewrite func() bool
}

// Store is a store of pictures in S3. Its methods may be called concurrently. If the server does not answer, or refuses a request, they
// return blob.ErrUnavailable: each request ends within 10 s, and within 3 s if no process listens. A transfer may take 1 s more for each
// MiB. Put sends two requests. Get reads a picture that arrives damaged twice.
type Store struct {
	o       Options
	client  *minio.Core
	bucket  string
	idle    func() // closes idle connections
	cache   *cache // nil: none
	metrics metrics

	mu        sync.Mutex
	rewritten map[blob.Hash]bool // pictures that were stored while Rewrite was true
}

var _ blob.Blobs = (*Store)(nil)

// Open opens the store. It reads the names of the cached pictures, and sends no request. The caller must call Close.
func Open(o Options) (*Store, error) {
	if o.CacheBytes == 0 {
		o.CacheBytes = DefaultCacheBytes
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.Rewrite == nil {
		o.Rewrite = func() bool { return false }
	}
	s := &Store{o: o, bucket: o.Location.Bucket, metrics: newMetrics(), rewritten: map[blob.Hash]bool{}}
	transport := &http.Transport{
		DialContext: s.dial, TLSHandshakeTimeout: answerTime, ResponseHeaderTimeout: answerTime,
		MaxIdleConns: 64, MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute, DisableCompression: true,
	}
	s.idle = transport.CloseIdleConnections
	var err error
	s.client, err = minio.NewCore(o.Location.Host, &minio.Options{
		Creds:  credentials.NewStaticV4(o.Credentials.AccessKey, o.Credentials.Secret, o.Credentials.Session),
		Secure: o.Location.Secure, Region: o.Region, Transport: transport, BucketLookup: minio.BucketLookupPath, MaxRetries: 1 + retries,
	})
	if err != nil {
		return nil, fmt.Errorf("s3: %w", err)
	}
	if o.Cache != nil {
		if s.cache, err = openCache(o.Cache, o.CacheBytes, o.MaxBytes); err != nil {
			return nil, fmt.Errorf("s3: cache: %w", err)
		}
	}
	return s, nil
}

// Close closes the idle connections. No other method may be called any longer.
func (s *Store) Close() error {
	s.idle()
	return nil
}

// Collectors returns the metrics sightline_s3_errors_total and sightline_s3_seconds. The caller registers them once.
func (s *Store) Collectors() []prometheus.Collector {
	return []prometheus.Collector{s.metrics.errors, s.metrics.seconds}
}

// object returns the name of a picture's object.
func object(h blob.Hash) string {
	name := h.String()
	return blobsPrefix + name[:2] + "/" + name
}

// Put implements [blob.Blobs]. It returns after the server has acknowledged the bytes. It needs memory for all of them.
func (s *Store) Put(ctx context.Context, r io.Reader, want blob.Hash) (blob.Hash, error) {
	var b bytes.Buffer
	if sized, ok := r.(interface{ Len() int }); ok {
		b.Grow(int(min(int64(sized.Len()), s.o.MaxBytes)) + bytes.MinRead) // so that the buffer never moves
	}
	h, err := blob.Receive(ctx, &b, r, want, s.o.MaxBytes)
	if err != nil {
		return blob.Hash{}, fmt.Errorf("put blob: %w", err)
	}
	if err := s.put(ctx, b.Bytes(), h); err != nil {
		return blob.Hash{}, err
	}
	return h, nil
}

// put stores data, whose hash is h. It does not trust the cache, because another node may have deleted the object.
func (s *Store) put(ctx context.Context, data []byte, h blob.Hash) (err error) {
	isStored := false
	at := s.cache.deletion()
	if s.o.Rewrite() {
		s.mu.Lock()
		s.rewritten[h] = true
		s.mu.Unlock()
	} else if isStored, err = s.stores(ctx, h, int64(len(data))); err != nil {
		return err
	}
	if !isStored {
		if err := s.write(ctx, object(h), data, minio.PutObjectOptions{}); err != nil {
			return err
		}
	}
	_ = s.cache.add(ctx, data, h, at) // reads work without it
	return nil
}

// stores reports whether the server has n bytes of a picture.
func (s *Store) stores(ctx context.Context, h blob.Hash, n int64) (bool, error) {
	stored, err := s.stat(ctx, object(h))
	if errors.Is(err, blob.ErrNotFound) {
		return false, nil
	}
	return err == nil && stored == n, err
}

// PutLazy stores data, whose hash is h, in the cache only. It is for pictures that may be lost: they end with the folder, or when the cache
// needs their space. Without a cache PutLazy does what Put does.
func (s *Store) PutLazy(ctx context.Context, data []byte, h blob.Hash) error {
	if s.cache == nil {
		return s.put(ctx, data, h)
	}
	return s.cache.addLocal(ctx, data, h)
}

// Get implements [blob.Blobs].
func (s *Store) Get(ctx context.Context, h blob.Hash) ([]byte, error) {
	if data, err := s.cache.get(ctx, h); err == nil {
		return data, nil
	}
	return s.fetch(ctx, h)
}

// fetch reads a picture from the server and stores it in the cache. If the bytes do not have their hash, or the connection ends within them,
// it reads them once more.
func (s *Store) fetch(ctx context.Context, h blob.Hash) ([]byte, error) {
	at := s.cache.deletion()
	data, err := s.readBlob(ctx, h)
	if errors.Is(err, blob.ErrCorrupt) || errors.Is(err, errCut) {
		data, err = s.readBlob(ctx, h)
	}
	if err != nil {
		return nil, err
	}
	_ = s.cache.add(ctx, data, h, at) // reads work without it
	return data, nil
}

func (s *Store) readBlob(ctx context.Context, h blob.Hash) ([]byte, error) {
	data, err := s.read(ctx, object(h), s.o.MaxBytes)
	if err == nil && blob.Sum(data) != h {
		err = fmt.Errorf("%v: %w", h, blob.ErrCorrupt)
	}
	return data, err
}

// Open implements [blob.Blobs]. A cached picture needs no memory.
func (s *Store) Open(ctx context.Context, h blob.Hash) (io.ReadCloser, error) {
	if r, err := s.cache.open(ctx, h); err == nil {
		return r, nil
	}
	data, err := s.fetch(ctx, h)
	if err != nil {
		return nil, err
	}
	if r, err := s.cache.open(ctx, h); err == nil {
		return r, nil
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

// OpenAt returns a reader of any part of the picture, which the caller closes. It does not check the hash: the caller checks the bytes, as
// those of blob.Folder.OpenAt. A reader stays valid if the picture is deleted meanwhile.
func (s *Store) OpenAt(ctx context.Context, h blob.Hash) (blob.ReaderAt, error) {
	if r, err := s.cache.openAt(ctx, h); err == nil {
		return r, nil
	}
	data, err := s.fetch(ctx, h)
	if err != nil {
		return nil, err
	}
	if r, err := s.cache.openAt(ctx, h); err == nil {
		return r, nil
	}
	return memory{bytes.NewReader(data)}, nil
}

// memory is a blob.ReaderAt of a picture that is not cached.
type memory struct{ *bytes.Reader }

// Close implements io.Closer.
func (memory) Close() error { return nil }

// Has implements [blob.Blobs]. A cached picture counts as stored, although another node may have deleted it from S3.
func (s *Store) Has(ctx context.Context, h blob.Hash) (bool, error) {
	_, err := s.Len(ctx, h)
	if errors.Is(err, blob.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Len implements [blob.Blobs].
func (s *Store) Len(ctx context.Context, h blob.Hash) (int64, error) {
	if n, err := s.cache.len(ctx, h); err == nil {
		return n, nil
	}
	return s.stat(ctx, object(h))
}

// Delete implements [blob.Blobs]. Only the primary of the cluster may call it. The request ends after 5 s. Other nodes may still have the
// picture in their caches.
func (s *Store) Delete(ctx context.Context, h blob.Hash) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !s.cache.isLocal(h) {
		if err := s.remove(ctx, object(h)); err != nil {
			return err
		}
	}
	s.mu.Lock()
	delete(s.rewritten, h)
	s.mu.Unlock()
	return s.cache.remove(ctx, h)
}

// Each implements [blob.Blobs]. It lists the objects of the server, not the cache.
func (s *Store) Each(ctx context.Context, from blob.Hash, yield func(blob.Hash) error) error {
	return s.each(ctx, from, func(h blob.Hash, _ minio.ObjectInfo) error { return yield(h) })
}

// EachOlder calls yield as Each does, with the pictures that were stored before a time. The server's clock gives the times.
func (s *Store) EachOlder(ctx context.Context, before time.Time, from blob.Hash, yield func(blob.Hash) error) error {
	return s.each(ctx, from, func(h blob.Hash, o minio.ObjectInfo) error {
		if !o.LastModified.Before(before) {
			return nil
		}
		return yield(h)
	})
}

func (s *Store) each(ctx context.Context, from blob.Hash, yield func(blob.Hash, minio.ObjectInfo) error) error {
	after := ""
	if !from.IsZero() {
		after = object(from)
		after = after[:len(after)-1] // a name before that of from
	}
	return s.list(ctx, blobsPrefix, after, func(o minio.ObjectInfo) error {
		h, err := blob.ParseHash(o.Key[min(len(o.Key), len(blobsPrefix)+3):])
		if err != nil || o.Key != object(h) || bytes.Compare(h[:], from[:]) < 0 {
			return nil // another kind of object
		}
		return yield(h, o)
	})
}

// Restore stores the pictures again that were stored while Rewrite was true and have since vanished, from the cache. The caller calls it
// after the minute, and again after an error.
func (s *Store) Restore(ctx context.Context) error {
	s.mu.Lock()
	var hashes []blob.Hash
	for h := range s.rewritten {
		hashes = append(hashes, h)
	}
	s.mu.Unlock()
	for _, h := range hashes {
		_, err := s.stat(ctx, object(h))
		if errors.Is(err, blob.ErrNotFound) {
			var data []byte
			if data, err = s.cache.get(ctx, h); err == nil {
				err = s.write(ctx, object(h), data, minio.PutObjectOptions{})
			}
		}
		if err != nil {
			return err
		}
		s.mu.Lock()
		delete(s.rewritten, h)
		s.mu.Unlock()
	}
	return nil
}
