package s3

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/sightline-dev/sightline/core/blob"
)

// maxBundles is the maximum number of bytes of the bundles of one network.
const maxBundles = 256 << 20

// bundleAge is the age at which DropBundles deletes bundles. A node that starts with a new network stores its bundles before any
// application uses them.
const bundleAge = 24 * time.Hour

// Bundles stores the bundles of the networks that serve the applications, as a data folder does. Each network is one ZIP archive, and the
// SHA-256 of the archive is the second part of its name.
type Bundles struct{ store *Store }

// NewBundles returns the bundles in s.
func NewBundles(s *Store) *Bundles { return &Bundles{s} }

func bundleFolder(base [32]byte) string { return bundlesPrefix + hex.EncodeToString(base[:]) + "/" }

// StoreBundles stores the bundles of a network, unless the store has the same. Other bundles of the network are an earlier form of it:
// StoreBundles replaces them.
func (b *Bundles) StoreBundles(base [32]byte, bundles fs.FS) error {
	err := b.keep(context.Background(), base, bundles)
	if err != nil {
		return fmt.Errorf("store bundles: %w", err)
	}
	return nil
}

func (b *Bundles) keep(ctx context.Context, base [32]byte, bundles fs.FS) error {
	data, err := pack(bundles)
	if err != nil {
		return err
	}
	name := bundleFolder(base) + blob.Sum(data).String()
	_, err = b.store.stat(ctx, name)
	if errors.Is(err, blob.ErrNotFound) {
		err = b.store.write(ctx, name, data, minio.PutObjectOptions{})
	}
	if err != nil {
		return err
	}
	return b.store.list(ctx, bundleFolder(base), "", func(o minio.ObjectInfo) error {
		if o.Key == name {
			return nil
		}
		return b.store.remove(ctx, o.Key)
	})
}

// pack returns the files as an archive. The same files give the same bytes.
func pack(files fs.FS) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		to, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store}) // weights hardly compress
		if err != nil {
			return err
		}
		_, err = to.Write(data)
		return err
	})
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Bundles returns the bundles of a network that StoreBundles stored, in memory. If they are missing, the error is fs.ErrNotExist.
func (b *Bundles) Bundles(base [32]byte) (fs.FS, error) {
	ctx := context.Background()
	var newest minio.ObjectInfo
	err := b.store.list(ctx, bundleFolder(base), "", func(o minio.ObjectInfo) error {
		if newest.Key == "" || o.LastModified.After(newest.LastModified) {
			newest = o
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if newest.Key == "" {
		return nil, fmt.Errorf("bundles of network %x: %w", base, fs.ErrNotExist)
	}
	data, err := b.store.read(ctx, newest.Key, maxBundles)
	if err != nil {
		return nil, err
	}
	if !strings.HasSuffix(newest.Key, "/"+blob.Sum(data).String()) {
		return nil, fmt.Errorf("%s: %w", newest.Key, blob.ErrCorrupt)
	}
	return zip.NewReader(bytes.NewReader(data), int64(len(data)))
}

// DropBundles deletes the bundles of networks for which keep returns false, if they are older than a day. Only the primary may call it.
func (b *Bundles) DropBundles(keep func(base [32]byte) bool) error {
	ctx := context.Background()
	before := b.store.o.Now().Add(-bundleAge)
	return b.store.list(ctx, bundlesPrefix, "", func(o minio.ObjectInfo) error {
		text, _, _ := strings.Cut(strings.TrimPrefix(o.Key, bundlesPrefix), "/")
		base, err := blob.ParseHash(text)
		if err != nil || keep(base) || o.LastModified.After(before) {
			return nil // not bundles, or still needed
		}
		return b.store.remove(ctx, o.Key)
	})
}
