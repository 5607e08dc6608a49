package s3

import (
	"context"
	"crypto/cipher"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/minio/minio-go/v7"
	"golang.org/x/crypto/acme/autocert"
	"golang.org/x/crypto/chacha20poly1305"

	"github.com/sightline-dev/sightline/core/blob"
)

// maxACME is the maximum number of bytes of a certificate or a key with its encryption.
const maxACME = 1 << 20

// acmeCache stores certificates, keys and challenges of ACME, so that each node of the cluster has them. An object is a nonce of 24 bytes and
// the encrypted data (XChaCha20-Poly1305), which its name authenticates.
type acmeCache struct {
	store  *Store
	aead   cipher.AEAD
	random io.Reader
}

// NewACMECache returns a cache for autocert in s, encrypted with a key of 32 bytes. random is the source of the nonces and must be fit for
// secrets. Objects of another key count as missing, so that autocert orders new certificates.
func NewACMECache(s *Store, key []byte, random io.Reader) (autocert.Cache, error) {
	aead, err := chacha20poly1305.NewX(key)
	if err != nil {
		return nil, fmt.Errorf("ACME cache: %w", err)
	}
	return &acmeCache{s, aead, random}, nil
}

// Get implements autocert.Cache.
func (c *acmeCache) Get(ctx context.Context, name string) ([]byte, error) {
	box, err := c.store.read(ctx, acmeObject(name), maxACME)
	if errors.Is(err, blob.ErrNotFound) {
		return nil, autocert.ErrCacheMiss
	}
	if err != nil {
		return nil, err
	}
	n := c.aead.NonceSize()
	if len(box) < n {
		return nil, autocert.ErrCacheMiss
	}
	data, err := c.aead.Open(nil, box[:n], box[n:], []byte(name))
	if err != nil {
		return nil, autocert.ErrCacheMiss
	}
	return data, nil
}

// Put implements autocert.Cache.
func (c *acmeCache) Put(ctx context.Context, name string, data []byte) error {
	nonce := make([]byte, c.aead.NonceSize(), c.aead.NonceSize()+len(data)+c.aead.Overhead())
	if _, err := io.ReadFull(c.random, nonce); err != nil {
		return fmt.Errorf("ACME cache: %w", err)
	}
	return c.store.write(ctx, acmeObject(name), c.aead.Seal(nonce, nonce, data, []byte(name)), minio.PutObjectOptions{})
}

// Delete implements autocert.Cache.
func (c *acmeCache) Delete(ctx context.Context, name string) error {
	return c.store.remove(ctx, acmeObject(name))
}

// acmeObject returns the object of a name, which may have any characters.
func acmeObject(name string) string { return acmePrefix + hex.EncodeToString([]byte(name)) }
